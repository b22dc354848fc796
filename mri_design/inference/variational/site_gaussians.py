"""Site Gaussians exp(Re<eta, s> - pi |s|^2 / 2), the state that they make, and what a variational Gaussian asks for.

With s in units of sigma A = X^H X + B^H diag(pi) B, and the mean is A^-1 (X^H y + B^H (pi offset + sigma eta)).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mri_design.errors import InputError
from mri_design.inference.base import WarmStart, cold_start, pooled_variances
from mri_design.krylov.conjugate_gradients import conjugate_gradients, squared_norm
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.marginals import Variances
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.status import Convergence, Status
from mri_design.variances.base import VarianceEstimator


@dataclass(frozen=True)
class SiteGaussians:
    """One pi per site and one eta per coefficient, block by block; eta in units of 1 / sigma, like the slope of log t.

    Parameters
    ----------
    precisions : tuple of float arrays
        pi, of the blocks' site shapes.
    slopes : tuple of arrays
        eta, of the shapes of the coefficients, complex where these are.
    """

    precisions: tuple[Array, ...]
    slopes: tuple[Array, ...]

    def towards(self, other: SiteGaussians, step: float) -> SiteGaussians:
        """The sites a part of the way to others: a natural-gradient step of this size."""
        pairs = ((self.precisions, other.precisions), (self.slopes, other.slopes))
        return SiteGaussians(
            *(tuple((a + step * (b - a)).astype(a.dtype) for a, b in zip(*pair, strict=True)) for pair in pairs)
        )


@dataclass(frozen=True, kw_only=True)
class SiteState:
    """What the oracles say of site Gaussians.

    Parameters
    ----------
    sites : SiteGaussians
        As given.
    mean : array
        Posterior mean.
    precision : PosteriorPrecision
        A.
    marginals : Variances
        Per coefficient.
    wanted : SiteGaussians or None
        The sites that mean and variances ask for; None where E log t is not finite.
    expected_log_sites : float
        sum_i E log t_i.
    solved : Convergence
        Of the mean.
    z : tuple of float arrays
        Variances pooled over groups.
    coefficients : tuple of arrays
        E s in units of sigma.
    """

    sites: SiteGaussians
    mean: Array
    precision: PosteriorPrecision
    marginals: Variances
    wanted: SiteGaussians | None
    expected_log_sites: float
    solved: Convergence
    z: tuple[Array, ...]
    coefficients: tuple[Array, ...]

    @property
    def broken(self) -> bool:
        """Whether the solver or the variances broke down, or sites asked for nothing finite."""
        statuses = (self.solved.status, self.marginals.convergence.status)
        return self.wanted is None or Status.BREAKDOWN in statuses

    @property
    def distance(self) -> float:
        """Mean over sites of |pi_wanted - pi| z + |eta_wanted - eta - (pi_wanted - pi) E s| sqrt z, z pooled."""
        if self.wanted is None:
            return float("inf")
        total, count = 0.0, 0
        for j, z in enumerate(self.z):
            block = self.precision.blocks[j]
            change = self.wanted.precisions[j] - self.sites.precisions[j]
            descent = self.wanted.slopes[j] - self.sites.slopes[j] - change * self.coefficients[j]
            total += float(np.sum(np.abs(change) * z + np.sqrt(block.site_power(descent) * z), dtype=np.float64))
            count += int(np.prod(block.site_shape))
        return total / count

    def predicted_decrease(self, trial: SiteState) -> float:
        """Decrease of phi that is predicted, to first order, for the way to a state a step ahead.

        The gradient of phi / 2 is minus ``descent`` in the mean of s, and half the ``change`` of pi in its variances.
        """
        total = 0.0
        if self.wanted is None or trial.wanted is None:
            return float("nan")
        for j, (z, later) in enumerate(zip(self.z, trial.z, strict=True)):
            change = self.wanted.precisions[j] - self.sites.precisions[j]
            descent = self.wanted.slopes[j] - self.sites.slopes[j] - change * self.coefficients[j]
            moved = trial.coefficients[j] - self.coefficients[j]
            total += float(np.sum(np.real(np.conj(descent) * moved), dtype=np.float64))
            total += 0.5 * float(np.sum(change * (z - later), dtype=np.float64))
        return 2 * total

    @property
    def stationarity(self) -> float:
        """Mean over sites of the relative difference of pi and the pi asked for."""
        if self.wanted is None:
            return float("nan")
        tiny = np.finfo(np.float32).tiny
        parts = [
            (2 * np.abs(a - b) / (np.abs(a) + np.abs(b) + tiny)).ravel()
            for a, b in zip(self.sites.precisions, self.wanted.precisions, strict=True)
        ]
        return float(np.mean(np.concatenate(parts), dtype=np.float64))


def sharing(block: SiteBlock) -> int:
    """Real numbers that share one site of a block."""
    group = int(np.prod([block.analysis.out_shape[axis] for axis in block.group_axes]))
    return group * (2 if block.analysis.out_complex else 1)


def asked_for(
    model: GeneralizedLinearModel,
    coefficients: tuple[Array, ...],
    z: tuple[Array, ...],
    least_precision: float = 0.0,
) -> tuple[SiteGaussians | None, float]:
    """The site Gaussians that stationarity of the bound asks for at E s and z, and sum_i E log t_i.

    Parameters
    ----------
    coefficients : tuple of arrays
        E s in units of sigma.
    z : tuple of float arrays
        Their variances, pooled over groups.
    least_precision : float
        Of pi: zero where it must not become negative, which only sites that are not log-concave ask for.

    Notes
    -----
    pi = -2 d E log t / d variance and eta = d E log t / d mean + pi E s: Khan 2014, equations (9) and (10), with its
    alpha = -d / d mean. On moduli the derivative in the variance is shared by the real numbers, and eta points along
    E s.
    """
    precisions, slopes, total = [], [], 0.0
    for block, s, variance in zip(model.blocks, coefficients, z, strict=True):
        asked = _asked_for(block, s, variance, least_precision)
        if asked is None:
            return None, -np.inf
        precisions.append(asked[0])
        slopes.append(asked[1])
        total += asked[2]
    return SiteGaussians(tuple(precisions), tuple(slopes)), total


def _asked_for(block: SiteBlock, s: Array, z: Array, least_precision: float) -> tuple[Array, Array, float] | None:
    """pi, eta and the sum of E log t of one block; None where an expectation is not finite."""
    count = sharing(block)
    modulus = s if count == 1 else np.sqrt(block.site_power(s))
    expected = block.potential.expected_log_t(modulus, np.broadcast_to(z, block.site_shape) / count, count)
    total = float(np.sum(np.broadcast_to(expected.value, block.site_shape), dtype=np.float64))
    if not (np.isfinite(total) and np.isfinite(expected.d_mean).all() and np.isfinite(expected.d_variance).all()):
        return None
    real = s.real.dtype
    pi = np.broadcast_to(np.maximum(-2 * expected.d_variance / count, least_precision), block.site_shape)
    along = expected.d_mean if count == 1 else s * (expected.d_mean / np.maximum(modulus, np.finfo(real).tiny))
    return pi.astype(real), np.broadcast_to(along + pi * s, s.shape).astype(s.dtype), total


def _bound_at(block: SiteBlock, s: Array, z: Array) -> tuple[Array, Array]:
    """pi and eta of one block, as the Gaussian-shaped lower bounds of its sites have them that touch at |s|^2 + z."""
    at = np.broadcast_to(block.site_power(s) + z, block.site_shape)
    pi = np.broadcast_to(block.represented.site_precision(at), block.site_shape)
    return pi.astype(s.real.dtype), np.broadcast_to(block.potential.shift, s.shape).astype(s.dtype)


def _fitting(model: GeneralizedLinearModel, start: WarmStart) -> WarmStart:
    """The start with its mean X^H y times the number for which it fits y best: one step of steepest descent."""
    expected = model.measurement(start.mean)
    power, explained = squared_norm(start.mean), squared_norm(expected)
    return start if explained == 0 else replace(start, mean=(start.mean * (power / explained)).astype(start.mean.dtype))


def bound_criterion(model: GeneralizedLinearModel, state: SiteState, log_determinant: float) -> float:
    """phi of the variational Gaussian, from which `evidence_bound` makes the bound on log P(y).

    Notes
    -----
    phi = log|A| + |y - X E u|^2 / sigma^2 - sum pi z - 2 sum E log t: E_Q log P(y, u) and the entropy of Q, with
    tr X^H X A^-1 = n - sum pi z. Khan 2014, equation (5), with the constant that it leaves out.
    """
    residual = model.data - model.measurement(state.mean)
    total = log_determinant + float(np.sum(np.abs(residual) ** 2, dtype=np.float64)) / model.noise_variance
    for pi, z in zip(state.sites.precisions, state.marginals.values, strict=True):
        total -= float(np.sum(pi * z, dtype=np.float64))
    return total - 2 * state.expected_log_sites


@dataclass(frozen=True)
class GaussianOracles:
    """The two things every Gaussian engine asks for, mean and marginal variances under site Gaussians.

    Parameters
    ----------
    model : GeneralizedLinearModel
        What is inferred.
    variances : VarianceEstimator
        Who computes z.
    tolerance : float
        Of the conjugate gradients for the mean, relative; not below ten roundings.
    noise_seed : int
        Random estimators see the same noise at every state.
    max_iterations : int
        Of the conjugate gradients.
    least_precision : float
        See `asked_for`.
    """

    model: GeneralizedLinearModel
    variances: VarianceEstimator
    tolerance: float
    noise_seed: int
    max_iterations: int = 2000
    least_precision: float = 0.0

    def start(self, warm: WarmStart | None) -> SiteGaussians:
        """Sites asked for by a warm start's mean and z; from cold, by guesses that need not be near the posterior.

        From cold, super-Gaussian sites begin as the bound that touches at `cold_start`, as in the double loop, whose
        mean is first scaled to what fits the data best, so that it does not depend on the units of X. What they ask
        for falls as fast as a Gaussian with E s, to nothing where the guess is far off; the precision of the bound
        falls slowly, so that A is positive definite whatever the guess. Of the others what they ask for is taken, at
        their own guess of E s where they know one.

        Raises
        ------
        InputError
            Where E log t is not finite there.
        """
        model, sigma = self.model, float(np.sqrt(self.model.noise_variance))
        given = warm or _fitting(model, cold_start(model))
        precisions, slopes = [], []
        for block, s, z in zip(model.blocks, model.analysis_coefficients(given.mean), given.z, strict=True):
            guess, own = (s / sigma).astype(s.dtype, copy=False), block.potential.start_mean
            if warm is None and "g" in block.offers:
                site = _bound_at(block, guess, z)
            else:
                known = None if own is None else np.broadcast_to(own, s.shape).astype(s.dtype)
                guesses = [guess, known] if warm is not None else [guess if known is None else known]
                # pi of zero or more: A is positive definite
                asked = (_asked_for(block, at, z, 0.0) for at in guesses if at is not None)
                finite = next((one for one in asked if one is not None), None)
                if finite is None:
                    raise InputError(
                        "start of the inference",
                        "an expectation of log t that is not finite",
                        "a guess of mean and variances at which every site is",
                        "Give a warm start nearer to the posterior.",
                    )
                site = finite[:2]
            precisions.append(site[0])
            slopes.append(site[1])
        return SiteGaussians(tuple(precisions), tuple(slopes))

    def __call__(self, sites: SiteGaussians, mean: Array, previous: Variances | None) -> SiteState:
        """The state under these sites; ``mean`` and ``previous`` are places to start from."""
        model, sigma = self.model, float(np.sqrt(self.model.noise_variance))
        precision = PosteriorPrecision(model.measurement, model.blocks, sites.precisions)
        rhs = model.back_projection()
        for block, pi, eta in zip(model.blocks, sites.precisions, sites.slopes, strict=True):
            linear = sigma * eta if block.offset is None else sigma * eta + pi * block.offset
            rhs = rhs + block.analysis.adjoint(linear.astype(eta.dtype, copy=False))
        solution, solved = conjugate_gradients(
            precision,
            rhs[None],
            n_axes=model.n_axes,
            start=mean[None].astype(rhs.dtype, copy=False),
            preconditioner=precision.preconditioner,
            tolerance=max(self.tolerance, 10 * float(np.finfo(rhs.dtype).eps)),
            max_iterations=self.max_iterations,
        )
        analyses = [block.analysis for block in model.blocks]
        rng = np.random.default_rng(self.noise_seed)
        marginals = self.variances(precision, analyses, rng, solution[0], previous)
        z = pooled_variances(model, marginals)
        coefficients = tuple((s / sigma).astype(s.dtype) for s in model.analysis_coefficients(solution[0]))
        wanted, total = asked_for(model, coefficients, z, self.least_precision)
        return SiteState(
            sites=sites,
            mean=solution[0],
            precision=precision,
            marginals=marginals,
            wanted=wanted,
            expected_log_sites=total,
            solved=solved,
            z=z,
            coefficients=coefficients,
        )
