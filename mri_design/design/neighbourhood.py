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
    left = np.where(unmeasured, residual, 0.0)
    if not candidates.readouts.thinned:
        return neighbourhood(left, neighbours)

    def spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
        plane = values.reshape(candidates.readouts.shape)
        return np.asarray(scipy.ndimage.gaussian_filter(plane, reach, mode="constant")).reshape(-1)

    weights = spread(unmeasured.astype(np.float64))
    return np.divide(spread(left), weights, out=np.zeros(len(weights)), where=weights > 1e-9)


def require_weights(neighbours: Sequence[float]) -> None:
    """Refuse weights that are not numbers between 0 and 1.

    Raises
    ------
    InputError
        With the distance of the first one.
    """
    for distance, weight in enumerate(sequence_of(Real, "neighbours", neighbours, wanted=_WEIGHTS), 1):
        require_numbers(most=1.0, **{f"neighbours: weight at distance {distance}": weight})
