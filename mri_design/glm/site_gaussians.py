"""Site Gaussians exp(Re<eta, s> - pi |s|^2 / 2), the state that they make, and the ones a variational Gaussian wants.

With s in units of sigma A = X^H X + B^H diag(pi) B, and the mean is A^-1 (X^H y + B^H (pi offset + sigma eta)).

For dense algebra (`PriorAndSites`) a model is split into its Gaussian part, whitened, and all other sites. With
u / sigma = centre + R^-T w and P0 = R R^T the precision of the Gaussian part, w is N(0, I) under it and the other sites
see G w + (B centre - offset / sigma), G = B R^-T.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from mri_design.errors import InputError
from mri_design.glm.dense_model import DenseModel, as_image
from mri_design.inference.base import WarmStart, cold_start, pooled_variances
from mri_design.krylov.conjugate_gradients import conjugate_gradients, squared_norm
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import GaussianPosterior, Variances
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.status import Convergence, Status
from mri_design.variances.base import VarianceEstimator
from mri_design.variances.exact import Exact


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
    """Mean, variances and wanted sites under given site Gaussians, as `GaussianOracles` finds them.

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
        for block, z, (change, descent) in zip(self.precision.blocks, self.z, self._updates(self.wanted), strict=True):
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
        for j, (change, descent) in enumerate(self._updates(self.wanted)):
            z, later, moved = self.z[j], trial.z[j], trial.coefficients[j] - self.coefficients[j]
            total += float(np.sum(np.real(np.conj(descent) * moved), dtype=np.float64))
            total += 0.5 * float(np.sum(change * (z - later), dtype=np.float64))
        return 2 * total

    def _updates(self, wanted: SiteGaussians) -> Iterator[tuple[Array, Array]]:
        """Per block the changes of pi that the wanted sites ask for, and those of the slopes at E s."""
        pairs = zip(wanted.precisions, self.sites.precisions, wanted.slopes, self.sites.slopes, strict=True)
        for (pi, old_pi, eta, old_eta), s in zip(pairs, self.coefficients, strict=True):
            change = pi - old_pi
            yield change, eta - old_eta - change * s

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
    count = block.sharing
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
        The model that is inferred.
    variances : VarianceEstimator
        The estimator of z.
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


@dataclass(frozen=True)
class DualState:
    """Mean and variances of every row at (alpha, lambda), and the pieces that derivatives need.

    Parameters
    ----------
    mean, variance : arrays
        Of s: means - S alpha, diag of the covariance; S = G G^T.
    covariance : array
        Of all rows.
    log_determinant : float
        log|B|, B = I + L^(1/2) S L^(1/2) with L = diag(lambda): log|A| less that of the Gaussian part.
    trace : float
        tr B^-1.
    """

    mean: Array
    variance: Array
    covariance: Array
    log_determinant: float
    trace: float

    @classmethod
    def of(cls, S: Array, means: Array, alpha: Array, weights: Array) -> DualState:
        """By one Cholesky factorisation, without an inverse of S."""
        root = np.sqrt(weights)
        factor = scipy.linalg.cholesky(np.eye(len(S)) + root[:, None] * S * root, lower=True)
        half = scipy.linalg.solve_triangular(factor, root[:, None] * S, lower=True)
        covariance = S - half.T @ half
        inverse = scipy.linalg.solve_triangular(factor, np.eye(len(S)), lower=True)
        variance = np.maximum(np.diag(covariance), 1e-14 * np.diag(S))
        logarithm = 2 * float(np.sum(np.log(np.diag(factor))))
        return cls(means - S @ alpha, variance, covariance, logarithm, float(np.sum(inverse**2)))

    def half_phi(self, split: PriorAndSites, S: Array, alpha: Array) -> tuple[float, Array, Array]:
        """phi / 2 of the Gaussian with these parameters, and the derivatives of sum E log t in mean and variance."""
        value, d_mean, d_variance = split.expectation(self.mean, self.variance)
        divergence = self.log_determinant + self.trace - len(S) + alpha @ S @ alpha
        return 0.5 * (float(divergence) + split.constant) - value, d_mean, d_variance


@dataclass(frozen=True)
class SitePart:
    """One block of sites that are not Gaussian.

    Parameters
    ----------
    block : SiteBlock
        In the model.
    rows : slice
        Its rows of G.
    site_of_row : int array
        Site of every row.
    """

    block: SiteBlock
    rows: slice
    site_of_row: Array

    def expectation(self, mean: Array, variance: Array) -> tuple[float, Array, Array]:
        """sum E log t, and its derivatives in the mean and the variance of every row."""
        count, sites = self.block.sharing, int(np.prod(self.block.site_shape))
        if count == 1:
            modulus, spread = mean, variance
        else:
            modulus = np.sqrt(np.bincount(self.site_of_row, weights=mean**2, minlength=sites))
            spread = np.bincount(self.site_of_row, weights=variance, minlength=sites) / count
        shape = self.block.site_shape
        expected = self.block.potential.expected_log_t(modulus.reshape(shape), spread.reshape(shape), count)
        value, d_mean, d_variance = (np.broadcast_to(a, shape).ravel() for a in vars(expected).values())
        along = 1.0 if count == 1 else mean / np.maximum(modulus, 1e-300)[self.site_of_row]
        return float(np.sum(value)), d_mean[self.site_of_row] * along, d_variance[self.site_of_row] / count


