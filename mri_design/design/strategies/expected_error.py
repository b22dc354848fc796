"""A-optimal design: the candidates that carry most of the error that the posterior expects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mri_design.design.blocks import PredictsByScore, Scores
from mri_design.design.decision import Forecast
from mri_design.design.energies import expected_energies
from mri_design.design.strategy import DesignView
from mri_design.errors import require_counts


@dataclass(frozen=True, kw_only=True)
class ExpectedError(PredictsByScore):
    """The candidates with the largest posterior variance, summed over their values, coils and slices.

    Measuring a candidate removes at least its own share of E|u - mean|^2; what it teaches about others is left out. The
    log-determinant (`InformationGain`) counts the same variances in relative terms.

    Parameters
    ----------
    draws : int, optional
        Posterior draws behind the variances; inference's own are used, with one coil as far as they go. By default
        those of the readouts: 12 for lines and shots, 8 for the samples of a plane.

    Raises
    ------
    InputError
        For no draw.
    """

    draws: int | None = None
    name: str = "expected-error"

    def __post_init__(self) -> None:
        if self.draws is not None:
            require_counts(draws=self.draws, least=1)

    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Expected energies, which are the forecast, too."""
        expected = expected_energies(view.posteriors, view.readouts, rng, self.draws or view.readouts.draws)
        return Scores(expected, Forecast(expected))
