"""Masks of lines (.npy, bool over ky), or of samples (over ky and kz, or kx)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.io.numpy_files.npy_stream import read_npy_stream
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits, check_file

__all__ = ["read_mask"]


def read_mask(
    path: Path,
    measured: NDArray[np.bool_],
    samples: NDArray[np.bool_] | None = None,
    *,
    limits: ReadLimits = DEFAULT_LIMITS,
) -> NDArray[np.bool_]:
    """A mask of lines, bool (ky,), or of samples, bool (ky, kx): true where measured.

    Parameters
    ----------
    path : Path
        A ``.npy`` file.
    measured : bool array, shape (ky,)
        Lines (or readouts of a trajectory) that hold data; the mask may not ask for others.
    samples : bool array, shape (ky, kx), optional
        Samples that do. Without them masks of samples are refused.
    limits : ReadLimits
        Bounds of untrusted files.

    Raises
    ------
    InputError
        For a damaged file, another dtype or shape, no line or sample, or one without data.
    """
    size = check_file(path)
    with path.open("rb") as stream:
        flags = read_npy_stream(stream, size, path.name, limits)
    in_plane = samples is not None and flags.ndim == 2
    there = samples if samples is not None and in_plane else measured
    if flags.dtype != np.bool_ or flags.shape != there.shape:
        plane = "" if samples is None else f", or bool {samples.shape}"
        raise InputError(
            field=path.name,
            got=f"{flags.dtype} {flags.shape}",
            wanted=f"bool ({len(measured)},){plane}",
            cure="Give one flag per phase-encode line, as mask.npy of a design of the same matrix size, or one per "
            "readout of a trajectory.",
        )
    missing = np.flatnonzero(flags & ~there)
    if missing.size and in_plane:
        raise InputError(
            field=path.name, got=f"{missing.size} samples that hold no data", wanted="samples that were measured"
        )
    if missing.size:
        raise InputError(
            field=path.name, got=f"lines {missing.tolist()}, which hold no data", wanted="lines that were measured"
        )
    if not flags.any():
        raise InputError(field=path.name, got="no sample" if in_plane else "no line", wanted="at least one")
    return flags
