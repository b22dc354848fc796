"""What a design did, step by step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["DesignStep", "DesignTrace", "Forecast"]


@dataclass(frozen=True)
class Forecast:
    """What is predicted about the image's error at one moment of a design.

    Parameters
    ----------
    expected, corrected : float array, shape (ky,), optional
        `Choice.expected` and `Choice.corrected`: energy of the mean's error on every line, what noise leaves on
        measured ones included. None for rules without a posterior.
    image_energy : float
        Energy of the mean, summed over slices.
    models : tuple of int
        Per slice, the candidate model that the mean is of; empty without candidates.
    information, least_error : float
        As in `DesignStep`; after the last line the information is that of the last decision.
    """

    expected: NDArray[np.float64] | None = None
    corrected: NDArray[np.float64] | None = None
    image_energy: float = float("nan")
    models: tuple[int, ...] = ()
    information: float = float("nan")
    least_error: float = float("nan")

    @property
    def believed(self) -> NDArray[np.float64] | None:
        """Energy of the error on every line as far as the strategy knows, (ky,); None for rules without a posterior."""
        return self.expected if self.corrected is None else self.corrected

    @property
    def predicted_level(self) -> float:
        """Expected energy of the image: that of the mean and that of its error; NaN without a posterior."""
        return float("nan") if self.believed is None else float(self.image_energy + np.sum(self.believed))

    @property
    def predicted_error(self) -> float:
        """Predicted relative L2 error of the mean over all lines, 0 to 1; NaN without a posterior."""
        if self.believed is None or not self.predicted_level > 0:
            return float("nan")
        return float(np.sqrt(np.sum(self.believed) / self.predicted_level))


@dataclass(frozen=True)
class DesignStep:
    """One decision.

    Parameters
    ----------
    line : int
        Chosen line.
    scores : float array, shape (ky,), optional
        Candidates' scores, NaN elsewhere; None for rules without scores.
    predicted_energy, actual_energy : float
        Energy of the line's innovation |y - X_* mean|^2 summed over readout, coils and slices: expected by the
        posterior (noise included) and found. NaN for rules without a posterior.
    converged : bool
        Whether the inner problem and the variances of this step's last outer loop met their tolerances.
    matvecs : int
        Multiplications with A, per vector, summed over slices.
    seconds : float
        Wall time of the step.
    expected, corrected : float array, shape (ky,), optional
        `Choice.expected` and `Choice.corrected` before the line was measured.
    image_energy : float
        Energy of the mean before the line was measured, summed over slices.
    pending : int
        Lines chosen before this one from the same inference: not in the mean, but in ``expected``.
    information : float
        Nats that the line was expected to tell about the image: the strategy's own (`Choice.information`), or the most
        that a line can tell whose values hold the energy that the strategy believes. NaN without a posterior.
    models : tuple of int
        Per slice, the candidate model whose posterior the strategy saw; empty without candidates to choose from.
    model_energies : float array, shape (slice, model), optional
        Energy of the line's innovation under each candidate model, NaN under those that were not inferred.
    least_error : float
        Relative L2 error predicted to be left once every line that may be measured has been; NaN where nobody asked.
    """

    line: int
    scores: NDArray[np.float64] | None = None
    predicted_energy: float = float("nan")
    actual_energy: float = float("nan")
    converged: bool = True
    matvecs: int = 0
    seconds: float = 0.0
    expected: NDArray[np.float64] | None = None
    corrected: NDArray[np.float64] | None = None
    image_energy: float = float("nan")
    pending: int = 0
    information: float = float("nan")
    models: tuple[int, ...] = ()
    model_energies: NDArray[np.float64] | None = None
    least_error: float = float("nan")

    @property
    def forecast(self) -> Forecast:
        """What was predicted about the image before the line was measured."""
        known = (self.image_energy, self.models, self.information, self.least_error)
        return Forecast(self.expected, self.corrected, *known)

    @property
    def believed(self) -> NDArray[np.float64] | None:
        """`Forecast.believed` before the line."""
        return self.forecast.believed

    @property
    def predicted_level(self) -> float:
        """`Forecast.predicted_level` before the line."""
        return self.forecast.predicted_level

    @property
    def predicted_error(self) -> float:
        """`Forecast.predicted_error` before the line."""
        return self.forecast.predicted_error

    @property
    def score(self) -> float:
        """Score of the chosen line, NaN without scores."""
        return float("nan") if self.scores is None else float(self.scores[self.line])


@dataclass(frozen=True)
class DesignTrace:
    """Start lines and decisions.

    Parameters
    ----------
    strategy : str
        Name of the rule.
    n_lines : int
        Lines of the grid.
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
    def told(self) -> dict[int, float]:
        """Energy of each chosen line's innovation, where its data were looked at."""
        return {step.line: step.actual_energy for step in self.steps if np.isfinite(step.actual_energy)}

    def forecast(self, count: int) -> Forecast | None:
        """What was predicted when ``count`` lines had been measured; None where nothing was.

        Within a block of lines nothing is: its mean is that of the block's start.
        """
        if count == len(self.lines):
            found = self.closing if self.declined is None else self.declined.forecast
        else:
            at = count - len(self.start)
            known = 0 <= at < len(self.steps) and self.steps[at].pending == 0
            found = self.steps[at].forecast if known else None
        return found if found is not None and found.believed is not None and found.image_energy > 0 else None

    def block_start(self, index: int) -> DesignStep:
        """The step whose posterior the block of step ``index`` was chosen from."""
        return self.steps[max(index - self.steps[index].pending, 0)]

    @property
    def converged(self) -> bool:
        """True where every step was."""
        return all(step.converged for step in self.steps)
