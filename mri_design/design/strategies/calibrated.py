"""Expected error, corrected by a model of the posterior's own error that learns while the scan runs.

The posterior's line variances are wrong in a systematic way: they are too small where |k| is large, they ignore
conjugate symmetry, and they are overconfident about regular gaps. A linear model describes what the error really is:
log(energy of the error on a line) = features . weights + noise. The weights start from synthetic heads (their mean and
their spread between heads), and every measured line corrects them, since its innovation is a sample of exactly what was
predicted. How good the weights are is measured in results/error-model/README.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.design.decision import Choice, Forecast
from mri_design.design.line_variances import expected_energies
from mri_design.design.strategies.line_features import FEATURES, LineKnowledge, line_features
from mri_design.design.strategy import DesignView, best_line
from mri_design.errors import InputError, require_counts, require_instance, require_numbers, sequence_of
from mri_design.model.posterior import GaussianPosterior

__all__ = ["Calibrated", "ErrorModel", "shipped_error_model"]

Numbers = NDArray[np.float64]

LEAST_ENERGY = 0.5
"""An innovation's energy, its noise subtracted, counts as at least this many standard deviations of that noise."""
LARGEST_DOUBT = 1.0
"""Nats squared: how uncertain a line's log energy may count as, as it is on the grids that the shipped model saw."""


@dataclass(frozen=True)
class ErrorModel:
    """log(energy of the error on a line / unit) = features . weights + N(0, spread^2), weights ~ N(mean, covariance).

    Parameters
    ----------
    mean : float array, shape (features,)
        Weights of the average scan.
    covariance : float array, shape (features, features)
        How scans differ.
    spread : float
        Standard deviation of what the features leave open, in nats.

    Raises
    ------
    InputError
        For shapes that do not fit `FEATURES`, values that are not finite, or a spread that is not positive.
    """

    mean: Numbers
    covariance: Numbers
    spread: float

    def __post_init__(self) -> None:
        n = len(FEATURES)
        if self.mean.shape != (n,) or self.covariance.shape != (n, n):
            raise InputError(
                field="error model",
                got=f"weights {self.mean.shape}, covariance {self.covariance.shape}",
                wanted=f"({n},) and ({n}, {n})",
            )
        if not (np.isfinite(self.mean).all() and np.isfinite(self.covariance).all() and 0 < self.spread < np.inf):
            raise InputError(
                field="error model", got="values that are no numbers", wanted="finite ones, and a spread above zero"
            )

    def given(self, features: Numbers, log_energies: Numbers, variances: Numbers) -> ErrorModel:
        """The model after lines have been measured: Bayesian linear regression.

        Parameters
        ----------
        features : float array, shape (lines, features)
            As they were before the lines were measured.
        log_energies : float array, shape (lines,)
            log(measured energy of the error / unit).
        variances : float array, shape (lines,)
            Variance of each of them beyond ``spread``^2.
        """
        precision = np.linalg.inv(self.covariance)
        weighted = features / (self.spread**2 + variances)[:, None]
        covariance = np.linalg.inv(precision + features.T @ weighted)
        mean = covariance @ (precision @ self.mean + weighted.T @ log_energies)
        return replace(self, mean=mean, covariance=(covariance + covariance.T) / 2)

    def energies(self, features: Numbers) -> Numbers:
        """Energies at the mean weights, in units of the image's centre: what is predicted."""
        return np.asarray(np.exp(features @ self.mean + self.spread**2 / 2))

    def marginal_energies(self, features: Numbers) -> Numbers:
        """Energies averaged over the distribution of the weights: by these a line is chosen, by `energies` forecast.

        The mean of a log-normal distribution follows its tail, so lines about which the weights are uncertain get large
        energies: several times too large before the first line of a scan, less so with every line measured. The
        uncertainty counts up to `LARGEST_DOUBT`: where features lie far outside of what the model has learnt from, as
        at the edge of large grids, nothing is chosen because nothing is known of it.
        """
        variances = np.einsum("lf,fg,lg->l", features, self.covariance, features)
        return np.asarray(self.energies(features) * np.exp(np.minimum(variances, LARGEST_DOUBT) / 2))


