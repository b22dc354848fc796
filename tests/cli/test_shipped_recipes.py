"""Every recipe that is shipped ends converged as it is shipped, on a small head with an odd number of lines."""

from pathlib import Path

import numpy as np
import pytest

from mri_design import load_phantom
from mri_design.experiment import shipped_recipes
from tests.cli.folders import Run


@pytest.mark.parametrize("name", shipped_recipes())
def test_a_design_with_a_shipped_recipe_converges(tmp_path: Path, run: Run, name: str) -> None:
    data = load_phantom("brain", shape=(29, 24), rng=np.random.default_rng(0))
    np.save(tmp_path / "odd.npy", data.kspace)
    run("design", tmp_path / "odd.npy", "--lines", 13, "--start", 10, "--recipe", name, "--out", tmp_path / "o", code=0)
