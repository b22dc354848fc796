"""Masks of lines (.npy, bool over ky), or of samples (over ky and kz, or kx), and those that BART has (.cfl)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.io.bart import AXES, is_bart, read_pair
from mri_design.scan.io.numpy_files.npy_stream import read_npy_stream
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits, check_file


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
        A ``.npy`` file, or BART's pair of files of zeros and ones, as ``bart pattern`` and ``mri-design export --to
        cfl`` write it: (kx, ky), or of a plane (1, ky, kz).
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
    flags = _of_bart(path, limits) if is_bart(path) else _of_npy(path, limits)
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


def _of_npy(path: Path, limits: ReadLimits) -> NDArray[Any]:
    size = check_file(path)
    with path.open("rb") as stream:
        return read_npy_stream(stream, size, path.name, limits)


def _of_bart(path: Path, limits: ReadLimits) -> NDArray[np.bool_]:
    """A pattern as flags: (ky,) where all samples of a line share one, else (ky, kx), or (ky, kz) of a plane."""
    pair = read_pair(path, limits)
    read, rows, partitions = pair.shape[:3]
    if pair.size != read * rows * partitions:
        others = ", ".join(f"{n} along {name}" for name, n in zip(AXES[3:], pair.shape[3:], strict=True) if n > 1)
        raise InputError(field=path.name, got=others, wanted="one mask for all coils and slices: (kx, ky, kz)")
    if not np.isin(pair, (0, 1)).all():
        raise InputError(
            field=path.name,
            got="other samples than zeros and ones",
            wanted="a mask",
            cure="`bart pattern` makes one of k-space.",
        )
    flags = pair.reshape(read, rows, partitions) != 0
    whole_readouts = bool((flags == flags[:1]).all())
    if partitions > 1 and not whole_readouts:
        raise InputError(field=path.name, got="readouts that are measured in part", wanted="a mask of whole readouts")
    if partitions > 1:
        return flags[0]
    return flags[0, :, 0] if whole_readouts else flags[:, :, 0].T
