"""Whether a set of samples measures k and -k twice.

A real image has conjugate symmetric k-space: a sample at -k tells nothing that the one at k has not told but its noise.
A smooth phase that the model knows or has to learn leaves most of that redundancy. Sets that spend half of their
samples on mirror images are weak baselines: an even number of spirals over the full turn does so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import positive_number
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
