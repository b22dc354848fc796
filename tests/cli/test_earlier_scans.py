"""Designs that begin with what an earlier scan of the same object showed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mri_design import MRSlice
from mri_design.design.strategy import Strategy
from mri_design.runs.design import run as design_run
from mri_design.runs.design.earlier import EarlierImage, informed
from tests.cli.folders import Designed, Run, manifest, page, rows, settings

OPTIONS = ("--lines", 12, "--recipe", "quick.toml")


def column(folder: Path) -> list[float]:
    return [float(row["side_information_weight"]) for row in rows(folder / "steps.csv")]


def blocks(folder: Path) -> list[str]:
    return [row["side_information_weight"] for row in rows(folder / "blocks.csv")]


@pytest.fixture(scope="module")
def repeat(run: Run, work: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The scan once more with other noise, and the folder of a design informed by it."""
    folder = tmp_path_factory.mktemp("earlier")
    with np.load(work / "scan.npz") as stored:
        rng, sd = np.random.default_rng(7), np.sqrt(float(stored["noise_variance"]))
        parts = rng.standard_normal((2, *stored["kspace"].shape)) * sd
        again = {name: stored[name] for name in stored.files}
        again["kspace"] = (stored["kspace"] + parts[0] + 1j * parts[1]).astype(np.complex64)
        again["noise_variance"] = np.float64(2 * sd**2)
    np.savez(folder / "repeat.npz", **again)
    run("design", "scan.npz", *OPTIONS, "--seen", folder / "repeat.npz", "--out", folder / "run", code=0)
    return folder / "repeat.npz", folder / "run"


def test_the_report_says_how_much_the_earlier_scan_counted(repeat: tuple[Path, Path], designed: Designed) -> None:
    file, out = repeat
    weights, told = column(out), settings(out)["weight_of_earlier_scan"]
    assert settings(out)["seen"] == "repeat.npz#0" and told == pytest.approx(weights[-1], rel=1e-4)
    assert all(0 < weight <= 1 for weight in weights) and weights[0] == pytest.approx(256 / 257, rel=1e-4)
    assert [entry["name"] for entry in manifest(out)["inputs"]] == ["scan.npz", file.name]
    assert f"repeat.npz#0, counts for {told:.0%} of the choice" in page(out) and OVERRULED not in page(out)
    assert (
        "side_information_weight" not in rows(designed[0] / "steps.csv")[0]
    )  # where there is none, nothing speaks of it
    assert not {"seen", "weight_of_earlier_scan"} & settings(designed[0]).keys()


OVERRULED = "the earlier scan hardly predicts the lines of this one"


def test_a_contradicted_scan_is_said(run: Run, tmp_path: Path) -> None:
    """Another head: by 18 lines it has nearly no weight."""
    seen = ("--seen", "head.npz", "--out", tmp_path / "run")
    result = run("design", "scan.npz", "--lines", 18, "--recipe", "quick.toml", *seen, code=0)
    assert 0 < column(tmp_path / "run")[-1] < 0.1
    assert OVERRULED in result.output and OVERRULED in page(tmp_path / "run")


def test_an_earlier_scan_with_half_its_lines_does(run: Run, work: Path, tmp_path: Path) -> None:
    """A prescan: what it did not measure counts as unknown, not as empty."""
    with np.load(work / "scan.npz") as stored:
        kspace = stored["kspace"].copy()
        kspace[..., :5, :] = 0
        kspace[..., 19:, :] = 0
        np.savez(tmp_path / "prescan.npz", kspace=kspace, noise_variance=stored["noise_variance"])
    recipe = ("--recipe", "quick.toml")
    seen = ("--seen", tmp_path / "prescan.npz")
    run("design", "scan.npz", "--lines", 22, *recipe, *seen, "--out", tmp_path / "run", code=0)
    mask = np.load(tmp_path / "run" / "mask.npy")
    assert mask[:5].any() and mask[19:].any()


IN_A_PLANE = ("--encoding", "plane", "--samples", 160, "--block", 24, "--recipe", "quick.toml")