ErrorModelName = Literal["one coil", "one coil, phase-aware", "several coils"]
"""Kinds of scan and model whose posteriors err differently."""


@cache
def shipped_error_model(name: ErrorModelName = "one coil") -> ErrorModel:
    """What ``benchmarks/error_model.py`` learnt from random heads; results/error-model/README.md says how well."""
    text = resources.files("mri_design.design.strategies").joinpath("error_model.json").read_text("utf-8")
    stored = json.loads(text)[name]
    if stored["features"] != list(FEATURES):
        raise InputError(field="error_model.json", got="other features", wanted="those of this version")
    return ErrorModel(np.array(stored["mean"]), np.array(stored["covariance"]), float(stored["spread"]))


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """Choose the line on and around which the error is expected to be largest, after a correction that learns.

    The regression that corrects the posterior's expectation (`ErrorModel`) has learnt on synthetic heads how wrong such
    expectations are, and goes on learning from the innovation of each line that is measured.

    A line tells something about its neighbours too, the more the smaller the object is and the more coils there are,
    and what is believed of a neighbourhood is more certain than what is believed of one line. So a line's score is the
    sum of the energies believed of the unmeasured lines around it, with weights that fall with the distance
    (results/design-study/README.md).

    Parameters
    ----------
    draws : int
        Posterior draws behind the expected energies; inference's own are used as far as they go.
    error_model : ErrorModel, optional
        The regression to begin with; by default the one that comes with the package.
    online : bool
        Whether to learn from the scan's own innovations.
    neighbours : sequence of float
        Weights of the lines at distance 1, 2, ... on either side, relative to the line itself; empty scores every line
        by its own energy.

    Raises
    ------
    InputError
        For no draw, an error model that is none, or weights that are not numbers between 0 and 1.
    """

    draws: int = 12
    error_model: ErrorModel | None = None
    online: bool = True
    neighbours: tuple[float, ...] = (0.5, 0.25)
    name: str = "calibrated"
    needs_posterior: bool = True

    def __post_init__(self) -> None:
        require_counts(draws=self.draws, least=1)
        require_instance(bool, wanted="true or false", online=self.online)
        if self.error_model is not None:
            wanted = "an ErrorModel, or None for the shipped one"
            require_instance(ErrorModel, wanted=wanted, error_model=self.error_model)
        for distance, weight in enumerate(sequence_of(Real, "neighbours", self.neighbours, wanted=_WEIGHTS), 1):
            require_numbers(most=1.0, **{f"neighbours: weight at distance {distance}": weight})

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """Eight lines with one coil: the error model knows how much energy the centre of an image holds.

        Four with several, which see the image's support and its low resolution without them.
        """
        return min(target, 8 if n_coils == 1 else 4)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line whose neighbourhood has the largest corrected energy.

        Energies are averaged over what the weights of the error model may still be. The forecast goes by the mean
        weights: the average would predict too much of lines that are little known.
        """
        expected = self.expected(view, rng)
        now, model = self._informed(view, expected)
        features = line_features(now)
        energies = now.unit * model.marginal_energies(features)
        best = best_line(neighbourhood(np.where(now.measured, 0.0, energies), self.neighbours), view.candidates)
        return replace(best, forecast=Forecast(expected, _believed(now, model, features)))

    def expected(self, view: DesignView, rng: np.random.Generator) -> Numbers:
        """Energy of the error on every line as the posteriors expect it, (ky,), summed over them."""
        return expected_energies(view.posteriors, rng, self.draws)

    def predicted(self, view: DesignView, rng: np.random.Generator) -> Forecast:
        """Expected energies, and what the error model makes of them."""
        expected = self.expected(view, rng)
        return Forecast(expected, self.corrected(view, expected))

    def corrected(self, view: DesignView, expected: Numbers) -> Numbers:
        """Energy of the error on every line, (ky,); on measured lines it is what the posterior expects."""
        now, model = self._informed(view, expected)
        return _believed(now, model, line_features(now))

    def _informed(self, view: DesignView, expected: Numbers) -> tuple[LineKnowledge, ErrorModel]:
        scan = _Scan.of(view)
        start = self._start(view)
        now = scan.knowledge(view.candidates.acquired, expected)
        return now, learnt(start, scan, view) if self.online else start

    def error_models(self, view: DesignView) -> tuple[ErrorModel, ErrorModel]:
        """Where the model started, and what it is after the lines that have been measured since."""
        start = self._start(view)
        return start, learnt(start, _Scan.of(view), view)

    def _start(self, view: DesignView) -> ErrorModel:
        return self.error_model or shipped_error_model(_kind(view.posteriors))


def neighbourhood(energies: Numbers, weights: Sequence[float]) -> Numbers:
    """Energies of lines, (ky,), each with a share of its neighbours': ``weights[d - 1]`` of those at distance d.

    Beyond the grid there are none.
    """
    total = energies.copy()
    for distance, weight in enumerate(weights, 1):
        total[distance:] += weight * energies[:-distance]
        total[:-distance] += weight * energies[distance:]
    return total


_WEIGHTS = "weights of the lines at distance 1, 2, ..., each from 0 to 1"


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
        for posterior in view.posteriors:
            energies[known] += measured_energies(posterior)
            model = posterior.model
            each = model.data.size // len(known)
            noise += 2 * model.noise_variance * each
            samples += each
        return cls(energies, noise, samples)

    def knowledge(self, acquired: Sequence[int], expected: Numbers) -> LineKnowledge:
        """What was known when ``acquired`` had been chosen; energies of lines still pending are not in it."""
        measured = np.zeros(len(self.energies), dtype=bool)
        measured[list(acquired)] = True
        return LineKnowledge(measured, self.energies, self.noise, expected)


def _believed(now: LineKnowledge, model: ErrorModel, features: Numbers) -> Numbers:
    return np.where(now.measured, now.expected, now.unit * model.energies(features))


def _kind(posteriors: Sequence[GaussianPosterior]) -> ErrorModelName:
    """That of most slices."""
    if posteriors[0].model.data.shape[0] > 1:
        return "several coils"
    modulus = sum(posterior.precision.complex_linear for posterior in posteriors)
    return "one coil" if 2 * modulus >= len(posteriors) else "one coil, phase-aware"


def measured_energies(posterior: GaussianPosterior) -> Numbers:
    """Energy of every measured line, in the order of acquisition."""
    power = np.abs(posterior.model.data) ** 2
    return np.asarray(np.sum(power, axis=(0, 2), dtype=np.float64))


def learnt(start: ErrorModel, scan: _Scan, view: DesignView) -> ErrorModel:
    """The error model after the innovations of the lines that have been measured since the start.

    Where the design chooses among candidate models, only predictions of the models in use now count; with several
    slices, those lines that at least half of the slices predicted with the model that they use now.
    """
    acquired, steps = view.candidates.acquired, view.steps
    first = len(acquired) - len(steps)
    rows, log_energies, variances = [], [], []
    for i, step in enumerate(steps[: len(steps) - view.pending]):
        pending = step.choice.pending
        expected = steps[i - pending].forecast.expected  # of the posterior that its block was chosen from
        if expected is None or not _mostly_equal(step.forecast.models, view.models):
            continue
        known = scan.knowledge(acquired[: first + i - pending], expected)
        noise_sd = scan.noise / np.sqrt(scan.samples)
        energy = max(step.outcome.actual_energy - scan.noise, LEAST_ENERGY * noise_sd)
        rows.append(line_features(known, [step.line])[0])
        log_energies.append(np.log(energy / known.unit))
        variances.append((noise_sd / energy) ** 2)
    if not rows:
        return start
    return start.given(np.array(rows), np.array(log_energies), np.array(variances))


def _mostly_equal(then: tuple[int, ...], now: tuple[int, ...]) -> bool:
    """At least half of the slices; all that there are where nothing was chosen."""
    return len(then) == len(now) and 2 * sum(a == b for a, b in zip(then, now, strict=True)) >= len(now)
