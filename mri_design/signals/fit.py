"""Maximum likelihood of signal models: many pixels at once, of moduli (Rice) or of complex signals.

`fit_signals` minimises minus the log likelihood over amplitudes and theta by Levenberg and Marquardt's steps, a small
dense system for each pixel, from the best of a grid of theta. A modulus m of a signal mu with noise of standard
deviation sigma in both components has the density of Rice, m / sigma^2 exp(-(m^2 + mu^2) / 2 sigma^2) I0(m mu /
sigma^2), which knows that noise alone has a modulus, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.errors import InputError
from mri_design.signals.models import SignalModel, Values
from mri_design.status import Convergence, Status

_GRID = 25, 13
"""Values of one parameter that are tried first, and of each of several, whose combinations are tried.

Of a phase between -2 pi and 2 pi the latter have the step pi / 3, and signs of amplitudes make some of them the same.
"""
_AT_ONCE = 20_000
"""Pixels of which arrays are made at a time."""
_DAMPING, _LEAST_DAMPING, _MOST_DAMPING, _COOLER = 1e-3, 1e-9, 1e12, 5.0
_LEAST_CURVATURE = 0.01
"""Of the likelihood of a modulus, over that of a Gaussian."""
_PREFERENCE = 1e-9
"""Of the middle of the limits among starts that fit equally well, as of water and fat with two echoes."""
_LEAST_SIZE = 1e-100
"""Root of a curvature below which a parameter has no say."""
_STEP = 1e-5
"""Of the differences that are the derivatives by theta."""
_AT_LIMIT = 1e-3
"""Part of a parameter's range within which it counts as at its limit."""


@briefly
@dataclass(frozen=True)
class SignalFit:
    """Estimates of pixels.

    Parameters
    ----------
    quantity : float array, shape (...)
        What the model maps.
    amplitudes, theta : float arrays, shape (..., amplitude) and (..., parameter)
        The estimates; complex amplitudes as real parts, then imaginary parts.
    misfit : float array, shape (...)
        Sum of squares of what the model leaves over its expectation, the noise of as many numbers as there are more
        than parameters; NaN where there are no more.
    converged, found : bool array, shape (...)
        Where the iteration converged, and where it did so within the limits of theta.
    convergence : Convergence
        Of all; its residual is the largest decrease of the log likelihood that a further step promises.
    """

    quantity: NDArray[np.float64]
    amplitudes: NDArray[np.float64]
    theta: NDArray[np.float64]
    misfit: NDArray[np.float64]
    converged: NDArray[np.bool_]
    found: NDArray[np.bool_]
    convergence: Convergence


def fit_signals(
    model: SignalModel,
    times: Values,
    signals: Values,
    sd: Values,
    *,
    start: Values | None = None,
    tolerance: float = 1e-8,
    iterations: int = 100,
) -> SignalFit:
    """Fit a model to signals.

    Parameters
    ----------
    model : SignalModel
        The model.
    times : float array, shape (echo,)
        In the unit of the model's basis.
    signals : array, shape (..., echo)
        Complex, with a Gaussian likelihood, or real: moduli, with Rice's.
    sd : float array, broadcast to the shape of ``signals``
        Standard deviation of the noise of a real component.
    start : float array, shape (..., parameter), optional
        Where theta begins, instead of a search.
    tolerance : float
        Decrease of the log likelihood below which a further step is not taken.
    iterations : int
        Steps at most.

    Raises
    ------
    InputError
        For moduli where the model needs complex signals, and for fewer numbers than parameters.
    """
    whole, shape = np.iscomplexobj(signals), signals.shape[:-1]
    if model.complex_only and not whole:
        raise InputError("signals", "moduli", f"complex signals, of which {model.name} is estimated")
    problem = _Problem(model, times, whole)
    rows, columns = (2 if whole else 1) * len(times), problem.parameters
    if rows < columns:
        raise InputError("times", f"{len(times)} of them", f"{-(-columns // (rows // len(times)))} or more")
    flat, noise = signals.reshape(-1, len(times)), np.broadcast_to(sd, signals.shape).reshape(-1, len(times))
    starts = None if start is None else start.reshape(len(flat), -1)
    pieces = [slice(first, first + _AT_ONCE) for first in range(0, max(len(flat), 1), _AT_ONCE)]
    made = [
        problem.solve(flat[one], noise[one], None if starts is None else starts[one], tolerance, iterations)
        for one in pieces
    ]
    values, left, misfit, taken = (np.concatenate(parts) for parts in zip(*made, strict=True))
    amplitudes, theta = values[:, : problem.amplitudes], problem.unscaled(values[:, problem.amplitudes :])
    converged, residual = left <= tolerance, float(left.max(initial=0.0))
    status = Status.CONVERGED if converged.all() else Status.MAX_ITERATIONS
    found = converged & ~problem.at_limit(values).any(axis=1)
    quantity = theta[:, 0] if model.quantity is None else model.quantity(amplitudes, theta)
    return SignalFit(
        quantity.reshape(shape),
        amplitudes.reshape(*shape, problem.amplitudes),
        theta.reshape(*shape, len(model.limits)),
        misfit.reshape(shape),
        converged.reshape(shape),
        found.reshape(shape),
        Convergence(status, int(taken.max(initial=0)), residual),
    )


