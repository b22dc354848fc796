"""Settings that leave no error but rounding."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import mri_design as md
from mri_design.estimation import IRLS
from mri_design.sites import (
    ExponentialPower,
    Gaussian,
    Generic,
    Laplace,
    Logistic,
    PositiveMixture,
    Sech2,
    StudentT,
    SuperGaussian,
    Tilted,
)
from mri_design.variances import Exact


def charbonnier(scale: float) -> SuperGaussian:
    """log t = -sqrt(1 + tau^2 x), as a user would give it."""
    square = scale**2
    return Generic(
        lambda x: -np.sqrt(1 + square * x),
        lambda x: -0.5 * square / np.sqrt(1 + square * x),
        lambda x: 0.25 * square**2 * (1 + square * x) ** -1.5,
    )


SITES = {
    "Laplace": Laplace,
    "Student-t": lambda scale: StudentT(3.0, scale**2),
    "Gaussian": lambda scale: Gaussian(scale**2),
    "sech^2": Sech2,
    "power 1.5": lambda scale: ExponentialPower(1.5, scale),
    "power 0.6": lambda scale: ExponentialPower(0.6, scale),
    "mixture": lambda scale: PositiveMixture([0.5, 1.5], [Laplace(2 * scale), Laplace(0.2 * scale)]),
    "own": charbonnier,
    "logistic": lambda scale: Logistic(1.0, scale),
    "tilted": lambda scale: Tilted(Laplace(scale), 0.3 * scale),
}


@pytest.fixture(scope="session")
def accurate() -> md.DoubleLoop:
    """Exact variances and inner problems solved to rounding."""
    inner = IRLS(tolerance=1e-12, max_iterations=200, solver_tolerance=1e-2, solver_iterations=200)
    return md.DoubleLoop(Exact(), inner, outer_iterations=40, tolerance=1e-7)


@pytest.fixture(scope="session")
def settled(tiny_model, accurate):
    """name -> the converged posterior of that tiny model with its default Laplace sites, inferred once."""
    return cache(lambda name: accurate.infer(tiny_model(name), np.random.default_rng(0)))


def integrated(model: md.GeneralizedLinearModel) -> float:
    """log of the integral of N(y | X u, sigma^2 I) prod t(s) over one or two real unknowns, by Gauss-Legendre."""
    X, sigma2 = model.measurement, model.noise_variance
    # Panels shrink towards zero, where single sites have their corner.
    ends = np.array([-8, -5, -3, -2, -1, -0.5, -0.2, 0, 0.2, 0.5, 1, 2, 3, 5, 8])
    nodes, weights = np.polynomial.legendre.leggauss(24)
    where = np.concatenate([(b - a) / 2 * nodes + (a + b) / 2 for a, b in pairwise(ends)])
    mass = np.concatenate([(b - a) / 2 * weights for a, b in pairwise(ends)])
    if X.in_size == 1:
        u, volume = where[:, None], mass
    else:
        first, second = np.meshgrid(where, where, indexing="ij")
        u = np.stack([first, second], axis=-1).reshape(-1, 2)
        u = u[:, :1] + 1j * u[:, 1:] if X.in_complex else u
        volume = np.outer(mass, mass).ravel()
    value = -0.5 * np.sum(np.abs(model.data - X(u)) ** 2, axis=-1) / sigma2
    value -= 0.5 * X.out_size * np.log(2 * np.pi * sigma2)
    for block in model.blocks:
        s = block.coefficients(u) / np.sqrt(sigma2)
        value += (block.potential.g(np.abs(s) ** 2) if np.iscomplexobj(s) else block.potential.log_t(s)).sum(axis=-1)
    return float(value.max() + np.log(volume @ np.exp(value - value.max())))
