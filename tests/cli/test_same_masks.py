"""`design` and `compare` make the same masks of the same scan with the same recipe and seed."""

import json
from pathlib import Path

import numpy as np
import pytest

from mri_design import load_phantom
from tests.cli.folders import Run, manifest

QUICK = "[simulation]\nmatrix = 16\n[inference]\nsamples = 4\nloops = 2\n[reconstruction]\nmethod = 'zero-filled'\n"
LINES = ("--lines", "11")


@pytest.mark.parametrize(
    ("scan", "names", "count", "recipe"),
    [
        ("scan.npz", ("information-gain", "vd-polynomial:3"), LINES, "[constraints]\nmax_jump = 6\n"),
        ("coils.npy", ("calibrated",), LINES, "[design]\nstart = 8\nblock = 2\n"),
        ("scan.npz", ("calibrated", "caipi:2x2"), ("--samples", "80"), "[design]\nencoding = 'plane'\nblock = 20\n"),
        ("phantom:brain", ("information-gain", "half-turn"), ("--shots", "6"), "[design]\nencoding = 'radial'\n"),
    ],
    ids=["short jumps", "coils and blocks", "plane", "spokes"],
)
def test_the_first_draw_of_a_comparison_is_the_design(
    run: Run, work: Path, tmp_path: Path, scan: str, names: tuple[str, ...], count: tuple[str, str], recipe: str
) -> None:
    """Also where noise and maps of three coils are unknown, or training scans and other counts come with it."""
    np.save(work / "coils.npy", load_phantom("brain", shape=(24, 20), n_coils=3, rng=np.random.default_rng(2)).kspace)
    (tmp_path / "recipe.toml").write_text(QUICK + recipe)
    common = ("--recipe", tmp_path / "recipe.toml", "--seed", 3)
    option, number = count[0], int(count[1])
    words = (option, f"{number},{number + 1}", "--strategies", ",".join(names), "--seeds", 2, "--jobs", 1)
    run("compare", scan, *words, *common, "--out", tmp_path / "study", code=(0, 4))
    masks = json.loads((tmp_path / "study" / "masks.json").read_text())
    unit = option.removeprefix("--")
    for name in names:
        out = tmp_path / name.replace(":", "-")
        run("design", scan, "--strategy", name, *count, *common, "--out", out, code=(0, 4))
        first = [
            mask["order"] for mask in masks if (mask["strategy"], mask[unit], mask["draw"]) == (name, int(number), 0)
        ]
        assert first == [manifest(out)["lines"]], name