class _Problem:
    """A model in real numbers: parameters (pixel, amplitude and scaled theta) make signals (pixel, row)."""

    def __init__(self, model: SignalModel, times: Values, whole: bool) -> None:
        self.model, self.times, self.whole = model, np.asarray(times, dtype=float), whole
        limits = np.array(model.limits, dtype=float).reshape(-1, 2)
        self.logarithmic = (limits > 0).all(axis=1)
        self.limits = self.scaled(limits.T).T
        self.amplitudes = self.basis(self.limits.mean(axis=1)[np.newaxis]).shape[-1]
        self.parameters = self.amplitudes + len(limits)

    def scaled(self, theta: Values) -> Values:
        """Logarithms of the parameters that are positive."""
        return np.where(self.logarithmic, np.log(np.where(self.logarithmic, theta, 1.0)), theta)

    def unscaled(self, scaled: Values) -> Values:
        """The inverse of `scaled`."""
        return np.where(self.logarithmic, np.exp(np.where(self.logarithmic, scaled, 0.0)), scaled)

    def at_limit(self, values: Values) -> NDArray[np.bool_]:
        """Which parameters lie at a limit, (pixel, parameter)."""
        low, high = self.limits.T
        place = (values[:, self.amplitudes :] - low) / (high - low)
        return np.asarray((place < _AT_LIMIT) | (place > 1 - _AT_LIMIT))

    def basis(self, scaled: Values) -> Values:
        """f in real numbers, (pixel, row, amplitude): real parts of complex signals, then imaginary ones."""
        f = self.model.basis(self.times, self.unscaled(scaled))
        if not self.whole:
            return f
        if np.iscomplexobj(f):
            return np.concatenate([f.real, f.imag], axis=-2)
        none = np.zeros_like(f)  # a complex amplitude
        return np.concatenate([np.concatenate([f, none], axis=-1), np.concatenate([none, f], axis=-1)], axis=-2)

    def signals(self, values: Values) -> Values:
        """The signals, (pixel, row)."""
        mu = np.einsum("nra,na->nr", self.basis(values[:, self.amplitudes :]), values[:, : self.amplitudes])
        return mu if self.whole else np.abs(mu)

    def derivatives(self, values: Values) -> tuple[Values, Values]:
        """Signals (pixel, row) and their derivatives (pixel, row, parameter)."""
        count = self.amplitudes
        amplitudes, scaled = values[:, :count], values[:, count:]
        f = self.basis(scaled)
        mu, parts = np.einsum("nra,na->nr", f, amplitudes), [f]
        for place in range(scaled.shape[1]):
            step = np.zeros(scaled.shape[1])
            step[place] = _STEP
            slope = (self.basis(scaled + step) - self.basis(scaled - step)) / (2 * _STEP)
            parts.append(np.einsum("nra,na->nr", slope, amplitudes)[..., np.newaxis])
        jacobian = np.concatenate(parts, axis=-1)
        if self.whole:
            return mu, jacobian
        sign = np.where(mu < 0, -1.0, 1.0)
        return np.abs(mu), jacobian * sign[..., np.newaxis]

    def solve(
        self, signals: Values, sd: Values, start: Values | None, tolerance: float, iterations: int
    ) -> tuple[Values, Values, Values, Values]:
        """Parameters, promised decrease, misfit and iterations of every pixel."""
        if self.whole:
            data, sd = np.concatenate([signals.real, signals.imag], axis=-1), np.concatenate([sd, sd], axis=-1)
        else:
            data = np.abs(signals)
        data, sd = data.astype(float), np.maximum(sd.astype(float), np.finfo(np.float32).tiny)
        likelihood, moments = (_gaussian, _gaussian_moments) if self.whole else (_rice, rice_moments)
        values = self.begin(data, sd, None if start is None else self.scaled(start))
        left, damping = np.full(len(data), np.inf), np.full(len(data), _DAMPING)
        taken = np.zeros(len(data), dtype=int)
        cost = likelihood(data, self.signals(values), sd)[0]
        (low, high), count, places = self.limits.T, self.amplitudes, np.arange(self.parameters)
        for _ in range(iterations):
            at = np.flatnonzero((left > tolerance) & (damping < _MOST_DAMPING))
            if not at.size:
                break
            mu, jacobian = self.derivatives(values[at])
            _, slope, curvature = likelihood(data[at], mu, sd[at])
            gradient = np.einsum("nrp,nr->np", jacobian, slope)
            hessian = np.swapaxes(jacobian * curvature[..., np.newaxis], 1, 2) @ jacobian
            held = np.zeros(gradient.shape, dtype=bool)  # by a limit that the likelihood pushes against
            bound, pull = values[at, count:], gradient[:, count:]
            held[:, count:] = ((bound <= low) & (pull > 0)) | ((bound >= high) & (pull < 0))
            size = np.sqrt(hessian[:, places, places])
            unit = np.divide(1.0, size, out=np.zeros_like(size), where=(size > _LEAST_SIZE) & ~held)
            hessian *= unit[:, :, np.newaxis] * unit[:, np.newaxis]  # with ones on its diagonal, where it is not 0
            hessian[:, places, places] = 1 + damping[at, np.newaxis]
            gradient *= unit
            left[at] = 0.5 * np.sum(gradient**2, axis=1)
            tried = values[at] - unit * np.linalg.solve(hessian, gradient[..., np.newaxis])[..., 0]
            tried[:, count:] = np.clip(tried[:, count:], low, high)
            after = likelihood(data[at], self.signals(tried), sd[at])[0]
            better = after <= cost[at]
            values[at[better]], cost[at[better]] = tried[better], after[better]
            damping[at] = np.maximum(damping[at] * np.where(better, 1 / _COOLER, _COOLER), _LEAST_DAMPING)
            taken[at] += 1
        spare = data.shape[1] - self.parameters
        expected, variance = moments(self.signals(values), sd)
        misfit = np.sum((data - expected) ** 2 / variance, axis=1) / spare if spare else np.full(len(data), np.nan)
        return values, left, misfit, taken

    def begin(self, data: Values, sd: Values, start: Values | None) -> Values:
        """Amplitudes by least squares at the theta given, or at the best of a grid, moduli with their best signs."""
        signs = np.ones((1, data.shape[1]))
        if not self.whole and self.amplitudes > 1:  # which may change once, as after an inversion
            signs = np.where(np.tri(data.shape[1] + 1, data.shape[1], -1, dtype=bool), -1.0, 1.0)
        if start is not None:
            starts = np.clip(start, *self.limits.T)[np.newaxis]
        else:
            count = _GRID[len(self.limits) > 1]
            axes = [np.linspace(low, high, count) for low, high in self.limits]
            starts = np.array(list(product(*axes)))[:, np.newaxis]
        middle = np.abs((starts - self.limits.mean(axis=1)) / np.ptp(self.limits, axis=1)).max(axis=-1)
        best, least = np.empty((len(data), self.parameters)), np.full(len(data), np.inf)
        for theta, aside in zip(starts, middle, strict=True):
            f = self.basis(theta)
            for sign in signs:
                amplitudes, left = _least_squares(f, data * sign, sd)
                left = left + _PREFERENCE * aside * np.sum((data / sd) ** 2, axis=1)
                better = left < least
                least = np.where(better, left, least)
                tried = np.concatenate([amplitudes, np.broadcast_to(theta, (len(data), theta.shape[1]))], axis=1)
                best[better] = tried[better]
        return best


