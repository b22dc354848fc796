"""The scalar problems of ADMM: against a fine grid, and each way against the other."""

import numpy as np
import pytest

from mri_design import FiniteDifferences, Gaussian, Identity, Laplace, SiteBlock, StudentT, Tilted
from mri_design.estimation import Smoothed, odd_part, rounded_threshold, shrinkage, shrunken_moduli

SIGMA2 = 0.04
N = 7


def proximal_step(block, penalty, rho, v):
    odd = odd_part(block, SIGMA2, rho, v.real.dtype)
    v = v if odd is None else v + odd
    return v * shrinkage(block, penalty, SIGMA2, rho, block.site_power(v))


@pytest.mark.parametrize(("z", "rho"), [(0.0, 1.0), (1e-6, 0.01), (0.1, 30.0), (5.0, 1.0)])
@pytest.mark.parametrize(
    "site", [Laplace(0.7), Gaussian(0.7), Tilted(Laplace(0.7), 0.3), StudentT(3.0, 0.1)], ids=lambda s: type(s).__name__
)
def test_nothing_on_a_fine_grid_is_lower(site, rho, z):
    block = SiteBlock("entries", Identity((N,), is_complex=False), site)
    penalty = Smoothed(site, np.full(N, z))
    v = np.linspace(-3, 3, N)
    s = proximal_step(block, penalty, rho, v)

    def objective(s: np.ndarray) -> np.ndarray:
        odd = np.sqrt(SIGMA2) * np.asarray(site.shift) * s
        return 0.5 * SIGMA2 * penalty.value(s**2 / SIGMA2) - odd + 0.5 * rho * (s - v) ** 2

    grid = np.linspace(-8, 8, 4001)[:, None] * np.ones(N)
    if isinstance(site, StudentT):  # several minima: only stationary
        grid = s + np.linspace(-1e-4, 1e-4, 21)[:, None]
    assert (objective(s) <= objective(grid).min(axis=0) + 1e-12 * np.abs(objective(s))).all()


@pytest.mark.parametrize("z", [1e-8, 1e-3, 1.0])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_both_ways_to_a_rounded_threshold_agree(z, precision):
    modulus = np.abs(np.random.default_rng(0).standard_normal(500)).astype(precision)
    site = Laplace(2.0)
    general = shrunken_moduli(Smoothed(site, np.asarray(z, dtype=precision)), SIGMA2, 0.5, modulus, 100)
    level, epsilon = np.asarray(2.0 * np.sqrt(SIGMA2) / 0.5, precision), np.asarray(SIGMA2 * z, precision)
    own = modulus * rounded_threshold(level, epsilon, modulus**2)
    assert own.dtype == general.dtype == precision
    np.testing.assert_allclose(own, general, rtol=0, atol=50 * np.finfo(precision).eps)


def test_groups_share_one_factor_and_phases_stay():
    B = FiniteDifferences((4, 3))
    block = SiteBlock("differences", B, Laplace(1.0), (-3,))
    rng = np.random.default_rng(0)
    v = rng.standard_normal(B.out_shape) + 1j * rng.standard_normal(B.out_shape)
    s = proximal_step(block, Smoothed(block.potential, np.full(block.site_shape, 0.1)), 0.3, v)
    factor = (s / v).real
    np.testing.assert_allclose((s / v).imag, 0, atol=1e-15)
    np.testing.assert_allclose(factor[0], factor[1])
    assert ((factor > 0) & (factor < 1)).all()


@pytest.mark.parametrize(
    ("unit", "level", "rounding"), [(1e-11, 0.4, 1e-4), (1.0, 2.0, 0.3), (1e-6, 1e-3, 1e-6), (1e14, 300.0, 30.0)]
)
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_a_rounded_threshold_is_the_same_in_any_unit(unit, level, rounding, precision):
    modulus = np.exp(3 * np.random.default_rng(0).standard_normal(700))
    low, high = np.zeros(700), np.ones(700)
    for _ in range(100):
        share = (low + high) / 2
        above = share * modulus * (1 + level / np.sqrt((share * modulus) ** 2 + rounding**2)) > modulus
        low, high = np.where(above, low, share), np.where(above, share, high)
    sizes = (np.asarray(value, precision) for value in (unit * level, (unit * rounding) ** 2))
    found = rounded_threshold(*sizes, ((unit * modulus) ** 2).astype(precision))
    np.testing.assert_allclose(found, share, rtol=0, atol=100 * np.finfo(precision).eps)


def test_what_is_nothing_stays_nothing():
    powers = np.array([0.0, 1e-38, np.finfo(np.float32).max], np.float32)
    found = rounded_threshold(np.float32(0.5), np.float32(1e-4), powers)
    assert np.isfinite(found).all() and (found * np.sqrt(powers))[0] == 0
    np.testing.assert_allclose(found, [1 / 51, 1 / 51, 1], rtol=1e-5)
