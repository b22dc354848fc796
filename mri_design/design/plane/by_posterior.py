"""Samples of a plane by the posterior alone: by expected error, and by information gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.design.decision import Choice, Forecast
from mri_design.design.plane.start import start_for_samples
from mri_design.design.plane.thinning import block_by_scores
from mri_design.design.posteriors import generators, of_each
from mri_design.design.sample_variances import expected_sample_energies, plane_of, sample_variances
from mri_design.design.strategy import DesignView
from mri_design.errors import require_counts
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.variances.information import gain_from_values


@dataclass(frozen=True, kw_only=True)
class ExpectedErrorSamples:
    """The samples with the largest posterior variance, summed over coils and slices.

    Parameters
    ----------
    draws : int
        Posterior draws behind the variances; inference's own are used as far as they go.

    Raises
    ------
    InputError
        For no draw.
    """

    draws: int = 8
    name: str = "expected-error"
    needs_posterior: bool = True

    def __post_init__(self) -> None:
        require_counts(draws=self.draws, least=1)

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """See `start_for_samples`."""
        return start_for_samples(n_lines, target)

    def predicted(self, view: DesignView, rng: np.random.Generator) -> Forecast:
        """A forecast of the expected energies, without a correction."""
        return Forecast(expected_sample_energies(view.posteriors, rng, self.draws))

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The remaining samples with the largest expected energies, thinned."""
        forecast = self.predicted(view, rng)
        assert forecast.expected is not None
        return block_by_scores(forecast.expected, view, count, forecast)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The first of a block."""
        return self.choose_block(view, rng, 1)[0]


@dataclass(frozen=True, kw_only=True)
class InformationGainSamples:
    """The samples with the largest information gain, log det(I + X_* A^-1 X_*^H) over the coils of a sample.

    Parameters
    ----------
    draws : int
        Posterior draws behind the scores; inference's own are used as far as they go.

    Raises
    ------
    InputError
        For no draw.
    """

    draws: int = 8
    name: str = "information-gain"
    needs_posterior: bool = True

    def __post_init__(self) -> None:
        require_counts(draws=self.draws, least=1)

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """See `start_for_samples`."""
        return start_for_samples(n_lines, target)

    def scores(self, posterior: GaussianPosterior, rng: np.random.Generator) -> NDArray[np.float64]:
        """Scores of all samples of the plane under one posterior, (size,): twice the information in nats."""
        plane, measured = plane_of(posterior)
        if measured.maps is None:
            return np.asarray(2 * np.log1p(sample_variances(posterior, rng, self.draws)))
        return gain_of_samples(plane.values(posterior.deviations(rng, self.draws), measured.maps, measured.library))

    def predicted(self, view: DesignView, rng: np.random.Generator) -> Forecast:
        """Expected energies summed over the posteriors; nothing corrects them."""
        return Forecast(expected_sample_energies(view.posteriors, rng, self.draws))

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The remaining samples with the largest total scores over the posteriors, thinned."""
        own = generators(rng, len(view.posteriors))
        total = np.asarray(np.sum(of_each(view.posteriors, self.scores, own), axis=0))
        forecast = self.predicted(view, rng)
        block = block_by_scores(total, view, count, forecast)
        gained = [replace(c, forecast=replace(c.forecast, information=float(total[c.line]) / 2)) for c in block]
        return gained

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The first of a block."""
        return self.choose_block(view, rng, 1)[0]


def gain_of_samples(values: Array) -> NDArray[np.float64]:
    """Scores (size,) from the values of posterior draws in units of sigma, (count, coil, size, 1)."""
    return gain_from_values(np.moveaxis(values[..., 0], 2, 0).swapaxes(1, 2))  # (size, coil, draw)
