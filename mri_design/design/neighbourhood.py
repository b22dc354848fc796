"""Scores of lines that count what a line says about its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real

import numpy as np
from numpy.typing import NDArray

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


def require_weights(neighbours: Sequence[float]) -> None:
    """Refuse weights that are not numbers between 0 and 1.

    Raises
    ------
    InputError
        With the distance of the first one.
    """
    for distance, weight in enumerate(sequence_of(Real, "neighbours", neighbours, wanted=_WEIGHTS), 1):
        require_numbers(most=1.0, **{f"neighbours: weight at distance {distance}": weight})
