"""Penalties of the three algorithms by scalar minimisation that uses h alone (TR-175 A.3), and moving positions."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.optimize

import mri_design as md
from mri_design.inference import dual_argument_of, first_class, hybrid, site_bounds
from mri_design.potentials import SuperGaussian
from tests.inference.conftest import integrated
from tests.slow_cases import slow_case

SITES = {
    "Laplace": md.Laplace(0.8),
    "logistic": md.Logistic(1.0, 1.5),
    "sech^2": md.Sech2(0.7),
    "Gaussian": md.Gaussian(1.3),
    "power 1.4": md.ExponentialPower(1.4, 0.9),
    "power 0.6": md.ExponentialPower(0.6, 0.9),
    "Student-t": md.StudentT(2.5, 0.7),
    "mixture": md.PositiveMixture([0.6, 0.4], [md.Laplace(2.0), md.Laplace(0.3)]),
}
X = np.array([0.0, 0.03, 1.0, 20.0])


def h(site: SuperGaussian, gamma: float) -> float:
    """max over x >= 0 of -x / gamma - 2 g(x), from a grid and a refinement."""

    def negative(log_x: float) -> float:
        x = np.array([np.exp(log_x)])
        return float((x / gamma + 2 * site.g(x))[0])

    grid = np.linspace(-40, 16, 400)
    best = grid[np.argmin(np.exp(grid) / gamma + 2 * site.g(np.exp(grid)))]
    found = scipy.optimize.minimize_scalar(negative, bounds=(best - 0.2, best + 0.2), options={"xatol": 1e-12})
    return -min(float(found.fun), negative(best), float(2 * site.g(np.zeros(1))[0]))


def least(function, grid: np.ndarray) -> tuple[float, float]:
    """Minimum of a function of log gamma, and its place."""
    values = [function(v) for v in grid]
    best, step = grid[int(np.argmin(values))], grid[1] - grid[0]
    found = scipy.optimize.minimize_scalar(function, bounds=(best - step, best + step), options={"xatol": 1e-11})
    return float(found.fun), float(np.exp(found.x))


def block_of(site: SuperGaussian, is_complex: bool = False) -> md.SiteBlock:
    return md.SiteBlock("sites", md.Identity((4,), is_complex=is_complex), site)


@pytest.mark.parametrize("name", [n for n, site in SITES.items() if site.log_concave])
@pytest.mark.parametrize("is_complex", [slow_case(False), True])
def test_first_class_by_scalar_minimisation(name, is_complex):
    site, count = SITES[name], 2 if is_complex else 1
    if is_complex and isinstance(site, md.Logistic):
        pytest.skip("labels need real coefficients")
    t = np.array([0.5, 2.0, 0.1, 3.0])
    pi = site.site_precision(t)
    z = 0.6 * count / pi
    bound = first_class(block_of(site, is_complex), z, t)
    z1 = count * pi - pi**2 * z
    values, precisions = bound.value(X), bound.precision(X)
    references = []
    for i, x in enumerate(X):

        def criterion(log_gamma: float, i: int = i, x: float = x) -> float:
            gamma = np.exp(log_gamma)
            return z1[i] * gamma + h(site, gamma) - count * log_gamma + x / gamma

        # A Gaussian has no wider form than its own.
        top = np.log(1 / site.precision) if isinstance(site, md.Gaussian) else 8.0
        reference, gamma = least(criterion, np.linspace(-8, top - 1e-9, 60))
        references.append(reference)
        assert precisions[i] == pytest.approx(1 / gamma, rel=2e-4)
    differences = values - references
    np.testing.assert_allclose(differences, differences[0] if name == "Laplace" else 0, atol=1e-6)


@pytest.mark.parametrize("name", list(SITES))
@pytest.mark.parametrize("make", [first_class, hybrid])
def test_penalties_are_concave_in_x_and_have_their_slope(name, make):
    site = SITES[name]
    t = np.full(4, 0.9)
    z = 0.5 / site.site_precision(t)
    bound = make(block_of(site), z, t)
    x = np.repeat(np.geomspace(1e-2, 1e2, 30)[:, None], 4, axis=1)
    step = 1e-5 * x
    np.testing.assert_allclose(
        (bound.value(x + step) - bound.value(x - step)) / (2 * step), bound.precision(x), rtol=1e-5
    )
    assert (np.diff(bound.precision(x), axis=0) <= 1e-12).all() and (bound.precision(x) > 0).all()


@pytest.mark.parametrize("name", list(SITES))
def test_hybrid_lies_above_the_second_class_and_touches_where_it_was_developed(name):
    """psi_hybrid(x) + const >= -2 g(x + z) with equality at x + z = t; constants cancel in differences."""
    site, z = SITES[name], np.full(4, 0.4)
    x = np.linspace(0, 8, 41)[:, None] * np.ones(4)
    at = np.array([0.0, 0.5, 2.0, 6.0])
    (bound,) = site_bounds("hybrid", _one(site), (z,), (at + z,))
    excess = bound.value(x) + 2 * site.g(x + z) - (bound.value(at) + 2 * site.g(at + z))
    assert (excess >= -1e-9).all()
    np.testing.assert_allclose(bound.precision(at), site.site_precision(at + z), rtol=1e-9)


class _one:  # noqa: N801 (a model with one block, as far as bounds look at it)
    def __init__(self, site: SuperGaussian) -> None:
        self.blocks = (block_of(site),)


@pytest.mark.parametrize(
    "name", [n for n in SITES if n not in ("Laplace", "Gaussian", "logistic", "sech^2", "power 1.4")]
)
def test_hybrid_is_convex_in_s(name):
    """Also for sites that are not log-concave, which the second class's own penalty is not."""
    site, z = SITES[name], np.full(4, 0.05)
    bound = hybrid(block_of(site), z, np.full(4, 0.7))
    s = np.linspace(-12, 12, 801)[:, None] * np.ones(4)

    def least_bend(values: np.ndarray) -> float:
        return float(np.diff(values, 2, axis=0).min())

    assert least_bend(bound.value(s**2)) >= -1e-10
    assert least_bend(-2 * site.g(s**2 + z)) < -1e-5


