"""Convex variational inference by the double loop, second class.

The criterion phi(gamma) = log|A| + h(gamma) + min_u R(u, gamma) is bounded by replacing log|A|, concave in
pi = 1/gamma, by its tangent z^T pi with z = d log|A| / d pi = diag(B A^-1 B^H). The bound is minimised by a penalised
least-squares problem (inner loop, `estimation`); the tangent is renewed by marginal variances (outer loop,
`variances`). TR-175 sections 4.1 and 4.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mri_design.errors import InputError
from mri_design.estimation import IRLS, PenalisedProblem
from mri_design.inference.base import StepInfo, WarmStart
from mri_design.inference.criterion import criterion_value
from mri_design.model import GaussianPosterior, GeneralizedLinearModel, PosteriorPrecision, Variances
from mri_design.operators import Array
from mri_design.status import Convergence, Status
from mri_design.variances import MonteCarlo, VarianceEstimator

__all__ = ["DoubleLoop", "pooled_variances"]


@dataclass(frozen=True)
class DoubleLoop:
    """Settings of the double loop.

    Each loop minimises the inner problem for the current z, takes the site precisions that follow, and then computes z
    under them, so that the returned mean, precision and variances belong together.

    Parameters
    ----------
    variances : VarianceEstimator
        Who computes z.
    inner : IRLS
        Who minimises the inner problem; by default IRLS to the square of ``tolerance`` (its decrease is quadratic in
        the error).
    outer_iterations : int
        Outer loops; one from a warm start is enough to choose a line, two or three to report uncertainty.
    tolerance : float
        Stop when z changes by less than this in a loop: mean over sites of 2 |z - z_old| / (z + z_old). A random
        estimator sees the same noise in every loop (common random numbers), so that this converges too.

    Raises
    ------
    InputError
        For no loop; for sites that are not super-Gaussian.
    """

    variances: VarianceEstimator = field(default_factory=MonteCarlo)
    inner: IRLS | None = None
    outer_iterations: int = 6
    tolerance: float = 1e-2

    def __post_init__(self) -> None:
        if self.outer_iterations < 1:
            raise InputError(field="outer_iterations", got=str(self.outer_iterations), wanted="1 or more")

    def infer(
        self,
        model: GeneralizedLinearModel,
        rng: np.random.Generator,
        *,
        warm_start: WarmStart | None = None,
        callback: Callable[[StepInfo], None] | None = None,
    ) -> GaussianPosterior:
        """Run outer loops to convergence or the limit.

        Parameters
        ----------
        model : GeneralizedLinearModel
            What to infer.
        rng : numpy Generator
            Randomness of the variance estimator.
        warm_start : WarmStart, optional
            Image and z of a neighbouring problem; without it z = 0.09 / tau^2 and u = X^H y.
        callback : callable, optional
            Called with a StepInfo after every outer loop.

        Returns
        -------
        GaussianPosterior
            ``convergence.residual`` is the last relative change of z; ``iterations`` counts outer loops.
        """
        for block in model.blocks:
            if not block.potential.super_gaussian:
                raise InputError(
                    field=f"block {block.name!r}",
                    got=f"{type(block.potential).__name__}, which is not super-Gaussian",
                    wanted="super-Gaussian sites",
                    cure="Use an engine that does not need the super-Gaussian bound.",
                )
        solver = self.inner or IRLS(tolerance=self.tolerance**2, max_iterations=500)
        start = warm_start or cold_start(model)
        u, z = start.mean, start.z
        noise_seed = int(rng.integers(2**63))
        trace: list[float] = []
        marginals: Variances | None = None
        status, matvecs, change, loop = Status.MAX_ITERATIONS, 0, np.inf, 0
        for loop in range(1, self.outer_iterations + 1):
            problem = PenalisedProblem.smoothed(model, z)
            u, inner = solver(problem, u)
            coefficients = model.analysis_coefficients(u)
            pi = problem.site_precisions(coefficients)
            precision = PosteriorPrecision(model.measurement, model.blocks, pi)
            marginals = self.variances(
                precision, [b.analysis for b in model.blocks], np.random.default_rng(noise_seed), u, marginals
            )
            matvecs += inner.matvecs + marginals.convergence.matvecs
            phi = None
            if marginals.log_determinant is not None:
                powers = problem.site_powers(coefficients)
                arguments = tuple((x + one).astype(x.dtype, copy=False) for x, one in zip(powers, z, strict=True))
                phi = criterion_value(model, u, pi, arguments, marginals.log_determinant)
                trace.append(phi)
            z_new = pooled_variances(model, marginals)
            change = _relative_change(z, z_new)
            z = z_new
            if callback is not None:
                callback(StepInfo(loop, phi, change, inner, marginals.convergence))
            if Status.BREAKDOWN in (inner.status, marginals.convergence.status) or not np.isfinite(change):
                status = Status.BREAKDOWN
                break
            if change < self.tolerance and inner.converged and marginals.convergence.converged:
                status = Status.CONVERGED
                break
        assert marginals is not None  # outer_iterations >= 1
        return GaussianPosterior(
            model=model,
            mean=u,
            precision=precision,
            marginals=marginals,
            convergence=Convergence(status, loop, float(change), matvecs),
            criterion=tuple(trace),
            criterion_kind="none" if not trace else "exact" if marginals.kind == "exact" else "estimate",
        )


def pooled_variances(model: GeneralizedLinearModel, marginals: Variances) -> tuple[Array, ...]:
    """z per site: variances summed over each site's group, kept away from zero."""
    floor = np.finfo(np.float32).tiny
    return tuple(
        np.maximum(block.pooled(values), floor) for block, values in zip(model.blocks, marginals.values, strict=True)
    )


def cold_start(model: GeneralizedLinearModel) -> WarmStart:
    """u = X^H y and z from the sites' own scales."""
    mean = model.back_projection()
    real = mean.real.dtype
    return WarmStart(mean, tuple(np.asarray(b.potential.start_variance, dtype=real) for b in model.blocks))


def _relative_change(old: tuple[Array, ...], new: tuple[Array, ...]) -> float:
    changes, count = 0.0, 0
    for a, b in zip(old, new, strict=True):
        a = np.broadcast_to(a, b.shape)
        changes += float(np.sum(2 * np.abs(b - a) / (a + b), dtype=np.float64))
        count += b.size
    return changes / count
