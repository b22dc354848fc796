"""The strategy `calibrated`: expected errors, corrected by a model that learns during a scan how wrong they are.

Variances of a posterior are wrong in a systematic way: they are too small where |k| is large, they ignore conjugate
symmetry, and they are overconfident about regular gaps. A linear model describes what the error really is,

    log(energy of the error) = features . weights + noise.

Lines. The weights start from synthetic heads (their mean and their spread between heads), and Bayesian linear
regression corrects them with every measured line, since its innovation is a sample of exactly what was predicted
(`ErrorModel`, results/error-model/README.md). The features describe what determines the residual energy besides the
posterior's variances. Images fill a part of the field of view, so that lines next to measured ones are partly known;
their phase is nearly smooth, so that lines opposite to measured ones are partly known; and spectra fall off in their
own way, faster on one side than on the other (relaxation along an echo train).

With four coils or more lines are chosen within a whole mask, whose distances grow outwards (`distances`): the
posteriors say which of such masks leaves least variance, and the predicted energies which of its lines comes next.

Samples of a plane. A block gives as many innovations as it has samples, enough for a gamma regression to learn from the
scan alone. With several coils a sample tells much about its surroundings: most of the mask is then a Poisson disc, and
each remaining sample is the one that removes most of the error, its own and that around it.

An earlier scan of the same object is side information (`EarlierScan`). Its image is taken as the truth and measured
again along the mask of the design, which shows what the reconstruction misses most. If it shows the same object, it
predicts single lines and samples better than the posterior does, and gets more weight. An earlier scan of another
object is soon overruled. Gains and losses are in results/benchmarks/measured-once.md and
results/encodings/README.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from typing import Literal

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.design.distances import growing_masks, totals_after
from mri_design.design.engine import SliceInference
from mri_design.design.fixed import SHARE, first_disc
from mri_design.design.greedy import (
    ChoosesByScore,
    Scores,
    block_by_gains,
    expected_energies,
    fewest_coils,
    image_energy,
    means_of,
    measurement_facts,
    neighbourhood,
    of_each,
    plane_of,
    require_weights,
    residual_energies,
)
from mri_design.design.strategy import DesignView, LineCandidates
from mri_design.design.trace import Choice, DesignStep, Forecast
from mri_design.design.training import TrainedDesign
from mri_design.errors import InputError, require_counts, require_instance
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.posterior import GaussianPosterior
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.readouts import Constraints, PlaneReadouts, Readouts

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
    samples : int
        Complex values behind that energy.
    """

    measured: NDArray[np.bool_]
    energies: Numbers
    noise: float
    expected: Numbers
    samples: int = 1

    def at(self, acquired: Sequence[int], expected: Numbers) -> LineKnowledge:
        """As it was when ``acquired`` had been chosen, and this was expected."""
        return replace(self, measured=np.isin(np.arange(len(self.energies)), acquired), expected=expected)

    def error_energy(self, actual_energy: float) -> tuple[float, float]:
        """Energy of the error on a line whose innovation was measured, and the variance of its logarithm by noise."""
        noise_sd = self.noise / np.sqrt(self.samples)
        energy = max(actual_energy - self.noise, LEAST_ENERGY * noise_sd)
        return energy, (noise_sd / energy) ** 2

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

    They are remembered, since a design needs those of all its past lines again at every step.
    """
    energies = np.where(known.measured, known.energies, 0.0)
    return _remembered(known.measured.tobytes(), energies.tobytes(), known.noise, float(known.expected[line]), line)


@lru_cache(maxsize=2048)
def _remembered(measured: bytes, energies: bytes, noise: float, expected: float, line: int) -> Numbers:
    """The features of `features_of_line`, cached; of ``expected`` only the line's own value is used."""
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
            wanted = f"({n},) and ({n}, {n})"
            raise InputError("error model", f"weights {self.mean.shape}, covariance {self.covariance.shape}", wanted)
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
        """Predicted energies, at the mean weights, in units of the energy of the image's centre."""
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


