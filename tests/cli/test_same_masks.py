"""`design` and `compare` make the same masks of the same scan with the same recipe and seed."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from mri_design import load_phantom

Run = Callable[..., Result]
SEED = 3


@pytest.fixture(scope="module")
def coils(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scan of three coils whose noise and maps are unknown."""
    path = tmp_path_factory.mktemp("coils") / "coils.npy"
    np.save(path, load_phantom("brain", shape=(32, 28), n_coils=3, rng=np.random.default_rng(2)).kspace)
    return path


@pytest.mark.parametrize(
    ("several", "names", "recipe"),
    [
        (False, ("calibrated", "vd-polynomial:3"), ""),
        (False, ("information-gain",), "[constraints]\nmax_jump = 6\n"),
        (True, ("calibrated",), "[design]\nstart = 8\nblock = 2\n"),
    ],
    ids=["plain", "short jumps", "coils and blocks"],
)
def test_the_first_draw_of_a_comparison_is_the_design(
    run: Run, work: Path, coils: Path, tmp_path: Path, several: bool, names: tuple[str, ...], recipe: str
) -> None:
    scan = coils if several else "scan.npz"
    settings = tmp_path / "recipe.toml"
    quick = "[inference]\nsamples = 4\nloops = 2\n[reconstruction]\nmethod = 'zero-filled'\n"
    settings.write_text(quick + recipe)
    common = ("--recipe", settings, "--seed", SEED)
    compared = run(
        *("compare", scan, "--lines", "11,12", "--strategies", ",".join(names), "--seeds", 2, "--jobs", 1),
        *common,
        *("--out", tmp_path / "study"),
    )
    assert compared.exit_code in (0, 4), compared.output
    masks = json.loads((tmp_path / "study" / "masks.json").read_text())
    for name in names:
        out = tmp_path / name.replace(":", "-")
        result = run("design", scan, "--strategy", name, "--lines", 11, *common, "--out", out)
        assert result.exit_code in (0, 4), result.output
        lines = json.loads((out / "manifest.json").read_text())["lines"]
        first = [m["order"] for m in masks if (m["strategy"], m["lines"], m["draw"]) == (name, 11, 0)]
        assert first == [lines], name
