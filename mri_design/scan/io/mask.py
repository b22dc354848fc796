"""Line masks (.npy, bool over ky)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.io.numpy_files.npy_stream import read_npy_stream
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits, check_file

__all__ = ["read_mask"]


def read_mask(path: Path, measured: NDArray[np.bool_], *, limits: ReadLimits = DEFAULT_LIMITS) -> NDArray[np.bool_]:
    """A line mask: bool (ky,), true where measured.

    Parameters
    ----------
    path : Path
        A ``.npy`` file.
    measured : bool array, shape (ky,)
        Lines (or readouts of a trajectory) that hold data; the mask may not ask for others.
    limits : ReadLimits
        Bounds of untrusted files.

    Raises
    ------
    InputError
        For a damaged file, another dtype or length, no line, or a line without data.
    """
    size = check_file(path)
    with path.open("rb") as stream:
        flags = read_npy_stream(stream, size, path.name, limits)
    if flags.dtype != np.bool_ or flags.shape != measured.shape:
        raise InputError(
            field=path.name,
            got=f"{flags.dtype} {flags.shape}",
            wanted=f"bool ({len(measured)},)",
            cure="Give one flag per phase-encode line, as mask.npy of a design of the same matrix size, or one per "
            "readout of a trajectory.",
        )
    missing = np.flatnonzero(flags & ~measured)
    if missing.size:
        raise InputError(
            field=path.name, got=f"lines {missing.tolist()}, which hold no data", wanted="lines that were measured"
        )
    if not flags.any():
        raise InputError(field=path.name, got="no line", wanted="at least one")
    return flags
