"""Proximal steps of sites: minimise penalty(s) + rho / 2 |s - v|^2, one scalar problem a site."""

from __future__ import annotations

import numpy as np

from mri_design.estimation.penalised import SitePenalty, Smoothed
from mri_design.model.generalized_linear import SiteBlock
from mri_design.operators.base import Array

__all__ = ["proximal_step"]


def proximal_step(
    block: SiteBlock, penalty: SitePenalty, noise_variance: float, rho: float, v: Array, iterations: int = 30
) -> Array:
    """argmin over s of sigma^2 psi(|s|^2 / sigma^2) / 2 - sigma b s + rho / 2 |s - v|^2, site by site.

    The modulus r of s solves r (rho + pi(r^2 / sigma^2)) = rho |v|, and s keeps the direction of v.

    Parameters
    ----------
    block : SiteBlock
        Groups, and the slope b of the odd part.
    penalty : SitePenalty
        psi; only pi = psi' is used.
    noise_variance : float
        sigma^2.
    rho : float
        Positive weight.
    v : array
        In the shape of the coefficients.
    iterations : int
        Limit of the scalar solver (see `shrunken_moduli`).

    Notes
    -----
    Closed form for Gaussian sites, and for Laplace sites without smoothing (soft thresholding); Newton's method for
    smoothed Laplace sites. Where the site is not log-concave the scalar problem may have several minima; the one
    found is stationary.
    """
    real = v.real.dtype
    if np.any(block.potential.shift):
        v = v + (np.sqrt(noise_variance) * np.asarray(block.potential.shift) / rho).astype(real)
    smoothed = penalty if isinstance(penalty, Smoothed) else None
    precision = smoothed.even.gaussian_precision if smoothed else None
    if precision is not None:
        return np.asarray(v * (rho / (rho + precision)).astype(real))
    modulus = np.sqrt(block.site_power(v))
    scale = smoothed.even.modulus_scale if smoothed else None
    if smoothed is not None and scale is not None:
        level = (scale * (np.sqrt(noise_variance) / rho)).astype(real)
        epsilon = (noise_variance * smoothed.z).astype(real)
        shrunken = rounded_threshold(level, epsilon, modulus) if np.any(epsilon) else np.maximum(modulus - level, 0)
    else:
        shrunken = shrunken_moduli(penalty, noise_variance, rho, modulus, iterations)
    return np.asarray(v * (shrunken / np.maximum(modulus, np.finfo(real).tiny)))


def rounded_threshold(level: Array, epsilon: Array, modulus: Array, iterations: int = 30) -> Array:
    """r >= 0 with r + level r / sqrt(r^2 + epsilon) = |v|.

    The left side is concave in r, so Newton's steps from below stay below. Soft thresholding is below, and so is
    |v| / (1 + level / sqrt(epsilon)).
    """
    accuracy = 4 * np.finfo(modulus.dtype).eps
    r = np.maximum(modulus - level, modulus / (1 + level / np.sqrt(np.maximum(epsilon, np.finfo(modulus.dtype).tiny))))
    for _ in range(iterations):
        root = np.sqrt(r * r + epsilon)
        shrinkage = level / root
        step = (modulus - r - shrinkage * r) / (1 + shrinkage * epsilon / (root * root))
        r = r + step
        if np.all(np.abs(step) <= accuracy * modulus):
            break
    return np.asarray(np.maximum(r, 0))


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
