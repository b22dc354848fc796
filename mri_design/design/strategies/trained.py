"""Strategies that carry what training scans taught: a fixed order, and the same knowledge beside a posterior."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.design.strategies.information_gain import InformationGain
from mri_design.design.strategy import Choice, DesignView, best_line
from mri_design.design.trained_design import TrainedDesign
from mri_design.errors import require_numbers

__all__ = ["Hybrid", "TrainedOrder"]


@dataclass(frozen=True)
class TrainedOrder:
    """The learnt order as it stands.

    Lines that may not be measured are passed over. Where the order has come to its end, the line with the largest
    residual that training left is next.
    """

    design: TrainedDesign
    name: str = "trained"
    needs_posterior: bool = False

    def default_start(self, n_lines: int, target: int) -> int:
        """As in training."""
        self.design.require_grid(n_lines)
        return min(target, self.design.n_start)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The first line of the order that is left."""
        candidates = view.candidates
        self.design.require_grid(candidates.n_lines)
        for line in self.design.lines:
            if candidates.remaining[line]:
                return Choice(line)
        return Choice(best_line(self.design.profile[-1], candidates).line)


@dataclass(frozen=True)
class Hybrid:
    """What the scan says about itself, weighed with what others were like.

    score = log(expected error energy of the line under the posterior) + beta log(trained residual of the line)

    Parameters
    ----------
    design : TrainedDesign
        The training's residuals; its order is not used.
    beta : float
        Weight of the training; 0 is the posterior alone.
    energies : InformationGain
        Where the posterior's expected energies come from.
    """

    design: TrainedDesign
    beta: float = 0.5
    energies: InformationGain = field(default_factory=InformationGain)
    name: str = "hybrid"
    needs_posterior: bool = True

    def __post_init__(self) -> None:
        require_numbers(beta=self.beta)

    def default_start(self, n_lines: int, target: int) -> int:
        """Where the posterior's own rule would begin."""
        self.design.require_grid(n_lines)
        return self.energies.default_start(n_lines, target)

    def predicted(
        self, view: DesignView, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """What the posteriors expect of the scan; the training corrects the choice only."""
        return self.energies.predicted(view, rng)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line with the largest score."""
        candidates = view.candidates
        self.design.require_grid(candidates.n_lines)
        expected, _ = self.predicted(view, rng)
        trained = self.design.residuals(len(candidates.acquired))
        tiny = np.finfo(float).tiny
        scores = np.log(np.maximum(expected, tiny)) + self.beta * np.log(np.maximum(trained, tiny))
        return replace(best_line(scores, candidates), expected=expected)
