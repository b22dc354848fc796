"""Arrays as BART's pair of files: dimensions in a text header, samples in Fortran order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_DIMENSIONS, _SLICE = 16, 13


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


def stacked_slices(slices: Sequence[NDArray[np.generic]]) -> NDArray[np.generic]:
    """Arrays of BART's first four axes, one of each slice, as one array whose 14th axis is the slice."""
    first, *_ = slices
    return np.stack(slices, axis=-1).reshape(*first.shape, *[1] * (_SLICE - first.ndim), len(slices))


def pair_files(stem: Path, array: NDArray[np.generic]) -> dict[Path, bytes]:
    """NAME.hdr and NAME.cfl with their contents."""
    header, samples = cfl_bytes(array)
    return {stem.with_name(f"{stem.name}.hdr"): header, stem.with_name(f"{stem.name}.cfl"): samples}
