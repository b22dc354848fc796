"""ESPIRiT: coil maps from a gapless square at the centre of k-space, and the principal directions of coil space."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Below 16 lines a kernel of 6 leaves too few blocks (results/benchmarks/measured-once.md).
_KERNEL, _SMALL_KERNEL, _ENOUGH_FOR_KERNEL = 6, 4, 16


def central(kspace: NDArray[Any], width: int) -> NDArray[Any]:
    """View of the square of ``width`` samples around the centre of k-space (..., ky, kx), or what there is of it."""
    rows, columns = (slice(n // 2 - min(width, n) // 2, n // 2 + (min(width, n) + 1) // 2) for n in kspace.shape[-2:])
    return kspace[..., rows, columns]


def gapless_side(samples: NDArray[np.bool_]) -> int:
    """Side of the largest square of measured ``samples`` (ky, kx) around the centre of k-space; 0 without one."""
    return max((n for n in range(1, min(samples.shape) + 1) if central(samples, n).all()), default=0)


def coil_directions(energies: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Principal directions of coil space, strongest first, as columns, by `calibration_energies`."""
    directions = np.linalg.eigh(energies)[1][:, ::-1]
    # Eigenvectors come with any phase; this one depends on the data alone.
    leading = np.take_along_axis(directions, np.abs(directions).argmax(axis=0)[np.newaxis], axis=0)
    return np.asarray(directions * (leading.conj() / np.abs(leading)))


def espirit(kspace: NDArray[np.complex64], directions: NDArray[np.complex128], width: int) -> NDArray[np.complex64]:
    """Unit maps (coil, ky, kx) of one slice from the gapless square of ``width`` samples at the centre of its k-space.

    Parameters
    ----------
    kspace : complex array, shape (coil, ky, kx)
        Of white coils; nothing outside the square is looked at.
    directions : complex array, shape (coil, coil)
        `coil_directions`; the combination of the maps along the first is real and positive.
    width : int
        Side of the square.

    Notes
    -----
    Memory: ``8 * coils**2`` bytes a pixel. M. Uecker et al., "ESPIRiT", Magn. Reson. Med. 71 (2014) 990-1001; computed
    by SigPy.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "IProgress not found")  # by tqdm, in notebooks without widgets
        from sigpy.mri.app import EspiritCalib  # here, because the import takes longer than most commands

    strongest = np.abs(central(kspace, width)).max()
    virtual = np.tensordot(directions.conj().T, kspace / (strongest or 1), axes=1).astype(np.complex64)
    with np.errstate(all="ignore"):  # pixels without any signal divide zero by zero
        maps = EspiritCalib(
            virtual,
            calib_width=width,
            kernel_width=_KERNEL if width >= _ENOUGH_FOR_KERNEL else _SMALL_KERNEL,
            crop=0,
            show_pbar=False,
        ).run()
    # SigPy makes the first coil's map real; here the first coil is the virtual one.
    maps = np.nan_to_num(maps, nan=0.0, posinf=0.0, neginf=0.0).astype(np.complex128)
    strength = np.linalg.norm(maps, axis=0)
    maps = maps / np.where(strength > 0, strength, 1)
    maps[0][strength == 0] = 1
    return np.tensordot(directions, maps, axes=1).astype(np.complex64)
