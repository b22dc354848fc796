"""Tiny test images and recipes for whole comparisons."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from matplotlib.figure import Figure

from mri_design import MRSlice, Recipe, load_phantom, prepare
from mri_design.design.trials import ReferenceSlice
from mri_design.operators.cartesian import CentredFFT

TINY = Recipe.of(
    {
        "inference": {"samples": 4, "loops": 4, "tolerance": 0.2},
        "reconstruction": {"method": "zero-filled", "std_samples": 4},
        "simulation": {"matrix": 16},
    }
)


@cache
def _image(name: str, n: int, seed: int) -> ReferenceSlice:
    data = load_phantom(name, shape=(n, 16), rng=np.random.default_rng(seed))
    assert data.reference is not None
    return ReferenceSlice(f"{name}{seed}", prepare(data, TINY).slice_model(0, TINY), data.reference[0])


@pytest.fixture
def tiny() -> Recipe:
    """Zero-filled reconstruction and four samples: a design of a 16 x 16 image in a tenth of a second."""
    return TINY


@pytest.fixture
def make_image() -> Callable[..., ReferenceSlice]:
    """(name="brain", n=16, seed=0) -> a test image with n phase-encode lines, named after phantom and seed."""

    def make(name: str = "brain", n: int = 16, seed: int = 0) -> ReferenceSlice:
        return _image(name, n, seed)

    return make


@pytest.fixture
def phased_slice() -> MRSlice:
    """24 x 16, without structure but for a smooth phase, which tells of mirrored lines."""
    rng, shape = np.random.default_rng(0), (24, 16)
    y, x = np.mgrid[:24, :16] / np.array(shape)[:, None, None] - 0.5
    image = (y**2 + x**2 < 0.2) * (0.2 + 0.8 * rng.uniform(size=shape)) * np.exp(1j * (1.5 * y + 3 * x**2))
    noise = 0.005 * (rng.standard_normal(shape) + 1j * rng.standard_normal(shape))
    return MRSlice((CentredFFT(shape)(image) + noise)[None].astype(np.complex64), np.ones(24, bool), 0.005**2)


def texts(figure: Figure) -> str:
    """All that is written in a figure."""
    figure.draw_without_rendering()
    found = figure.findobj(lambda artist: hasattr(artist, "get_text"))
    return "\n".join(artist.get_text() for artist in found)
