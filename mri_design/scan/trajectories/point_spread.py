"""Whether a set of samples measures k and -k twice, and what it makes of a point: its artefacts.

A real image has conjugate symmetric k-space: a sample at -k tells nothing that the one at k has not told but its noise.
A smooth phase that the model knows or has to learn leaves most of that redundancy. Sets that spend half of their
samples on mirror images are weak baselines: an even number of spirals over the full turn does so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError, number_array, positive_number, require_grid
from mri_design.operators.nonuniform import density_weights, sums_at_pixels
from mri_design.operators.trajectory import checked_trajectory


@dataclass(frozen=True)
class ConjugateCoverage:
    """How much of k-space a set covers, before and after k and -k are taken for one.

    Parameters
    ----------
    cells : int
        Cells of k-space that hold a sample.
    folded : int
        Pairs of a cell and its mirror image of which one at least holds a sample; the cell at DC is its own image.
    redundancy : float
        Share of the cells whose mirror image holds a sample, too: 1 where everything is measured twice, 0 where nothing
        is (DC aside). Sets that cover all of k-space have 1 of necessity: compare sets of equal numbers of samples.
    """

    cells: int
    folded: int
    redundancy: float


def conjugate_coverage(trajectory: ArrayLike, *, cell: float = 1.0) -> ConjugateCoverage:
    """Count the cells of k-space that a trajectory visits, and those that it visits by their mirror image, too.

    Parameters
    ----------
    trajectory : float array, shape (..., 2)
        All samples of a set of shots, in cycles per field of view.
    cell : float
        Side of the square cells in cycles per field of view, one of them centred on DC. An object that fills the field
        of view has k-space that changes over one cycle.

    Returns
    -------
    ConjugateCoverage

    Raises
    ------
    InputError
        For what is no trajectory, or a cell without size.
    """
    k = checked_trajectory(trajectory).reshape(-1, 2)
    # rint rounds halves to even numbers, so that k and -k fall into mirrored cells.
    visited = np.unique(np.rint(k / positive_number("cell", cell)).astype(np.int64), axis=0)
    off_centre = visited[visited.any(axis=1)]
    folded = len(np.unique(_upper_half(off_centre), axis=0)) if len(off_centre) else 0
    centre = len(visited) - len(off_centre)
    redundancy = 2 * (1 - folded / len(off_centre)) if len(off_centre) else 0.0
    return ConjugateCoverage(len(visited), folded + centre, redundancy)


def _upper_half(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """The one of each cell and its mirror image that has the larger (ky, kx)."""
    lower = (cells[:, 0] < 0) | ((cells[:, 0] == 0) & (cells[:, 1] < 0))
    return np.where(lower[:, None], -cells, cells)


_ROUNDING = 1e-9
"""Of the point: what is smaller is no artefact but the error of a transform."""
_AT_ONCE = 4096
"""Samples whose waves are held in memory."""


def point_spread(
    trajectory: ArrayLike, shape: tuple[int, int], *, weights: ArrayLike | None = None
) -> NDArray[np.complex128]:
    """Image of a point in the middle: sum of w exp(2 pi i k.r) over the samples, divided by the sum of the weights.

    Parameters
    ----------
    trajectory : float array, shape (..., 2)
        Samples, (ky, kx) in cycles per field of view.
    shape : (int, int)
        Grid (ky, kx); the pixels' positions are (n - N // 2) / N fields of view.
    weights : float array, shape (...), optional
        Density compensation; all equal without.

    Returns
    -------
    complex128 array, shape (ky, kx)
        1 at the middle. Real where every k has its -k.

    Raises
    ------
    InputError
        For what is no trajectory, samples beyond the grid, or weights of another shape or without a sum.

    Notes
    -----
    A direct sum, as products of two matrices of waves: samples times pixels operations, and memory for the waves of
    some thousand samples at a time.
    """
    rows, columns = require_grid("shape", shape, axes=2)
    k = checked_trajectory(trajectory, (rows, columns))
    if weights is None:
        w = np.ones(k.shape[:-1])
    else:
        w = number_array("weights", weights, wanted=f"finite numbers {k.shape[:-1]}")
        if w.shape != k.shape[:-1] or not np.isfinite(w).all() or not np.sum(w):
            got = f"shape {w.shape}, sum {np.sum(w):g}"
            raise InputError(field="weights", got=got, wanted=f"finite numbers {k.shape[:-1]} that have a sum")
    flat = k.reshape(-1, 2)
    y, x = (np.arange(rows) - rows // 2) / rows, (np.arange(columns) - columns // 2) / columns
    scaled = w.ravel() / np.sum(w)
    spread = np.zeros((rows, columns), dtype=np.complex128)
    for first in range(0, len(flat), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        waves_y = np.exp(2j * np.pi * np.outer(y, flat[some, 0]))
        waves_x = np.exp(2j * np.pi * np.outer(flat[some, 1], x))
        spread += (waves_y * scaled[some]) @ waves_x
    return spread


def compensated_spread(
    trajectory: NDArray[np.floating], grid: tuple[int, int], density: NDArray[np.float64] | None = None
) -> NDArray[np.complex128]:
    """`point_spread` (ky, kx) of a trajectory (sample, 2) with `density_weights`, by the fast transform; 1 at its peak.

    Raises
    ------
    InputError
        As `density_weights`.
    """
    weights = density_weights(trajectory, grid, given=density, tolerance=_ROUNDING)
    return sums_at_pixels(weights / weights.sum(), 2 * np.pi * trajectory / grid, grid).astype(np.complex128)


def spread_of_mask(mask: NDArray[np.bool_]) -> NDArray[np.complex128]:
    """Point-spread function of a mask of lines (ky,) or of samples (ky, kz), of its shape; 1 at the point, ``N // 2``.

    Parameters
    ----------
    mask : bool array
        True where measured, one sample at least; DC at ``N // 2``.
    """
    return np.asarray(np.fft.fftshift(np.fft.ifftn(np.fft.ifftshift(mask))) * (mask.size / np.count_nonzero(mask)))


@dataclass(frozen=True)
class SideLobe:
    """The strongest artefact that a set of samples makes of a point.

    Parameters
    ----------
    height : float
        Its modulus beside that of the point; 0 where there is none.
    place : tuple of int
        Pixels from the point, along every axis.
    """

    height: float
    place: tuple[int, ...]

    @property
    def decibels(self) -> float:
        """20 log10 of the height; minus infinity without a side lobe."""
        return 20 * math.log10(self.height) if self.height else -math.inf


def largest_side_lobe(spread: NDArray[np.complexfloating]) -> SideLobe:
    """The largest local maximum of a point-spread function beside the point itself.

    Parameters
    ----------
    spread : complex array, shape (y,) or (y, x)
        The point at ``N // 2`` of every axis, which is periodic.

    Notes
    -----
    A pixel is a local maximum where none of its neighbours, diagonal ones included, is larger. So what the point itself
    spreads over counts as no side lobe, however many pixels these are. Of lobes that are equally high, as those at
    r and -r mostly are, the first one is named.
    """
    size = np.abs(spread)
    middle = tuple(n // 2 for n in size.shape)
    size = size / size[middle]
    around = size
    for axis in range(size.ndim):
        around = np.maximum(around, np.maximum(np.roll(around, 1, axis), np.roll(around, -1, axis)))
    lobes = np.where((size >= around) & (size > _ROUNDING), size, 0.0)
    lobes[middle] = 0.0
    highest = np.unravel_index(int(np.argmax(lobes >= lobes.max() - _ROUNDING)), lobes.shape)
    place = tuple(int(at) - centre for at, centre in zip(highest, middle, strict=True))
    return SideLobe(float(lobes[highest]), place if lobes[highest] else (0,) * size.ndim)
