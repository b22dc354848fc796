"""Strategies that use an order learnt from training scans: as it stands, or its residuals beside a posterior."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mri_design.design.decision import Choice, Forecast
from mri_design.design.line_variances import expected_energies
from mri_design.design.other_scans.trained_design import TrainedDesign
from mri_design.design.strategy import DesignView, best_line, start_for_posterior
from mri_design.errors import require_counts, require_instance, require_numbers


@dataclass(frozen=True, kw_only=True)
class TrainedOrder:
    """The learnt order, as training left it.

    Lines that may not be measured are passed over. Where the order has come to its end, the line with the largest
    residual that training left is next.

    Parameters
    ----------
    design : TrainedDesign
        What training wrote.

    Raises
    ------
    InputError
        For anything but a `TrainedDesign`, and where it is of another grid than the scan.
    """

    design: TrainedDesign
    name: str = "trained"
    needs_posterior: bool = False

    def __post_init__(self) -> None:
        _require_trained(self.design)

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """As many centre lines as the training began with."""
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


@dataclass(frozen=True, kw_only=True)
class Hybrid:
    """The posterior's expected error of the scan, combined with the residuals that training scans had.

    score = log(expected error energy of the line under the posterior) + beta log(trained residual of the line)

    Parameters
    ----------
    design : TrainedDesign
        The training's residuals; its order is not used.
    beta : float
        Weight of the training; 0 is the posterior alone.
    draws : int
        Posterior draws behind the expected energies; inference's own are used, with one coil as far as they go.

    Raises
    ------
    InputError
        For anything but a `TrainedDesign`, a weight that is not a number of zero or more, or no draw; and where the
        training is of another grid than the scan.
    """

    design: TrainedDesign
    beta: float = 0.5
    draws: int = 12
    name: str = "hybrid"
    needs_posterior: bool = True

    def __post_init__(self) -> None:
        _require_trained(self.design)
        require_numbers(beta=self.beta)
        require_counts(draws=self.draws, least=1)

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """Where the posterior's own rule would begin."""
        self.design.require_grid(n_lines)
        return start_for_posterior(n_lines, target)

    def predicted(self, view: DesignView, rng: np.random.Generator) -> Forecast:
        """The energies that the posteriors expect of the scan; what was learnt in training corrects the choice only."""
        return Forecast(expected_energies(view.posteriors, rng, self.draws))

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line with the largest score."""
        candidates = view.candidates
        self.design.require_grid(candidates.n_lines)
        expected = expected_energies(view.posteriors, rng, self.draws)
        trained = self.design.residuals(len(candidates.acquired))
        tiny = np.finfo(float).tiny
        scores = np.log(np.maximum(expected, tiny)) + self.beta * np.log(np.maximum(trained, tiny))
        return replace(best_line(scores, candidates), forecast=Forecast(expected))


def _require_trained(design: object) -> None:
    require_instance(TrainedDesign, wanted="a TrainedDesign, as load_trained reads it from a file", design=design)
