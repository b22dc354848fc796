"""The ending of an iterative computation: every loop in the package returns a `Convergence`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """The reason a loop stopped; the value is the message shown to people."""

    CONVERGED = "converged"
    MAX_ITERATIONS = "stopped at the iteration limit before the tolerance was met"
    STALLED = "no further progress is possible at this precision"
    BREAKDOWN = "the operator is not positive definite or produced a non-finite value"


@dataclass(frozen=True)
class Convergence:
    """Status, size and cost of an iterative computation.

    Parameters
    ----------
    status : Status
        Why the loop ended.
    iterations : int
        Iterations of this loop.
    residual : float
        The final value of the quantity the tolerance was set on (its meaning belongs to the loop).
    matvecs : int
        Products with the system matrix A spent, counted per vector.
    advice : str
        Which setting to change for it to converge, where the loop knows one.
    """

    status: Status
    iterations: int
    residual: float
    matvecs: int = 0
    advice: str = ""

    @property
    def converged(self) -> bool:
        """True where the tolerance was met."""
        return self.status is Status.CONVERGED