SAMPLE_FEATURES = ("constant", "log expected", "log radius", "opposite measured", "local density", "cos 2 theta")
"""Columns of `sample_features`; behind them that of an earlier scan, where there is one."""
PRIOR_MEAN = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
"""Weights under which the posterior is right."""
PRIOR_SD = np.array([2.0, 0.3, 0.5, 0.5, 1.0, 0.5])
"""How far from right posteriors may be; wide enough to be forgotten after some hundred samples."""
EARLIER_MEAN = 0.8
"""Weight of an earlier scan's predictions before any of them has been tested; the posterior's is the rest."""
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


Measured = tuple[int, ...]
"""What was measured at one moment of a design, in its order."""


@dataclass(frozen=True, kw_only=True)
class EarlierScan:
    """The error that the posterior mean of an earlier scan has on every candidate, given those of the design so far.

    The earlier image is taken for the truth and measured along the same mask; inference follows the design step by
    step, and begins again where a design goes on in another process. What was found is kept in the object.

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
    seed : int
        Of the variances.
    """

    scan: SliceModel
    image: Array
    unknown: Numbers
    inference: DoubleLoop = field(default_factory=DoubleLoop)
    seed: int = 0
    _known: dict[Measured, Numbers] = field(default_factory=dict, repr=False, compare=False)
    _followed: list[SliceInference] = field(default_factory=list, repr=False, compare=False)  # by the design so far

    def require_grid(self, shape: tuple[int, ...]) -> None:
        """Refuse a scan with other candidates, (ky,) or (ky, kz).

        Raises
        ------
        InputError
            Naming both.
        """
        own = self.scan.candidates
        if shape != own.shape:
            there = math.prod(shape)
            raise InputError("earlier scan", f"{own.size} {own.unit}s for a scan with {there}", "the scan's own grid")

    def residuals(self, history: Sequence[Measured]) -> list[Numbers]:
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
        if any(measured not in self._known for measured in history[:-1] or history):  # another design, or gone on with
            signal = self.scan.signal_level(history[0])
            self._known.clear()
            self._followed[:] = [SliceInference(self.scan, signal, self.inference, (self.seed, 0))]
        energy = np.sum(np.abs(self.image) ** 2, dtype=np.float64)
        for measured in (measured for measured in history if measured not in self._known):
            followed = self._followed[0]
            followed.update(measured)
            followed.measured()
            assert followed.posterior is not None
            missed = residual_energies(followed.posterior, self.scan.candidates, self.image)
            self._known[measured] = np.asarray(missed / energy + self.unknown)
        return [self._known[measured] for measured in history]


def measured_blocks(view: DesignView) -> list[tuple[tuple[int, ...], Sequence[DesignStep]]]:
    """Blocks of measured decisions, each with the lines that were measured before it."""
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


SideInformation = EarlierScan | TrainedDesign
"""Predicts the error left on every candidate from something else than the scan that is being measured."""
REACH = 0.05
"""Samples: standard deviation of the window of found over predicted energies, as a share of the plane's sides."""
BELIEF = 4.0
"""Innovations that the regression counts as, next to those found around a sample."""
LEAST = 1e-6
"""Least energy that is predicted of a sample, relative to the largest."""
TEMPER = 0.4
"""Exponent of the correction of energies with several coils, where 0 would go by the posterior alone: a block explains
much of its surroundings, so that energies found before it overstate what is left."""


PLANNED_COILS = 4
"""Coils from which on lines are chosen within a mask at growing distances; two leave too much of a gap open, and three
are not known to do better."""
PLANNED_PART = 0.75
"""Part of all lines up to which a mask has fewer at its centre."""
PLANNED_START, GROWING_START = 2, 4
"""Centre lines of a mask at growing distances where coil maps are known, and where they come from its own lines."""


