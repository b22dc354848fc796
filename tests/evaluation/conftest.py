"""Tiny test images and recipes for whole comparisons."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from mri_design import Recipe, SliceModel, calibrate, load_phantom
from mri_design.design import ReferenceSlice
from tests.phased_slices import smooth, textured

TINY = Recipe.of(
    {
        "inference": {"samples": 4, "loops": 4, "tolerance": 0.2},
        "reconstruction": {"method": "zero-filled"},
        "input": {"matrix": 16},
    }
)


@cache
def _image(name: str = "brain", n: int = 16, seed: int = 0) -> ReferenceSlice:
    data = load_phantom(name, shape=(n, 16), rng=np.random.default_rng(seed))
    return ReferenceSlice(
        f"{name}{seed}", calibrate(data, TINY).slice_model(0, **TINY.slice_settings), data.reference[0]
    )


@pytest.fixture
def tiny() -> Recipe:
    """Zero-filled reconstruction and four samples: a design of a 16 x 16 image in a tenth of a second."""
    return TINY


@pytest.fixture
def make_image() -> Callable[..., ReferenceSlice]:
    """(name="brain", n=16, seed=0) -> a test image with n phase-encode lines, named after phantom and seed."""
    return _image


@pytest.fixture
def phased_slice() -> SliceModel:
    """24 x 16, without structure but for a smooth phase."""
    return textured(smooth((24, 16)))
