"""Samples of a plane by their expected error, corrected by a gamma regression that learns from the scan alone.

A block of samples gives as many innovations, which are enough to learn how wrong the posterior's variances are. They
also show how far an earlier scan of the same object can be trusted, where there is one. With several coils a sample
tells much of its surroundings, and even distances count for more than the energies of single samples: most of the mask
is a Poisson disc, and the rest is chosen by all that a sample tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.design.calibrated import (
    TINY,
    EarlierScan,
    measured_blocks,
)
from mri_design.design.energies import coils_and_noise, expected_energies, fewest_coils, means_of, of_each
from mri_design.design.fixed import POWER, SHARE, first_disc
from mri_design.design.greedy import PredictsByScore, Scores, block_by_gains, plane_of
from mri_design.design.strategy import DesignView
from mri_design.design.trace import Choice, Forecast
from mri_design.errors import InputError
from mri_design.readouts import PlaneReadouts, Readouts

Numbers = NDArray[np.float64]
SAMPLE_FEATURES = ("constant", "log expected", "log radius", "opposite measured", "local density", "cos 2 theta")
"""Columns of `sample_features`; behind them that of an earlier scan, where there is one."""
PRIOR_MEAN = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
"""Weights under which the posterior is right."""
PRIOR_SD = np.array([2.0, 0.3, 0.5, 0.5, 1.0, 0.5])
"""How far from right posteriors may be; wide enough to be forgotten after some hundred samples."""
EARLIER_MEAN = 0.8
"""Weight of what an earlier scan says, before any sample has shown how right that is; the posterior's is the rest."""
EARLIER_SD = 0.4
"""Prior standard deviation of both weights."""
AROUND = 2.0
"""Samples: standard deviation of the window in which density is counted."""


def feature_weights(earlier: bool) -> tuple[Numbers, Numbers]:
    """Means and standard deviations of the features' weights before any innovation, (features,) each.

    Parameters
    ----------
    earlier : bool
        Whether there is an earlier scan of the object.
    """
    mean, sd = PRIOR_MEAN.copy(), PRIOR_SD.copy()
    if not earlier:
        return mean, sd
    at = SAMPLE_FEATURES.index("log expected")
    mean[at], sd[at] = 1 - EARLIER_MEAN, EARLIER_SD
    return np.append(mean, EARLIER_MEAN), np.append(sd, EARLIER_SD)


def level(measured: NDArray[np.bool_], expected: Numbers) -> float:
    """Mean expected energy of the unmeasured samples, in which energies are counted; of all without any."""
    where = ~measured if not measured.all() else np.ones_like(measured)
    return max(float(np.mean(expected[where])), TINY)


def sample_features(
    plane: PlaneReadouts, measured: NDArray[np.bool_], expected: Numbers, earlier: Numbers | None = None
) -> Numbers:
    """One row for every sample of the plane at one moment of a design, (size, features).

    The logarithms of the energy that the posteriors expect of the error on every sample, and of that which an earlier
    scan says, a further column, are taken relative to `level`. The radius counts samples from DC; the density is the
    share of measured samples around a sample, the angle is that of (ky, kz).

    Parameters
    ----------
    plane : PlaneReadouts
        The samples.
    measured : bool array, shape (size,)
        Those that have been measured.
    expected, earlier : float array, shape (size,)
        Energies.
    """
    unit = level(measured, expected)
    ky, kz = plane.frequencies.T
    density = scipy.ndimage.gaussian_filter(measured.reshape(plane.grid).astype(float), AROUND, mode="wrap")
    columns = [
        np.ones(plane.size),
        np.log(np.maximum(expected, TINY) / unit),
        np.log1p(np.hypot(ky, kz)) - np.log1p(np.hypot(*plane.grid) / 4),
        measured[plane.opposite].astype(float),
        density.reshape(-1),
        np.cos(2 * np.arctan2(kz, ky)),
    ]
    if earlier is not None:
        columns.append(np.log(np.maximum(earlier, TINY) / unit))
    return np.stack(columns, axis=1)


STEPS, HALVINGS = 30, 40
CLOSE = 1e-8
"""Relative decrease of the objective at which the iteration ends."""