@dataclass(frozen=True, kw_only=True)
class Calibrated(ChoosesByScore):
    """Choose the candidates on and around which the error is expected to be largest, after a learnt correction.

    Of lines the regression that corrects the posterior's expectation (`ErrorModel`) has learnt on synthetic heads how
    wrong such expectations are, and goes on learning from the innovation of each line that is measured. A line tells
    something about its neighbours too, the more the smaller the object is and the more coils there are, and the energy
    predicted of a neighbourhood is more certain than that of one line. So a line's score is the sum of the energies
    predicted of the unmeasured lines around it, with weights that fall with the distance
    (results/design-study/README.md).

    With four coils or more these scores order the lines of one mask, chosen as a whole among `growing_masks`: the one
    that leaves least variance in all slices (`totals_after`), of those that are nearest to the lines chosen so far and
    can be measured under the constraints. Where there is none, all lines are candidates (results/coils/planned.md).
    Where a rule may end the design the mask has as many lines as it is expected to have (results/coils/until.md).

    Of samples of a plane the predicted energy is exp(features . w), with w from a gamma regression of all innovations
    so far on the features that were known when they were predicted (`sample_features`), times the ratio of found to
    predicted energies around the sample. With one coil samples are drawn by their own energies. With several coils the
    first part of the mask is a Poisson disc, before anything is inferred, and each of the others is the one that
    removes most energy from all samples, its own and that around it (`covering`).

    An earlier scan of the same object, or training scans, may be side information. Their prediction of a line's own
    energy and the score above are then averaged, as logarithms, with weights by how well either has predicted the lines
    of this scan so far (`weight_of_side_information`). The prediction of an earlier scan for a sample is one more
    feature, which is trusted from the start, and after the first block as far as the innovations confirm it; samples
    are then chosen by their own energies, whatever the number of coils.

    Parameters
    ----------
    draws : int, optional
        Posterior draws behind the expected energies; inference's own are used, with one coil as far as they go. By
        default those of the readouts.
    side_information : sequence of SideInformation
        An `EarlierScan` of the same object, or a `TrainedDesign` of others. For lines the first one is used, for
        samples there is one for every slice that shares the mask.
    error_model : ErrorModel, optional
        Lines: the regression to begin with; by default the one that comes with the package.
    online : bool
        Lines: whether to learn from the scan's own innovations.
    neighbours : sequence of float
        Weights of the lines at distance 1, 2, ... on either side, relative to the line itself; empty scores every line
        by its own energy.
    planned : bool
        Lines, with four coils or more and no side information: whether they are chosen within a mask at growing
        distances.
    drawn : bool, optional
        Samples: if given, they are chosen by their own energies whatever the number of coils. Where true, energies are
        drawn from the gamma distributions that the regression takes them to have. What is predicted is smooth over the
        plane, and the samples with the largest energies under a smooth belief lie in patterns; drawn ones do not. What
        an earlier scan explains of how they scatter is not drawn. By default true with one coil and false with several
        of which there is an earlier scan.
    disc_share : float
        Samples, with several coils: which part of the mask is a Poisson disc, the start included. Where a rule may end
        the design, so that its size is not known, there is none.

    Raises
    ------
    InputError
        For no draw, an error model or side information that is none, or weights that are not numbers between 0 and 1;
        and where the side information is of another grid, or of another number of slices.
    """

    draws: int | None = None
    side_information: tuple[SideInformation, ...] = ()
    error_model: ErrorModel | None = None
    online: bool = True
    neighbours: tuple[float, ...] = (0.5, 0.25)
    planned: bool = True
    drawn: bool | None = None
    disc_share: float = SHARE
    name: str = "calibrated"
    start_lines = (8, 4)
    rough_for = ("lines",)
    predicts = True

    def __post_init__(self) -> None:
        if self.draws is not None:
            require_counts(draws=self.draws, least=1)
        require_instance(bool, wanted="true or false", online=self.online, planned=self.planned)
        if self.error_model is not None:
            wanted = "an ErrorModel, or None for the shipped one"
            require_instance(ErrorModel, wanted=wanted, error_model=self.error_model)
        wanted = "a tuple of EarlierScan or TrainedDesign"
        require_instance(tuple, wanted=wanted, side_information=self.side_information)
        for each in self.side_information:
            require_instance((EarlierScan, TrainedDesign), wanted=wanted, side_information=each)
        require_weights(self.neighbours)

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """Eight lines with one coil: the error model knows how much energy the centre of an image holds.

        With several four, which see the image's support and its low resolution without more; two where lines are chosen
        within a mask that leaves at least a quarter of them out. Of a plane see `PlaneReadouts.start_for_posterior`.
        """
        for each in self.side_information:
            each.require_grid(readouts.shape)
        usual = super().default_start(readouts, target, n_coils)
        planned = self.plans_ahead(readouts, n_coils) and target <= PLANNED_PART * readouts.size
        return min(usual, PLANNED_START) if planned else usual

    def growing_start(self, n_coils: int) -> int | None:
        """Four lines where they are chosen within a mask."""
        return GROWING_START if self._plans(n_coils) else None

    def plans_ahead(self, readouts: Readouts, n_coils: int) -> bool:
        """Lines with `PLANNED_COILS` coils or more are chosen within a mask, where there is no side information."""
        return not readouts.thinned and self._plans(n_coils)

    def _plans(self, n_coils: int) -> bool:
        return self.planned and n_coils >= PLANNED_COILS and not self.side_information

    def unseen(self, readouts: Readouts, target: int, n_coils: int) -> int:
        """In a plane with several coils the start and the Poisson disc."""
        return round(self.disc_share * target) if readouts.thinned and self._by_surroundings(n_coils) else 0

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The best by their scores; of a plane those of the disc, or those that tell most of their surroundings."""
        if not view.posteriors:
            return first_disc(view.candidates, rng, count)
        n_coils = fewest_coils(view.posteriors)
        if self.plans_ahead(view.readouts, n_coils):
            view = replace(view, candidates=_within_mask(view))
        if not (view.readouts.thinned and self._by_surroundings(n_coils)):
            return super().choose_block(view, rng, count)
        forecast, energies, _ = self._samples(view, self._expected(view, rng))
        assert forecast.expected is not None
        corrected = energies / np.maximum(forecast.expected, TINY)
        return block_by_gains(forecast.expected * corrected**TEMPER, view, count, forecast)

    def _by_surroundings(self, n_coils: int) -> bool:
        """Whether samples are chosen by the energy they remove around them, instead of their own energies."""
        return n_coils > 1 and self.drawn is None and not self.side_information

    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Corrected energies of the neighbourhood of every line, or of samples; optionally drawn at random.

        Of lines energies are averaged over what the weights of the error model may still be. The forecast goes by the
        mean weights: the average would predict too much of lines that are little known. In the first block of a plane
        they are what the posterior expects, or an earlier scan says.
        """
        for each in self.side_information:
            each.require_grid(view.readouts.shape)
        expected = self._expected(view, rng)
        if not view.readouts.thinned:
            return self._lines(view, expected)
        forecast, scores, known = self._samples(view, expected)
        if fewest_coils(view.posteriors) == 1 if self.drawn is None else self.drawn:
            shape = _independent_values(view)
            scores = scores * (rng.gamma(shape, size=scores.shape) / shape) ** (1 - known)
        return scores, forecast

    def _expected(self, view: DesignView, rng: np.random.Generator) -> Numbers:
        return expected_energies(view.posteriors, view.readouts, rng, self.draws or view.readouts.draws)

    def _lines(self, view: DesignView, expected: Numbers) -> Scores:
        now = replace(_lines_so_far(view), expected=expected)
        model, features, weight = self.error_models(view)[self.online], line_features(now), float("nan")
        energies = now.unit * model.marginal_energies(features)
        scores = neighbourhood(np.where(now.measured, 0.0, energies), self.neighbours)
        if self.side_information:
            residuals, brightness = self._residuals(view)[0], image_energy(means_of(view.posteriors))
            weight = weight_of_side_information(*_log_errors(view, residuals))
            scores = (np.maximum(residuals[-1], TINY) * brightness) ** weight * scores ** (1 - weight)
        corrected = np.where(now.measured, now.expected, now.unit * model.energies(features))
        return scores, Forecast(expected, corrected, side_information_weight=weight)

    def error_models(self, view: DesignView) -> tuple[ErrorModel, ErrorModel]:
        """The error model of lines at the start, and after the lines measured so far."""
        data = _lines_so_far(view)
        start = self.error_model or shipped_error_model(_kind(view.posteriors))
        rows, log_energies, variances = [], [], []
        for acquired, block in measured_blocks(view):
            expected = block[0].forecast.expected  # of the posterior that the block was chosen from
            if expected is None:
                continue
            known = data.at(acquired, expected)
            for step in block:
                energy, variance = data.error_energy(step.actual_energy)
                rows.append(features_of_line(known, step.line))
                log_energies.append(np.log(energy / known.unit))
                variances.append(variance)
        if not rows:
            return start, start
        return start, start.given(np.array(rows), np.array(log_energies), np.array(variances))

    def _residuals(self, view: DesignView) -> list[list[Numbers]]:
        """Of every piece of side information: residuals before each block that has been measured, and now."""
        measured = view.candidates.acquired[: len(view.candidates.acquired) - view.pending]
        history = [*(known for known, _ in measured_blocks(view)), measured]
        return [each.residuals(history) for each in self.side_information]

    def _samples(self, view: DesignView, expected: Numbers) -> tuple[Forecast, Numbers, float]:
        """A forecast, the energies by which samples are chosen, (size,), and the known fraction of their scatter."""
        plane, measured = plane_of(view.readouts), view.candidates.mask
        aside = self._side_energies(view)
        prior = feature_weights(bool(self.side_information))
        seen = _SampleInnovations.of(view, plane, aside)
        weights = prior[0] if seen is None else seen.fitted(prior)
        energies = level(measured, expected) * np.exp(sample_features(plane, measured, expected, aside[-1]) @ weights)
        if seen is not None:
            energies = energies * seen.found_over_predicted(weights, plane)
        energies = np.maximum(energies, LEAST * float(energies.max()))
        corrected = np.where(measured, expected, np.nan if seen is None else energies)
        if not self.side_information:
            return Forecast(expected, corrected), expected if seen is None else energies, 0.0
        explained = float("nan") if seen is None else seen.explained(weights)
        known = EARLIER_MEAN if seen is None else explained
        return Forecast(expected, corrected, side_information_weight=explained), energies, known

    def _side_energies(self, view: DesignView) -> list[Numbers | None]:
        """Energies on every sample, (size,), as the earlier scans predict them: at every block, and now."""
        if not self.side_information:
            return [None] * (len(measured_blocks(view)) + 1)
        if len(self.side_information) != len(view.posteriors):
            wanted = f"one for every slice that shares the mask: {len(view.posteriors)}"
            raise InputError("earlier scans", str(len(self.side_information)), wanted)
        parts = [
            np.array(residuals) * np.sum(np.abs(mean) ** 2, dtype=np.float64)
            for residuals, mean in zip(self._residuals(view), means_of(view.posteriors), strict=True)
        ]
        return list(np.sum(parts, axis=0))


