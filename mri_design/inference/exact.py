"""Dense reference inference: every quantity of the double loop by dense linear algebra in double precision."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from mri_design.model import GeneralizedLinearModel, PosteriorPrecision
from mri_design.operators import Array

__all__ = ["exact_criterion", "minimise_exact_criterion"]


def exact_criterion(model: GeneralizedLinearModel, site_precisions: tuple[Array, ...]) -> float:
    """phi(gamma) for any positive gamma, with dense log|A| and the exact minimiser u.

    Supported potentials are those with ``h`` known by numerical minimisation over x: h(gamma) = -min_x (x / gamma +
    2 g(x)), found here by a bounded scalar search, independent of the closed form the engine uses.
    """
    precision = PosteriorPrecision(model.measurement, model.blocks, site_precisions)
    a = precision.dense_real()
    rhs = model.back_projection().ravel()
    real_rhs = np.concatenate([rhs.real, rhs.imag]) if model.measurement.in_complex else rhs.real
    solution = np.linalg.solve(a, real_rhs)
    energy = float(np.sum(np.abs(model.data) ** 2)) - float(real_rhs @ solution)
    h = 0.0
    for block, pi in zip(model.blocks, site_precisions, strict=True):
        sites = np.broadcast_to(pi, block.pooled(np.zeros(block.analysis.out_shape)).shape)
        h += _h_by_search(block.potential, sites)
    return float(np.linalg.slogdet(a)[1]) + h + energy / model.noise_variance


def _h_by_search(potential: object, pi: Array) -> float:
    """Sum of h(1 / pi) = -min_{x >= 0} (x pi + 2 g(x)) over sites, by golden-section search on log x."""
    low, high = np.full(pi.shape, -60.0), np.full(pi.shape, 60.0)
    ratio = (np.sqrt(5) - 1) / 2

    def value(log_x: Array) -> Array:
        x = np.exp(log_x)
        return x * pi + 2 * potential.g(x)  # type: ignore[attr-defined]

    for _ in range(200):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        smaller = value(left) < value(right)
        high = np.where(smaller, right, high)
        low = np.where(smaller, low, left)
    return -float(np.sum(value(0.5 * (low + high))))


def minimise_exact_criterion(
    model: GeneralizedLinearModel, start: tuple[Array, ...]
) -> tuple[float, tuple[Array, ...]]:
    """Minimum of the exact criterion over log pi by a generic quasi-Newton method (tiny models only).

    Returns
    -------
    phi : float
        The minimum found.
    site_precisions : tuple of arrays
        Where it was found.
    """
    shapes = [p.shape for p in start]
    cuts = np.cumsum([p.size for p in start])[:-1]

    def unpack(flat: Array) -> tuple[Array, ...]:
        return tuple(np.exp(part).reshape(shape) for part, shape in zip(np.split(flat, cuts), shapes, strict=True))

    flat_start = np.log(np.concatenate([p.ravel() for p in start]))
    result = scipy.optimize.minimize(
        lambda flat: exact_criterion(model, unpack(flat)),
        flat_start,
        method="L-BFGS-B",
        options={"maxiter": 500, "maxfun": 200000, "ftol": 1e-15, "gtol": 1e-8},
    )
    return float(result.fun), unpack(result.x)
