"""The least noise that samples in single precision can be taken to have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ROUNDING", "least_noise_variance"]

ROUNDING = 2.0**-24
"""Relative rounding of a number in single precision."""


def least_noise_variance(kspace: NDArray[Any]) -> float:
    """Variance per real component of noise whose standard deviation is the rounding of the largest sample.

    Samples in single precision are known no better than that, and models stay solvable in double precision: their
    condition number grows as the squared ratio of signal and noise.

    Parameters
    ----------
    kspace : complex array
        All samples of a scan.
    """
    return (ROUNDING * float(np.abs(kspace).max())) ** 2
