"""What else is known of the errors on the lines, beside the posterior of the scan: whom to believe, and how far.

An earlier scan of the same object and scans of others that a training has seen have this in common: they say, before a
line is measured, which share of the image's energy the reconstruction misses on it. So does the error model of
`Calibrated`. Every measured line shows how wrong either was, and the better one counts more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

SPREAD = 0.2
"""Nats: how wrong the second opinion is taken to be about the energy of a line, before any line has shown it."""
OWN_SPREAD = 0.4
"""The same of the error model."""
PRIOR_COUNT = 3
"""How many lines these count as."""
DECISIVENESS = 4.0
"""Power of the ratio of variances: 1 is the best weighted mean of two independent opinions, more trusts the better."""


@runtime_checkable
class SecondOpinion(Protocol):
    """Says which error is left on every line, from something else than the scan that is being measured."""

    def require_grid(self, n_lines: int) -> None:
        """Refuse a scan with another number of lines.

        Raises
        ------
        InputError
            Naming both.
        """

    def residuals(self, moments: Sequence[tuple[int, ...]]) -> list[Numbers]:
        """Energy of the error on every line over the image's energy, (ky,), at some moments of a design.

        Parameters
        ----------
        moments : sequence of tuples of int
            The lines that were measured at each moment, each with those of the moment before.
        """


def weight_of_opinion(errors: Numbers, own: Numbers, noise: Numbers) -> float:
    """Weight of a second opinion against the error model, 0 to 1.

    Both are taken to be wrong by independent normal errors in the logarithm. Their variances are estimated from the
    lines measured so far, with an inverse-gamma prior that counts as a few lines. A line that holds little more than
    noise says little about either, and counts as less than one.

    Parameters
    ----------
    errors, own : float array, shape (lines,)
        log(measured / predicted energy) of the lines so far, as predicted by the second opinion and by the error model.
    noise : float array, shape (lines,)
        Variance of the logarithms that is due to noise.
    """
    counts = OWN_SPREAD**2 / (OWN_SPREAD**2 + noise)
    ratio = _variance(errors, counts, SPREAD) / _variance(own, counts, OWN_SPREAD)
    return 1 / (1 + ratio**DECISIVENESS)


def _variance(errors: Numbers, counts: Numbers, spread: float) -> float:
    return float((PRIOR_COUNT * spread**2 + counts @ errors**2) / (PRIOR_COUNT + counts.sum()))
