"""Every recipe that is shipped ends converged as it is shipped, on a small head with an odd number of lines."""

from pathlib import Path

import numpy as np
import pytest

from mri_design import load_phantom
from mri_design.experiment import shipped_recipes
from tests.cli.folders import Run, manifest


@pytest.mark.parametrize("name", shipped_recipes())
def test_a_design_with_a_shipped_recipe_converges(tmp_path: Path, run: Run, name: str) -> None:
    data = load_phantom("brain", shape=(29, 24), rng=np.random.default_rng(0))
    np.save(tmp_path / "odd.npy", data.kspace)
    words = ("--lines", 13, "--start", 10, "--recipe", name, "--no-report", "--out", tmp_path / "o")
    run("design", tmp_path / "odd.npy", *words, code=0)
    assert (
        manifest(tmp_path / "o")["status"] == "converged" and np.isfinite(np.load(tmp_path / "o" / "recon.npy")).all()
    )