def _within_mask(view: DesignView) -> LineCandidates:
    """The candidates that are still to come of the mask that leaves least variance; all where there is no mask.

    Masks have as many lines as the design is expected to have in the end, and lie as near to the lines chosen so far as
    any does, each of which stands for the line of the mask that is nearest. With these lines the constraints let a
    design go on. Where jumps do not reach the outermost lines and come back, masks are as wide as one of them can be.
    """
    seen, numbers = view.candidates, np.arange(view.candidates.n_lines)
    start, outside = seen.acquired[: seen.n_start], tuple(seen.outside_start.tolist())
    expected = view.expected or seen.target
    masks = _measured_whole(seen.n_lines, outside, start, expected - seen.n_start, seen.constraints)
    completed = [_completed(seen.chosen, mask) for mask in masks]
    found = [(apart, np.isin(numbers, (*seen.acquired, *left))) for left, apart in completed]
    found = [one for one in found if seen.constraints.most_lines(one[1], seen.acquired) >= expected]
    least = min((apart for apart, _ in found), default=0)  # none, where one holds all chosen
    wholes = [whole for apart, whole in found if apart == least]
    if len(wholes) > 1:
        lines = [np.flatnonzero(whole) for whole in wholes]
        totals = np.sum(of_each(view.posteriors, totals_after, [(lines,)] * len(view.posteriors)), axis=0)
        wholes = [wholes[int(np.argmin(totals))]]
    if not wholes:
        return seen
    within = replace(seen, measurable=wholes[0], target=expected)
    following = within.remaining & seen.remaining
    after = replace(seen, measurable=seen.mask | following, target=len(seen.acquired) + 1)
    return after if following.any() else seen


