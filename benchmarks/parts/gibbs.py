"""Exact draws of the posterior under Laplace sites on complex coefficients, by Gibbs sampling, on small grids."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.operators.base import Array, LinearOperator
from mri_design.potentials.priors import Laplace


def laplace_draws(
    model: GeneralizedLinearModel, start: Array, sweeps: int, burn_in: int, rng: np.random.Generator
) -> Array:
    """Draws of u, (sweep, ky, kx), from P(u | y) itself.

    A site exp(-a |s|) on a complex coefficient is a mixture over the variance v of complex Gaussians. Given s, 1 / v is
    inverse Gaussian with mean a / |s| and shape a^2; given all v, u is Gaussian (Park and Casella 2008, section 2, and
    Kyung et al. 2010, section 3.2, for groups of coefficients, here real and imaginary part).

    Parameters
    ----------
    model : GeneralizedLinearModel
        Whose measurement and blocks are linear on complex images, with Laplace sites on moduli.
    start : complex array, shape (ky, kx)
        Where the chain begins.
    sweeps, burn_in : int
        Draws, and those before them that are thrown away.
    rng : numpy Generator
        Source of randomness.
    """
    x = complex_matrix(model.measurement)
    blocks = [complex_matrix(block.analysis) for block in model.blocks]
    b, variance = np.concatenate(blocks), model.noise_variance
    rates = []
    for block, matrix in zip(model.blocks, blocks, strict=True):
        assert isinstance(block.potential, Laplace) and not block.group_axes
        scales = np.broadcast_to(block.potential.scale, block.analysis.out_shape).ravel()
        rates.append(scales[: len(matrix)] / np.sqrt(variance))
    rate = np.concatenate(rates)
    gram, back = x.conj().T @ x, x.conj().T @ model.data.ravel()
    u, drawn = start.ravel().astype(complex), []
    for sweep in range(burn_in + sweeps):
        size = np.maximum(np.abs(b @ u), 1e-12 * np.abs(u).max())
        precisions = variance * rng.wald(rate / size, rate**2)
        factor = cholesky(gram + (b.conj().T * precisions) @ b, lower=False)
        mean = solve_triangular(factor, solve_triangular(factor, back, trans="C"))
        noise = rng.normal(size=len(u)) + 1j * rng.normal(size=len(u))
        u = mean + np.sqrt(variance) * solve_triangular(factor, noise)
        if sweep >= burn_in:
            drawn.append(u.reshape(start.shape))
    return np.array(drawn)


def complex_matrix(operator: LinearOperator) -> Array:
    """The matrix of an operator that is linear on complex images."""
    parts = operator.to_dense_real()
    rows, columns = parts.shape[0] // 2, parts.shape[1] // 2
    real, imaginary = parts[:rows, :columns], parts[rows:, :columns]
    assert np.allclose(parts[:rows, columns:], -imaginary) and np.allclose(parts[rows:, columns:], real)
    return np.asarray(real + 1j * imaginary)
