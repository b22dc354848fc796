"""A-optimal design: the line that carries most of the error that the posterior expects."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.design.decision import Choice, Forecast
from mri_design.design.line_variances import expected_energies
from mri_design.design.strategy import DesignView, best_line, start_for_posterior
from mri_design.errors import require_counts


@dataclass(frozen=True, kw_only=True)
class AOptimal:
    """The line with the largest posterior variance, summed over readout and coils.

    Measuring a line removes at least its own share of E|u - mean|^2; what it teaches about others is left out. The
    log-determinant (`InformationGain`) counts the same variances in relative terms.

    Parameters
    ----------
    draws : int
        Posterior draws behind the variances; inference's own are used, with one coil as far as they go.

    Raises
    ------
    InputError
        For no draw.
    """

    draws: int = 12
    name: str = "expected-error"
    needs_posterior: bool = True

    def __post_init__(self) -> None:
        require_counts(draws=self.draws, least=1)

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """As for the information gain: half of the target, between 8 lines and an eighth of the grid."""
        return start_for_posterior(n_lines, target)

    def expected(self, view: DesignView, rng: np.random.Generator) -> NDArray[np.float64]:
        """Energy of the error on every line as the posteriors expect it, (ky,), summed over them."""
        return expected_energies(view.posteriors, rng, self.draws)

    def predicted(self, view: DesignView, rng: np.random.Generator) -> Forecast:
        """A forecast of the expected energies, without a correction."""
        return Forecast(self.expected(view, rng))

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line with the largest expected energy."""
        expected = self.expected(view, rng)
        return replace(best_line(expected, view.candidates), forecast=Forecast(expected))
