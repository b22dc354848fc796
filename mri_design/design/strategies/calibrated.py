"""Expected error, corrected by a model of the posterior's own error that learns while the scan runs.

The posterior's line variances are wrong in a systematic way: they are too small where |k| is large, they ignore
conjugate symmetry, and they are overconfident about regular gaps. A linear model (`error_model`) describes what the
error really is. Every measured line corrects it, since its innovation is a sample of exactly what was predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mri_design.design.blocks import ChoosesByScore, Scores, neighbourhood, require_weights
from mri_design.design.energies import expected_energies, image_energy, of_each
from mri_design.design.strategies.error_model import (
    ErrorModel,
    ErrorModelName,
    LineKnowledge,
    features_of_line,
    line_features,
    shipped_error_model,
)
from mri_design.design.strategy import DesignView
from mri_design.design.trace import Forecast
from mri_design.errors import require_counts, require_instance
from mri_design.model.posterior import GaussianPosterior
from mri_design.readouts import Readouts

Numbers = NDArray[np.float64]

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
        An `EarlierScan` of the same object, or `TrainingScans` of others.

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
            wanted = "an EarlierScan, TrainingScans, or None"
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
        expected = self.expected(view, rng)
        now, model = self._informed(view, expected)
        features = line_features(now)
        energies = now.unit * model.marginal_energies(features)
        scores = neighbourhood(np.where(now.measured, 0.0, energies), self.neighbours)
        weight = self.side_information_weight(view)
        if self.side_information is not None:
            seen = np.maximum(self.side_information.residuals(_history(view))[-1], TINY) * image_energy(view.posteriors)
            scores = seen**weight * scores ** (1 - weight)
        return Scores(scores, Forecast(expected, _corrected(now, model, features), side_information_weight=weight))

    def expected(self, view: DesignView, rng: np.random.Generator) -> Numbers:
        """Energy of the error on every line as the posteriors expect it, (ky,), summed over them."""
        return expected_energies(view.posteriors, view.readouts, rng, self.draws)

    def predicted(self, view: DesignView, rng: np.random.Generator) -> Forecast:
        """Expected energies, and what the error model makes of them."""
        expected = self.expected(view, rng)
        return Forecast(
            expected, self.corrected(view, expected), side_information_weight=self.side_information_weight(view)
        )

    def corrected(self, view: DesignView, expected: Numbers) -> Numbers:
        """Energy of the error on every line, (ky,); on measured lines it is what the posterior expects."""
        now, model = self._informed(view, expected)
        return _corrected(now, model, line_features(now))

    def _informed(self, view: DesignView, expected: Numbers) -> tuple[LineKnowledge, ErrorModel]:
        scan = _Scan.of(view)
        start = self._start(view)
        now = scan.knowledge(view.candidates.acquired, expected)
        return now, learnt(start, scan, view) if self.online else start

    def error_models(self, view: DesignView) -> tuple[ErrorModel, ErrorModel]:
        """Where the model started, and what it is after the lines that have been measured since."""
        start = self._start(view)
        return start, learnt(start, _Scan.of(view), view)

    def side_information_weight(self, view: DesignView) -> float:
        """How much the side information counts, 0 to 1; NaN where there is none."""
        if self.side_information is None:
            return float("nan")
        self.side_information.require_grid(view.candidates.n_lines)
        return weight_of_side_information(*_log_errors(view, self.side_information))

    def _start(self, view: DesignView) -> ErrorModel:
        return self.error_model or shipped_error_model(_kind(view.posteriors))


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
    return measured_energies(posterior), float(model.noise_variance), model.data.size


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
    first = len(acquired) - len(view.steps)
    before = [acquired[: first + i - step.choice.pending] for i, step in enumerate(view.steps)]
    return [*before[: len(before) - view.pending], acquired[: len(acquired) - view.pending]]


def measured_energies(posterior: GaussianPosterior) -> Numbers:
    """Energy of every measured line, in the order of acquisition."""
    power = np.abs(posterior.model.data) ** 2
    return np.asarray(np.sum(power, axis=(0, 2), dtype=np.float64))


def learnt(start: ErrorModel, scan: _Scan, view: DesignView) -> ErrorModel:
    """The error model after the innovations of the lines that have been measured since the start."""
    acquired, steps = view.candidates.acquired, view.steps
    first = len(acquired) - len(steps)
    rows, log_energies, variances = [], [], []
    for i, step in enumerate(steps[: len(steps) - view.pending]):
        pending = step.choice.pending
        expected = steps[i - pending].forecast.expected  # of the posterior that its block was chosen from
        if expected is None:
            continue
        known = scan.knowledge(acquired[: first + i - pending], expected)
        energy, variance = scan.error_energy(step.outcome.actual_energy)
        rows.append(features_of_line(known, step.line))
        log_energies.append(np.log(energy / known.unit))
        variances.append(variance)
    if not rows:
        return start
    return start.given(np.array(rows), np.array(log_energies), np.array(variances))
