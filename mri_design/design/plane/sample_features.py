"""What is known of a sample of the plane before it is measured: numbers that `CalibratedSamples` weighs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from mri_design.operators.encodings import PlaneEncoding

__all__ = ["FEATURES", "PRIOR_MEAN", "PRIOR_SD", "PlaneKnowledge", "sample_features"]

Numbers = NDArray[np.float64]

FEATURES = ("constant", "log expected", "log radius", "opposite measured", "local density", "cos 2 theta")
"""Columns of `sample_features`."""
PRIOR_MEAN = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
"""Weights under which the posterior is right."""
PRIOR_SD = np.array([2.0, 0.3, 0.5, 0.5, 1.0, 0.5])
"""How far from right posteriors may be; wide enough to be forgotten after some hundred samples."""
AROUND = 2.0
"""Samples: standard deviation of the window in which density is counted."""


@dataclass(frozen=True)
class PlaneKnowledge:
    """What is known at one moment of a design.

    Parameters
    ----------
    plane : PlaneEncoding
        The samples.
    measured : bool array, shape (size,)
        Those that have been measured.
    expected : float array, shape (size,)
        Energy of the mean's error on every sample as the posteriors expect it.
    """

    plane: PlaneEncoding
    measured: NDArray[np.bool_]
    expected: Numbers


def sample_features(known: PlaneKnowledge) -> Numbers:
    """One row for every sample of the plane, (size, len(FEATURES)).

    The logarithm of the expected energy is taken relative to its mean over unmeasured samples. The radius counts
    samples from DC; the density is the share of measured samples around a sample, the angle is that of (ky, kz).
    """
    plane = known.plane
    unmeasured = ~known.measured if not known.measured.all() else np.ones(plane.size, dtype=bool)
    level = float(np.mean(known.expected[unmeasured]))
    tiny = np.finfo(float).tiny
    ky, kz = plane.frequencies.T
    density = gaussian_filter(known.measured.reshape(plane.grid).astype(float), AROUND, mode="wrap").reshape(-1)
    columns = [
        np.ones(plane.size),
        np.log(np.maximum(known.expected, tiny) / max(level, tiny)),
        np.log1p(np.hypot(ky, kz)) - np.log1p(np.hypot(*plane.grid) / 4),
        known.measured[plane.opposite].astype(float),
        density,
        np.cos(2 * np.arctan2(kz, ky)),
    ]
    return np.stack(columns, axis=1)
