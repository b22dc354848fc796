"""How far J still is above its minimum, guessed from how it fell."""

from __future__ import annotations

__all__ = ["RemainingExcess"]


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

    def after(self, value: float) -> float:
        """The estimate, now that J is ``value``; infinite at the first look."""
        before, last = self._decrease, abs(self._value - value)
        ratio = min(max(last / before, 1 / 3), 0.95) if before > 0 else 0.0
        slowest = max(ratio, self._ratio)
        self._value, self._decrease, self._ratio = value, last, ratio
        return last * slowest / (1 - slowest) if slowest > 0 else float("inf")
