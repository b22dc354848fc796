"""The package hands its names on without loading anything until they are asked for."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

import mri_design as md
from mri_design.operators import Dense
from mri_design.sites import Laplace

SUBJECTS = [name for name in md.__all__ if inspect.ismodule(getattr(md, name))]


def test_the_top_has_forty_names_and_the_subpackages() -> None:
    assert len(md.__all__) - len(SUBJECTS) <= 40
    assert dir(md) == md.__all__
    assert {"operators", "sites", "variances", "glm", "formats", "exchange"} <= {*SUBJECTS}
    with pytest.raises(AttributeError):
        md.no_such_name  # noqa: B018


@pytest.mark.parametrize("subject", SUBJECTS)
def test_names_of_a_subpackage_exist_whatever_was_imported_before(subject: str) -> None:
    module = getattr(md, subject)
    for path in pkgutil.iter_modules(getattr(module, "__path__", ())):
        importlib.import_module(f"{module.__name__}.{path.name}")  # sets the module as an attribute of its package
    assert not [name for name in module.__all__ if inspect.ismodule(getattr(module, name))]


def test_help_of_the_package_lists_its_subpackages() -> None:
    assert sorted(re.findall(r"^``(\w+)``", md.__doc__ or "", re.M)) == sorted(SUBJECTS)


@pytest.mark.parametrize("kind", [md.LoadedScan, md.ScanImage, md.ScanDesign, md.StrategyComparison])
def test_help_of_a_result_names_attributes_that_it_has(kind: type) -> None:
    known = {*dir(kind), *(field.name for field in fields(kind))}
    named = re.findall(r"``(?:scan|design|image)?\.?([a-z_]+)(?:\([^`]*\))?``", kind.__doc__ or "")
    assert len(named) >= 3 and {*named} <= known


def test_importing_the_package_loads_no_numerics() -> None:
    code = "import sys, mri_design; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_one_analysis_operator_and_its_potentials_stand_for_a_block() -> None:
    rng = np.random.default_rng(0)
    x, b = rng.standard_normal((6, 8)), rng.standard_normal((12, 8))
    made = {"measurement": Dense(x), "data": rng.standard_normal(6), "noise_variance": 0.3}
    given = md.GeneralizedLinearModel(**made, analysis=Dense(b), potentials=Laplace(rate=1.5))
    (block,) = given.blocks
    np.testing.assert_array_equal(block.analysis(np.eye(8)[0]), b[:, 0])
    assert block.potential.rate == 1.5


@pytest.mark.slow
def test_the_fixed_names_on_a_scan() -> None:
    recipe = md.Recipe.of({"input": {"matrix": 16}})
    scan = md.load("phantom:brain", recipe=recipe).data
    mask = np.zeros(16, dtype=bool)
    mask[[1, 4, *range(5, 11), 13]] = True
    model = md.experiment.mr_image_model(scan, mask)
    assert model.measurement.lines.tolist() == np.flatnonzero(mask).tolist()
    again = md.experiment.mr_image_model(scan.kspace[0, 0], mask, noise_variance=scan.noise_variance)
    np.testing.assert_array_equal(again.data, model.data)
    assert md.map_estimate(model).convergence.converged
    for wrong in (np.ones(15, dtype=bool), np.full(16, 0.5), np.zeros(16, dtype=bool)):
        with pytest.raises(md.InputError):
            md.experiment.mr_image_model(scan, wrong)
