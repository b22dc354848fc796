"""Dense algebra for small models, and dense references of the criterion and of the best Gaussian.

`DenseBlock` holds sites and their rows as a matrix on (real parts, imaginary parts). `PriorAndSites` splits a model
into its Gaussian part, whitened, and all other sites: with u / sigma = centre + R^-T w and P0 = R R^T the precision of
the Gaussian part, w is N(0, I) under it and the other sites see G w + (B centre - offset / sigma), G = B R^-T.

The references (`exact_criterion`, `minimise_exact_criterion`, `best_gaussian`) minimise over other parameters than the
engines do, by a generic method. They end in the optimum of the double loop, and of `VariationalGaussian` and
`DecoupledGaussian`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
from scipy.linalg import lapack

from mri_design.errors import InputError
from mri_design.inference.base import non_gaussian_blocks
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import GaussianPosterior, PosteriorPrecision
from mri_design.operators.base import Array, LinearOperator
from mri_design.sites.base import SuperGaussian
from mri_design.status import Convergence, Status
from mri_design.variances.base import Exact


@dataclass(frozen=True)
class DenseBlock:
    """A block of sites with its rows as a matrix on (real parts, imaginary parts), one row per real coefficient.

    Parameters
    ----------
    block : SiteBlock
        In the model.
    rows : slice
        Its rows among those of all blocks.
    B : array
        The rows.
    site_of_row : int array
        Site of every row.
    offset, shift : arrays
        Offset and odd part of every row.
    """

    block: SiteBlock
    rows: slice
    B: Array
    site_of_row: Array
    offset: Array
    shift: Array

    def per_row(self, values: Array) -> Array:
        """One value per site as one per row."""
        return np.asarray(np.broadcast_to(values, self.block.site_shape).ravel()[self.site_of_row])

    def expectation(self, mean: Array, variance: Array) -> tuple[float, Array, Array]:
        """sum E log t, and its derivatives in the mean and the variance of every row."""
        count, shape = self.block.sharing, self.block.site_shape
        modulus, spread = mean, variance
        if count > 1:
            sites = int(np.prod(shape))
            modulus = np.sqrt(np.bincount(self.site_of_row, weights=mean**2, minlength=sites))
            spread = np.bincount(self.site_of_row, weights=variance, minlength=sites) / count
        expected = self.block.potential.expected_log_t(modulus.reshape(shape), spread.reshape(shape), count)
        along = 1.0 if count == 1 else mean / np.maximum(modulus, 1e-300)[self.site_of_row]
        value = float(np.sum(np.broadcast_to(expected.value, shape)))
        return value, self.per_row(expected.d_mean) * along, self.per_row(expected.d_variance) / count


def dense_blocks(blocks: Sequence[SiteBlock]) -> tuple[DenseBlock, ...]:
    """Blocks of a small model with their rows, which are counted through."""
    made, count = list[DenseBlock](), 0
    for block in blocks:
        site = np.arange(int(np.prod(block.site_shape))).reshape(block.site_shape)
        numbers = np.broadcast_to(site, block.analysis.out_shape).ravel()
        B = block.analysis.to_dense_real()
        made.append(
            DenseBlock(
                block,
                slice(count, count + len(B)),
                B,
                np.tile(numbers, 2) if block.analysis.out_complex else numbers,
                _embedded(block.offset, block.analysis),
                _embedded(np.asarray(block.potential.shift), block.analysis),
            )
        )
        count += len(B)
    return tuple(made)


def dense_data(model: GeneralizedLinearModel) -> tuple[Array, Array]:
    """X and y of a small model on (real parts, imaginary parts)."""
    return model.measurement.to_dense_real(), _embedded(model.data, model.measurement)


def _embedded(values: Array | None, operator: LinearOperator) -> Array:
    """One value per output of an operator as real parts, then imaginary parts."""
    full = np.broadcast_to(0.0 if values is None else values, operator.out_shape).ravel()
    return np.concatenate([full.real, full.imag]) if operator.out_complex else full.real


def as_vector(image: Array) -> Array:
    """(real parts, imaginary parts) of an image."""
    flat = np.asarray(image).ravel()
    return np.concatenate([flat.real, flat.imag]) if np.iscomplexobj(flat) else flat.astype(float)


def as_image(theta: Array, model: GeneralizedLinearModel) -> Array:
    """The image of a vector (real parts, imaginary parts)."""
    if not model.measurement.in_complex:
        return theta.reshape(model.image_shape)
    half = len(theta) // 2
    return (theta[:half] + 1j * theta[half:]).reshape(model.image_shape)


NEGLIGIBLE = 1e-6
"""Fraction of a standard deviation below which a mean counts as zero."""


def proper_factor(P: Array) -> Any:
    """Lower Cholesky factor of a precision, as `scipy.linalg.cho_solve` takes it.

    Raises
    ------
    InputError
        Where P is not positive definite, also where rounding alone makes it look so, or not finite.
    """
    matrix = np.array(P.T, order="F")
    norm = lapack.dlange("1", matrix)
    try:
        factor = scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError as error:
        raise undetermined() from error
    if not lapack.dpocon(factor[0], norm, uplo="L")[0] >= np.finfo(float).eps:  # NaN where P is not finite
        raise undetermined()
    return factor


def precision_inverse(P: Array) -> Array:
    """P^-1; as `proper_factor`."""
    inverse = scipy.linalg.cho_solve(proper_factor(P), np.eye(len(P)))
    return np.asarray(0.5 * (inverse + inverse.T))


def resolution(P: Array) -> float:
    """A millionth of the norm that deviations have under the precision P: smaller means count as zero."""
    return NEGLIGIBLE * len(P) / float(np.sqrt(max(np.trace(P), np.finfo(float).tiny)))


def undetermined() -> InputError:
    """The error to raise where a chunk's cavity and its sites do not determine theta."""
    return InputError(
        "a chunk and its cavity",
        "a product that is not a proper distribution",
        "a Gaussian part (X and Gaussian blocks) on every direction, or messages that stand for the rest",
        "Add Gaussian sites, or give a warm start: messages then begin as the expansion there.",
    )