def fitted_weights(
    features: Numbers, energies: Numbers, floor: Numbers, shape: float, prior: tuple[Numbers, Numbers]
) -> Numbers:
    """The most probable weights w of E[energy] = floor + exp(features . w).

    An energy is the squared modulus of complex Gaussian values, summed: a gamma distribution with that mean, whose
    shape is the number of independent complex values.

    Parameters
    ----------
    features : float array, shape (count, features)
        One row per energy.
    energies : float array, shape (count,)
        Zero or more.
    floor : float array, shape (count,)
        Known part of the means: that of noise; positive.
    shape : float
        Of the gamma distributions.
    prior : tuple of float arrays, shape (features,)
        Means and standard deviations of the weights, which are independent and Gaussian.

    Returns
    -------
    float array, shape (features,)

    Notes
    -----
    Fisher scoring. A step is halved for as long as that is better: where predictions are many times too small, a whole
    one makes them larger by that many powers of e, which is less wrong and still useless. The negative log posterior is
    sum_i shape (log m_i + e_i / m_i) + sum_j (w_j - mean_j)^2 / (2 sd_j^2), m = floor + exp(features . w).
    """
    mean, sd = prior
    weights = mean.copy()

    def objective(w: Numbers) -> float:
        m = floor + np.exp(np.clip(features @ w, -700, 700))
        return float(shape * np.sum(np.log(m) + energies / m) + np.sum(((w - mean) / sd) ** 2) / 2)

    value = objective(weights)
    for _ in range(STEPS):
        signal = np.exp(np.clip(features @ weights, -700, 700))
        m = floor + signal
        slope = shape * (signal / m) * (1 - energies / m)
        gradient = features.T @ slope + (weights - mean) / sd**2
        information = (features * (shape * (signal / m) ** 2)[:, None]).T @ features + np.diag(1 / sd**2)
        step = np.linalg.solve(information, gradient)
        found, candidate = value, weights
        for halving in range(HALVINGS):
            tried = weights - step / 2**halving
            reached = objective(tried)
            if reached <= found:
                found, candidate = reached, tried
            elif found < value:
                break
        done = value - found <= CLOSE * (1 + abs(value))
        weights, value = candidate, found
        if done:
            return weights
    return weights


BELIEF = 4.0
"""Innovations that the regression alone counts as, beside those found around a sample."""
LEAST = 1e-6
"""Least energy beside the largest: what a sample is predicted to hold at least."""
TEMPER = 0.4
"""Exponent of the correction of energies, with several coils."""


