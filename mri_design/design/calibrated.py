"""Lines by their expected error, corrected by a model of the posterior's own error that learns while the scan runs.

The posterior's line variances are wrong in a systematic way: they are too small where |k| is large, they ignore
conjugate symmetry, and they are overconfident about regular gaps. A linear model describes what the error really is,

    log(energy of the error) = features . weights + noise.

The weights start from synthetic heads (their mean and their spread between heads), and Bayesian linear regression
corrects them with every line that is measured, since its innovation is a sample of exactly what was predicted. How good
they are is measured in results/error-model/README.md. Residual energy depends on more than the posterior's variances:
images fill a part of the field of view, so lines next to measured ones are partly known; their phase is nearly smooth,
so lines opposite to measured ones are partly known; and spectra fall off in their own way, on one side faster than on
the other (relaxation along an echo train). These are the features.

An earlier scan of the same object says more. Its image is taken for the truth and measured once more along the mask of
the design; then it is known what the reconstruction misses most. Where it shows the same object it predicts single
lines and samples better than the scan's own posterior does, and takes over. How far it is trusted is for a strategy to
say: lines weigh it as side information, samples of a plane as one more feature (`calibrated_plane`). One of another
object is soon overruled by either. What designs gain and lose by it is measured in results/benchmarks/series.md and
results/encodings/README.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mri_design.design.energies import (
    expected_energies,
    image_energy,
    of_each,
    residual_energies,
)
from mri_design.design.engine import infer_slice
from mri_design.design.greedy import PredictsByScore, Scores, neighbourhood, require_weights
from mri_design.design.strategy import DesignView
from mri_design.design.trace import DesignStep, Forecast
from mri_design.errors import InputError, require_counts, require_instance
from mri_design.inference.base import WarmStart
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.posterior import GaussianPosterior
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.readouts import Readouts

Numbers = NDArray[np.float64]
CENTRE = 3
"""|k| up to which the measured energy is the unit of energies: the image's own scale, with little noise in it."""
KERNEL = 3.0
"""Lines: decay length in |k| of the mean over measured log energies."""
LEAST_SIGNAL = 0.3
"""A measured line's energy counts as at least this share of the noise in it."""
PLACES = (4, 8, 16, 32, 64)
"""|k|, on either side, at which a scan's spectrum may be above or below what all else says; linear in log(1 + |k|)."""


@dataclass(frozen=True)
class LineKnowledge:
    """Measured lines, their energies and the expected errors at one moment of a design.

    Parameters
    ----------
    measured : bool array, shape (ky,)
        Lines so far, those of a block included that are about to be measured.
    energies : float array, shape (ky,)
        Energy of the data on the measured lines, summed over readout, coils and slices, noise included; 0 where there
        are no data yet.
    noise : float
        Expected energy of the noise of one line, in the same sum.
    expected : float array, shape (ky,)
        Energy of the mean's error on every line as the posterior expects it.
    """

    measured: NDArray[np.bool_]
    energies: Numbers
    noise: float
    expected: Numbers

    @property
    def with_data(self) -> NDArray[np.bool_]:
        """Measured lines whose data have come; those of a block that is about to be measured are not among them."""
        return self.measured & (self.energies > 0)

    @property
    def signal(self) -> Numbers:
        """Measured energies less their noise, kept positive, (ky,); meaningless on lines that were not measured."""
        return np.maximum(self.energies - self.noise, LEAST_SIGNAL * self.noise)

    @property
    def unit(self) -> float:
        """Energy of the image's centre, to measure others in."""
        k = np.arange(len(self.measured)) - len(self.measured) // 2
        near = self.with_data & (np.abs(k) <= CENTRE)
        return float(np.sum(self.signal[near if near.any() else self.with_data]))


TINY = float(np.finfo(float).tiny)


