"""References for the variational Gaussian: the same bound by generic minimisers over other parameters.

Both are dense and slow, and end in the optimum of `VariationalGaussian` and `DecoupledGaussian`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.optimize

from mri_design.errors import require_counts, require_numbers
from mri_design.inference.base import Engine, StepInfo, WarmStart, beside_gaussian
from mri_design.inference.variational.prior_and_sites import DualState, PriorAndSites
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.status import Convergence, Status

Objective = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True)
class _ByLBFGS(Engine, named=False):
    """What both have in common: their settings, and what they do with a model.

    They are no `LoopEngine`, since the loop belongs to SciPy's L-BFGS, which calls back but cannot be stepped. Nothing
    is random, and a warm start is not used.
    """

    iterations: int = 2000
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        require_counts(iterations=self.iterations, least=1)
        require_numbers(tolerance=self.tolerance)

    def needing(self, model: GeneralizedLinearModel) -> tuple[SiteBlock, ...]:
        """All blocks but the Gaussian ones, which belong to the prior."""
        return beside_gaussian(model)

    def posterior(
        self,
        model: GeneralizedLinearModel,
        rng: np.random.Generator,
        warm_start: WarmStart | None,
        callback: Callable[[StepInfo], None] | None,
    ) -> GaussianPosterior:
        split = PriorAndSites.of(model)
        return self._minimise(split, callback) if split.parts else split.gaussian()

    @abstractmethod
    def _minimise(self, split: PriorAndSites, callback: Callable[[StepInfo], None] | None) -> GaussianPosterior:
        """The posterior of a model with at least one block of sites that are not Gaussian."""


@dataclass(frozen=True)
class CholeskyGaussian(_ByLBFGS, named=False):
    """The bound over the mean and the Cholesky factor of the covariance (Challis & Barber 2011), by L-BFGS.

    Parameters
    ----------
    iterations : int
        Of L-BFGS at most: (n + n (n + 1) / 2) unknowns, the bound jointly concave in them for log-concave sites.
    tolerance : float
        Largest derivative of phi / 2 at the end.
    """

    def _minimise(self, split: PriorAndSites, callback: Callable[[StepInfo], None] | None) -> GaussianPosterior:
        G, n = split.rows, len(split.centre)
        lower = np.tril_indices(n)
        on_diagonal = lower[0] == lower[1]

        def unpack(flat: Array) -> tuple[Array, Array]:
            root = np.zeros((n, n))
            root[lower] = flat[n:]
            return flat[:n], root

        def half_phi(flat: Array) -> tuple[float, Array]:
            w, root = unpack(flat)
            spread = G @ root
            value, slope, bend = split.expectation(split.means + G @ w, np.einsum("ij,ij->i", spread, spread))
            diagonal = np.abs(np.diag(root))
            with np.errstate(divide="ignore"):
                total = 0.5 * (w @ w + np.sum(root**2) - n) - np.sum(np.log(diagonal)) - value
            by_root = root - 2 * G.T @ (bend[:, None] * spread)
            flat_root = by_root[lower]
            flat_root[on_diagonal] -= 1 / np.diag(root)
            return float(total) + 0.5 * split.constant, np.concatenate([w - G.T @ slope, flat_root])

        start = np.concatenate([np.zeros(n), np.eye(n)[lower]])
        minimum, trace, convergence = _minimised(half_phi, start, self.iterations, self.tolerance, callback)
        w, root = unpack(minimum)
        spread = G @ root
        _, _, bend = split.expectation(split.means + G @ w, np.einsum("ij,ij->i", spread, spread))
        return split.posterior(w, -2 * bend, convergence, trace, convergence.residual)


@dataclass(frozen=True)
class OpperArchambeau(_ByLBFGS, named=False):
    """The bound over the 2 N parameters of Opper & Archambeau (2009), alpha and log lambda, by L-BFGS.

    Parameters
    ----------
    iterations : int
        Of L-BFGS at most; the problem is not convex, and badly scaled where the prior is (Khan 2014, section 3).
    tolerance : float
        Largest derivative of phi / 2 at the end.
    """

    needs = frozenset({"line"})

    def _minimise(self, split: PriorAndSites, callback: Callable[[StepInfo], None] | None) -> GaussianPosterior:
        S = split.rows @ split.rows.T
        count = len(S)

        def half_phi(flat: Array) -> tuple[float, Array]:
            alpha, weights = flat[:count], np.exp(np.clip(flat[count:], -60, 60))
            state = DualState.of(S, split.means, alpha, weights)
            value, slope, bend = state.half_phi(split, S, alpha)
            by_weights = 0.5 * (state.covariance**2) @ (weights + 2 * bend)
            return value, np.concatenate([S @ (alpha + slope), by_weights * weights])

        _, slope, bend = split.expectation(split.means, np.minimum(np.diag(S), 1.0))
        start = np.concatenate([-slope, np.log(np.maximum(-2 * bend, 1e-8))])
        minimum, trace, convergence = _minimised(half_phi, start, self.iterations, self.tolerance, callback)
        alpha, weights = minimum[:count], np.exp(minimum[count:])
        return split.posterior(-split.rows.T @ alpha, weights, convergence, trace, convergence.residual)


def _minimised(
    half_phi: Objective, start: Array, iterations: int, tolerance: float, callback: Callable[[StepInfo], None] | None
) -> tuple[Array, tuple[float, ...], Convergence]:
    trace: list[float] = []

    def note(intermediate_result: scipy.optimize.OptimizeResult) -> None:
        trace.append(2 * float(intermediate_result.fun))
        if callback is not None:
            done = Convergence(Status.CONVERGED, 0, 0.0)
            callback(StepInfo(len(trace), trace[-1], float("nan"), done, done))

    def finite(flat: Array) -> tuple[float, Array]:
        """The objective, or 1e50 where it overflows, so that the line search shortens its step."""
        value, gradient = half_phi(flat)
        broken = not (np.isfinite(value) and np.isfinite(gradient).all())
        return (1e50, np.zeros_like(gradient)) if broken else (value, gradient)

    result = scipy.optimize.minimize(
        finite,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=note,
        options={"maxiter": iterations, "maxfun": 3 * iterations, "maxcor": 30, "ftol": 1e-15, "gtol": tolerance},
    )
    residual = float(np.max(np.abs(result.jac)))
    if residual <= tolerance:
        status = Status.CONVERGED
    else:
        status = Status.MAX_ITERATIONS if result.nit >= iterations else Status.STALLED
    trace.append(2 * float(result.fun))
    return result.x, tuple(trace), Convergence(status, int(result.nit), residual)