@pytest.mark.parametrize("name", [n for n in SITES if n != "Gaussian"])
def test_widths_lead_back_to_the_argument(name):
    t = np.array([1e-6, 0.3, 40.0])
    np.testing.assert_allclose(dual_argument_of(SITES[name], SITES[name].site_precision(t)), t, rtol=2e-5)
    steep = np.array([1e9])
    if name in ("logistic", "sech^2", "Student-t"):
        assert dual_argument_of(SITES[name], steep) == 0


MIXTURES = {
    "two peaks": md.ShiftedMixture([1.0, 0.5], [md.Laplace(1.0), md.Laplace(2.0)], [-1.5, 2.0]),
    "skewed": md.ShiftedMixture(
        [1.0, 0.7, 0.4], [md.Gaussian(4.0), md.Gaussian(1.0), md.Gaussian(0.2)], [0.0, 0.8, 2.5]
    ),
    "heavy": md.ShiftedMixture([1.0, 0.3], [md.StudentT(2.0, 2.0), md.Gaussian(1.0)], [0.5, -3.0]),
    "one site off centre": md.ShiftedMixture([1.0], [md.Laplace(1.5)], [1.2]),
}


def model_of(site: md.ShiftedMixture, dimensions: int) -> md.GeneralizedLinearModel:
    if dimensions == 1:
        block = md.SiteBlock("one", md.Dense(np.array([[1.0], [0.6]])), site)
        return md.GeneralizedLinearModel(md.Dense(np.array([[1.1]])), np.array([0.4]), 0.3, (block,))
    block = md.SiteBlock("two", md.Dense(np.array([[1.0, 0.0], [0.0, 1.0]])), site)
    smooth = md.SiteBlock("steps", md.Dense(np.array([[1.0, -1.0]])), md.Laplace(0.8))
    return md.GeneralizedLinearModel(md.Dense(np.array([[1.0, 0.5]])), np.array([0.7]), 0.3, (block, smooth))


@pytest.mark.parametrize(("name", "dimensions"), [("two peaks", 1), ("heavy", 1), ("skewed", 2)])
def test_monotone_and_below_the_evidence(name, dimensions, accurate, rng):
    model = model_of(MIXTURES[name], dimensions)
    posterior = replace(accurate, outer_iterations=80).infer(model, rng)
    assert posterior.convergence.converged and posterior.stationarity < 1e-3
    assert all(later <= earlier + 1e-10 * abs(earlier) for earlier, later in pairwise(posterior.criterion))
    gap = integrated(model) - md.evidence_bound(model, posterior.criterion[-1])
    assert 0 < gap < 2.5  # with two peaks a Gaussian covers one of them


def test_a_mixture_of_one_is_its_site_with_an_offset(accurate, rng):
    model = model_of(MIXTURES["one site off centre"], 2)
    sigma = np.sqrt(model.noise_variance)
    fixed = replace(model.blocks[0], potential=md.Laplace(1.5), offset=np.full(2, 1.2 * sigma))
    same = replace(model, blocks=(fixed, model.blocks[1]))
    moving, still = (accurate.infer(one, rng) for one in (model, same))
    assert moving.criterion[-1] == pytest.approx(still.criterion[-1], rel=1e-7)
    np.testing.assert_allclose(moving.mean, still.mean, atol=1e-4)


def test_the_bound_is_stationary_in_widths_positions_and_responsibilities(accurate, rng):
    """Beside -log of the Gaussian integral of the bound with free q_k and gamma_k of one site, minimised by scipy."""
    site, a, y, sigma2 = MIXTURES["two peaks"], 1.1, 0.4, 0.3
    block = md.SiteBlock("one", md.Dense(np.array([[1.0]])), site)
    model = md.GeneralizedLinearModel(md.Dense(np.array([[a]])), np.array([y]), sigma2, (block,))
    posterior = replace(accurate, outer_iterations=200, tolerance=1e-10).infer(model, rng)
    count = len(site.sites)

    def phi(free: np.ndarray) -> float:
        q = np.exp(free[:count] - np.logaddexp.reduce(free[:count]))
        t = np.exp(free[count:])
        widths = np.array([1 / float(one.site_precision(np.array(v))) for one, v in zip(site.sites, t, strict=True)])
        h = np.array([float(one.h_at_optimum(np.array(v))) for one, v in zip(site.sites, t, strict=True)])
        c = site.positions
        A, r = a**2 + np.sum(q / widths), a * y / np.sqrt(sigma2) + np.sum(q * c / widths)
        quadratic = y**2 / sigma2 + np.sum(q * c**2 / widths) - r**2 / A
        return float(np.log(A) + quadratic + np.sum(q * (h - 2 * np.log(site.weights) + 2 * np.log(q))))

    starts = np.random.default_rng(0).normal(0, 1, (6, 2 * count))
    ends = [scipy.optimize.minimize(phi, start, options={"gtol": 1e-9}).fun for start in starts]
    assert posterior.criterion[-1] == pytest.approx(min(ends, key=lambda v: abs(v - posterior.criterion[-1])), abs=1e-7)
    assert posterior.criterion[-1] < np.max(ends) + 1e-7
