"""How wrong a posterior is about the error on every line or sample, learnt from innovations.

The posterior's variances are wrong in a systematic way: they are too small where |k| is large, they ignore conjugate
symmetry, and they are overconfident about regular gaps. A linear model describes what the error really is,

    log(energy of the error) = features . weights + noise.

Of lines the weights start from synthetic heads (their mean and their spread between heads), and Bayesian linear
regression corrects them with every line that is measured, since its innovation is a sample of exactly what was
predicted. How good they are is measured in results/error-model/README.md. Residual energy depends on more than the
posterior's variances: images fill a part of the field of view, so lines next to measured ones are partly known; their
phase is nearly smooth, so lines opposite to measured ones are partly known; and spectra fall off in their own way, on
one side faster than on the other (relaxation along an echo train). These are the features.

A block of samples of a plane gives as many innovations, which are enough for a gamma regression to learn from the scan
alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib import resources
from typing import Literal

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.readouts import PlaneReadouts

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