def _named_features(known: LineKnowledge, at: NDArray[np.intp]) -> dict[str, Numbers]:
    """Features of some lines by name, (lines,) each; energies are relative to `LineKnowledge.unit`."""
    n_lines, measured = len(known.measured), np.flatnonzero(known.measured)
    frequency, opposite = at - n_lines // 2, (2 * (n_lines // 2) - at) % n_lines
    radius, log_unit = np.log1p(np.abs(frequency)), float(np.log(known.unit))
    count, conjugate = np.full(len(at), np.log(len(measured) / 16)), known.measured[opposite].astype(float)
    near = {distance: _neighbours(known.measured, at, distance) for distance in (1, 2, 3)}
    near_opposite = {distance: _neighbours(known.measured, opposite, distance) for distance in (1, 2)}
    smaller, larger = _gaps(measured, at, n_lines)
    opposite_gap, _ = _gaps(measured, opposite, n_lines)
    with_data = np.flatnonzero(known.with_data)  # whose mean log energy counts the more, the nearer in |k| they are
    apart = np.abs(np.abs(frequency)[:, None] - np.abs(with_data - n_lines // 2))
    closeness = np.exp(-apart / KERNEL) + 1e-6
    spectrum = closeness @ np.log(known.signal[with_data]) / closeness.sum(axis=1)
    shares = _shares_of_places(n_lines)[:, np.abs(frequency)]
    return {
        "constant": np.ones(len(at)),
        "log(1 + |k|)": radius,
        "log(1 + |k|)^2": radius**2,
        "log(lines / 16)": count,
        "log(1 + |k|) log(lines / 16)": radius * count,
        "-k measured": conjugate,
        "log(0.1 + smaller gap)": np.log(0.1 + smaller),
        "log(0.1 + larger gap)": np.log(0.1 + larger),
        **{f"measured at distance {distance}": found for distance, found in near.items()},
        **{f"measured at distance {distance} of -k": found for distance, found in near_opposite.items()},
        "log(0.1 + smaller gap at -k), 0 where measured": np.where(conjugate > 0, 0.0, np.log(0.1 + opposite_gap)),
        "measured at distance 1 of k times of -k": near[1] * near_opposite[1],
        "measured at distance 1 of -k, where -k is": conjugate * near_opposite[1],
        "measured at distance 1, times log(1 + |k|)": radius * near[1],
        "-k measured, times log(1 + |k|)": radius * conjugate,
        "log expected energy of the error": np.log(np.maximum(known.expected[at], TINY)) - log_unit,
        "log measured energy near |k|": spectrum - log_unit,
        "log noise energy of a line": np.full(len(at), np.log(known.noise) - log_unit),
        "sign(k) log(1 + |k|)": np.sign(frequency) * radius,
        **{f"k near +{place}": share * (frequency > 0) for place, share in zip(PLACES, shares, strict=True)},
        **{f"k near -{place}": share * (-frequency > 0) for place, share in zip(PLACES, shares, strict=True)},
    }


def line_features(known: LineKnowledge, lines: Sequence[int] | NDArray[np.intp] | None = None) -> Numbers:
    """Features of some lines (all without an argument), shape (lines, `FEATURES`)."""
    at = np.arange(len(known.measured)) if lines is None else np.asarray(lines, dtype=np.intp)
    return np.stack(list(_named_features(known, at).values()), axis=1)


def features_of_line(known: LineKnowledge, line: int) -> Numbers:
    """`line_features` of one line, shape (`FEATURES`,), read-only.

    They are remembered, since a design asks again for those of all its past lines at every step.
    """
    energies = np.where(known.measured, known.energies, 0.0)
    return _remembered(known.measured.tobytes(), energies.tobytes(), known.noise, float(known.expected[line]), line)


@lru_cache(maxsize=2048)
def _remembered(measured: bytes, energies: bytes, noise: float, expected: float, line: int) -> Numbers:
    """Compute what `features_of_line` returns; of ``expected`` the features use the line's own value alone."""
    by_line = np.frombuffer(energies)
    known = LineKnowledge(np.frombuffer(measured, dtype=bool), by_line, noise, np.full(len(by_line), expected))
    (features,) = line_features(known, [line])
    features.flags.writeable = False
    return np.asarray(features)


def _neighbours(measured: NDArray[np.bool_], at: NDArray[np.intp], distance: int) -> Numbers:
    """How many of the two lines at a distance are measured; none beyond the grid."""
    below, above, last = at - distance, at + distance, len(measured) - 1
    on_grid = (below >= 0) & measured[np.maximum(below, 0)], (above <= last) & measured[np.minimum(above, last)]
    return np.add(*on_grid, dtype=float)


@lru_cache(maxsize=16)
def _shares_of_places(n_lines: int) -> Numbers:
    """Weights of `PLACES` by |k|, (place, n_lines // 2 + 1)."""
    knots, radius = np.log1p([0, *PLACES]), np.log1p(np.arange(n_lines // 2 + 1))
    return np.array([np.interp(radius, knots, weights) for weights in np.eye(len(knots))[1:]])


def _gaps(measured: NDArray[np.intp], at: NDArray[np.intp], n: int) -> tuple[Numbers, Numbers]:
    """Distances to the nearest measured line, or the grid's end, on the nearer and on the farther side."""
    place = np.searchsorted(measured, at)
    bounded = np.concatenate([[-1], measured, [n]])
    below = at - bounded[place]
    above = bounded[np.searchsorted(measured, at, side="right") + 1] - at
    return np.minimum(below, above).astype(float), np.maximum(below, above).astype(float)


FEATURES = tuple(_named_features(LineKnowledge(np.ones(2, dtype=bool), np.ones(2), 1.0, np.ones(2)), np.arange(2)))
"""Names of the features, in the order of the columns."""
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
    """Load the model that ``benchmarks/error_model.py`` learnt from random heads (results/error-model/README.md)."""
    text = resources.files("mri_design.design").joinpath("error_model.json").read_text("utf-8")
    stored = json.loads(text)[name]
    return ErrorModel(np.array(stored["mean"]), np.array(stored["covariance"]), float(stored["spread"]))


Candidates = tuple[int, ...]


@dataclass
class _Progress:
    """Residuals at every moment of one mask, and the warm start of the next inference."""

    residuals: dict[Candidates, Numbers] = field(default_factory=dict)
    warm: WarmStart | None = None


@dataclass(frozen=True, kw_only=True)
class EarlierScan:
    """The error that the posterior mean of an earlier scan has on every candidate, given those of the design so far.

    Candidates are phase-encode lines, or the samples of a plane. The earlier image is taken for the truth and measured
    along the same mask; inference follows the design step by step, and begins again where a design goes on in another
    process. What was found is kept in the object.

    Parameters
    ----------
    scan : SliceModel
        k-space of the earlier image, with the coils and the noise of the scan to be measured.
    image : complex array, shape of the scan's grid
        The image that it was made from.
    unknown : float array, shape (candidates,)
        Energy on every candidate that is not known of the image itself, over the energy of the image: large where the
        earlier scan was not measured.
    inference : DoubleLoop
        As the design infers.
    first_loops, step_loops : int
        As `DesignEngine` has them.
    seed : int
        Of the variances.
    """

    scan: SliceModel
    image: Array
    unknown: Numbers
    inference: DoubleLoop = field(default_factory=DoubleLoop)
    first_loops: int = 3
    step_loops: int = 1
    seed: int = 0
    _progress: _Progress = field(default_factory=_Progress, repr=False, compare=False)

    def require_grid(self, n_lines: int) -> None:
        """Refuse a scan with another number of lines, or of samples.

        Raises
        ------
        InputError
            Naming both.
        """
        candidates = self.scan.candidates
        if n_lines != candidates.size:
            raise InputError(
                field="earlier scan",
                got=f"{candidates.size} {candidates.unit}s for a scan with {n_lines}",
                wanted="the scan's own grid",
            )

    def residuals(self, history: Sequence[Candidates]) -> list[Numbers]:
        """Energy of the posterior mean's error on every candidate over that of the image, after each of ``history``.

        The inference of each begins where that of the one before has ended.

        Parameters
        ----------
        history : sequence of tuples of int
            What was measured at each moment of a design, each with what was measured at the moment before.

        Returns
        -------
        list of float arrays, shape (candidates,)
        """
        known = self._progress
        if not history or any(measured not in known.residuals for measured in history[:-1]):
            known.residuals.clear()
            known.warm = None
        energy = np.sum(np.abs(self.image) ** 2, dtype=np.float64)
        for measured in history:
            if measured in known.residuals:
                continue
            loops = self.first_loops if known.warm is None else self.step_loops
            signal = self.scan.signal_level(measured[: len(history[0])])
            inference = replace(self.inference, outer_iterations=loops)
            posterior, _ = infer_slice(self.scan, measured, signal, inference, (self.seed, 0), known.warm)
            known.warm = WarmStart.from_posterior(posterior)
            missed = residual_energies(posterior, self.scan.candidates, self.image)
            known.residuals[measured] = np.asarray(missed / energy + self.unknown)
        return [known.residuals[measured] for measured in history]


def measured_blocks(view: DesignView) -> list[tuple[tuple[int, ...], Sequence[DesignStep]]]:
    """Blocks of decisions that were made at once and have been measured, each with what was known before."""
    acquired, steps = view.candidates.acquired, view.steps[: len(view.steps) - view.pending]
    first = len(acquired) - len(view.steps)
    begins = [*(i for i, step in enumerate(steps) if step.choice.pending == 0), len(steps)]
    return [(acquired[: first + begin], steps[begin:end]) for begin, end in pairwise(begins)]


LEAST_ENERGY = 0.5
"""An innovation's energy, its noise subtracted, counts as at least this many standard deviations of that noise."""
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
class Calibrated(PredictsByScore):
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
