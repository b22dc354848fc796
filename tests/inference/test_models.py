"""Models without a Gaussian factor and with sites for a likelihood: logistic and robust regression, priors alone."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize

from mri_design import (
    Dense,
    DoubleLoop,
    Exact,
    Gaussian,
    GeneralizedLinearModel,
    Identity,
    Laplace,
    Logistic,
    MonteCarlo,
    SiteBlock,
    StudentT,
    Wavelet,
    evidence_bound,
    learn_hyperparameters,
    log_evidence,
)
from mri_design.glm import exact_criterion
from tests.refusals import refused


def logistic_regression(cases: int = 30, features: int = 2, seed: int = 0) -> GeneralizedLinearModel:
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((cases, features))
    weights = np.linspace(1.5, -1.0, features)
    labels = np.where(rng.random(cases) < 1 / (1 + np.exp(-inputs @ weights)), 1.0, -1.0)
    likelihood = SiteBlock("labels", Dense(inputs), Logistic(labels))
    prior = SiteBlock("weights", Identity((features,), is_complex=False), Gaussian(0.5))
    return GeneralizedLinearModel.of_sites([likelihood, prior])


def robust_regression(site, sigma2: float = 1.0, seed: int = 0) -> GeneralizedLinearModel:
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((12, 2))
    y = inputs @ np.array([1.0, -0.5]) + 0.2 * rng.standard_normal(12)
    y[3] += 5
    likelihood = SiteBlock("data", Dense(inputs), site, offset=y)
    prior = SiteBlock("weights", Identity((2,), is_complex=False), Gaussian(0.3))
    return GeneralizedLinearModel.of_sites([likelihood, prior], sigma2)


MODELS = {
    "logistic": logistic_regression,
    "Laplace noise in other units": lambda: robust_regression(Laplace(1.5), 0.25),
    "Student-t noise": lambda: robust_regression(StudentT(3.0, 10.0)),
}


@pytest.mark.parametrize("name", list(MODELS))
def test_the_bound_lies_below_the_evidence_and_the_mean_is_that_of_quadrature(name, accurate, rng, log_evidence):
    model = MODELS[name]()
    posterior = accurate.infer(model, rng)
    assert posterior.convergence.converged and posterior.criterion_kind == "exact"
    gap = log_evidence(model) - evidence_bound(model, posterior.criterion[-1])
    assert 0 < gap < 2
    assert posterior.stationarity < 1e-5
    assert posterior.criterion[-1] == pytest.approx(
        exact_criterion(model, posterior.precision.site_precisions), rel=1e-7
    )
    grid = np.linspace(-4, 4, 401)
    u = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
    sigma = np.sqrt(model.noise_variance)
    log_density = sum(b.potential.log_t(b.coefficients(u) / sigma).sum(axis=-1) for b in model.blocks)
    density = np.exp(log_density - log_density.max())
    mean = np.tensordot(density, u, axes=2) / density.sum()
    deviation = np.sqrt(np.tensordot(density, (u - mean) ** 2, axes=2) / density.sum())
    assert (np.abs(posterior.mean - mean) < 0.35 * deviation).all()


@pytest.mark.slow
def test_learning_the_prior_beside_a_likelihood_of_sites(rng):
    """The prior precision of logistic regression ends at the maximum of the normalised bound; labels are left alone."""
    model = logistic_regression(60, 4)
    engine = DoubleLoop(Exact(), tolerance=1e-7, outer_iterations=40)
    learnt = learn_hyperparameters(model, engine, rng, noise=False, rounds=200, tolerance=1e-6)

    def minus_bound(log_precision: float) -> float:
        prior = replace(model.blocks[1], potential=Gaussian(np.exp(log_precision)))
        return -log_evidence(engine.infer(replace(model, blocks=(model.blocks[0], prior)), rng)).value

    best = scipy.optimize.minimize_scalar(minus_bound, bounds=(-6, 4), options={"xatol": 1e-6})
    assert learnt.convergence.converged and learnt.model.blocks[0] is model.blocks[0]
    assert float(learnt.model.blocks[1].potential.precision) == pytest.approx(np.exp(best.x), rel=1e-3)
    with refused("learn_hyperparameters"):
        learn_hyperparameters(model, engine, rng, noise=True)
    with refused("learn_hyperparameters"):
        learn_hyperparameters(GeneralizedLinearModel.of_sites(model.blocks[:1]), engine, rng, noise=False)


@pytest.mark.parametrize("variances", [Exact(), MonteCarlo(300, tolerance=1e-5)], ids=lambda v: type(v).__name__)
def test_a_prior_alone_on_images(variances, rng):
    """Orthonormal Laplace sites on moduli: z = gamma per real component, so tau sqrt(z) = 2 at the fixed point."""
    shape = (8, 8)
    model = GeneralizedLinearModel.of_sites([SiteBlock("wavelet", Wavelet(shape, "db1", 2), Laplace(1.7))])
    posterior = DoubleLoop(variances, outer_iterations=60, tolerance=1e-9).infer(model, rng)
    assert np.abs(posterior.mean).max() == 0
    tolerance = 1e-5 if isinstance(variances, Exact) else 0.25
    np.testing.assert_allclose(1.7 * np.sqrt(posterior.marginals.values[0]), 2, rtol=tolerance)
