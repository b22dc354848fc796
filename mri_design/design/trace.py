"""The history of a design: the lines it began with, and its decisions one after another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.design.decision import DesignStep, Forecast


@briefly
@dataclass(frozen=True)
class DesignTrace:
    """Start lines and decisions.

    Parameters
    ----------
    strategy : str
        Name of the rule.
    n_lines : int
        Lines of the grid, or candidates of whatever else is measured one by one.
    start : tuple of int
        Lines measured before the first decision, in order.
    steps : tuple of DesignStep
        Decisions in order.
    declined : DesignStep, optional
        Decision at which a rule ended the design: its line was not measured, its predictions are about all others.
    closing : Forecast, optional
        What is predicted after the last line, where a design was run to its end and asked for it.
    """

    strategy: str
    n_lines: int
    start: tuple[int, ...]
    steps: tuple[DesignStep, ...] = ()
    declined: DesignStep | None = None
    closing: Forecast | None = None

    @property
    def lines(self) -> tuple[int, ...]:
        """All lines in acquisition order."""
        return (*self.start, *(step.line for step in self.steps))

    def mask(self, count: int | None = None) -> NDArray[np.bool_]:
        """Bool (ky,) of the first ``count`` lines (all without a count)."""
        flags = np.zeros(self.n_lines, dtype=bool)
        flags[list(self.lines[:count])] = True
        return flags

    @property
    def innovation_energies(self) -> dict[int, float]:
        """Measured energy of each chosen line's innovation; lines that were chosen without a prediction are left out.

        It says how much a line added to what the image so far had predicted.
        """
        energies = {step.line: step.outcome.actual_energy for step in self.steps}
        return {line: energy for line, energy in energies.items() if np.isfinite(energy)}

    @property
    def found(self) -> int:
        """How many of the chosen candidates had been predicted before they were measured."""
        return sum(step.found for step in self.steps)

    def forecast(self, count: int) -> Forecast | None:
        """The forecast made when ``count`` lines had been measured; None where there was none.

        Within a block of lines nothing is: its mean is that of the block's start. Nothing is predicted of the start
        either, before any prediction could be held against what came (`Forecast.tested`).
        """
        if count == len(self.lines):
            forecast = self.closing if self.declined is None else self.declined.forecast
        else:
            at = count - len(self.start)
            known = 0 <= at < len(self.steps) and self.steps[at].choice.pending == 0
            forecast = self.steps[at].forecast if known else None
        if forecast is None or forecast.predicted is None or forecast.tested == 0 or not forecast.image_energy > 0:
            return None
        return forecast

    def block_start(self, index: int) -> DesignStep:
        """The step whose posterior the block of step ``index`` was chosen from."""
        return self.steps[max(index - self.steps[index].choice.pending, 0)]

    @property
    def converged(self) -> bool:
        """True where every step was."""
        return all(step.cost.converged for step in self.steps)