def _least_squares(f: Values, data: Values, sd: Values) -> tuple[Values, Values]:
    """Amplitudes by weighted least squares, and the sum of squares left."""
    weighted = f / sd[..., np.newaxis]
    across = np.swapaxes(weighted, 1, 2)
    normal, places = across @ weighted, np.arange(f.shape[-1])
    normal[:, places, places] += 1e-9 * normal[:, places, places].max(axis=1, keepdims=True) + np.finfo(float).tiny
    over = data / sd
    found = np.linalg.solve(normal, across @ over[..., np.newaxis])
    return found[..., 0], np.sum((over - (weighted @ found)[..., 0]) ** 2, axis=1)


def _gaussian(data: Values, mu: Values, sd: Values) -> tuple[Values, Values, Values]:
    """Minus the log likelihood, summed over rows (pixel,), and its first two derivatives by mu (pixel, row)."""
    left, precision = mu - data, 1 / sd**2
    return 0.5 * np.sum(left**2 * precision, axis=1), left * precision, precision


def _gaussian_moments(mu: Values, sd: Values) -> tuple[Values, Values]:
    return mu, sd**2


def _rice(data: Values, mu: Values, sd: Values) -> tuple[Values, Values, Values]:
    """`_gaussian` of moduli, with the curvature of Rice's density, kept above zero."""
    cost, _, precision = _gaussian(data, mu, sd)
    both = data * mu * precision
    zeroth = scipy.special.i0e(both)
    cosine = scipy.special.i1e(both) / zeroth
    slope = (mu - data * cosine) * precision
    turning = 1 - np.divide(cosine, both, out=np.full_like(both, 0.5), where=both > 0) - cosine**2
    curvature = precision * np.maximum(1 - data**2 * precision * turning, _LEAST_CURVATURE)
    return cost - np.log(zeroth).sum(axis=1), slope, curvature


def rice_moments(mu: Values, sd: Values) -> tuple[Values, Values]:
    """Mean and variance of the modulus of mu with noise of standard deviation ``sd`` in both components."""
    half = mu**2 / (4 * sd**2)
    mean = np.sqrt(np.pi / 2) * sd * ((1 + 2 * half) * scipy.special.i0e(half) + 2 * half * scipy.special.i1e(half))
    return mean, np.maximum(mu**2 + 2 * sd**2 - mean**2, 1e-3 * sd**2)
