"""`--with` a repeat of the scan: it steers the mask where the first lines show the same, and nothing else does."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.folders import Run, manifest, order, rows, settings
from tests.simulated_scanner import stream_of

OPTIONS = ("--lines", 12, "--recipe", "quick.toml", "--no-report")
IN_A_PLANE = ("--encoding", "plane", "--samples", 160, "--block", 24, "--recipe", "quick.toml", "--no-report")


def weights(folder: Path, table: str = "steps.csv") -> list[float]:
    return [float(row["side_information_weight"] or 0) for row in rows(folder / table)]


@pytest.fixture(scope="module")
def repeat(run: Run, work: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The scan once more with other noise, and the folder of a design that knows it."""
    folder = tmp_path_factory.mktemp("earlier")
    with np.load(work / "scan.npz") as stored:
        rng, sd = np.random.default_rng(7), np.sqrt(float(stored["noise_variance"]))
        parts = rng.standard_normal((2, *stored["kspace"].shape)) * sd
        again = (stored["kspace"] + parts[0] + 1j * parts[1]).astype(np.complex64)
        np.savez(folder / "repeat.npz", kspace=again, noise_variance=np.float64(2 * sd**2))
    run("design", "scan.npz", *OPTIONS, "--with", folder / "repeat.npz", "--out", folder / "run", code=0)
    return folder / "repeat.npz", folder / "run"


def test_a_repeat_steers_the_mask_and_informs_the_image(repeat: tuple[Path, Path]) -> None:
    file, out = repeat
    found = weights(out)
    assert settings(out)["with"] == ["repeat.npz"] and "companions" in settings(out)
    assert settings(out)["weight_of_earlier_scan"] == pytest.approx(found[-1], rel=1e-4)
    assert all(0 < weight <= 1 for weight in found) and found[0] == pytest.approx(256 / 257, rel=1e-4)
    assert [entry["name"] for entry in manifest(out)["inputs"]] == ["scan.npz", file.name]


@pytest.mark.parametrize("other", ["head.npz", "scan.npz", "image.npy"])
def test_another_object_the_scan_itself_and_images_do_not_steer(
    run: Run, work: Path, tmp_path: Path, repeat: tuple[Path, Path], other: str
) -> None:
    with np.load(work / "scan.npz") as stored:
        np.save(tmp_path / "image.npy", np.abs(stored["reference"][0]))
    given = tmp_path / other if other == "image.npy" else other
    run("design", "scan.npz", *OPTIONS, "--out", tmp_path / "alone", code=(0, 4))
    run("design", "scan.npz", *OPTIONS, "--with", given, "--out", tmp_path / "with", code=(0, 4))
    assert order(tmp_path / "with") == order(tmp_path / "alone") != order(repeat[1])
    assert "weight_of_earlier_scan" not in settings(tmp_path / "with")
    assert "side_information_weight" not in rows(tmp_path / "with" / "steps.csv")[0]


def test_what_a_prescan_did_not_measure_counts_as_unknown(run: Run, tmp_path: Path, repeat: tuple[Path, Path]) -> None:
    with np.load(repeat[0]) as stored:
        again = {name: stored[name] for name in stored.files}
    kspace = again["kspace"].copy()
    kspace[..., :5, :] = kspace[..., 19:, :] = 0
    np.savez(tmp_path / "lines.npz", **again | {"kspace": kspace})
    words = ("--lines", 22, *OPTIONS[2:], "--with", tmp_path / "lines.npz")
    run("design", "scan.npz", *words, "--out", tmp_path / "run", code=(0, 4))
    mask = np.load(tmp_path / "run" / "mask.npy")
    assert settings(tmp_path / "run")["weight_of_earlier_scan"] > 0 and mask[:5].any() and mask[19:].any()
    keep = np.random.default_rng(0).random(kspace.shape[-2:]) < 0.4
    keep[6:18, 4:16] = True
    np.savez(tmp_path / "holes.npz", **again | {"kspace": again["kspace"] * keep})
    words = (*IN_A_PLANE, "--with", tmp_path / "holes.npz", "--out", tmp_path / "plane")
    run("design", "scan.npz", *words, code=(0, 4))
    chosen = np.load(tmp_path / "plane" / "mask.npy")
    assert chosen.sum() == 160 and (chosen & ~keep).any() and (chosen & keep).any()
    assert "weight_of_earlier_scan" in settings(tmp_path / "plane")


def test_slices_of_a_plane_have_one_each(run: Run, work: Path, tmp_path: Path) -> None:
    """Two positions and a repeat of both; or of one alone, chosen by its number: the other's says less."""
    with np.load(work / "scan.npz") as stored:
        first, sd = stored["kspace"].reshape(1, 1, 24, 20), np.sqrt(float(stored["noise_variance"]))
    both = np.concatenate([first, first[..., ::-1, :].conj()])
    parts = np.random.default_rng(3).standard_normal((2, *both.shape)) * sd
    for name, kspace, variance in (("two", both, sd**2), ("again", both + parts[0] + 1j * parts[1], 2 * sd**2)):
        np.savez(tmp_path / f"{name}.npz", kspace=kspace.astype(np.complex64), noise_variance=np.float64(variance))
    again = tmp_path / "again.npz"
    for out, slices, given in (("both", "all", again), ("right", 1, f"{again}#1"), ("wrong", 1, f"{again}#0")):
        words = (*IN_A_PLANE, "--slices", slices, "--jobs", 1, "--with", given, "--out", tmp_path / out)
        run("design", tmp_path / "two.npz", *words, code=(0, 4))
    of_both, right, wrong = (weights(tmp_path / out, "blocks.csv")[-1] for out in ("both", "right", "wrong"))
    assert of_both > 0.5 < right and wrong < right


def test_it_steers_at_the_scanner_too(run: Run, work: Path, tmp_path: Path, repeat: tuple[Path, Path]) -> None:
    with np.load(work / "scan.npz") as stored:
        (tmp_path / "readouts.mrd").write_bytes(stream_of(stored["kspace"][0]))
        noise = ("--noise-sd", float(np.sqrt(stored["noise_variance"])))
    words = (*OPTIONS, *noise, "--with", repeat[0])
    run("adapt", tmp_path / "readouts.mrd", *words, "--out", tmp_path / "adapt", code=(0, 4))
    run("design", "scan.npz", *words, "--out", tmp_path / "design", code=(0, 4))
    assert order(tmp_path / "adapt") == order(tmp_path / "design")
    assert settings(tmp_path / "adapt")["weight_of_earlier_scan"] > 0
