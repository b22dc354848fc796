"""Expected error, corrected by a model of the posterior's own error that learns while the scan runs.

Lines: the posterior's line variances are wrong in a systematic way: they are too small where |k| is large, they ignore
conjugate symmetry, and they are overconfident about regular gaps. A linear model (`error_model`) describes what the
error really is. Every measured line corrects it, since its innovation is a sample of exactly what was predicted.

Samples of a plane: a block of them gives as many innovations, which are enough to learn from the scan alone how wrong
the posterior's variances are. They also show how far an earlier scan of the same object can be trusted, where there is
one. With several coils a sample tells much of its surroundings, and even distances count for more than the energies of
single samples: most of the mask is a Poisson disc, and the rest is chosen by all that a sample tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.design.blocks import (
    POWER,
    SHARE,
    ChoosesByScore,
    Scores,
    block_by_gains,
    first_disc,
    neighbourhood,
    plane_of,
    require_weights,
)
from mri_design.design.earlier_scan import EarlierScan
from mri_design.design.energies import coils_and_noise, expected_energies, fewest_coils, image_energy, means_of, of_each
from mri_design.design.strategies.error_model import (
    EARLIER_MEAN,
    ErrorModel,
    ErrorModelName,
    LineKnowledge,
    feature_weights,
    features_of_line,
    fitted_weights,
    level,
    line_features,
    sample_features,
    shipped_error_model,
)
from mri_design.design.strategy import DesignView
from mri_design.design.trace import Choice, DesignStep, Forecast
from mri_design.errors import InputError, require_counts, require_instance
from mri_design.model.posterior import GaussianPosterior
from mri_design.readouts import PlaneReadouts, Readouts

Numbers = NDArray[np.float64]


def measured_blocks(view: DesignView) -> list[tuple[tuple[int, ...], Sequence[DesignStep]]]:
    """Blocks of decisions that were made at once and have been measured, each with what was known before."""
    acquired, steps = view.candidates.acquired, view.steps[: len(view.steps) - view.pending]
    first = len(acquired) - len(view.steps)
    begins = [*(i for i, step in enumerate(steps) if step.choice.pending == 0), len(steps)]
    return [(acquired[: first + begin], steps[begin:end]) for begin, end in pairwise(begins)]


LEAST_ENERGY = 0.5
"""An innovation's energy, its noise subtracted, counts as at least this many standard deviations of that noise."""

TINY = float(np.finfo(float).tiny)
SPREAD = 0.2
"""Nats: how wrong the side information is taken to be about the energy of a line, before any line has shown it."""
OWN_SPREAD = 0.4
"""Nats: how wrong the error model is taken to be about the energy of a line, before any line has shown it."""
PRIOR_COUNT = 3
"""How many lines these count as."""
DECISIVENESS = 4.0
"""Power of the ratio of variances: 1 weighs independent predictions in the best way, more trusts the better."""


@runtime_checkable
class SideInformation(Protocol):
    """Says which error is left on every line, from something else than the scan that is being measured."""

    def require_grid(self, n_lines: int) -> None:
        """Refuse a scan with another number of lines.

        Raises
        ------
        InputError
            Naming both.
        """

    def residuals(self, history: Sequence[tuple[int, ...]]) -> list[Numbers]:
        """Energy of the error on every line over the image's energy, (ky,), after each step of a design.

        Parameters
        ----------
        history : sequence of tuples of int
            The lines measured by then, each step with those of the step before.
        """


def weight_of_side_information(errors: Numbers, own: Numbers, noise: Numbers) -> float:
    """Weight of side information against the error model, 0 to 1.

    Both are taken to be wrong by independent normal errors in the logarithm. Their variances are estimated from the
    lines measured so far, with an inverse-gamma prior that counts as a few lines. A line that holds little more than
    noise says little about either, and counts as less than one.

    Parameters
    ----------
    errors, own : float array, shape (lines,)
        log(measured / predicted energy) of the lines so far, as predicted by the side information and the error model.
    noise : float array, shape (lines,)
        Variance of the logarithms that is due to noise.
    """
    counts = OWN_SPREAD**2 / (OWN_SPREAD**2 + noise)
    ratio = _variance(errors, counts, SPREAD) / _variance(own, counts, OWN_SPREAD)
    return 1 / (1 + ratio**DECISIVENESS)


def _variance(errors: Numbers, counts: Numbers, spread: float) -> float:
    return float((PRIOR_COUNT * spread**2 + counts @ errors**2) / (PRIOR_COUNT + counts.sum()))


