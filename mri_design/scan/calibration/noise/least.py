"""The least noise that can be reckoned with: samples are known no better than their precision says."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUNDING = 2.0**-24
"""Relative rounding of a number in single precision."""
MOST_SIGNAL_TO_NOISE = 1000.0
"""Largest signal over noise of scans that are solved by iterations alone; see results/reliability/little-noise.md."""


def least_noise(kspace: NDArray[Any], pixels: int, *, direct: bool) -> tuple[float, str]:
    """Least variance per real component, and why it cannot be less, in words.

    Samples in single precision are known no better than the rounding of the largest one. Lines of one coil are solved
    nearly directly, whatever the noise. The iterations for several coils or a trajectory grow with the ratio of signal
    to noise, and so does what an error of the coil maps does to the image: there the ratio, |y| / sigma per root of the
    number of pixels, is limited.

    Parameters
    ----------
    kspace : complex array, shape (slice, ...)
        All samples of a scan.
    pixels : int
        Of one image.
    direct : bool
        Whether one coil was measured on a grid.
    """
    rounding = (ROUNDING * float(np.abs(kspace).max())) ** 2
    if direct:
        return rounding, "samples in single precision carry no less beside the largest of them"
    energies = [float(np.sum(np.abs(one) ** 2, dtype=np.float64)) for one in kspace]
    limited = max(energies) / pixels / MOST_SIGNAL_TO_NOISE**2
    why = "several coils, or samples along a trajectory, are not solved to less, nor coil maps known well enough"
    return max(rounding, limited), why
