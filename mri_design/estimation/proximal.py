"""Proximal steps of sites: minimise penalty(s) + rho / 2 |s - v|^2, one scalar problem a site."""

from __future__ import annotations

from typing import Any

import numpy as np

from mri_design.estimation.penalised import SitePenalty, Smoothed
from mri_design.model.generalized_linear import SiteBlock
from mri_design.operators.base import Array


def odd_part(block: SiteBlock, noise_variance: float, rho: float, real: np.dtype[Any]) -> Array | None:
    """sigma b / rho, by which the odd parts of the sites move v; None where they have none."""
    if not np.any(block.potential.shift):
        return None
    return np.asarray((np.sqrt(noise_variance) * np.asarray(block.potential.shift) / rho).astype(real))


def shrinkage(
    block: SiteBlock, penalty: SitePenalty, noise_variance: float, rho: float, power: Array, iterations: int = 30
) -> Array:
    """By what v is multiplied in argmin over s of sigma^2 psi(|s|^2 / sigma^2) / 2 + rho / 2 |s - v|^2, site by site.

    The modulus r of s solves r (rho + pi(r^2 / sigma^2)) = rho |v|, and s keeps the direction of v. Sites with odd
    parts have the same step from v + `odd_part`.

    Parameters
    ----------
    block : SiteBlock
        Groups.
    penalty : SitePenalty
        psi; only pi = psi' is used.
    noise_variance : float
        sigma^2.
    rho : float
        Positive weight.
    power : real array, shape of the sites
        |v|^2.
    iterations : int
        Limit of the scalar solver (see `shrunken_moduli`).

    Returns
    -------
    real array
        r / |v|, broadcastable to the coefficients.

    Notes
    -----
    Closed form for Gaussian sites, and for Laplace sites without smoothing (soft thresholding); Newton's method for
    smoothed Laplace sites. Where the site is not log-concave the scalar problem may have several minima; the one
    found is stationary.
    """
    real = power.dtype
    smoothed = penalty if isinstance(penalty, Smoothed) else None
    precision = smoothed.even.gaussian_precision if smoothed else None
    if precision is not None:
        return np.asarray((rho / (rho + precision)).astype(real))
    scale = smoothed.even.modulus_scale if smoothed else None
    if smoothed is not None and scale is not None:
        level = (scale * (np.sqrt(noise_variance) / rho)).astype(real, copy=False)
        return rounded_threshold(level, smoothed.z.astype(real, copy=False), power, iterations, noise_variance)
    modulus = np.sqrt(power)
    return _share(shrunken_moduli(penalty, noise_variance, rho, modulus, iterations), modulus)


def rounded_threshold(level: Array, epsilon: Array, power: Array, iterations: int = 30, unit: float = 1.0) -> Array:
    """r / |v| for r >= 0 with r + level r / sqrt(r^2 + unit epsilon) = |v|; without rounding, soft thresholding."""
    from mri_design.operators.kernels.threshold import rounded_shrinkage

    if not (epsilon.flat[0] or np.any(epsilon)):
        modulus = np.sqrt(power)
        return _share(np.maximum(modulus - level, 0), modulus)
    level, epsilon = (np.broadcast_to(x, power.shape) if np.size(x) > 1 else x for x in (level, epsilon))
    return rounded_shrinkage(level, epsilon, power, iterations, unit)


def _share(shrunken: Array, modulus: Array) -> Array:
    return np.asarray(shrunken / np.maximum(modulus, np.finfo(modulus.dtype).tiny))


def shrunken_moduli(penalty: SitePenalty, noise_variance: float, rho: float, modulus: Array, iterations: int) -> Array:
    """r >= 0 with r (rho + pi(r^2 / sigma^2)) = rho |v|, by bracketed secant steps from below.

    r -> r (rho + pi) is concave and rising for log-concave sites that are smoothed or flatter than |s| at zero, so the
    secant through two points below the root stays below it and converges faster than linearly; elsewhere the bracket
    and the monotone fixed point r = rho |v| / (rho + pi) keep it safe.
    """
    tiny = np.finfo(modulus.dtype).tiny
    rho_real, inverse = modulus.dtype.type(rho), modulus.dtype.type(1 / noise_variance)
    accuracy = 4 * np.finfo(modulus.dtype).eps

    def precision(r: Array) -> Array:
        return penalty.precision(r * r * inverse)

    goal = rho_real * modulus
    old, excess_old = np.zeros_like(modulus), -goal
    high = modulus
    r = goal / (rho_real + precision(old))
    for _ in range(iterations):
        pi = precision(r)
        excess = r * (rho_real + pi) - goal
        high = np.where(excess > 0, np.minimum(high, r), high)
        fixed = goal / (rho_real + pi)  # on the root's side of r, and never beyond the root
        change = excess - excess_old
        secant = r - excess * (r - old) / np.where(np.abs(change) > tiny, change, 1)
        good = (np.abs(change) > tiny) & (secant <= high) & np.where(excess < 0, secant >= fixed, secant > 0)
        new = np.where(good, secant, fixed)
        old, excess_old, r, last = r, excess, new, r
        if np.all(np.abs(r - last) <= accuracy * modulus):
            break
    return r