@dataclass(frozen=True, kw_only=True)
class Calibrated(ChoosesByScore):
    """Choose the line on and around which the error is expected to be largest, after a correction that learns.

    The regression that corrects the posterior's expectation (`ErrorModel`) has learnt on synthetic heads how wrong such
    expectations are, and goes on learning from the innovation of each line that is measured.

    A line tells something about its neighbours too, the more the smaller the object is and the more coils there are,
    and the energy predicted of a neighbourhood is more certain than that of one line. So a line's score is the
    sum of the energies predicted of the unmeasured lines around it, with weights that fall with the distance
    (results/design-study/README.md).

    An earlier scan of the same object, or scans that a training has seen, may have a say. What they say of a line's own
    energy and the score above are then averaged, as logarithms, with weights by how well either has predicted the lines
    of this scan so far (`weight_of_side_information`).

    Parameters
    ----------
    draws : int
        Posterior draws behind the expected energies; inference's own are used, with one coil as far as they go.
    error_model : ErrorModel, optional
        The regression to begin with; by default the one that comes with the package.
    online : bool
        Whether to learn from the scan's own innovations.
    neighbours : sequence of float
        Weights of the lines at distance 1, 2, ... on either side, relative to the line itself; empty scores every line
        by its own energy.
    side_information : SideInformation, optional
        An `EarlierScan` of the same object, or a `TrainedDesign` of others.

    Raises
    ------
    InputError
        For no draw, an error model or side information that is none, or weights that are not numbers between 0 and 1;
        and where the side information is of another grid.
    """

    draws: int = 12
    error_model: ErrorModel | None = None
    online: bool = True
    neighbours: tuple[float, ...] = (0.5, 0.25)
    side_information: SideInformation | None = None
    name: str = "calibrated"

    def __post_init__(self) -> None:
        require_counts(draws=self.draws, least=1)
        require_instance(bool, wanted="true or false", online=self.online)
        if self.error_model is not None:
            wanted = "an ErrorModel, or None for the shipped one"
            require_instance(ErrorModel, wanted=wanted, error_model=self.error_model)
        if self.side_information is not None:
            wanted = "an EarlierScan, a TrainedDesign, or None"
            require_instance(SideInformation, wanted=wanted, side_information=self.side_information)
        require_weights(self.neighbours)

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """Eight lines with one coil: the error model knows how much energy the centre of an image holds.

        Four with several, which see the image's support and its low resolution without them.
        """
        if self.side_information is not None:
            self.side_information.require_grid(readouts.size)
        return readouts.start(target, 8 if n_coils == 1 else 4)

    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Corrected energies of every line's neighbourhood.

        Energies are averaged over what the weights of the error model may still be. The forecast goes by the mean
        weights: the average would predict too much of lines that are little known.
        """
        expected = expected_energies(view.posteriors, view.readouts, rng, self.draws)
        now, model = self._informed(view, expected)
        features = line_features(now)
        energies = now.unit * model.marginal_energies(features)
        scores = neighbourhood(np.where(now.measured, 0.0, energies), self.neighbours)
        weight = self.side_information_weight(view)
        if self.side_information is not None:
            seen = np.maximum(self.side_information.residuals(_history(view))[-1], TINY) * image_energy(view.posteriors)
            scores = seen**weight * scores ** (1 - weight)
        return Scores(scores, Forecast(expected, _corrected(now, model, features), side_information_weight=weight))

    def predicted(self, view: DesignView, rng: np.random.Generator) -> Forecast:
        """Expected energies, and what the error model makes of them."""
        expected = expected_energies(view.posteriors, view.readouts, rng, self.draws)
        weight = self.side_information_weight(view)
        return Forecast(expected, self.corrected(view, expected), side_information_weight=weight)

    def corrected(self, view: DesignView, expected: Numbers) -> Numbers:
        """Energy of the error on every line, (ky,); on measured lines it is what the posterior expects."""
        now, model = self._informed(view, expected)
        return _corrected(now, model, line_features(now))

    def _informed(self, view: DesignView, expected: Numbers) -> tuple[LineKnowledge, ErrorModel]:
        start, learnt = self.error_models(view)
        return _Scan.of(view).knowledge(view.candidates.acquired, expected), learnt if self.online else start

    def error_models(self, view: DesignView) -> tuple[ErrorModel, ErrorModel]:
        """Where the model started, and what it is after the lines that have been measured since."""
        scan = _Scan.of(view)
        start = self.error_model or shipped_error_model(_kind(view.posteriors))
        rows, log_energies, variances = [], [], []
        for acquired, block in measured_blocks(view):
            expected = block[0].forecast.expected  # of the posterior that the block was chosen from
            if expected is None:
                continue
            known = scan.knowledge(acquired, expected)
            for step in block:
                energy, variance = scan.error_energy(step.outcome.actual_energy)
                rows.append(features_of_line(known, step.line))
                log_energies.append(np.log(energy / known.unit))
                variances.append(variance)
        if not rows:
            return start, start
        return start, start.given(np.array(rows), np.array(log_energies), np.array(variances))

    def side_information_weight(self, view: DesignView) -> float:
        """How much the side information counts, 0 to 1; NaN where there is none."""
        if self.side_information is None:
            return float("nan")
        self.side_information.require_grid(view.candidates.n_lines)
        return weight_of_side_information(*_log_errors(view, self.side_information))


@dataclass(frozen=True)
class _Scan:
    """Energies of the measured lines, all slices together, and the noise in a line."""

    energies: Numbers
    noise: float
    samples: int

    @classmethod
    def of(cls, view: DesignView) -> _Scan:
        n = view.candidates.n_lines
        energies, noise, samples = np.zeros(n), 0.0, 0
        known = np.array(view.candidates.acquired[: len(view.candidates.acquired) - view.pending])
        for found, variance, size in of_each(view.posteriors, _measured):
            energies[known] += found
            each = size // len(known)
            noise += 2 * variance * each
            samples += each
        return cls(energies, noise, samples)

    def error_energy(self, actual_energy: float) -> tuple[float, float]:
        """Energy of the error on a line whose innovation was measured, and the variance of its logarithm by noise."""
        noise_sd = self.noise / np.sqrt(self.samples)
        energy = max(actual_energy - self.noise, LEAST_ENERGY * noise_sd)
        return energy, (noise_sd / energy) ** 2

    def knowledge(self, acquired: Sequence[int], expected: Numbers) -> LineKnowledge:
        """Knowledge at the moment when ``acquired`` had been chosen; it lacks the energies of lines still pending."""
        measured = np.zeros(len(self.energies), dtype=bool)
        measured[list(acquired)] = True
        return LineKnowledge(measured, self.energies, self.noise, expected)


def _corrected(now: LineKnowledge, model: ErrorModel, features: Numbers) -> Numbers:
    return np.where(now.measured, now.expected, now.unit * model.energies(features))


def _kind(posteriors: Sequence[GaussianPosterior]) -> ErrorModelName:
    """Name of the shipped model that fits most of the slices."""
    kinds = of_each(posteriors, _coils_and_model)
    if kinds[0][0] > 1:
        return "several coils"
    modulus = sum(complex_linear for _, complex_linear in kinds)
    return "one coil" if 2 * modulus >= len(posteriors) else "one coil, phase-aware"


def _coils_and_model(posterior: GaussianPosterior) -> tuple[int, bool]:
    """How many coils, and whether the model is that of the modulus, which takes no phase for known."""
    return len(posterior.model.data), posterior.precision.complex_linear


def _measured(posterior: GaussianPosterior) -> tuple[Numbers, float, int]:
    """Energies of the measured lines, the noise variance of a sample's component, and how many samples there are."""
    model = posterior.model
    energies = np.asarray(np.sum(np.abs(model.data) ** 2, axis=(0, 2), dtype=np.float64))
    return energies, float(model.noise_variance), model.data.size


