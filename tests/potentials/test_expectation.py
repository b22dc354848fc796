"""E log t under a Gaussian: closed forms against quadrature, derivatives against differences, both against sums."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.integrate
import scipy.special

import mri_design as md
from mri_design.potentials import SuperGaussian, line_expectation, radial_expectation

LINE = [
    md.Gaussian(1.7),
    md.Laplace(0.8),
    md.Logistic(1, 1.3),
    md.Logistic(-1, 0.4),
    md.Poisson(3, 0.6),
    md.Poisson(0),
    md.Hinge(1.0, 1.3),
    md.Hinge(-1.0, 0.4),
    md.Sech2(1.1),
    md.StudentT(2.1, 1.4),
    md.ExponentialPower(0.7, 1.2),
    md.Tilted(md.Laplace(0.8), -0.6),
    md.Tilted(md.Logistic(1, 1.3), 0.3),
    md.PositiveMixture([0.4, 1.0], [md.Gaussian(0.3), md.Laplace(2.0)]),
    md.ShiftedMixture([0.5, 0.5], [md.Laplace(3.0), md.Gaussian(1.0)], [-1.0, 2.0]),
]
COARSE = (md.PositiveMixture, md.ShiftedMixture)  # whose parts take over from each other where no break is
EVEN = [md.Gaussian(1.7), md.Laplace(0.8), md.Sech2(1.1), md.StudentT(2.1, 1.4), md.ExponentialPower(1.3, 0.9)]


def name(site: object) -> str:
    return type(site).__name__


@pytest.mark.parametrize("site", LINE, ids=name)
@pytest.mark.parametrize(("mean", "variance"), [(0.7, 0.04), (-2.0, 3.0), (1.5, 40.0)])
def test_the_value_is_the_integral(site: SuperGaussian, mean: float, variance: float) -> None:
    sd = np.sqrt(variance)

    def integrand(s: float) -> float:
        return float(site.log_t(np.array(s)) * np.exp(-0.5 * ((s - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi)))

    edges = [mean - 18 * sd, *sorted({b for b in site.breaks if abs(b - mean) < 18 * sd}), mean + 18 * sd]
    parts = [scipy.integrate.quad(integrand, a, b, epsabs=1e-12, epsrel=1e-12, limit=400) for a, b in pairwise(edges)]
    total = sum(part[0] for part in parts)
    got = site.expected_log_t(np.array(mean), np.array(variance))
    assert float(got.value) == pytest.approx(total, rel=1e-4 if isinstance(site, COARSE) else 1e-9, abs=1e-10)


@pytest.mark.parametrize("site", LINE, ids=name)
def test_the_derivatives_are_those_of_the_value_and_of_the_integral(site: SuperGaussian) -> None:
    mean, variance = np.array([-1.4, 0.0, 0.3, 2.2]), np.array([0.5, 1.3, 0.02, 6.0])
    got = site.expected_log_t(mean, variance)
    rough = 1e-4 if isinstance(site, COARSE) else 1e-5
    h = 1e-4 * np.sqrt(variance)
    up, down = (site.expected_log_t(mean + one, variance).value for one in (h, -h))
    np.testing.assert_allclose(got.d_mean, (up - down) / (2 * h), rtol=rough, atol=1e-6)
    k = 1e-4 * variance
    up, down = (site.expected_log_t(mean, variance + one).value for one in (k, -k))
    np.testing.assert_allclose(got.d_variance, (up - down) / (2 * k), rtol=rough, atol=1e-6)
    again = line_expectation(site.log_t, site.dlog_t, mean, variance, site.breaks)
    for closed, summed in zip(vars(got).values(), vars(again).values(), strict=True):
        np.testing.assert_allclose(closed, summed, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("site", LINE, ids=name)
def test_the_derivatives_of_log_t_which_a_sharp_gaussian_gives(site: SuperGaussian) -> None:
    s = np.array([-2.3, -0.4, 0.31, 1.7, 6.0])
    h = 1e-5
    np.testing.assert_allclose(site.dlog_t(s), (site.log_t(s + h) - site.log_t(s - h)) / (2 * h), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        site.d2log_t(s), (site.dlog_t(s + h) - site.dlog_t(s - h)) / (2 * h), rtol=1e-5, atol=1e-7
    )
    s = np.array([-1.6, 0.45, 3.1])
    got = site.expected_log_t(s, np.full(3, 1e-12))
    np.testing.assert_allclose(got.value, site.log_t(s), rtol=1e-9)
    np.testing.assert_allclose(got.d_mean, site.dlog_t(s), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(2 * got.d_variance, site.d2log_t(s), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dimensions", [2, 5])
@pytest.mark.parametrize("site", EVEN, ids=name)
def test_moduli_against_draws_and_against_the_laplacian(site: SuperGaussian, dimensions: int) -> None:
    rng = np.random.default_rng(3)
    half = rng.standard_normal((20_000, dimensions))
    draws = np.concatenate([half, -half])
    for mean, variance in [(0.0, 1.0), (1.5, 0.3), (4.0, 2.0)]:
        s = draws * np.sqrt(variance)
        s[:, 0] += mean
        x = np.sum(s**2, axis=1)
        got = site.expected_log_t(np.array(mean), np.array(variance), dimensions)
        assert float(got.value) == pytest.approx(site.g(x).mean(), abs=6 * site.g(x).std() / np.sqrt(len(x)))
        slopes = 2 * site.dg(x)
        one = slopes * s[:, 0]
        assert float(got.d_mean) == pytest.approx(one.mean(), abs=6 * one.std() / np.sqrt(len(x)) + 1e-12)
        laplacian = dimensions * slopes + 4 * x * site.d2g(x)
        error = 6 * laplacian.std() / np.sqrt(len(x)) + 1e-12
        assert 2 * float(got.d_variance) == pytest.approx(laplacian.mean(), abs=error)


@pytest.mark.parametrize("dimensions", [2, 7])
@pytest.mark.parametrize("site", [md.Gaussian(1.7), md.Laplace(0.8)], ids=name)
def test_closed_forms_on_moduli(site: SuperGaussian, dimensions: int) -> None:
    modulus = np.array([0.0, 1e-3, 0.4, 3.0, 60.0, 1e3])[:, None]
    variance = np.array([1e-6, 0.01, 1.0, 50.0])
    got = site.expected_log_t(modulus, variance, dimensions)
    summed = radial_expectation(site.g, site.dg, modulus, variance, dimensions)
    for closed, other in zip(vars(got).values(), vars(summed).values(), strict=True):
        np.testing.assert_allclose(np.broadcast_to(closed, other.shape), other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("sd", [0.2, 0.999, 1.0, 54.0, 300.0])
def test_the_logistic_expectation_holds_at_every_width(sd: float) -> None:
    for mean in (-30.0, 0.0, 2.5, 90.0):
        site = md.Logistic(-1)  # -log(1 + e^s)
        fine = mean + sd * np.linspace(-12, 12, 200_001)
        mass = np.exp(-0.5 * ((fine - mean) / sd) ** 2) * (24 / 200_000) / np.sqrt(2 * np.pi)
        got = site.expected_log_t(np.array(mean), np.array(sd**2))
        sig = scipy.special.expit(fine)
        assert float(got.value) == pytest.approx(-mass @ np.logaddexp(0, fine), rel=1e-10)
        assert float(got.d_mean) == pytest.approx(-mass @ sig, rel=1e-9, abs=1e-14)
        assert float(got.d_variance) == pytest.approx(-0.5 * mass @ (sig * (1 - sig)), rel=1e-9, abs=1e-14)


def test_counts_and_labels_add_up_to_one() -> None:
    s = np.array([-0.5, 0.9])
    total = sum(np.exp(md.Poisson(y, 2.5).log_t(s)) for y in range(80))
    np.testing.assert_allclose(total, 1, rtol=1e-12)
    np.testing.assert_allclose(sum(np.exp(md.Logistic(c, 0.7).log_t(s)) for c in (-1.0, 1.0)), 1)
    one = md.Poisson([1, 4], [0.5, 2.0]).at((1,), (2,))
    assert float(one.log_t(np.array(0.3))) == pytest.approx(float(md.Poisson(4, 2.0).log_t(np.array(0.3))))
