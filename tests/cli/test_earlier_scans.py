"""Designs that begin with what an earlier scan of the same object showed."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

Run = Callable[..., Result]
OPTIONS = ("--lines", 12, "--recipe", "quick.toml")


def weights(folder: Path) -> list[float]:
    with (folder / "steps.csv").open(newline="") as stream:
        return [float(row["opinion_weight"]) for row in csv.DictReader(stream)]


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
    result = run("design", "scan.npz", *OPTIONS, "--seen", folder / "repeat.npz", "--out", folder / "run")
    assert result.exit_code == 0, result.stderr
    return folder / "repeat.npz", folder / "run"


def test_the_report_says_how_much_the_earlier_scan_counted(repeat: tuple[Path, Path]) -> None:
    file, out = repeat
    settings = json.loads((out / "manifest.json").read_text())["settings"]
    assert settings["seen"] == "repeat.npz#0"
    assert settings["weight_of_earlier_scan"] == pytest.approx(weights(out)[-1], rel=1e-4)
    assert all(0 < weight <= 1 for weight in weights(out)) and weights(out)[0] == pytest.approx(256 / 257, rel=1e-4)
    inputs = [entry["name"] for entry in json.loads((out / "manifest.json").read_text())["inputs"]]
    assert inputs == ["scan.npz", file.name]
    assert (
        f"repeat.npz#0, counts for {settings['weight_of_earlier_scan']:.0%} of the choice"
        in (out / "report.html").read_text()
    )


def test_without_one_no_column_and_no_setting_speaks_of_it(run: Run, tmp_path: Path) -> None:
    assert run("design", "scan.npz", *OPTIONS, "--out", tmp_path / "run").exit_code == 0
    assert "opinion_weight" not in (tmp_path / "run" / "steps.csv").read_text()
    assert (
        not {"seen", "weight_of_earlier_scan"}
        & json.loads((tmp_path / "run" / "manifest.json").read_text())["settings"].keys()
    )


OVERRULED = "the earlier scan did not predict the lines of this one"


def test_a_contradicted_scan_is_said(run: Run, tmp_path: Path) -> None:
    """Another head: by 18 lines it has nearly no weight."""
    seen = ("--seen", "head.npz", "--out", tmp_path / "run")
    result = run("design", "scan.npz", "--lines", 18, "--recipe", "quick.toml", *seen)
    assert result.exit_code == 0 and 0 < weights(tmp_path / "run")[-1] < 0.1
    assert OVERRULED in result.output and OVERRULED in (tmp_path / "run" / "report.html").read_text()


def test_a_scan_of_the_same_object_is_not_said_to_be_contradicted(
    run: Run, tmp_path: Path, repeat: tuple[Path, Path]
) -> None:
    seen = ("--seen", repeat[0], "--out", tmp_path / "run")
    result = run("design", "scan.npz", "--lines", 18, "--recipe", "quick.toml", *seen)
    assert result.exit_code == 0 and weights(tmp_path / "run")[-1] > 0.9
    assert OVERRULED not in result.output and OVERRULED not in (tmp_path / "run" / "report.html").read_text()


def test_an_earlier_scan_with_half_its_lines_does(run: Run, work: Path, tmp_path: Path) -> None:
    """A prescan: what it did not measure counts as unknown, not as empty."""
    with np.load(work / "scan.npz") as stored:
        kspace = stored["kspace"].copy()
        kspace[..., :5, :] = 0
        kspace[..., 19:, :] = 0
        np.savez(tmp_path / "prescan.npz", kspace=kspace, noise_variance=stored["noise_variance"])
    recipe = ("--recipe", "quick.toml")
    seen = ("--seen", tmp_path / "prescan.npz")
    result = run("design", "scan.npz", "--lines", 22, *recipe, *seen, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.stderr
    mask = np.load(tmp_path / "run" / "mask.npy")
    assert mask[:5].any() and mask[19:].any()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--seen", "phantom:t2w"), 3, "wanted that of the scan, 24 x 20"),
        (("--seen", "scan.npz#0,1"), 3, "slices"),
        (("--seen", "scan.npz", "--strategy", "random"), 2, "an earlier scan informs the strategy 'calibrated'"),
        (("--seen", "nothing.npz"), 3, "nothing.npz"),
        (("--seen", "snow.npz"), 3, "earlier scan snow.npz#0: k-space centre: got noise only"),
    ],
)
def test_what_cannot_be_seen_is_refused(
    run: Run, work: Path, tmp_path: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    rng = np.random.default_rng(0)
    snow = (rng.standard_normal((1, 1, 24, 20)) + 1j * rng.standard_normal((1, 1, 24, 20))).astype(np.complex64)
    np.savez(tmp_path / "snow.npz", kspace=snow, noise_variance=np.float64(1))
    for name, folder in (("scan.npz", work), ("snow.npz", tmp_path)):
        words = tuple(word.replace(name, str(folder / name)) for word in words)
    result = run("design", "scan.npz", *OPTIONS, *words, "--out", tmp_path / "run")
    assert (result.exit_code, said in result.stderr) == (code, True), result.stderr
    assert not (tmp_path / "run" / "lines.csv").exists()
