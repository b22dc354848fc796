"""The variational criterion phi and the bound on the log evidence."""

from __future__ import annotations

import numpy as np

from mri_design.errors import require_numbers
from mri_design.estimation.penalised import PenalisedProblem
from mri_design.model.generalized_linear import GeneralizedLinearModel, require_model
from mri_design.operators.base import Array


def dual_arguments(model: GeneralizedLinearModel, u: Array, z: tuple[Array, ...]) -> tuple[Array, ...]:
    """x + z per block, x = |s|^2 / sigma^2 at u: where each site's -2 g' is its best pi beside the tangent z."""
    powers = PenalisedProblem(model, ()).site_powers(model.analysis_coefficients(u))
    return tuple((x + z_j).astype(x.dtype, copy=False) for x, z_j in zip(powers, z, strict=True))


def criterion_value(
    model: GeneralizedLinearModel,
    u: Array,
    site_precisions: tuple[Array, ...],
    site_arguments: tuple[Array, ...],
    log_determinant: float,
) -> float:
    """phi(gamma) = log|A| + h(gamma) + R(u, gamma), R = (||y - X u||^2 + s^H diag(pi) s - 2 sigma b^T s) / sigma^2.

    Parameters
    ----------
    u : array
        Minimiser of R for these site precisions (the inner problem's solution).
    site_precisions, site_arguments : tuples of float arrays
        pi and the argument at which -2 g' takes it (x + z), per block.
    log_determinant : float
        log|A| over the real unknowns; phi is an estimate where this is one.

    Notes
    -----
    TR-175 section 4; h is taken in closed form, -(t pi + 2 g(t)) at t = x + z.
    """
    sigma2 = model.noise_variance
    residual = model.data - model.measurement(u)
    total = log_determinant + float(np.sum(np.abs(residual) ** 2, dtype=np.float64)) / sigma2
    coefficients = model.analysis_coefficients(u)
    for block, s, pi, t in zip(model.blocks, coefficients, site_precisions, site_arguments, strict=True):
        weighted = np.sum(pi * block.site_power(s), dtype=np.float64) / sigma2
        total += float(weighted + np.sum(block.represented.h_at_optimum(t), dtype=np.float64))
    return total - 2 * model.odd_part(coefficients)


def evidence_bound(model: GeneralizedLinearModel, criterion: float) -> float:
    """Lower bound on log P(y) for unnormalised sites: (n - m) / 2 log(2 pi sigma^2) - phi / 2 + log|W|.

    ``n`` and ``m`` count real unknowns and real measurements; W is 1 unless the data were whitened
    (`GeneralizedLinearModel.log_whitening`).

    Raises
    ------
    InputError
        For anything but a model and a finite number.
    """
    require_model(model)
    require_numbers(criterion=criterion, least=-np.inf)
    n, m = model.measurement.in_size, model.measurement.out_size
    return 0.5 * (n - m) * float(np.log(2 * np.pi * model.noise_variance)) - 0.5 * criterion + model.log_whitening
