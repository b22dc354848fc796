"""The inner problem of variational inference, and MAP estimation: penalised least squares.

    J(u) = ||y - X u||^2 / sigma^2 + sum_i psi_i(|s_i|^2 / sigma^2) - 2 sum_i b_i s_i / sigma,   s = B u - offset

psi is concave and rising, so that at every x its tangent, with slope pi = psi'(x), is a quadratic bound of the whole.
With psi(x) = -2 g(x + z) and z the marginal variances, the minimiser is the posterior mean of the current bound (TR-175
section 4.2, in the closed form that follows from g alone); with z -> 0 it is the MAP estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mri_design.krylov.conjugate_gradients import squared_norm
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.operators.base import Array
from mri_design.potentials.base import SuperGaussian


class SitePenalty(Protocol):
    """psi of one block, concave in x = |s|^2 / sigma^2, vectorised over sites."""

    def value(self, x: Array) -> Array:
        """psi(x)."""
        ...

    def precision(self, x: Array) -> Array:
        """pi = psi'(x), positive: the site precision of the quadratic bound that touches at x."""
        ...


@dataclass(frozen=True)
class Smoothed:
    """psi(x) = -2 g(x + z): the tangent bound of log|A| in pi (second class), or a smoothed MAP penalty.

    Parameters
    ----------
    potential : SuperGaussian
        The site.
    z : float array
        Pooled over groups, broadcastable to the sites, positive, in units of sigma^2.
    """

    potential: SuperGaussian
    z: Array

    @property
    def even(self) -> SuperGaussian:
        """The site without its odd part, which psi does not know of."""
        return self.potential.even

    def dual_argument(self, x: Array) -> Array:
        """x + z, where the site's own dual pi = -2 g'(x + z) is attained."""
        return (x + self.z).astype(x.dtype, copy=False)

    def value(self, x: Array) -> Array:
        return -2 * self.potential.g(self.dual_argument(x))

    def precision(self, x: Array) -> Array:
        return self.potential.site_precision(self.dual_argument(x))


@dataclass(frozen=True)
class PenalisedProblem:
    """The penalised least-squares objective J(u) of one model, with one penalty for each block of sites.

    Parameters
    ----------
    model : GeneralizedLinearModel
        X, y, sigma^2, and the sites' operators, offsets and shifts.
    penalties : tuple of SitePenalty
        One per block.
    """

    model: GeneralizedLinearModel
    penalties: tuple[SitePenalty, ...]

    @classmethod
    def smoothed(cls, model: GeneralizedLinearModel, z: tuple[Array, ...]) -> PenalisedProblem:
        """psi(x) = -2 g(x + z) in every block."""
        pairs = zip(model.blocks, z, strict=True)
        return cls(model, tuple(Smoothed(block.represented, z_j) for block, z_j in pairs))

    def site_powers(self, coefficients: tuple[Array, ...]) -> tuple[Array, ...]:
        """x = |s|^2 / sigma^2 per block for the given s = B u - offset."""
        sigma2 = self.model.noise_variance
        pairs = zip(self.model.blocks, coefficients, strict=True)
        return tuple((block.site_power(s) / sigma2).astype(s.real.dtype, copy=False) for block, s in pairs)

    def site_precisions(
        self, coefficients: tuple[Array, ...], powers: tuple[Array, ...] | None = None
    ) -> tuple[Array, ...]:
        """pi = psi'(x) per block; ``powers`` are the x, where they are known already."""
        pairs = zip(self.penalties, powers or self.site_powers(coefficients), strict=True)
        return tuple(penalty.precision(x) for penalty, x in pairs)

    def value(self, residual: Array, coefficients: tuple[Array, ...], powers: tuple[Array, ...] | None = None) -> float:
        """J from y - X u and s = B u - offset, of which the ``powers`` may be known already."""
        return squared_norm(residual) / self.model.noise_variance + self.penalty_value(coefficients, powers)

    def penalty_value(self, coefficients: tuple[Array, ...], powers: tuple[Array, ...] | None = None) -> float:
        """What the sites add to J at s = B u - offset."""
        total = -2 * self.model.odd_part(coefficients)
        for penalty, x in zip(self.penalties, powers or self.site_powers(coefficients), strict=True):
            total += float(np.sum(penalty.value(x), dtype=np.float64))
        return total

    def site_slope(self, block: SiteBlock, s: Array, site_precision: Array) -> Array:
        """pi s - sigma b: sigma^2 / 2 times the gradient of what a block adds to J, in its coefficients s."""
        slope = site_precision * s
        if not np.any(block.potential.shift):
            return slope
        pull = float(np.sqrt(self.model.noise_variance)) * np.asarray(block.potential.shift)
        return np.asarray(slope - pull).astype(s.dtype, copy=False)

    def site_slopes(self, coefficients: tuple[Array, ...], site_precisions: tuple[Array, ...]) -> tuple[Array, ...]:
        """`site_slope` of every block."""
        triples = zip(self.model.blocks, coefficients, site_precisions, strict=True)
        return tuple(self.site_slope(block, s, pi) for block, s, pi in triples)

    def site_gradient(self, coefficients: Sequence[Array | None], site_precisions: tuple[Array, ...]) -> Array | float:
        """sigma^2 / 2 times the gradient of `penalty_value` in u: sum over blocks of B^H (pi s - sigma b).

        Blocks without coefficients are left out; zero where all are.
        """
        triples = zip(self.model.blocks, coefficients, site_precisions, strict=True)
        return sum(block.analysis.adjoint(self.site_slope(block, s, pi)) for block, s, pi in triples if s is not None)
