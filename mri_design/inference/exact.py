"""Dense reference inference: the criterion, its gradient and its minimum without the engine's closed forms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.optimize

from mri_design.model import GeneralizedLinearModel, SiteBlock
from mri_design.operators import Array
from mri_design.potentials import Potential

__all__ = ["exact_criterion", "minimise_exact_criterion"]

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
    return _DenseModel.of(model).value_and_gradient(site_precisions)[0]


def minimise_exact_criterion(model: GeneralizedLinearModel, start: Sites) -> tuple[float, Sites]:
    """Minimum of the exact criterion over log pi by a generic quasi-Newton method (tiny models only).

    Returns
    -------
    phi : float
        The minimum found; a local one for sites that are not log-concave.
    site_precisions : tuple of arrays
        Where it was found.
    """
    dense = _DenseModel.of(model)
    shapes = [block.site_shape for block in model.blocks]
    cuts = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]

    def unpack(flat: Array) -> Sites:
        return tuple(np.exp(part).reshape(shape) for part, shape in zip(np.split(flat, cuts), shapes, strict=True))

    def over_log_pi(flat: Array) -> tuple[float, Array]:
        value, gradient = dense.value_and_gradient(unpack(flat))
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


@dataclass(frozen=True)
class _DenseModel:
    """A model as real matrices on (real parts, imaginary parts)."""

    X: Array
    y: Array
    noise_variance: float
    blocks: tuple[SiteBlock, ...]
    analyses: tuple[Array, ...]
    site_of_row: tuple[Array, ...]
    offsets: tuple[Array, ...]
    shifts: tuple[Array, ...]

    @classmethod
    def of(cls, model: GeneralizedLinearModel) -> _DenseModel:
        data = np.asarray(model.data).ravel()
        numbers = []
        for block in model.blocks:
            site = np.arange(int(np.prod(block.site_shape))).reshape(block.site_shape)
            rows = np.broadcast_to(site, block.analysis.out_shape).ravel()
            numbers.append(np.tile(rows, 2) if block.analysis.out_complex else rows)
        return cls(
            model.measurement.to_dense_real(),
            np.concatenate([data.real, data.imag]) if model.measurement.out_complex else data.real,
            model.noise_variance,
            model.blocks,
            tuple(block.analysis.to_dense_real() for block in model.blocks),
            tuple(numbers),
            tuple(_embedded(block.offset, block) for block in model.blocks),
            tuple(_embedded(np.asarray(block.potential.shift), block) for block in model.blocks),
        )

    def value_and_gradient(self, site_precisions: Sites) -> tuple[float, Sites]:
        """phi and d phi / d pi = z + |s|^2 / sigma^2 - x, with x where h(1 / pi) is attained."""
        sigma = np.sqrt(self.noise_variance)
        pis = [np.broadcast_to(p, b.site_shape) for p, b in zip(site_precisions, self.blocks, strict=True)]
        A, rhs, constant = self.X.T @ self.X, self.X.T @ self.y, float(self.y @ self.y)
        for B, site, pi, offset, shift in zip(
            self.analyses, self.site_of_row, pis, self.offsets, self.shifts, strict=True
        ):
            row_pi = pi.ravel()[site]
            A = A + B.T @ (row_pi[:, None] * B)
            rhs = rhs + B.T @ (row_pi * offset + sigma * shift)
            constant += float(offset @ (row_pi * offset) + 2 * sigma * shift @ offset)
        covariance = np.linalg.inv(A)
        u = covariance @ rhs
        total = float(np.linalg.slogdet(A)[1]) + (constant - float(rhs @ u)) / self.noise_variance
        gradient = []
        for block, B, site, pi, offset in zip(
            self.blocks, self.analyses, self.site_of_row, pis, self.offsets, strict=True
        ):
            x, h = _dual(block.potential, pi)
            spread = np.einsum("ij,ij->i", B @ covariance, B) + (B @ u - offset) ** 2 / self.noise_variance
            gradient.append(np.bincount(site, weights=spread, minlength=pi.size).reshape(pi.shape) - x)
            total += float(np.sum(h))
        return total, tuple(gradient)


def _embedded(values: Array | None, block: SiteBlock) -> Array:
    """One value per coefficient as real parts, then imaginary parts."""
    full = np.broadcast_to(0.0 if values is None else values, block.analysis.out_shape).ravel()
    return np.concatenate([full.real, full.imag]) if block.analysis.out_complex else full.real


def _dual(potential: Potential, pi: Array) -> tuple[Array, Array]:
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
