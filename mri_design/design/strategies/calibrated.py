"""Expected error, corrected by a model of the posterior's own error that learns while the scan runs.

The posterior's line variances are wrong in a systematic way: too small where |k| is large, blind to conjugate symmetry,
too sure of regular gaps. log(energy of the error on a line) = features . weights + noise describes what the error
really is. The weights start from synthetic heads (mean and spread between heads) and every measured line corrects them:
its innovation is a sample of exactly what was predicted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.design.strategies.expected_error import AOptimal
from mri_design.design.strategies.line_features import FEATURES, LineKnowledge, line_features
from mri_design.design.strategy import Choice, DesignView, best_line
from mri_design.errors import InputError
from mri_design.model.posterior import GaussianPosterior

__all__ = ["Calibrated", "ErrorModel", "shipped_error_model"]

Numbers = NDArray[np.float64]

LEAST_FOUND = 0.5
"""An innovation's energy, its noise subtracted, counts as at least this many standard deviations of that noise."""


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

    def given(self, features: Numbers, found: Numbers, variances: Numbers) -> ErrorModel:
        """The model after seeing lines: Bayesian linear regression.

        Parameters
        ----------
        features : float array, shape (lines, features)
            As they were before the lines were measured.
        found : float array, shape (lines,)
            log(energy found / unit).
        variances : float array, shape (lines,)
            Variance of each of them beyond ``spread``^2.
        """
        precision = np.linalg.inv(self.covariance)
        weighted = features / (self.spread**2 + variances)[:, None]
        covariance = np.linalg.inv(precision + features.T @ weighted)
        mean = covariance @ (precision @ self.mean + weighted.T @ found)
        return replace(self, mean=mean, covariance=(covariance + covariance.T) / 2)

    def energies(self, features: Numbers) -> Numbers:
        """Energies at the mean weights, in units of the image's centre: what is predicted."""
        return np.asarray(np.exp(features @ self.mean + self.spread**2 / 2))

    def hopes(self, features: Numbers) -> Numbers:
        """Mean energies over all weights that are possible still: what is worth a look.

        A log-normal's mean follows its tail, so that lines of which little is known yet stand out, several times too
        large before the first line of a scan; line after line this goes away.
        """
        doubt = np.einsum("lf,fg,lg->l", features, self.covariance, features)
        return np.asarray(self.energies(features) * np.exp(doubt / 2))


ErrorModelName = Literal["one coil", "one coil, phase-aware", "several coils"]
"""Kinds of scan and model whose posteriors err differently."""


@cache
def shipped_error_model(name: ErrorModelName = "one coil") -> ErrorModel:
    """What ``benchmarks/error_model.py`` learnt from random heads; results/error-model tells how well it does."""
    text = resources.files("mri_design.design.strategies").joinpath("error_model.json").read_text("utf-8")
    stored = json.loads(text)[name]
    if stored["features"] != list(FEATURES):
        raise InputError(field="error_model.json", got="other features", wanted="those of this version")
    return ErrorModel(np.array(stored["mean"]), np.array(stored["covariance"]), float(stored["spread"]))


@dataclass(frozen=True)
class Calibrated(AOptimal):
    """The line on which the corrected error is largest.

    Parameters
    ----------
    error_model : ErrorModel, optional
        Where to start; the shipped one without it.
    online : bool
        Whether to learn from the scan's own innovations.
    """

    error_model: ErrorModel | None = None
    online: bool = True
    name: str = field(default="calibrated")

    def default_start(self, n_lines: int, target: int) -> int:
        """Eight lines: the model knows what the centre of an image is worth."""
        return min(target, 8)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line with the largest corrected energy, the doubt about the correction counted as hope."""
        expected = self.expected(view, rng)
        now, model = self._informed(view, expected)
        features = line_features(now)
        best = best_line(now.unit * model.hopes(features), view.candidates)
        return replace(best, expected=expected, corrected=_believed(now, model, features))

    def predicted(self, view: DesignView, rng: np.random.Generator) -> tuple[Numbers, Numbers | None]:
        """Expected energies, and what the error model makes of them."""
        expected = self.expected(view, rng)
        return expected, self.corrected(view, expected)

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


@dataclass(frozen=True)
class _Scan:
    """What the measured lines of all slices hold, and the noise in a line."""

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

    Where the scan chooses among candidate models, only what the models in use now had predicted counts; of several
    slices, what at least half of them predicted with the model that they use now.
    """
    acquired, steps = view.candidates.acquired, view.steps
    first = len(acquired) - len(steps)
    rows, found, variances = [], [], []
    for i, step in enumerate(steps[: len(steps) - view.pending]):
        begun = steps[i - step.pending]  # where its block was chosen from
        if begun.expected is None or not _mostly_equal(step.models, view.models):
            continue
        known = scan.knowledge(acquired[: first + i - step.pending], begun.expected)
        noise_sd = scan.noise / np.sqrt(scan.samples)
        energy = max(step.actual_energy - scan.noise, LEAST_FOUND * noise_sd)
        rows.append(line_features(known, [step.line])[0])
        found.append(np.log(energy / known.unit))
        variances.append((noise_sd / energy) ** 2)
    if not rows:
        return start
    return start.given(np.array(rows), np.array(found), np.array(variances))


def _mostly_equal(then: tuple[int, ...], now: tuple[int, ...]) -> bool:
    """At least half of the slices; all that there are where nothing was chosen."""
    return len(then) == len(now) and 2 * sum(a == b for a, b in zip(then, now, strict=True)) >= len(now)