def _completed(chosen: Sequence[int], mask: Sequence[int]) -> tuple[NDArray[np.intp], int]:
    """The lines of a mask that are left once each chosen line has the place of one, and their squared distances."""
    lines = np.array(mask, dtype=np.intp)
    apart = (lines[:, None] - np.array(chosen, dtype=np.intp)) ** 2
    taken, by = scipy.optimize.linear_sum_assignment(apart)
    return np.delete(lines, taken), int(apart[taken, by].sum())


@lru_cache(maxsize=4)
def _measured_whole(
    n_lines: int, outside: tuple[int, ...], start: tuple[int, ...], wanted: int, constraints: Constraints
) -> list[tuple[int, ...]]:
    """The widest masks of some lines outside of the start that constraints let a design measure whole."""
    numbers, outwards = np.arange(n_lines), sorted(outside, key=lambda line: abs(line - n_lines // 2))
    for width in range(len(outwards), wanted - 1, -2):
        masks = growing_masks(np.isin(numbers, outwards[:width]), wanted)
        reach = [constraints.most_lines(np.isin(numbers, (*start, *mask)), start) for mask in masks]
        if len(start) + wanted in reach:
            return [mask for mask, most in zip(masks, reach, strict=True) if most == len(start) + wanted]
    return []


def _lines_so_far(view: DesignView) -> LineKnowledge:
    """Energies of the measured lines, all slices together, without expected errors."""
    energies, noise, samples = np.zeros(view.candidates.n_lines), 0.0, 0
    known = np.array(view.candidates.acquired[: len(view.candidates.acquired) - view.pending])
    for found, variance, size in of_each(view.posteriors, _measured):
        energies[known] += found
        noise += 2 * variance * (size // len(known))
        samples += size // len(known)
    return LineKnowledge(view.candidates.mask, energies, noise, np.zeros(len(energies)), samples)


def _measured(posterior: GaussianPosterior) -> tuple[Numbers, float, int]:
    """Energies of the measured lines, the noise variance per component, and the number of samples."""
    model = posterior.model
    energies = np.asarray(np.sum(np.abs(model.data) ** 2, axis=(0, 2), dtype=np.float64))
    return energies, float(model.noise_variance), model.data.size


def _kind(posteriors: Sequence[GaussianPosterior]) -> ErrorModelName:
    """Name of the shipped model that fits most of the slices."""
    kinds = of_each(posteriors, measurement_facts)
    if kinds[0][0] > 1:
        return "several coils"
    modulus = sum(complex_linear for *_, complex_linear in kinds)
    return "one coil" if 2 * modulus >= len(posteriors) else "one coil, phase-aware"


def _log_errors(view: DesignView, residuals: Sequence[Numbers]) -> tuple[Numbers, Numbers, Numbers]:
    """log(measured / predicted energy) of the lines chosen so far, by the side information and by the error model.

    ``residuals`` are those of the side information before every block. The third array is what noise adds to the
    variance of both.
    """
    data, brightness = _lines_so_far(view), image_energy(means_of(view.posteriors))
    found: list[tuple[float, float, float]] = []
    for (_, block), before in zip(measured_blocks(view), residuals, strict=False):
        for step in block:
            if step.forecast.predicted is None:
                continue
            energy, noise = data.error_energy(step.actual_energy)
            predicted = brightness * max(before[step.line], TINY), step.forecast.predicted[step.line]
            found.append((np.log(energy / predicted[0]), np.log(energy / predicted[1]), noise))
    table = np.array(found, dtype=np.float64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


@dataclass(frozen=True)
class _SampleInnovations:
    """Energies measured on the samples chosen so far, (count,) each, with the features they had before.

    Energies are fitted in units of the level at their own time: the constant is then how wrong the posterior is
    throughout. ``shape`` is `_independent_values`, ``noise`` the energy of noise in a sample.
    """

    samples: NDArray[np.intp]
    energies: Numbers
    features: Numbers
    levels: Numbers
    noise: float
    shape: float

    @classmethod
    def of(cls, view: DesignView, plane: PlaneReadouts, aside: Sequence[Numbers | None]) -> _SampleInnovations | None:
        """All that was predicted and measured so far; None where nothing was."""
        parts = []
        for (acquired, block), earlier in zip(measured_blocks(view), aside, strict=False):
            expected = block[0].forecast.expected
            if expected is None:
                continue
            samples = np.array([step.line for step in block], dtype=np.intp)
            measured = np.isin(np.arange(plane.size), acquired)
            energies = np.array([step.actual_energy for step in block])
            features = sample_features(plane, measured, expected, earlier)[samples]
            parts.append((samples, energies, features, np.full(len(block), level(measured, expected))))
        if not parts:
            return None
        noise = float(sum(2 * variance * coils for coils, variance, _ in of_each(view.posteriors, measurement_facts)))
        samples, energies, features, levels = (np.concatenate(each) for each in zip(*parts, strict=True))
        return cls(samples, energies, features, levels, noise, _independent_values(view))

    def predicted(self, weights: Numbers) -> Numbers:
        """Mean energies under weights of the features."""
        return np.asarray(np.exp(self.features @ weights) * self.levels + self.noise)

    def fitted(self, prior: tuple[Numbers, Numbers]) -> Numbers:
        """Weights of the features."""
        energies, floor = self.energies / self.levels, self.noise / self.levels
        return fitted_weights(self.features, energies, floor, self.shape, prior)

    def found_over_predicted(self, weights: Numbers, plane: PlaneReadouts) -> Numbers:
        """Ratio of found to predicted energies around every sample, (size,); 1 where nothing is near."""
        widths = [max(REACH * n, 0.5) for n in plane.grid]
        weight = 2 * np.pi * widths[0] * widths[1]  # one at the middle of the window

        def around(values: Numbers) -> Numbers:
            total = np.zeros(plane.size)
            np.add.at(total, self.samples, values)
            laid_out = scipy.ndimage.gaussian_filter(total.reshape(plane.grid), widths, mode="constant")
            return np.asarray(weight * laid_out.reshape(-1))

        found, counted = around(self.energies / self.predicted(weights)), around(np.ones(len(self.samples)))
        return (BELIEF + found) / (BELIEF + counted)

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


def _independent_values(view: DesignView) -> float:
    """Independent complex values behind one energy: slices, and coils as far as they see different things.

    Coils overlap, so that the square root of their number counts.
    """
    return float(sum(np.sqrt(coils) for coils, *_ in of_each(view.posteriors, measurement_facts)))