def _log_errors(view: DesignView, side_information: SideInformation) -> tuple[Numbers, Numbers, Numbers]:
    """log(measured / predicted energy) of the lines chosen so far, by the side information and by the error model.

    The third array is what noise adds to the variance of both.
    """
    scan, level = _Scan.of(view), image_energy(view.posteriors)
    found: list[tuple[float, float, float]] = []
    steps = view.steps[: len(view.steps) - view.pending]
    for step, residuals in zip(steps, side_information.residuals(_history(view)), strict=False):
        if step.forecast.predicted is None:
            continue
        energy, noise = scan.error_energy(step.outcome.actual_energy)
        predicted = level * max(residuals[step.line], TINY), step.forecast.predicted[step.line]
        found.append((np.log(energy / predicted[0]), np.log(energy / predicted[1]), noise))
    table = np.array(found, dtype=np.float64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def _history(view: DesignView) -> list[tuple[int, ...]]:
    """The lines known at every decision whose line has been measured, and those known now; in blocks they repeat."""
    acquired = view.candidates.acquired
    before = [known for known, block in measured_blocks(view) for _ in block]
    return [*before, acquired[: len(acquired) - view.pending]]


BELIEF = 4.0
"""Innovations that the regression alone counts as, beside those found around a sample."""
LEAST = 1e-6
"""Least energy beside the largest: what a sample is predicted to hold at least."""
TEMPER = 0.4
"""Exponent of the correction of energies, with several coils."""


@dataclass(frozen=True, kw_only=True)
class CalibratedSamples(ChoosesByScore):
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
