"""Arrays as BART's pair of files: dimensions in a text header, samples in Fortran order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["cfl_bytes"]

_DIMENSIONS = 16


def cfl_bytes(array: NDArray[np.generic]) -> tuple[bytes, bytes]:
    """An array as complex64 for BART.

    Parameters
    ----------
    array : array of at most 16 axes
        In BART's order: readout, phase encoding, second phase encoding, coil, ...

    Returns
    -------
    header, samples : bytes
        Of NAME.hdr and NAME.cfl.
    """
    sizes = [*array.shape, *[1] * (_DIMENSIONS - array.ndim)]
    header = f"# Dimensions\n{' '.join(map(str, sizes))}\n# Creator\nmri-design\n"
    return header.encode(), np.asarray(array, dtype="<c8").tobytes(order="F")