@dataclass(frozen=True)
class DualState:
    """Mean and variances of every row at (alpha, lambda), and the pieces that derivatives need.

    Parameters
    ----------
    mean, variance : arrays
        Of s: means - S alpha, diag of the covariance; S = G G^T.
    log_determinant : float
        log|B|, B = I + L^(1/2) S L^(1/2) with L = diag(lambda): log|A| less that of the Gaussian part.
    trace : float
        tr B^-1.
    """

    mean: Array
    variance: Array
    log_determinant: float
    trace: float

    @classmethod
    def of(cls, S: Array, means: Array, alpha: Array, weights: Array) -> DualState:
        """By one Cholesky factorisation, without an inverse of S."""
        root = np.sqrt(weights)
        factor = scipy.linalg.cholesky(np.eye(len(S)) + root[:, None] * S * root, lower=True)
        half = scipy.linalg.solve_triangular(factor, root[:, None] * S, lower=True)
        inverse = scipy.linalg.solve_triangular(factor, np.eye(len(S)), lower=True)
        variance = np.maximum(np.diag(S) - np.einsum("ij,ij->j", half, half), 1e-14 * np.diag(S))
        logarithm = 2 * float(np.sum(np.log(np.diag(factor))))
        return cls(means - S @ alpha, variance, logarithm, float(np.sum(inverse**2)))

    def half_phi(self, split: PriorAndSites, S: Array, alpha: Array) -> tuple[float, Array, Array]:
        """phi / 2 of the Gaussian with these parameters, and the derivatives of sum E log t in mean and variance."""
        value, d_mean, d_variance = split.expectation(self.mean, self.variance)
        divergence = self.log_determinant + self.trace - len(S) + alpha @ S @ alpha
        return 0.5 * (float(divergence) + split.constant) - value, d_mean, d_variance


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
    parts : tuple of DenseBlock
        The blocks that are not Gaussian.
    constant : float
        phi of the Gaussian part alone.
    """

    model: GeneralizedLinearModel
    centre: Array
    root: Array
    rows: Array
    means: Array
    parts: tuple[DenseBlock, ...]
    constant: float

    @classmethod
    def of(cls, model: GeneralizedLinearModel) -> PriorAndSites:
        """Split a small model.

        Raises
        ------
        InputError
            Where the Gaussian part (X and Gaussian sites) leaves a direction undetermined.
        """
        (X, y), sigma = dense_data(model), float(np.sqrt(model.noise_variance))
        precision, linear, constant = X.T @ X, X.T @ y / sigma, float(y @ y) / sigma**2
        parts = dense_blocks(non_gaussian_blocks(model))
        for each in dense_blocks([block for block in model.blocks if block.potential.gaussian_precision is not None]):
            weights = each.per_row(np.asarray(each.block.potential.gaussian_precision))
            precision = precision + each.B.T @ (weights[:, None] * each.B)
            linear = linear + each.B.T @ (weights * each.offset) / sigma
            constant += float(each.offset @ (weights * each.offset)) / sigma**2
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
        B = np.concatenate([np.zeros((0, len(root))), *(part.B for part in parts)])
        offset = np.concatenate([np.zeros(0), *(part.offset for part in parts)])
        G = scipy.linalg.solve_triangular(root, B.T, lower=True).T
        constant += 2 * float(np.sum(np.log(np.diag(root)))) - float(centre @ linear)
        return cls(model, centre, root, G, B @ centre - offset / sigma, parts, constant)

    def expectation(self, mean: Array, variance: Array) -> tuple[float, Array, Array]:
        """sum E log t over all rows at their means and variances, and its derivatives."""
        values, d_mean, d_variance = zip(
            *(part.expectation(mean[part.rows], variance[part.rows]) for part in self.parts), strict=True
        )
        return sum(values), np.concatenate(d_mean), np.concatenate(d_variance)

    def gaussian(self) -> GaussianPosterior:
        """The posterior of a model whose sites are all Gaussian, without iterations."""
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
        parts, pis = iter(self.parts), []
        for block in model.blocks:
            pi = block.potential.gaussian_precision
            if pi is None:
                part, flat = next(parts), np.zeros(int(np.prod(block.site_shape)))
                flat[part.site_of_row] = row_precisions[part.rows]
                pi = flat.reshape(block.site_shape)
            pis.append(np.broadcast_to(pi, block.site_shape))
        precision = PosteriorPrecision(model.measurement, model.blocks, tuple(pis))
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


Sites = tuple[Array, ...]


def exact_criterion(model: GeneralizedLinearModel, site_precisions: Sites) -> float:
    """phi(gamma) for any positive gamma, with dense log|A| and the exact minimiser u (TR-175, Section 2).

    Parameters
    ----------
    site_precisions : tuple of float arrays
        pi = 1 / gamma per block, broadcastable to the block's sites.

    Notes
    -----
    h(gamma) = -min over x of (x / gamma + 2 g(x)) comes from a search over x that uses g alone.
    """
    return _value_and_gradient(model, dense_data(model), dense_blocks(model.blocks), site_precisions)[0]


def minimise_exact_criterion(model: GeneralizedLinearModel, start: Sites) -> tuple[float, Sites]:
    """Minimum of the exact criterion over log pi, by a quasi-Newton method.

    Returns
    -------
    phi : float
        The minimum found; a local one for sites that are not log-concave.
    site_precisions : tuple of arrays
        Where it was found.
    """
    data, blocks = dense_data(model), dense_blocks(model.blocks)
    shapes = [block.site_shape for block in model.blocks]
    cuts = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]

    def unpack(flat: Array) -> Sites:
        return tuple(np.exp(part).reshape(shape) for part, shape in zip(np.split(flat, cuts), shapes, strict=True))

    def over_log_pi(flat: Array) -> tuple[float, Array]:
        value, gradient = _value_and_gradient(model, data, blocks, unpack(flat))
        return value, np.concatenate([g.ravel() for g in gradient]) * np.exp(flat)

    full = [np.broadcast_to(p, shape) for p, shape in zip(start, shapes, strict=True)]
    options = {"maxiter": 5000, "maxfun": 20000, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-9}
    begin = np.log(np.concatenate([p.ravel() for p in full]))
    result = scipy.optimize.minimize(over_log_pi, begin, jac=True, method="L-BFGS-B", options=options)
    return float(result.fun), unpack(result.x)


def _value_and_gradient(
    model: GeneralizedLinearModel, data: tuple[Array, Array], blocks: Sequence[DenseBlock], site_precisions: Sites
) -> tuple[float, Sites]:
    """phi and d phi / d pi = z + |s|^2 / sigma^2 - x, with x where h(1 / pi) is attained."""
    (X, y), sigma = data, float(np.sqrt(model.noise_variance))
    A, rhs, constant = X.T @ X, X.T @ y, float(y @ y)
    for each, pi in zip(blocks, site_precisions, strict=True):
        row_pi = each.per_row(pi)
        A = A + each.B.T @ (row_pi[:, None] * each.B)
        rhs = rhs + each.B.T @ (row_pi * each.offset + sigma * each.shift)
        constant += float(each.offset @ (row_pi * each.offset) + 2 * sigma * each.shift @ each.offset)
    covariance = np.linalg.inv(A)
    u = covariance @ rhs
    total = float(np.linalg.slogdet(A)[1]) + (constant - float(rhs @ u)) / sigma**2
    gradient = []
    for each, pi in zip(blocks, site_precisions, strict=True):
        pi = np.broadcast_to(pi, each.block.site_shape)
        x, h = _dual(each.block.represented, pi)
        spread = np.einsum("ij,ij->i", each.B @ covariance, each.B) + (each.B @ u - each.offset) ** 2 / sigma**2
        gradient.append(np.bincount(each.site_of_row, weights=spread, minlength=pi.size).reshape(pi.shape) - x)
        total += float(np.sum(h))
    return total, tuple(gradient)


def _dual(potential: SuperGaussian, pi: Array) -> tuple[Array, Array]:
    """x >= 0 that minimises x pi + 2 g(x), and h(1 / pi) = minus the minimum: golden-section search on log x."""
    low, high = np.full(pi.shape, -60.0), np.full(pi.shape, 60.0)
    ratio = (np.sqrt(5) - 1) / 2

    def value(log_x: Array) -> Array:
        return np.exp(log_x) * pi + 2 * potential.g(np.exp(log_x))

    for _ in range(80):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        smaller = value(left) < value(right)
        high, low = np.where(smaller, right, high), np.where(smaller, low, left)
    middle = 0.5 * (low + high)
    return np.exp(middle), -value(middle)


def half_phi_of_factor(split: PriorAndSites) -> Callable[[Array], tuple[float, Array]]:
    """phi / 2 and its gradient, over mean and Cholesky factor of the covariance of whitened unknowns.

    Returns
    -------
    callable
        Takes n + n (n + 1) / 2 numbers, the mean and then the factor row by row; 1e50 where phi overflows, so that a
        line search shortens its step.

    Notes
    -----
    Challis & Barber 2011.
    """
    G, n = split.rows, len(split.centre)
    lower = np.tril_indices(n)

    def half_phi(flat: Array) -> tuple[float, Array]:
        w, root = flat[:n], np.zeros((n, n))
        root[lower] = flat[n:]
        spread = G @ root
        value, slope, bend = split.expectation(split.means + G @ w, np.einsum("ij,ij->i", spread, spread))
        with np.errstate(divide="ignore"):
            total = 0.5 * (w @ w + np.sum(root**2) - n) - np.sum(np.log(np.abs(np.diag(root)))) - value
            by_root = root - 2 * G.T @ (bend[:, None] * spread) - np.diag(1 / np.diag(root))
        gradient = np.concatenate([w - G.T @ slope, by_root[lower]])
        broken = not (np.isfinite(total) and np.isfinite(gradient).all())
        return (1e50, np.zeros_like(gradient)) if broken else (float(total) + 0.5 * split.constant, gradient)

    return half_phi


def best_gaussian(model: GeneralizedLinearModel, tolerance: float = 1e-6) -> tuple[Array, float]:
    """The best Gaussian over its mean and the Cholesky factor of its covariance (Challis & Barber 2011), by L-BFGS.

    Parameters
    ----------
    tolerance : float
        Largest derivative of phi / 2 at the end.

    Returns
    -------
    mean : array
        Shape of the model's image.
    phi : float
        The criterion, jointly convex in the n + n (n + 1) / 2 unknowns for log-concave sites.
    """
    split = PriorAndSites.of(model)
    n = len(split.centre)
    options = {"maxiter": 2000, "maxfun": 6000, "maxcor": 30, "ftol": 1e-15, "gtol": tolerance}
    begin = np.concatenate([np.zeros(n), np.eye(n)[np.tril_indices(n)]])
    found = scipy.optimize.minimize(half_phi_of_factor(split), begin, jac=True, method="L-BFGS-B", options=options)
    unknowns = split.centre + np.linalg.solve(split.root.T, found.x[:n])
    return as_image(np.sqrt(model.noise_variance) * unknowns, model), 2 * float(found.fun)