@dataclass(frozen=True)
class PriorAndSites:
    """The split model, in units of sigma.

    Parameters
    ----------
    model : GeneralizedLinearModel
        As given.
    centre : array
        Mean of the Gaussian part.
    root : array
        R, lower triangular.
    rows : array, shape (rows, n)
        G.
    means : array
        B centre - offset / sigma.
    parts : tuple of SitePart
        The blocks that are not Gaussian.
    constant : float
        phi of the Gaussian part alone.
    """

    model: GeneralizedLinearModel
    centre: Array
    root: Array
    rows: Array
    means: Array
    parts: tuple[SitePart, ...]
    constant: float

    @classmethod
    def of(cls, model: GeneralizedLinearModel) -> PriorAndSites:
        """Split a small model.

        Raises
        ------
        InputError
            Where the Gaussian part (X and Gaussian sites) leaves a direction undetermined.
        """
        dense, sigma = DenseModel.of(model), float(np.sqrt(model.noise_variance))
        precision, linear = dense.X.T @ dense.X, dense.X.T @ dense.y / sigma
        constant = float(dense.y @ dense.y) / sigma**2
        parts, rows, offsets, count = [], [], [], 0
        numbered = zip(model.blocks, dense.analyses, dense.site_of_row, dense.offsets, strict=True)
        for block, B, site, offset in numbered:
            own = block.potential.gaussian_precision
            if own is not None:
                weights = np.broadcast_to(own, block.site_shape).ravel()[site]
                precision = precision + B.T @ (weights[:, None] * B)
                linear = linear + B.T @ (weights * offset) / sigma
                constant += float(offset @ (weights * offset)) / sigma**2
                continue
            parts.append(SitePart(block, slice(count, count + len(B)), site))
            rows.append(B)
            offsets.append(offset / sigma)
            count += len(B)
        try:
            root = scipy.linalg.cholesky(precision, lower=True)
        except scipy.linalg.LinAlgError as error:
            raise InputError(
                "Gaussian part of the model",
                "X and Gaussian sites that leave a direction undetermined",
                "a proper Gaussian prior",
                "Add Gaussian sites on the unknowns, or infer with VariationalGaussian.",
            ) from error
        centre = scipy.linalg.cho_solve((root, True), linear)
        B = np.concatenate([np.zeros((0, len(root))), *rows])
        G = scipy.linalg.solve_triangular(root, B.T, lower=True).T
        constant += 2 * float(np.sum(np.log(np.diag(root)))) - float(centre @ linear)
        return cls(model, centre, root, G, B @ centre - np.concatenate([np.zeros(0), *offsets]), tuple(parts), constant)

    def expectation(self, mean: Array, variance: Array) -> tuple[float, Array, Array]:
        """sum E log t over all rows at their means and variances, and its derivatives."""
        expectations = [part.expectation(mean[part.rows], variance[part.rows]) for part in self.parts]
        return (
            sum(expectation[0] for expectation in expectations),
            np.concatenate([expectation[1] for expectation in expectations]),
            np.concatenate([expectation[2] for expectation in expectations]),
        )

    def gaussian(self) -> GaussianPosterior:
        """The posterior where all sites are Gaussian: there is nothing to iterate."""
        done = Convergence(Status.CONVERGED, 0, 0.0)
        return self.posterior(np.zeros(len(self.centre)), np.zeros(0), done, (self.constant,), 0.0)

    def posterior(
        self,
        w: Array,
        row_precisions: Array,
        convergence: Convergence,
        criterion: tuple[float, ...],
        stationarity: float,
    ) -> GaussianPosterior:
        """The `GaussianPosterior` with whitened mean w and these site precisions."""
        model, sigma = self.model, float(np.sqrt(self.model.noise_variance))
        flat = sigma * (self.centre + scipy.linalg.solve_triangular(self.root, w, lower=True, trans="T"))
        mean = as_image(flat, model).astype(model.back_projection().dtype)
        by_block = {}
        for part in self.parts:
            sites = int(np.prod(part.block.site_shape))
            pi = np.zeros(sites)
            pi[part.site_of_row] = row_precisions[part.rows]
            by_block[id(part.block)] = pi.reshape(part.block.site_shape)
        pis = tuple(
            by_block[id(block)] if own is None else np.broadcast_to(own, block.site_shape)
            for block in model.blocks
            for own in [block.potential.gaussian_precision]
        )
        precision = PosteriorPrecision(model.measurement, model.blocks, pis)
        marginals = Exact()(precision, [block.analysis for block in model.blocks], np.random.default_rng(0), mean)
        spent = replace(convergence, matvecs=0)
        return GaussianPosterior(
            model,
            mean,
            precision,
            marginals,
            convergence=spent,
            criterion=criterion,
            criterion_kind="exact",
            stationarity=stationarity,
        )
