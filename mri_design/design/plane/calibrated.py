"""Expected error of samples, corrected by a model of the posterior's own error that learns while the scan runs.

A block of samples gives as many innovations, each of them a sample of exactly what was predicted. They are enough to
learn from the scan alone how wrong the posterior's variances are: no trained model comes with the package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from mri_design.design.decision import Choice, Forecast
from mri_design.design.plane.gamma_regression import fitted_weights
from mri_design.design.plane.sample_features import PRIOR_MEAN, PRIOR_SD, PlaneKnowledge, sample_features
from mri_design.design.plane.start import start_for_samples
from mri_design.design.plane.thinning import block_by_scores, candidates_plane
from mri_design.design.sample_variances import expected_sample_energies
from mri_design.design.strategy import DesignView
from mri_design.errors import require_counts, require_instance, require_numbers
from mri_design.operators.encodings import PlaneEncoding

__all__ = ["CalibratedSamples"]

Numbers = NDArray[np.float64]

BELIEF = 4.0
"""Innovations that the regression alone counts as, beside those found around a sample."""
LEAST = 1e-6
"""Least energy beside the largest: what a sample is believed to hold at least."""


@dataclass(frozen=True, kw_only=True)
class CalibratedSamples:
    """The samples whose error is believed to be largest, after a correction that learns from this scan.

    The energy believed of a sample is exp(features . w), with w from a gamma regression of all innovations so far on
    the features that were known when they were predicted (`sample_features`), times the ratio of found to predicted
    energies around the sample (a Gaussian window).

    Parameters
    ----------
    draws : int
        Posterior draws behind the expected energies; inference's own are used as far as they go.
    reach : float
        Standard deviation of the window of found over predicted energies, as a share of the plane's sides.
    drawn : bool
        Whether scores are multiplied by draws of an exponential distribution: samples are then taken at random, in
        proportion to what is believed of them, in place of the largest first.

    Raises
    ------
    InputError
        For no draw, or a reach that is not a number between 0 and 1.
    """

    draws: int = 8
    reach: float = 0.05
    drawn: bool = False
    name: str = "calibrated"
    needs_posterior: bool = True

    def __post_init__(self) -> None:
        require_counts(draws=self.draws, least=1)
        require_numbers(most=1.0, reach=self.reach)
        require_instance(bool, wanted="true or false", drawn=self.drawn)

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """See `start_for_samples`."""
        return start_for_samples(n_lines, target)

    def predicted(self, view: DesignView, rng: np.random.Generator) -> Forecast:
        """Expected energies, and what the innovations so far make of them: NaN, not known, before there are any."""
        expected = expected_sample_energies(view.posteriors, rng, self.draws)
        plane = candidates_plane(view)
        known = PlaneKnowledge(plane, view.candidates.mask, expected)
        believed = self._believed(known, view)
        return Forecast(expected, np.where(known.measured, expected, np.nan if believed is None else believed))

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The remaining samples with the largest believed energies, of the first block expected ones, thinned."""
        forecast = self.predicted(view, rng)
        assert forecast.expected is not None and forecast.believed is not None
        scores = np.where(np.isnan(forecast.believed), forecast.expected, forecast.believed)
        if self.drawn:
            scores = scores * rng.exponential(size=scores.shape)
        return block_by_scores(scores, view, count, forecast)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The first of a block."""
        return self.choose_block(view, rng, 1)[0]

    def _believed(self, known: PlaneKnowledge, view: DesignView) -> Numbers | None:
        """Believed energies, (size,); None before the first innovation, when posteriors are most often wrong."""
        seen = _innovations(view, known.plane)
        if seen is None:
            return None
        features, level = sample_features(known), _level(known)
        # Energies in units of the level at their own time: the constant is how wrong the posterior is throughout.
        weights = fitted_weights(
            seen.features, seen.energies / seen.levels, seen.noise / seen.levels, seen.shape, (PRIOR_MEAN, PRIOR_SD)
        )
        predicted = np.exp(seen.features @ weights) * seen.levels + seen.noise
        found, counted = np.zeros(known.plane.size), np.zeros(known.plane.size)
        np.add.at(found, seen.samples, seen.energies / predicted)
        np.add.at(counted, seen.samples, 1.0)
        ratio = (BELIEF + self._around(found, known.plane)) / (BELIEF + self._around(counted, known.plane))
        believed = level * np.exp(features @ weights) * ratio
        return np.maximum(believed, LEAST * float(believed.max()))

    def _around(self, values: Numbers, plane: PlaneEncoding) -> Numbers:
        widths = [max(self.reach * n, 0.5) for n in plane.grid]
        weight = 2 * np.pi * widths[0] * widths[1]  # one at the middle of the window
        return np.asarray(weight * gaussian_filter(values.reshape(plane.grid), widths, mode="constant").reshape(-1))


@dataclass(frozen=True)
class _Innovations:
    """Energies found on the samples chosen so far, (count,) each, with what was known before."""

    samples: NDArray[np.intp]
    energies: Numbers
    features: Numbers
    levels: Numbers
    noise: Numbers
    shape: float


def _level(known: PlaneKnowledge) -> float:
    """Mean expected energy of the unmeasured samples, in which energies are counted."""
    where = ~known.measured if not known.measured.all() else np.ones_like(known.measured)
    return max(float(np.mean(known.expected[where])), float(np.finfo(float).tiny))


def _innovations(view: DesignView, plane: PlaneEncoding) -> _Innovations | None:
    """All that was predicted and measured so far; None where nothing was."""
    acquired, steps = view.candidates.acquired, view.steps
    first = len(acquired) - len(steps)
    measured = np.zeros(plane.size, dtype=bool)
    measured[list(acquired[:first])] = True
    noise = float(sum(2 * p.model.noise_variance * p.model.data.shape[0] for p in view.posteriors))
    parts: list[tuple[NDArray[np.intp], Numbers, Numbers, float]] = []
    begins = [*(i for i, step in enumerate(steps) if step.choice.pending == 0), len(steps)]
    for begin, end in pairwise(begins):
        block = steps[begin:end]
        samples = np.array([step.line for step in block], dtype=np.intp)
        expected = block[0].forecast.expected
        if expected is not None:
            known = PlaneKnowledge(plane, measured.copy(), expected)
            energies = np.array([step.outcome.actual_energy for step in block])
            parts.append((samples, energies, sample_features(known)[samples], _level(known)))
        measured[samples] = True
    if not parts:
        return None
    return _Innovations(
        np.concatenate([p[0] for p in parts]),
        np.concatenate([p[1] for p in parts]),
        np.concatenate([p[2] for p in parts]),
        np.concatenate([np.full(len(p[0]), p[3]) for p in parts]),
        np.full(sum(len(p[0]) for p in parts), noise),
        _shape(view),
    )


def _shape(view: DesignView) -> float:
    """Independent complex values behind one energy: slices, and coils as far as they see different things.

    Coils overlap, so that the square root of their number counts.
    """
    return float(sum(np.sqrt(p.model.data.shape[0]) for p in view.posteriors))