def test_a_plane_follows_the_scan_of_the_same_object(run: Run, tmp_path: Path, repeat: tuple[Path, Path]) -> None:
    out = tmp_path / "run"
    result = run("design", "scan.npz", *IN_A_PLANE, "--seen", repeat[0], "--out", out, code=(0, 4))
    first, *others = blocks(out)
    assert not first and others and min(map(float, others)) > 0.5
    told = settings(out)["weight_of_earlier_scan"]
    assert settings(out)["seen"] == "repeat.npz#0" and told > 0.5
    assert f"repeat.npz#0, explains {told:.0%} of how single samples differ" in page(out)
    assert "hardly predicts the samples" not in result.output
    assert np.load(out / "mask.npy").sum() == 160


def test_another_object_is_said_in_a_plane_too(run: Run, tmp_path: Path) -> None:
    result = run("design", "scan.npz", *IN_A_PLANE, "--seen", "head.npz", "--out", tmp_path / "run", code=(0, 4))
    assert 0 <= float(blocks(tmp_path / "run")[-1]) < 0.25
    said = "the earlier scan hardly predicts the samples of this one"
    assert said in " ".join(result.output.split()) and said in page(tmp_path / "run")


@pytest.mark.thorough
def test_positions_have_an_earlier_scan_each(
    run: Run, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two positions, the second first, and a repeat of both: each image belongs to the slice that it is of."""
    with np.load(work / "scan.npz") as stored:
        first, sd = stored["kspace"].reshape(1, 1, 24, 20), np.sqrt(float(stored["noise_variance"]))
    both = np.concatenate([first, first[..., ::-1, :].conj()])
    parts = np.random.default_rng(3).standard_normal((2, *both.shape)) * sd
    for name, kspace, variance in (("two", both, sd**2), ("again", both + parts[0] + 1j * parts[1], 2 * sd**2)):
        np.savez(tmp_path / f"{name}.npz", kspace=kspace.astype(np.complex64), noise_variance=np.float64(variance))
    pairs: list[list[tuple[EarlierImage, MRSlice]]] = []

    def watched(images: Sequence[EarlierImage], slices: Sequence[MRSlice], *others: Any) -> Strategy:
        pairs.append(list(zip(images, slices, strict=True)))
        return informed(images, slices, *others)

    monkeypatch.setattr(design_run, "informed", watched)
    words = ("design", tmp_path / "two.npz", *IN_A_PLANE, "--slice", 1, "--positions", "all")
    run(*words, "--seen", tmp_path / "again.npz", "--out", tmp_path / "run", code=(0, 4))
    assert float(blocks(tmp_path / "run")[-1]) > 0.5 and len(pairs) == 1 and len(pairs[0]) == 2
    images, slices = zip(*pairs[0], strict=True)
    truths = [one.encoding().adjoint(one.acquire(range(480))) for one in slices]
    for image, own, other in zip(images, truths, truths[::-1], strict=True):
        assert abs(np.vdot(image.image, own)) > 1.1 * abs(np.vdot(image.image, other))
    one = run(*words, "--seen", f"{tmp_path / 'again.npz'}#0", "--out", tmp_path / "one", code=2)
    assert "give 2, one for every position that shares the mask" in " ".join(one.output.split())


def test_a_plane_that_an_earlier_design_sampled_counts_as_unknown_elsewhere(
    run: Run, work: Path, tmp_path: Path, repeat: tuple[Path, Path]
) -> None:
    with np.load(repeat[0]) as stored:
        again = {name: stored[name] for name in stored.files}
    keep = np.random.default_rng(0).random(again["kspace"].shape[-2:]) < 0.4
    keep[6:18, 4:16] = True
    np.savez(tmp_path / "holes.npz", **again | {"kspace": again["kspace"] * keep})
    out = tmp_path / "run"
    run("design", "scan.npz", *IN_A_PLANE, "--seen", tmp_path / "holes.npz", "--out", out, code=(0, 4))
    chosen = np.load(out / "mask.npy")
    assert (chosen & ~keep).any() and (chosen & keep).any()
