"""What is known of a sample of the plane before it is measured: numbers that `CalibratedSamples` weighs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.operators.encodings import PlaneEncoding

Numbers = NDArray[np.float64]

FEATURES = ("constant", "log expected", "log radius", "opposite measured", "local density", "cos 2 theta")
"""Columns of `sample_features`; behind them that of an earlier scan, where there is one."""
PRIOR_MEAN = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
"""Weights under which the posterior is right."""
PRIOR_SD = np.array([2.0, 0.3, 0.5, 0.5, 1.0, 0.5])
"""How far from right posteriors may be; wide enough to be forgotten after some hundred samples."""
EARLIER_MEAN = 0.8
"""Weight of what an earlier scan says, before any sample has shown how right that is; the posterior's is the rest."""
EARLIER_SD = 0.4
"""Of both."""
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
    earlier : float array, shape (size,), optional
        The same as an earlier scan of the object says it.
    """

    plane: PlaneEncoding
    measured: NDArray[np.bool_]
    expected: Numbers
    earlier: Numbers | None = None


def feature_weights(earlier: bool) -> tuple[Numbers, Numbers]:
    """Means and standard deviations of the features' weights before any innovation, (features,) each.

    Parameters
    ----------
    earlier : bool
        Whether there is an earlier scan of the object.
    """
    mean, sd = PRIOR_MEAN.copy(), PRIOR_SD.copy()
    if not earlier:
        return mean, sd
    at = FEATURES.index("log expected")
    mean[at], sd[at] = 1 - EARLIER_MEAN, EARLIER_SD
    return np.append(mean, EARLIER_MEAN), np.append(sd, EARLIER_SD)


def sample_features(known: PlaneKnowledge) -> Numbers:
    """One row for every sample of the plane, (size, len(FEATURES)), and one column more with an earlier scan.

    The logarithm of the expected energy, and of that which an earlier scan says, is taken relative to the mean of the
    expected ones over unmeasured samples. The radius counts
    samples from DC; the density is the share of measured samples around a sample, the angle is that of (ky, kz).
    """
    plane = known.plane
    unmeasured = ~known.measured if not known.measured.all() else np.ones(plane.size, dtype=bool)
    level = float(np.mean(known.expected[unmeasured]))
    ky, kz = plane.frequencies.T
    density = scipy.ndimage.gaussian_filter(
        known.measured.reshape(plane.grid).astype(float), AROUND, mode="wrap"
    ).reshape(-1)
    columns = [
        np.ones(plane.size),
        _log_ratio(known.expected, level),
        np.log1p(np.hypot(ky, kz)) - np.log1p(np.hypot(*plane.grid) / 4),
        known.measured[plane.opposite].astype(float),
        density,
        np.cos(2 * np.arctan2(kz, ky)),
    ]
    if known.earlier is not None:
        columns.append(_log_ratio(known.earlier, level))
    return np.stack(columns, axis=1)


def _log_ratio(energies: Numbers, level: float) -> Numbers:
    tiny = float(np.finfo(float).tiny)
    return np.asarray(np.log(np.maximum(energies, tiny) / max(level, tiny)))
