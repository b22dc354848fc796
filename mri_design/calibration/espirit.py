"""ESPIRiT: coil maps from a gapless square at the centre of k-space, and the principal directions of coil space."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mri_design.calibration.centre import central

# Below 16 lines a kernel of 6 leaves too few blocks (results/benchmarks/measured-once.md).
_KERNEL, _SMALL_KERNEL, _ENOUGH_FOR_KERNEL = 6, 4, 16
_LEAST_VALUE, _POWERS = 0.02, 100
"""Least singular value of a kernel over the largest, and how often a matrix is applied; both are SigPy's."""
_BYTES = 2**23
"""Of the matrices of pixels that are made at a time."""


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
    M. Uecker et al., "ESPIRiT", Magn. Reson. Med. 71 (2014) 990-1001. What every pixel's matrix (coil, coil) is made of
    are the correlations of the kernels, which a few offsets hold; matrices are made and solved some rows at a time.
    SigPy makes the same maps from the image of every kernel, which the tests hold against these.
    """
    strongest = np.abs(central(kspace, width)).max()
    virtual = np.tensordot(directions.conj().T, central(kspace, width) / (strongest or 1), axes=1).astype(np.complex64)
    correlations = _kernel_correlations(virtual, _KERNEL if width >= _ENOUGH_FOR_KERNEL else _SMALL_KERNEL)
    rows, columns = kspace.shape[-2:]
    reach = correlations.shape[0] // 2
    of_rows, of_columns = (_waves(n, reach) for n in (rows, columns))
    along = np.einsum("xm,nmcd->nxcd", of_columns, correlations, optimize=True).reshape(2 * reach + 1, -1)
    n_coils, at_once = len(kspace), max(1, _BYTES // (8 * columns * len(kspace) ** 2))
    maps = np.empty((rows, columns, n_coils), np.complex64)
    with np.errstate(all="ignore"):  # pixels without any signal divide zero by zero
        for first in range(0, rows, at_once):
            part = slice(first, first + at_once)
            matrices = (of_rows[part] @ along).reshape(-1, columns, n_coils, n_coils)
            maps[part] = _strongest_directions(matrices)
        maps *= (maps[..., :1] / np.abs(maps[..., :1])).conj()  # the first virtual coil is real
    found = np.moveaxis(np.nan_to_num(maps, nan=0.0, posinf=0.0, neginf=0.0), -1, 0).astype(np.complex128)
    strength = np.linalg.norm(found, axis=0)
    found = found / np.where(strength > 0, strength, 1)
    found[0][strength == 0] = 1
    return np.tensordot(directions, found, axes=1).astype(np.complex64)


def _kernel_correlations(square: NDArray[np.complex64], side: int) -> NDArray[np.complex64]:
    """Sum over the kernels of the products of two coils' entries, by their offset, (ky, kx, coil, coil).

    Kernels are the directions in which blocks of ``side`` samples of all coils differ.
    """
    n_coils, offsets = len(square), 2 * side - 1
    blocks = np.lib.stride_tricks.sliding_window_view(square, (side, side), axis=(-2, -1))
    rows = np.moveaxis(blocks, 0, 2).reshape(-1, n_coils * side * side)
    _, values, directions = np.linalg.svd(rows, full_matrices=False)
    kept = directions[values > _LEAST_VALUE * values.max()]
    products = (kept.T @ kept.conj()).reshape(n_coils, side, side, n_coils, side, side)
    found = np.zeros((offsets, offsets, n_coils, n_coils), np.complex64)
    for row, column in np.ndindex(side, side):
        there = slice(side - 1 - row, offsets - row), slice(side - 1 - column, offsets - column)
        found[there] += np.moveaxis(products[..., row, column], 0, 2)
    return found / side**2


def _waves(n: int, reach: int) -> NDArray[np.complex64]:
    """Waves at the pixels of a centred grid by the offset of two samples, up to ``reach``, shape (pixel, offset)."""
    return np.exp(2j * np.pi * np.outer(np.arange(n) - n // 2, np.arange(-reach, reach + 1)) / n).astype(np.complex64)


def _strongest_directions(matrices: NDArray[np.complex64]) -> NDArray[np.complex64]:
    """Directions (..., coil) that Hermitian matrices (..., coil, coil) enlarge most, by powers of these."""
    found = np.ones((*matrices.shape[:-1], 1), np.complex64)
    for _ in range(_POWERS):
        found = matrices @ found
        found /= np.linalg.norm(found, axis=-2, keepdims=True)
    return found[..., 0]
