"""Settings that leave no error but rounding."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from mri_design.estimation import IRLS
from mri_design.inference import DoubleLoop
from mri_design.model import GaussianPosterior, GeneralizedLinearModel
from mri_design.potentials import Gaussian, Laplace, StudentT
from mri_design.variances import Exact

SITES = {
    "Laplace": Laplace,
    "Student-t": lambda scale: StudentT(3.0, scale**2),
    "Gaussian": lambda scale: Gaussian(scale**2),
}


@pytest.fixture(scope="session")
def accurate() -> DoubleLoop:
    """Exact variances and inner problems solved to rounding."""
    inner = IRLS(tolerance=1e-12, max_iterations=200, solver_tolerance=1e-2, solver_iterations=200)
    return DoubleLoop(Exact(), inner, outer_iterations=40, tolerance=1e-7)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def sites() -> dict:
    """Potentials by name, as functions of a scale."""
    return SITES


@pytest.fixture(scope="session")
def settled(
    tiny_model: Callable[..., GeneralizedLinearModel], accurate: DoubleLoop
) -> Callable[[str], GaussianPosterior]:
    """name -> the converged posterior of that tiny model with its default Laplace sites, inferred once."""
    return cache(lambda name: accurate.infer(tiny_model(name), np.random.default_rng(0)))
