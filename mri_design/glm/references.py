"""Dense references: the criterion and the variational Gaussian, without the closed forms of the engines.

That of the variational Gaussian minimises the same bound over other parameters by a generic method, and ends in the
optimum of `VariationalGaussian` and `DecoupledGaussian`. Both are dense and slow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.optimize

from mri_design.glm.dense import DenseModel, PriorAndSites
from mri_design.inference.base import Engine, StepInfo, WarmStart, beside_gaussian
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.potentials.base import SuperGaussian
from mri_design.status import Convergence, Status

Sites = tuple[Array, ...]


def exact_criterion(model: GeneralizedLinearModel, site_precisions: Sites) -> float:
    """phi(gamma) for any positive gamma, with dense log|A| and the exact minimiser u.

    Parameters
    ----------
    site_precisions : tuple of float arrays
        pi = 1 / gamma per block, broadcastable to the block's sites.

    Notes
    -----
    h(gamma) = -min over x of (x / gamma + 2 g(x)) comes from a search over x that uses g alone.
    """
    return _value_and_gradient(DenseModel.of(model), site_precisions)[0]


def minimise_exact_criterion(model: GeneralizedLinearModel, start: Sites) -> tuple[float, Sites]:
    """Minimum of the exact criterion over log pi by a generic quasi-Newton method (tiny models only).

    Returns
    -------
    phi : float
        The minimum found; a local one for sites that are not log-concave.
    site_precisions : tuple of arrays
        Where it was found.
    """
    dense = DenseModel.of(model)
    shapes = [block.site_shape for block in model.blocks]
    cuts = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]

    def unpack(flat: Array) -> Sites:
        return tuple(np.exp(part).reshape(shape) for part, shape in zip(np.split(flat, cuts), shapes, strict=True))

    def over_log_pi(flat: Array) -> tuple[float, Array]:
        value, gradient = _value_and_gradient(dense, unpack(flat))
        return value, np.concatenate([g.ravel() for g in gradient]) * np.exp(flat)

    full = [np.broadcast_to(p, shape) for p, shape in zip(start, shapes, strict=True)]
    result = scipy.optimize.minimize(
        over_log_pi,
        np.log(np.concatenate([p.ravel() for p in full])),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 20000, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-9},
    )
    return float(result.fun), unpack(result.x)


def _value_and_gradient(dense: DenseModel, site_precisions: Sites) -> tuple[float, Sites]:
    """phi and d phi / d pi = z + |s|^2 / sigma^2 - x, with x where h(1 / pi) is attained."""
    sigma = np.sqrt(dense.noise_variance)
    pis = [np.broadcast_to(p, b.site_shape) for p, b in zip(site_precisions, dense.blocks, strict=True)]
    A, rhs, constant = dense.X.T @ dense.X, dense.X.T @ dense.y, float(dense.y @ dense.y)
    for B, site, pi, offset, shift in zip(
        dense.analyses, dense.site_of_row, pis, dense.offsets, dense.shifts, strict=True
    ):
        row_pi = pi.ravel()[site]
        A = A + B.T @ (row_pi[:, None] * B)
        rhs = rhs + B.T @ (row_pi * offset + sigma * shift)
        constant += float(offset @ (row_pi * offset) + 2 * sigma * shift @ offset)
    covariance = np.linalg.inv(A)
    u = covariance @ rhs
    total = float(np.linalg.slogdet(A)[1]) + (constant - float(rhs @ u)) / dense.noise_variance
    gradient = []
    for block, B, site, pi, offset in zip(
        dense.blocks, dense.analyses, dense.site_of_row, pis, dense.offsets, strict=True
    ):
        x, h = _dual(block.represented, pi)
        spread = np.einsum("ij,ij->i", B @ covariance, B) + (B @ u - offset) ** 2 / dense.noise_variance
        gradient.append(np.bincount(site, weights=spread, minlength=pi.size).reshape(pi.shape) - x)
        total += float(np.sum(h))
    return total, tuple(gradient)


def _dual(potential: SuperGaussian, pi: Array) -> tuple[Array, Array]:
    """x >= 0 that minimises x pi + 2 g(x), and h(1 / pi) = minus the minimum: golden-section search on log x."""
    low, high = np.full(pi.shape, -60.0), np.full(pi.shape, 60.0)
    ratio = (np.sqrt(5) - 1) / 2

    def value(log_x: Array) -> Array:
        x = np.exp(log_x)
        return x * pi + 2 * potential.g(x)

    for _ in range(80):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        smaller = value(left) < value(right)
        high = np.where(smaller, right, high)
        low = np.where(smaller, low, left)
    middle = 0.5 * (low + high)
    return np.exp(middle), -value(middle)


@dataclass(frozen=True)
class CholeskyGaussian(Engine, named=False):
    """The bound over the mean and the Cholesky factor of the covariance (Challis & Barber 2011), by L-BFGS.

    No `LoopEngine`, since the loop belongs to SciPy, which calls back but cannot be stepped. Nothing is random, and a
    warm start is not used.

    Parameters
    ----------
    iterations : int
        Of L-BFGS at most: (n + n (n + 1) / 2) unknowns, the bound jointly concave in them for log-concave sites.
    tolerance : float
        Largest derivative of phi / 2 at the end.
    """

    iterations: int = 2000
    tolerance: float = 1e-6

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
        if not split.parts:
            return split.gaussian()
        G, n = split.rows, len(split.centre)
        lower = np.tril_indices(n)
        on_diagonal = lower[0] == lower[1]
        trace: list[float] = []

        def unpack(flat: Array) -> tuple[Array, Array]:
            root = np.zeros((n, n))
            root[lower] = flat[n:]
            return flat[:n], root

        def half_phi(flat: Array) -> tuple[float, Array]:
            """phi / 2, or 1e50 where it overflows, so that the line search shortens its step."""
            w, root = unpack(flat)
            spread = G @ root
            value, slope, bend = split.expectation(split.means + G @ w, np.einsum("ij,ij->i", spread, spread))
            diagonal = np.abs(np.diag(root))
            with np.errstate(divide="ignore"):
                total = 0.5 * (w @ w + np.sum(root**2) - n) - np.sum(np.log(diagonal)) - value
            by_root = (root - 2 * G.T @ (bend[:, None] * spread))[lower]
            by_root[on_diagonal] -= 1 / np.diag(root)
            gradient = np.concatenate([w - G.T @ slope, by_root])
            broken = not (np.isfinite(total) and np.isfinite(gradient).all())
            return (1e50, np.zeros_like(gradient)) if broken else (float(total) + 0.5 * split.constant, gradient)

        def note(intermediate_result: scipy.optimize.OptimizeResult) -> None:
            trace.append(2 * float(intermediate_result.fun))
            if callback is not None:
                done = Convergence(Status.CONVERGED, 0, 0.0)
                callback(StepInfo(len(trace), trace[-1], float("nan"), done, done))

        found = scipy.optimize.minimize(
            half_phi,
            np.concatenate([np.zeros(n), np.eye(n)[lower]]),
            jac=True,
            method="L-BFGS-B",
            callback=note,
            options={
                "maxiter": self.iterations,
                "maxfun": 3 * self.iterations,
                "maxcor": 30,
                "ftol": 1e-15,
                "gtol": self.tolerance,
            },
        )
        residual = float(np.max(np.abs(found.jac)))
        stopped = Status.MAX_ITERATIONS if found.nit >= self.iterations else Status.STALLED
        status = Status.CONVERGED if residual <= self.tolerance else stopped
        w, root = unpack(found.x)
        spread = G @ root
        _, _, bend = split.expectation(split.means + G @ w, np.einsum("ij,ij->i", spread, spread))
        criterion = (*trace, 2 * float(found.fun))
        return split.posterior(w, -2 * bend, Convergence(status, int(found.nit), residual), criterion, residual)
