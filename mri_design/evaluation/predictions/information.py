"""How much a design expected each of its lines to tell about the image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.design.trace import DesignTrace


@dataclass(frozen=True)
class ExpectedInformation:
    """Information about the image that each chosen line was expected to bring.

    Parameters
    ----------
    gains : float array, shape (step,)
        `Forecast.information`, in nats; NaN where nothing was predicted, as for lines that an exchange added.
    upper_bound : bool
        Whether the gains are the most that a line can tell; False where the scores are the information themselves.
    """

    gains: NDArray[np.float64]
    upper_bound: bool

    @property
    def predicted(self) -> NDArray[np.float64]:
        """The gains that were predicted, without the gaps."""
        return self.gains[np.isfinite(self.gains)]

    @property
    def total(self) -> float:
        """Sum of what was predicted, in nats."""
        return float(self.predicted.sum())

    @property
    def lines_for_half(self) -> int:
        """How many of the predicted lines, from the first one, bring half of the total."""
        return int(np.searchsorted(np.cumsum(self.predicted), self.total / 2)) + 1


def expected_information(trace: DesignTrace) -> ExpectedInformation:
    """The information in nats that was expected of each step of a design."""
    return ExpectedInformation(np.array([step.information for step in trace.steps]), not score_is_information(trace))


def score_is_information(trace: DesignTrace) -> bool:
    """Whether the scores are log det(I + X_* A^-1 X_*^H), twice the information in nats."""
    return trace.strategy.startswith("information-gain")
