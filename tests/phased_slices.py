"""Slices without structure but for a phase, which tells of mirrored lines."""

from __future__ import annotations

import numpy as np

from mri_design import SliceModel
from mri_design.operators import CentredFFT

SD = 0.005
"""Standard deviation of the noise."""


def smooth(shape: tuple[int, int]) -> np.ndarray:
    """A phase that bends slowly."""
    y, x = places(shape)
    return 1.5 * y + 3 * x**2


def places(shape: tuple[int, int]) -> np.ndarray:
    """Coordinates of every pixel, -0.5 to 0.5."""
    return np.mgrid[: shape[0], : shape[1]] / np.array(shape)[:, None, None] - 0.5


def disc(phase: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A disc of random magnitudes under a phase: nothing in it is piecewise constant."""
    y, x = places(phase.shape)
    return (y**2 + x**2 < 0.2) * (0.2 + 0.8 * rng.uniform(size=phase.shape)) * np.exp(1j * phase)


def textured(phase: np.ndarray) -> SliceModel:
    """Such a disc, fully sampled, with noise."""
    rng, shape = np.random.default_rng(0), phase.shape
    image = disc(phase, rng)
    noise = SD * (rng.standard_normal(shape) + 1j * rng.standard_normal(shape))
    return SliceModel((CentredFFT(shape)(image) + noise)[None].astype(np.complex64), np.ones(shape[0], bool), SD**2)
