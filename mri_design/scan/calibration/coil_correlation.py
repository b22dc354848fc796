"""Whether the noise of coils can be correlated as a covariance says that was estimated from a scan."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BY_SIGNAL = 0.5
"""Correlation beyond which samples hold signal: which scans had which is in results/reliability/noise-shading.md."""


def largest_correlation(covariance: NDArray[np.complex128]) -> float:
    """Largest modulus of the correlation of two coils, 0 to 1, by their covariance; 0 for one coil."""
    deviations = np.sqrt(np.diag(covariance).real)
    correlations = np.abs(covariance / np.outer(deviations, deviations))
    return float(correlations[~np.eye(len(deviations), dtype=bool)].max(initial=0.0))


def correlated_by_signal(covariance: NDArray[np.complex128]) -> str:
    """Why a covariance that was estimated from a scan is not that of noise alone, in words; empty where it may be.

    Receivers correlate the noise of two coils by less than a half, as a rule; two coils that see the same object
    correlate up to one.

    Parameters
    ----------
    covariance : complex array, shape (coil, coil)
        Hermitian, with a positive diagonal.
    """
    largest = largest_correlation(covariance)
    if largest <= _BY_SIGNAL:
        return ""
    return f"two coils correlate by {largest:.3f}, which is more than {_BY_SIGNAL:g}, as signal does"


def each_coil_alone(doubt: str) -> str:
    """The end of a sentence on where noise is from: that correlations do not count, and why."""
    return f"each coil's variance alone because {doubt}"
