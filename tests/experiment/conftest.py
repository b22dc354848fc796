"""Small recipes, scans and slices that take a fraction of a second to design."""

import pytest

from mri_design import Recipe, SliceModel, calibrate
from mri_design.experiment import load_scan
from tests.read_here import read_here

__all__ = ["read_here"]

RECIPE = Recipe.of(
    {
        "input": {"matrix": 16},
        "inference": {"samples": 6, "loops": 6, "tolerance": 0.1},
    }
)


@pytest.fixture
def small() -> Recipe:
    """A recipe for 16 x 16 phantoms with few samples and loose tolerances."""
    return RECIPE


@pytest.fixture
def one(small: Recipe) -> SliceModel:
    """A fully sampled slice of one coil."""
    return calibrate(load_scan("phantom:brain", small), small).slice_model(0, **small.slice_settings)
