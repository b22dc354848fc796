"""The package hands its names on without loading anything until they are asked for."""

import importlib
import inspect
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import mri_design
import mri_design as md


def test_every_public_name_exists() -> None:
    assert not [name for name in mri_design.__all__ if not hasattr(mri_design, name)]
    assert not hasattr(mri_design, "no_such_name")


def test_every_name_of_a_public_subpackage_is_a_part_of_it_whatever_was_imported_before() -> None:
    modules = [importlib.import_module(f"mri_design.{name}") for name in ("operators", "sites", "variances")]
    for module in modules:
        for path in pkgutil.iter_modules(module.__path__):
            importlib.import_module(f"{module.__name__}.{path.name}")  # sets the module as an attribute of its package
    wrong = [f"{m.__name__}.{name}" for m in modules for name in m.__all__ if inspect.ismodule(getattr(m, name))]
    assert not wrong


def test_importing_the_package_loads_no_numerics() -> None:
    code = "import sys, mri_design; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_one_analysis_operator_and_its_potentials_stand_for_a_block() -> None:
    rng = np.random.default_rng(0)
    x, b = rng.standard_normal((6, 8)), rng.standard_normal((12, 8))
    made = {"measurement": md.Dense(x), "data": rng.standard_normal(6), "noise_variance": 0.3}
    given = md.GeneralizedLinearModel(**made, analysis=md.Dense(b), potentials=md.Laplace(scale=1.5))
    (block,) = given.blocks
    np.testing.assert_array_equal(block.analysis(np.eye(8)[0]), b[:, 0])
    assert block.potential.scale == 1.5


@pytest.mark.slow
def test_the_fixed_names_on_a_scan() -> None:
    recipe = md.Recipe.of({"simulation": {"matrix": 16}})
    scan = md.load("phantom:brain", recipe=recipe).data
    mask = np.zeros(16, dtype=bool)
    mask[[1, 4, *range(5, 11), 13]] = True
    model = md.mr_image_model(scan, mask)
    assert model.measurement.lines.tolist() == np.flatnonzero(mask).tolist()
    again = md.mr_image_model(scan.kspace[0, 0], mask, noise_variance=scan.noise_variance)
    np.testing.assert_array_equal(again.data, model.data)
    assert md.map_estimate(model).convergence.converged
    for wrong in (np.ones(15, dtype=bool), np.full(16, 0.5), np.zeros(16, dtype=bool)):
        with pytest.raises(md.InputError):
            md.mr_image_model(scan, wrong)
