"""Dense reference inference: the criterion, its gradient and its minimum without the engine's closed forms."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from mri_design.inference.dense_model import DenseModel
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.operators.base import Array
from mri_design.potentials.base import SuperGaussian

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
