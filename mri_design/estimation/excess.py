"""How far J still is above its minimum, guessed from how it fell."""

from __future__ import annotations

import numpy as np

from mri_design.operators.base import Array
from mri_design.status import Status


class RemainingExcess:
    """Sum of the geometric series that the last decreases begin.

    Looks must be equally many iterations apart. With d the last decrease and q its ratio to the one before (or that
    one's, if it was larger) what remains is d q / (1 - q); q is kept between 1/3 and 19/20, so that neither one lucky
    step ends a run nor one that rises ends it never. An estimate, not a bound: it is short of the truth where
    convergence slows down.
    """

    def __init__(self, value: float) -> None:
        self._value = value
        self._decrease = self._ratio = 0.0
        self._looks = 0

    def after(self, value: float) -> float:
        """The estimate, now that J is ``value``; infinite at the first look, zero where two saw no change."""
        self._looks += 1
        before, last = self._decrease, abs(self._value - value)
        ratio = min(max(last / before, 1 / 3), 0.95) if before > 0 else 0.0
        slowest = max(ratio, self._ratio)
        self._value, self._decrease, self._ratio = value, last, ratio
        if slowest > 0:
            return last * slowest / (1 - slowest)
        return 0.0 if self._looks > 1 and last == before == 0 else float("inf")


def rounding_of(fit: float, penalty: float, u: Array) -> float:
    """What rounding in the precision of u leaves uncertain in J = fit + penalty: the sites' terms are each rounded."""
    return 10 * float(np.finfo(u.dtype).eps) * (abs(fit) + abs(penalty))


def stalled_status(excess: float, tolerance: float, rounding: float) -> Status:
    """Where J falls no more: converged if the excess estimated there is below the tolerance or the rounding of J."""
    if not np.isfinite(excess):
        return Status.BREAKDOWN
    return Status.CONVERGED if excess <= max(tolerance, rounding) else Status.STALLED
