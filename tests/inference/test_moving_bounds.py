"""Sites whose bound has a moving position: below log P(y), monotone, and optimal in both parameters."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.optimize

from mri_design import (
    Dense,
    Gaussian,
    GeneralizedLinearModel,
    Laplace,
    ShiftedMixture,
    SiteBlock,
    StudentT,
    evidence_bound,
)

MIXTURES = {
    "two peaks": ShiftedMixture([1.0, 0.5], [Laplace(1.0), Laplace(2.0)], [-1.5, 2.0]),
    "skewed": ShiftedMixture([1.0, 0.7, 0.4], [Gaussian(4.0), Gaussian(1.0), Gaussian(0.2)], [0.0, 0.8, 2.5]),
    "heavy": ShiftedMixture([1.0, 0.3], [StudentT(2.0, 2.0), Gaussian(1.0)], [0.5, -3.0]),
    "one site off centre": ShiftedMixture([1.0], [Laplace(1.5)], [1.2]),
}


def model_of(site: ShiftedMixture, dimensions: int) -> GeneralizedLinearModel:
    if dimensions == 1:
        block = SiteBlock("one", Dense(np.array([[1.0], [0.6]])), site)
        return GeneralizedLinearModel(Dense(np.array([[1.1]])), np.array([0.4]), 0.3, (block,))
    block = SiteBlock("two", Dense(np.array([[1.0, 0.0], [0.0, 1.0]])), site)
    smooth = SiteBlock("steps", Dense(np.array([[1.0, -1.0]])), Laplace(0.8))
    return GeneralizedLinearModel(Dense(np.array([[1.0, 0.5]])), np.array([0.7]), 0.3, (block, smooth))


@pytest.mark.parametrize(("name", "dimensions"), [("two peaks", 1), ("heavy", 1), ("skewed", 2)])
def test_monotone_and_below_the_evidence(name, dimensions, accurate, rng, log_evidence):
    model = model_of(MIXTURES[name], dimensions)
    posterior = replace(accurate, outer_iterations=80).infer(model, rng)
    assert posterior.convergence.converged and posterior.stationarity < 1e-3
    assert all(later <= earlier + 1e-10 * abs(earlier) for earlier, later in pairwise(posterior.criterion))
    gap = log_evidence(model) - evidence_bound(model, posterior.criterion[-1])
    assert 0 < gap < 2.5  # with two peaks a Gaussian covers one of them


def test_a_mixture_of_one_is_its_site_with_an_offset(accurate, rng):
    model = model_of(MIXTURES["one site off centre"], 2)
    sigma = np.sqrt(model.noise_variance)
    fixed = replace(model.blocks[0], potential=Laplace(1.5), offset=np.full(2, 1.2 * sigma))
    same = replace(model, blocks=(fixed, model.blocks[1]))
    moving, still = (accurate.infer(one, rng) for one in (model, same))
    assert moving.criterion[-1] == pytest.approx(still.criterion[-1], rel=1e-7)
    np.testing.assert_allclose(moving.mean, still.mean, atol=1e-4)


def test_the_bound_is_stationary_in_widths_positions_and_responsibilities(accurate, rng):
    """Beside -log of the Gaussian integral of the bound with free q_k and gamma_k of one site, minimised by scipy."""
    site, a, y, sigma2 = MIXTURES["two peaks"], 1.1, 0.4, 0.3
    block = SiteBlock("one", Dense(np.array([[1.0]])), site)
    model = GeneralizedLinearModel(Dense(np.array([[a]])), np.array([y]), sigma2, (block,))
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