@dataclass(frozen=True, kw_only=True)
class CalibratedSamples(PredictsByScore):
    """Samples chosen by their predicted energies, after a correction that learns from this scan.

    The energy predicted of a sample is exp(features . w), with w from a gamma regression of all innovations so far on
    the features that were known when they were predicted (`sample_features`), times the ratio of found to predicted
    energies around the sample (a Gaussian window).

    With one coil samples are drawn by their own energies. With several coils the first part of the mask is a
    Poisson disc, before anything is inferred, and each of the others is the one that removes most energy from all
    samples, its own and that around it (`covering`). A block explains much of its surroundings then, so that energies
    found before it overstate what is left: the correction counts with an exponent below 1.

    What an earlier scan of the object says of a sample (`EarlierScan`) is one more feature. It is trusted from the
    start, and after the first block as far as the innovations bear it out: its weight in the regression falls towards
    zero where they do not. Samples are then chosen by their own energies, whatever the number of coils.

    Parameters
    ----------
    draws : int
        Posterior draws behind the expected energies; inference's own are used as far as they go.
    reach : float
        Standard deviation of the window of found over predicted energies, as a share of the plane's sides.
    drawn : bool, optional
        If given, samples are chosen by their own energies whatever the number of coils. Where true, energies are drawn
        from the gamma distributions that the regression takes them to have, around what is predicted of them. What is
        predicted is smooth over the plane, and the samples with the largest energies under a smooth belief lie in
        patterns; drawn ones do not, as one who knew the energies would take them. What an earlier scan explains of how
        they scatter is not drawn. If false the largest predicted energies are taken. By default true with one coil and
        false with several of which there is an earlier scan.
    disc_share, disc_power : float
        With several coils, which part of the mask is a Poisson disc, the start included, and the power of its density
        (`radial_density`). Where a rule may end the design, so that nobody knows how large the mask will be, there is
        none.
    temper : float
        With several coils, the exponent of corrected over expected energies: 0 goes by the posterior alone.
    earlier : sequence of EarlierScan
        Of the same object, one for every slice that shares the mask; empty where there is none.

    Raises
    ------
    InputError
        Where earlier scans are of another grid, or not as many as the slices.
    """

    draws: int = 8
    reach: float = 0.05
    drawn: bool | None = None
    disc_share: float = SHARE
    disc_power: float = POWER
    temper: float = TEMPER
    earlier: tuple[EarlierScan, ...] = ()
    name: str = "calibrated"

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """See `PlaneReadouts.start_for_posterior`."""
        for scan in self.earlier:
            scan.require_grid(readouts.size)
        return readouts.start_for_posterior(target)

    def unseen(self, readouts: Readouts, target: int, n_coils: int) -> int:
        """With several coils, the start and the Poisson disc."""
        return round(self.disc_share * target) if self._by_surroundings(n_coils) else 0

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The next samples; those of the Poisson disc where there is no posterior to see."""
        if not view.posteriors:
            return first_disc(view.candidates, rng, count, self.disc_power)
        if not self._by_surroundings(fewest_coils(view.posteriors)):
            return super().choose_block(view, rng, count)
        forecast, energies, _ = self._belief(view, rng)
        assert forecast.expected is not None
        corrected = energies / np.maximum(forecast.expected, TINY)
        return block_by_gains(forecast.expected * corrected**self.temper, view, count, forecast)

    def _by_surroundings(self, n_coils: int) -> bool:
        """Whether samples are chosen by all that they tell, and not by their own energies."""
        return n_coils > 1 and self.drawn is None and not self.earlier

    def predicted(self, view: DesignView, rng: np.random.Generator) -> Forecast:
        """Expected energies, and what the innovations so far make of them: NaN, not known, before there are any."""
        forecast, *_ = self._belief(view, rng)
        return forecast

    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Energies as they are drawn; in the first block of what the posterior expects, or an earlier scan says."""
        forecast, scores, known = self._belief(view, rng)
        if fewest_coils(view.posteriors) == 1 if self.drawn is None else self.drawn:
            shape = _shape(view)
            scores = scores * (rng.gamma(shape, size=scores.shape) / shape) ** (1 - known)
        return Scores(scores, forecast)

    def _belief(self, view: DesignView, rng: np.random.Generator) -> tuple[Forecast, Numbers, float]:
        """A forecast, the energies by which samples are chosen, (size,), and the known fraction of their scatter."""
        plane, measured = plane_of(view), view.candidates.mask
        expected = expected_energies(view.posteriors, view.readouts, rng, self.draws)
        said = self._said(view)
        prior = feature_weights(bool(self.earlier))
        seen = _Innovations.of(view, plane, said)
        weights = prior[0] if seen is None else seen.fitted(prior)
        energies = level(measured, expected) * np.exp(sample_features(plane, measured, expected, said[-1]) @ weights)
        if seen is not None:
            energies = energies * self._found_over_predicted(seen, weights, plane)
        energies = np.maximum(energies, LEAST * float(energies.max()))
        corrected = np.where(measured, expected, np.nan if seen is None else energies)
        if not self.earlier:
            return Forecast(expected, corrected), expected if seen is None else energies, 0.0
        explained = float("nan") if seen is None else seen.explained(weights)
        known = EARLIER_MEAN if seen is None else explained
        return Forecast(expected, corrected, side_information_weight=explained), energies, known

    def _said(self, view: DesignView) -> list[Numbers | None]:
        """Energies on every sample, (size,), as the earlier scans say them: at every block, and now."""
        history = [*(known for known, _ in measured_blocks(view)), view.candidates.acquired]
        if not self.earlier:
            return [None] * len(history)
        if len(self.earlier) != len(view.posteriors):
            raise InputError(
                field="earlier scans",
                got=str(len(self.earlier)),
                wanted=f"one for every slice that shares the mask: {len(view.posteriors)}",
            )
        parts = [
            np.array(scan.residuals(history)) * np.sum(np.abs(mean) ** 2, dtype=np.float64)
            for scan, mean in zip(self.earlier, means_of(view.posteriors), strict=True)
        ]
        return list(np.sum(parts, axis=0))

    def _found_over_predicted(self, seen: _Innovations, weights: Numbers, plane: PlaneReadouts) -> Numbers:
        """Ratio of found to predicted energies around every sample, (size,); 1 where nothing is near."""
        widths = [max(self.reach * n, 0.5) for n in plane.grid]
        weight = 2 * np.pi * widths[0] * widths[1]  # one at the middle of the window

        def around(values: Numbers) -> Numbers:
            total = np.zeros(plane.size)
            np.add.at(total, seen.samples, values)
            laid_out = scipy.ndimage.gaussian_filter(total.reshape(plane.grid), widths, mode="constant")
            return np.asarray(weight * laid_out.reshape(-1))

        found, counted = around(seen.energies / seen.predicted(weights)), around(np.ones(len(seen.samples)))
        return (BELIEF + found) / (BELIEF + counted)


