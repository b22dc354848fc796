"""Convex conjugates of sites: phi*(w) = max over s of Re<w, s> - phi(s)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mri_design.estimation.penalised import SitePenalty, Smoothed
from mri_design.model.generalized_linear import SiteBlock
from mri_design.operators.base import Array


@dataclass(frozen=True)
class Conjugate:
    """phi* of phi(s) = level sqrt(|s|^2 + epsilon) - shift s, or (for ``precision``) precision |s|^2 / 2 - shift s.

    Parameters
    ----------
    block : SiteBlock
        Groups.
    level : float array, optional
        tau sigma of Laplace sites.
    epsilon : float array
        sigma^2 z.
    precision : float array, optional
        Of Gaussian sites.
    shift : float array
        sigma b of the odd part.
    constant : float
        Added to phi.
    """

    block: SiteBlock
    level: Array | None = None
    epsilon: Array | float = 0.0
    precision: Array | None = None
    shift: Array | float = 0.0
    constant: float = 0.0

    def value(self, w: Array) -> float:
        """Sum of phi*(w) over the sites; w is taken to lie in the domain."""
        power = self.block.site_power(w + self.shift)
        if self.precision is not None:
            return float(np.sum(power / (2 * self.precision))) - self.constant
        assert self.level is not None
        return -float(np.sum(np.sqrt(self.epsilon * np.maximum(self.level**2 - power, 0)))) - self.constant

    def into_domain(self, w: Array) -> Array:
        """The nearest point with |w + shift| <= level."""
        if self.level is None:
            return w
        moved = w + self.shift
        modulus = np.sqrt(self.block.site_power(moved))
        return np.asarray(moved * np.minimum(self.level / np.maximum(modulus, 1e-300), 1) - self.shift)

    def longest(self, w: Array) -> float:
        """The largest c with c w in the domain."""
        if self.level is None:
            return np.inf
        modulus = np.sqrt(self.block.site_power(w))
        room = self.level - self.shift * np.sign(w.real) if np.any(self.shift) else self.level
        return float(np.min(room / np.maximum(modulus, 1e-300)))

    @property
    def weight(self) -> float:
        """How far w may move: the square of its typical size."""
        return float(np.mean((self.level if self.level is not None else self.precision) ** 2))  # type: ignore[operator]


def conjugate_of(block: SiteBlock, penalty: SitePenalty, noise_variance: float) -> Conjugate | None:
    """phi* of one block's sites; None where it is not known here."""
    if not isinstance(penalty, Smoothed):
        return None
    sigma, slope = float(np.sqrt(noise_variance)), penalty.potential.shift
    shift: Array | float = sigma * np.asarray(slope, dtype=float) if np.any(slope) else 0.0
    scale, precision = penalty.even.modulus_scale, penalty.even.gaussian_precision
    z = np.asarray(penalty.z, dtype=float)
    if scale is not None:
        level = sigma * scale
        if np.any(np.abs(shift) >= level):
            return None
        return Conjugate(block, level=level, epsilon=noise_variance * z, shift=shift)
    if precision is not None:
        constant = 0.5 * noise_variance * float(np.sum(np.broadcast_to(precision * z, block.site_shape)))
        return Conjugate(block, precision=precision, shift=shift, constant=constant)
    return None
