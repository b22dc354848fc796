"""Maps of what echoes show, from an image of each and draws from its posterior: values, standard deviations, intervals.

The fit of the images is the value. Fits of draws deviate from it as it is expected to deviate from the truth. All
echoes of a pixel count with the same weight: where a decay is no single exponential the estimate depends on weights,
and error bars of echoes differ by what was measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.errors import InputError, probability
from mri_design.signals.fit import SignalFit, fit_signals
from mri_design.signals.models import SignalModel, Values
from mri_design.status import Convergence

LEAST_SIGNAL = 4.0
"""Of the brightest echo, in standard deviations of a real component, for a pixel to be fitted."""
LEAST_FOUND = 0.9
"""Share of the draws whose fits have to end within the limits of the model."""
LARGEST_SD = 0.5
"""Standard deviation, over the value, of a positive parameter that counts as identified."""


@briefly
@dataclass(frozen=True)
class SignalMap:
    """A quantity in every pixel of a slice, with its errors.

    Parameters
    ----------
    model : SignalModel
        What was fitted.
    value : float array, shape (ky, kx)
        The quantity in the unit of the model; NaN where it is not identified.
    draws : float array, shape (draw, ky, kx)
        Of the same; deviations from the value are as its errors.
    misfit : float array, shape (ky, kx)
        What the model leaves of the images over what their errors leave, see `SignalFit`; NaN where nothing is fitted.
    fitted : int
        Pixels with enough signal to be fitted.
    convergence : Convergence
        Of the fit of the images.
    """

    model: SignalModel
    value: NDArray[np.float64]
    draws: NDArray[np.float64]
    misfit: NDArray[np.float64]
    fitted: int
    convergence: Convergence

    @property
    def identified(self) -> NDArray[np.bool_]:
        """Where the images determine the quantity, (ky, kx)."""
        return np.isfinite(self.value)

    @cached_property
    def std(self) -> NDArray[np.float64]:
        """Root mean square by which draws deviate from the value, (ky, kx)."""
        return np.asarray(np.sqrt(np.mean((self.draws - self.value) ** 2, axis=0)))

    def interval(self, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ends of the interval that holds the true quantity of a pixel with this probability, by Student's t."""
        half = float(scipy.stats.t.ppf((1 + probability(level)) / 2, len(self.draws) - 1)) * self.std
        return self.value - half, self.value + half


def fit_map(
    model: SignalModel,
    times: Values,
    images: Values,
    draws: Values,
    std: Values,
    *,
    pull: Values | None = None,
    complex_signals: bool = False,
) -> SignalMap:
    """Fit a model to the echoes of a slice and to draws of them.

    Parameters
    ----------
    model, times
        As of `fit_signals`.
    images : complex array, shape (echo, ky, kx)
        Posterior means.
    draws : complex array, shape (echo, draw, ky, kx)
        From the posteriors, independent between echoes.
    std : float array, shape (echo, ky, kx)
        Standard deviations of complex pixels.
    pull : float array, shape (echo, ky, kx), optional
        By how much the prior makes moduli too small, in the units of the images: it is added to them.
    complex_signals : bool
        Whether complex signals are fitted, whose phase is the same in all echoes, or moduli.

    Raises
    ------
    InputError
        Where most fits do not converge, or no pixel is identified.
    """
    sd = np.sqrt(np.mean(np.asarray(std, dtype=float) ** 2, axis=0) / 2)
    bright = np.abs(images).max(axis=0) > LEAST_SIGNAL * sd
    cure = "Check the times and their unit, or measure more lines."
    nothing = InputError("fit", f"no pixel whose {model.name} is identified", "echoes that determine it", cure)
    if not bright.any():
        raise nothing
    inside, noise = images[:, bright], sd[bright][:, np.newaxis]
    more = 0 * inside if pull is None else pull[:, bright] * np.exp(1j * np.angle(inside))
    drawn = np.moveaxis(draws[:, :, bright] + more[:, np.newaxis], 0, -1)
    inside = (inside + more).T

    def fitted(signals: Values, noise: Values, start: Values | None = None) -> SignalFit:
        given = signals if complex_signals or model.complex_only else np.abs(signals)
        return fit_signals(model, times, given, noise, start=start)

    made = fitted(inside, noise)
    if made.converged.mean() < 0.5:
        raise InputError("fit", "no convergence in most pixels", f"echoes that {model.name} explains")
    # the error of a draw is that of the image, and once more as much
    again = fitted(drawn, noise * np.sqrt(2), np.broadcast_to(made.theta, (*drawn.shape[:2], made.theta.shape[-1])))
    found = made.found & (again.found.mean(axis=0) >= LEAST_FOUND)
    if model.positive:
        spread = np.sqrt(np.mean((again.quantity - made.quantity) ** 2, axis=0))
        found &= spread <= LARGEST_SD * made.quantity
    if not found.any():
        raise nothing

    def laid(values: Values, where: NDArray[np.bool_]) -> NDArray[np.float64]:
        image = np.full((*values.shape[:-1], *bright.shape), np.nan)
        image[..., bright] = np.where(where, values, np.nan)
        return image

    every = np.ones_like(found)
    value, drawn = laid(made.quantity, found), laid(again.quantity, found)
    return SignalMap(model, value, drawn, laid(made.misfit, every), int(bright.sum()), made.convergence)