@dataclass(frozen=True)
class _Innovations:
    """Energies found on the samples chosen so far, (count,) each, with what was known before.

    Energies are fitted in units of the level at their own time: the constant is then how wrong the posterior is
    throughout. ``shape`` is `_shape`, ``noise`` the energy of noise in a sample.
    """

    samples: NDArray[np.intp]
    energies: Numbers
    features: Numbers
    levels: Numbers
    noise: float
    shape: float

    @classmethod
    def of(cls, view: DesignView, plane: PlaneReadouts, said: Sequence[Numbers | None]) -> _Innovations | None:
        """All that was predicted and measured so far; None where nothing was."""
        parts = []
        for (acquired, block), earlier in zip(measured_blocks(view), said, strict=False):
            expected = block[0].forecast.expected
            if expected is None:
                continue
            samples = np.array([step.line for step in block], dtype=np.intp)
            measured = np.zeros(plane.size, dtype=bool)
            measured[list(acquired)] = True
            energies = np.array([step.outcome.actual_energy for step in block])
            features = sample_features(plane, measured, expected, earlier)[samples]
            parts.append((samples, energies, features, np.full(len(block), level(measured, expected))))
        if not parts:
            return None
        noise = float(sum(2 * variance * coils for coils, variance in of_each(view.posteriors, coils_and_noise)))
        samples, energies, features, levels = (np.concatenate(each) for each in zip(*parts, strict=True))
        return cls(samples, energies, features, levels, noise, _shape(view))

    def predicted(self, weights: Numbers) -> Numbers:
        """Mean energies under weights of the features."""
        return np.asarray(np.exp(self.features @ weights) * self.levels + self.noise)

    def fitted(self, prior: tuple[Numbers, Numbers]) -> Numbers:
        """Weights of the features."""
        energies, floor = self.energies / self.levels, self.noise / self.levels
        return fitted_weights(self.features, energies, floor, self.shape, prior)

    def explained(self, weights: Numbers) -> float:
        """Which share of the innovations' deviance an earlier scan explains, 0 to 1: that of the last feature.

        Single energies scatter around whatever is predicted of their surroundings. Only something that knows the object
        itself predicts them one by one, so that this share is near 0 for the scan of another object, although energies
        fall with |k| there, too.
        """
        without = replace(self, features=self.features[:, :-1])
        alone = without.deviance(without.fitted(feature_weights(False)))
        return float(np.clip(1 - self.deviance(weights) / alone, 0.0, 1.0))

    def deviance(self, weights: Numbers) -> float:
        """Mean over innovations, 0 where each energy is as predicted, of gamma distributions with noise in them."""
        ratio = np.maximum(self.energies, self.noise) / self.predicted(weights)
        return float(np.mean(ratio - 1 - np.log(ratio)))


def _shape(view: DesignView) -> float:
    """Independent complex values behind one energy: slices, and coils as far as they see different things.

    Coils overlap, so that the square root of their number counts.
    """
    return float(sum(np.sqrt(coils) for coils, _ in of_each(view.posteriors, coils_and_noise)))
