"""Dense references: the criterion and the best Gaussian, without the closed forms of the engines.

Both are minimised over other parameters than the engines', by a generic method, and end in the optimum of the double
loop, and of `VariationalGaussian` and `DecoupledGaussian`. They are for tiny models.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.optimize

from mri_design.glm.dense import DenseBlock, PriorAndSites, as_image, dense_blocks, dense_data
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.operators.base import Array
from mri_design.sites.base import SuperGaussian

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
    G, n = split.rows, len(split.centre)
    lower = np.tril_indices(n)

    def half_phi(flat: Array) -> tuple[float, Array]:
        """phi / 2, or 1e50 where it overflows, so that the line search shortens its step."""
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

    options = {"maxiter": 2000, "maxfun": 6000, "maxcor": 30, "ftol": 1e-15, "gtol": tolerance}
    begin = np.concatenate([np.zeros(n), np.eye(n)[lower]])
    found = scipy.optimize.minimize(half_phi, begin, jac=True, method="L-BFGS-B", options=options)
    unknowns = split.centre + np.linalg.solve(split.root.T, found.x[:n])
    return as_image(np.sqrt(model.noise_variance) * unknowns, model), 2 * float(found.fun)
