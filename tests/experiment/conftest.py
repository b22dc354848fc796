"""Small recipes, scans and slices that take a fraction of a second to design."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from mri_design import KSpaceData, MRSlice, Recipe, prepare
from mri_design.experiment import load_input
from tests.read_here import read_here

__all__ = ["read_here"]

RECIPE = Recipe.of(
    {
        "simulation": {"matrix": 16},
        "inference": {"samples": 6, "loops": 6, "tolerance": 0.1},
        "reconstruction": {"std_samples": 8},
    }
)


@cache
def _scan(name: str, coils: int, seed: int) -> KSpaceData:
    recipe = RECIPE.replacing("simulation", coils=coils)
    return load_input(f"phantom:{name}", recipe, seed)


@pytest.fixture
def small() -> Recipe:
    """A recipe for 16 x 16 phantoms with few samples and loose tolerances."""
    return RECIPE


@pytest.fixture
def make_scan() -> Callable[..., KSpaceData]:
    """(name="brain", coils=1, seed=0) -> a simulated scan on the small grid."""

    def make(name: str = "brain", coils: int = 1, seed: int = 0) -> KSpaceData:
        return _scan(name, coils, seed)

    return make


@pytest.fixture
def one(small: Recipe) -> MRSlice:
    """A fully sampled slice of one coil."""
    return prepare(_scan("brain", 1, 0), small).slice_model(0, small)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
