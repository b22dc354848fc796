"""Scores of candidates that count what a line or sample says about its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.design.candidate import LineCandidates
from mri_design.errors import require_numbers, sequence_of

_WEIGHTS = "weights of the lines at distance 1, 2, ..., each from 0 to 1"


def neighbourhood(energies: NDArray[np.float64], weights: Sequence[float]) -> NDArray[np.float64]:
    """Energies of lines, (ky,), each with a share of its neighbours': ``weights[d - 1]`` of those at distance d.

    Beyond the grid there are none.
    """
    total = energies.copy()
    for distance, weight in enumerate(weights, 1):
        total[distance:] += weight * energies[:-distance]
        total[:-distance] += weight * energies[distance:]
    return total


def unmeasured_around(
    residual: NDArray[np.float64], candidates: LineCandidates, neighbours: Sequence[float], reach: float
) -> NDArray[np.float64]:
    """Residual energies on and around every candidate, (size,), as far as they are not measured.

    Parameters
    ----------
    residual : float array, shape (size,)
        Energy of the error on every candidate.
    candidates : LineCandidates
        Those measured take no part.
    neighbours : sequence of float
        Weights of `neighbourhood` for lines.
    reach : float
        For samples of a plane, standard deviation in samples of the Gaussian window over which energies are averaged.
    """
    unmeasured = ~candidates.mask
    if candidates.readouts.thinned:
        return mean_around(residual, unmeasured, candidates.readouts.shape, reach)
    return neighbourhood(np.where(unmeasured, residual, 0.0), neighbours)


def mean_around(
    values: NDArray[np.float64],
    counted: NDArray[np.bool_],
    shape: tuple[int, ...],
    reach: float,
    *,
    without_own: bool = False,
) -> NDArray[np.float64]:
    """Mean around every candidate in a Gaussian window, (size,); 0 where nothing that counts is near.

    Parameters
    ----------
    values : float array, shape (size,)
        Of every candidate.
    counted : bool array, shape (size,)
        Candidates whose values count.
    shape : tuple of int
        How candidates lie (`Readouts.shape`).
    reach : float
        Standard deviation of the window, in candidates; it ends at four of them.
    without_own : bool
        Whether a candidate's own value is left out of its mean.
    """
    ends = int(4 * reach + 0.5)
    own = 1 / np.exp(-(np.arange(-ends, ends + 1) ** 2) / (2 * reach**2)).sum() ** len(shape) if without_own else 0.0

    def spread(each: NDArray[np.float64]) -> NDArray[np.float64]:
        laid_out = scipy.ndimage.gaussian_filter(each.reshape(shape), reach, mode="constant", truncate=4.0)
        return np.asarray(laid_out.reshape(-1) - own * each)

    weights = spread(counted.astype(np.float64))
    total = spread(np.where(counted, values, 0.0))
    return np.divide(total, weights, out=np.zeros(len(weights)), where=weights > 1e-9)


def require_weights(neighbours: Sequence[float]) -> None:
    """Refuse weights that are not numbers between 0 and 1.

    Raises
    ------
    InputError
        With the distance of the first one.
    """
    for distance, weight in enumerate(sequence_of(Real, "neighbours", neighbours, wanted=_WEIGHTS), 1):
        require_numbers(most=1.0, **{f"neighbours: weight at distance {distance}": weight})
