"""The bound lies below log P(y) for every site and model, priors differ as quadrature says, and log|A|."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.stats

import mri_design as md
from mri_design.glm import VariationalGaussian, exact_criterion
from mri_design.inference import LogDeterminant, prior_log_normaliser
from mri_design.model import PosteriorPrecision
from mri_design.operators import Dense, FiniteDifferences, Identity, Wavelet
from mri_design.sites import Gaussian, Laplace, Logistic, StudentT, Tilted
from mri_design.variances import Exact, MonteCarlo
from tests.inference.conftest import SITES, integrated
from tests.refusals import refused
from tests.slow_cases import slow_case


def model_of(rows, y, analysis, site, sigma2: float = 0.3) -> md.GeneralizedLinearModel:
    block = md.SiteBlock("rows", Dense(np.array(analysis)), site)
    return md.GeneralizedLinearModel(Dense(np.array(rows)), np.array(y), sigma2, (block,))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "overcomplete") for name in ("Student-t", "mixture", "logistic", "tilted")),
        *((name, "one complex") for name in ("Laplace", "sech^2", "power 0.6")),
        *((name, "scalar") for name in ("power 1.5", "own")),
    ],
)
def test_the_bound_lies_below_log_p(name, kind, accurate, rng):
    site = SITES[name](1.2)
    if kind == "scalar":
        model = model_of([[1.2], [0.4]], [0.9, -0.5], [[1.0]], site)
    elif kind == "overcomplete":
        model = model_of([[1.0, 0.5]], [0.8], [[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]], site)
    else:
        model = model_of([[0.8 + 0.3j]], [1.1 - 0.4j], [[1.0 + 0j], [0.5 - 1j]], site)
    posterior = accurate.infer(model, rng)
    gap = integrated(model) - md.inference.evidence_bound(model, posterior.criterion[-1])
    assert posterior.convergence.converged
    assert 0 < gap < 1.1


PRIORS = {"Laplace": Laplace(1.5), "Gaussian": Gaussian(0.8), "Student-t": StudentT(3.0, 1.5)}


@pytest.mark.parametrize(
    ("first", "second"), [("Laplace", "Laplace"), ("Laplace", "Gaussian"), ("Gaussian", "Student-t")]
)
def test_factors_between_priors_by_quadrature(first, second, accurate, rng):
    """Normalised over u = s / 2 by hand."""
    posteriors, truths = [], []
    for name in (first, second):
        model = model_of([[1.2], [0.4]], [0.9, -0.5], [[2.0]], PRIORS[name])
        posteriors.append(accurate.infer(model, rng))
        z = scipy.integrate.quad(
            lambda u, t=PRIORS[name]: np.exp(float(t.log_t(np.array(2 * u / np.sqrt(0.3))))), -60, 60
        )[0]
        truths.append(integrated(model) - np.log(z))
        assert prior_log_normaliser(model) == pytest.approx(np.log(z), abs=1e-3 if name == "Student-t" else 1e-6)
    found = [md.inference.log_evidence(posterior) for posterior in posteriors]
    assert found[0].value - found[1].value == pytest.approx(truths[0] - truths[1], abs=0.3)
    assert {(each.kind, each.normaliser) for each in found} == {("lower_bound", "closed form")}


def test_gaussian_models_have_their_exact_evidence(accurate, rng):
    """Also with more sites than unknowns."""
    X, y, B = np.array([[1.0, 0.5], [0.2, -1.0]]), np.array([0.8, 0.1]), np.array([[1.0, 0], [0, 1], [1, -1]])
    for p, sigma2 in ((0.7, 0.3), (2.0, 0.1)):
        posterior = accurate.infer(model_of(X, y, B, Gaussian(p), sigma2), rng)
        covariance = sigma2 * (np.eye(2) + X @ np.linalg.inv(p * B.T @ B) @ X.T)
        reference = scipy.stats.multivariate_normal(cov=covariance).logpdf(y)
        found = md.inference.log_evidence(posterior)
        assert found.value == pytest.approx(reference, abs=1e-8) and found.kind == "lower_bound"


def test_normalisers_of_images_are_the_dense_ones():
    """By spectra and by dense algebra (a scale that varies from pixel to pixel in the last digit)."""
    shape, X = (4, 6), md.operators.cartesian([0], (4, 6))
    data = np.zeros(X.out_shape, complex)
    pixels, wavelet = Identity(shape), Wavelet(shape, "db1", 1)
    for analysis, site in ((wavelet, Laplace), (pixels, Laplace), (pixels, Gaussian)):
        values = [
            prior_log_normaliser(md.GeneralizedLinearModel(X, data, 0.3, (md.SiteBlock("one", analysis, site(scale)),)))
            for scale in (1.3, 1.3 * (1 + 1e-13 * np.arange(24).reshape(shape)))
        ]
        assert values[0] == pytest.approx(values[1], rel=1e-9)
        per_site = {"Laplace": np.log(2 * np.pi / 1.3**2), "Gaussian": np.log(2 * np.pi / 1.3)}[site.__name__]
        assert values[0] == pytest.approx(24 * (per_site + np.log(0.3)), rel=1e-9)


def test_robust_and_logistic_likelihoods_are_normalised(accurate, rng):
    """Against quadrature with densities of the data written out."""
    x, y = np.array([[1.0], [0.5], [-1.0]]), np.array([0.9, 0.8, -0.7])
    prior = md.SiteBlock("weight", Identity((1,), is_complex=False), Gaussian(0.5))
    rate, labels = 1.5 / 0.5, np.sign(y)
    for potential, offset, sigma2, log_p, gap in (
        (Laplace(1.5), y, 0.25, lambda u: np.sum(np.log(rate / 2) - rate * np.abs(x[:, 0] * u - y)), 0.6),
        (Logistic(labels), None, 1.0, lambda u: -np.sum(np.log1p(np.exp(-labels * x[:, 0] * u))), 0.1),
    ):
        likelihood = md.SiteBlock("data", Dense(x), potential, offset=offset)
        found = md.inference.log_evidence(
            accurate.infer(md.GeneralizedLinearModel.of_sites([likelihood, prior], sigma2), rng)
        )
        weight = scipy.stats.norm(0, np.sqrt(sigma2 / 0.5)).pdf
        joint = partial(lambda u, log_p, weight: np.exp(log_p(u)) * weight(u), log_p=log_p, weight=weight)
        truth = np.log(scipy.integrate.quad(joint, -12, 12, points=[0.7, 0.9, 1.6])[0])
        assert truth - gap < found.value < truth


def image_model(pixels: float, differences: float, sigma2: float = 0.01, seed: int = 0) -> md.GeneralizedLinearModel:
    shape = (6, 5)
    blocks = tuple(
        md.SiteBlock(name, B, Laplace(scale))
        for (name, B), scale in zip(OPERATORS.items(), (pixels, differences), strict=True)
    )
    X = md.operators.cartesian([0, 2, 3], shape)
    rng = np.random.default_rng(seed)
    data = X(np.ones(shape, complex)) + 0.1 * rng.standard_normal(X.out_shape) + 0j
    return md.GeneralizedLinearModel(X, data, sigma2, blocks)


OPERATORS = {"pixels": Identity((6, 5)), "differences": FiniteDifferences((6, 5))}


@pytest.mark.slow
def test_estimates_have_to_be_allowed(accurate, rng):
    """Of an overcomplete prior, and of log|A|; without a criterion there is no evidence."""
    model = image_model(1.0, 2.0)
    exact = accurate.infer(model, rng)
    assert prior_log_normaliser(model) is None
    none = md.DoubleLoop(MonteCarlo(4)).infer(model, rng)
    guessed = md.DoubleLoop(MonteCarlo(100), criterion="estimate").infer(model, rng)
    for posterior, field in ((exact, "prior"), (none, "posterior"), (guessed, "posterior")):
        with refused(field):
            md.inference.log_evidence(posterior)
    values = [md.inference.log_evidence(posterior, allow_estimates=True) for posterior in (exact, guessed)]
    assert {(each.kind, each.normaliser) for each in values} == {("estimate", "variational")}
    assert abs(values[0].value - values[1].value) < 0.05 * model.measurement.in_size


def test_improper_priors_are_refused(rng):
    X, B = Dense(np.eye(2)), Dense(np.array([[1.0, -1.0]]))
    model = md.GeneralizedLinearModel(X, np.ones(2), 0.3, (md.SiteBlock("difference", B, Laplace(1.0)),))
    posterior = md.DoubleLoop(Exact()).infer(model, rng)
    with refused("prior"):
        md.inference.log_evidence(posterior)
    with refused("prior"):
        prior_log_normaliser(model_of([[1 + 0j]], [1 + 0j], [[1 + 0j]], StudentT(1.0, 1.0)))


def test_blocks_say_what_the_evidence_counts_as_data(rng):
    """Data with Gaussian noise as a factor, as sites with an offset, and as tilted sites that say what they are."""
    identity, rows, y, noise = Identity((2,), is_complex=False), Dense([[1.0, 0.4]]), np.array([0.8]), 0.3
    prior = md.SiteBlock("prior", identity, Gaussian(1.4))
    factor = md.GeneralizedLinearModel(Dense(rows.matrix / np.sqrt(noise)), y / np.sqrt(noise), 1.0, (prior,))
    residual = md.SiteBlock("data", rows, Gaussian(1 / noise), offset=y)
    tilted = md.SiteBlock("data", rows, Tilted(Gaussian(1 / noise), y / noise), role="likelihood")
    engine = VariationalGaussian(Exact(), tolerance=1e-10)
    models = (factor, md.GeneralizedLinearModel.of_sites((residual, prior)))
    whole, parts = (md.inference.log_evidence(engine.infer(model, rng)).value for model in models)
    assert parts == pytest.approx(whole - 0.5 * np.log(noise), abs=1e-8)
    said = md.inference.log_evidence(engine.infer(md.GeneralizedLinearModel.of_sites((tilted, prior)), rng)).value
    assert said == pytest.approx(parts, abs=1e-6)
    centred = md.SiteBlock("prior", identity, Gaussian(1.4), offset=np.array([0.2, -0.1]), role="prior")
    moved = md.inference.log_evidence(engine.infer(md.GeneralizedLinearModel.of_sites((residual, centred)), rng)).value
    variance = noise + rows.matrix @ rows.matrix.T / 1.4
    miss = y - rows.matrix @ centred.offset
    truth = -0.5 * float(np.log(2 * np.pi * variance[0, 0]) + miss[0] ** 2 / variance[0, 0])
    assert moved == pytest.approx(truth, abs=1e-8)


def test_whitening_leaves_the_evidence_alone(accurate, rng):
    plain = model_of([[1.2], [0.4]], [0.9, -0.5], [[2.0]], Laplace(1.5))
    white = md.model.with_noise_covariance(md.model.with_noise_covariance(plain, variances=2.0), variances=0.5)
    values = [md.inference.log_evidence(accurate.infer(model, rng)).value for model in (plain, white)]
    assert values[1] == pytest.approx(values[0], abs=1e-6)


def test_units_of_the_data_shift_the_bound_by_their_jacobian(accurate, rng, settled):
    """Data and noise scaled by c: a density of the data in other units, c^-m times the old, where n scales back."""
    c = 7.0
    posterior = settled("matrix")
    model = posterior.model
    scaled = md.GeneralizedLinearModel(model.measurement, c * model.data, c**2 * model.noise_variance, model.blocks)
    bounds = [md.inference.evidence_bound(p.model, p.criterion[-1]) for p in (posterior, accurate.infer(scaled, rng))]
    n, m = model.measurement.in_size, model.measurement.out_size
    assert bounds[1] - bounds[0] == pytest.approx((n - m) * np.log(c), rel=1e-8)


def logistic_regression(cases: int = 30, features: int = 2, seed: int = 0) -> md.GeneralizedLinearModel:
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((cases, features))
    weights = np.linspace(1.5, -1.0, features)
    labels = np.where(rng.random(cases) < 1 / (1 + np.exp(-inputs @ weights)), 1.0, -1.0)
    likelihood = md.SiteBlock("labels", Dense(inputs), Logistic(labels))
    prior = md.SiteBlock("weights", Identity((features,), is_complex=False), Gaussian(0.5))
    return md.GeneralizedLinearModel.of_sites([likelihood, prior])


def robust_regression(site, sigma2: float = 1.0, seed: int = 0) -> md.GeneralizedLinearModel:
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((12, 2))
    y = inputs @ np.array([1.0, -0.5]) + 0.2 * rng.standard_normal(12)
    y[3] += 5
    likelihood = md.SiteBlock("data", Dense(inputs), site, offset=y)
    prior = md.SiteBlock("weights", Identity((2,), is_complex=False), Gaussian(0.3))
    return md.GeneralizedLinearModel.of_sites([likelihood, prior], sigma2)


MODELS = {
    "logistic": logistic_regression,
    "Laplace noise in other units": lambda: robust_regression(Laplace(1.5), 0.25),
    "Student-t noise": lambda: robust_regression(StudentT(3.0, 10.0)),
}


@pytest.mark.parametrize("name", list(MODELS))
def test_the_bound_lies_below_the_evidence_and_the_mean_is_that_of_quadrature(name, accurate, rng):
    model = MODELS[name]()
    posterior = accurate.infer(model, rng)
    assert posterior.convergence.converged and posterior.criterion_kind == "exact"
    gap = integrated(model) - md.inference.evidence_bound(model, posterior.criterion[-1])
    assert 0 < gap < 2
    assert posterior.stationarity < 1e-5
    exact = exact_criterion(model, posterior.precision.site_precisions)
    assert posterior.criterion[-1] == pytest.approx(exact, rel=1e-7)
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
    engine = md.DoubleLoop(Exact(), tolerance=1e-7, outer_iterations=40)
    learnt = md.inference.learn_hyperparameters(model, engine, rng, noise=False, rounds=200, tolerance=1e-6)

    def minus_bound(log_precision: float) -> float:
        prior = replace(model.blocks[1], potential=Gaussian(np.exp(log_precision)))
        return -md.inference.log_evidence(engine.infer(replace(model, blocks=(model.blocks[0], prior)), rng)).value

    best = scipy.optimize.minimize_scalar(minus_bound, bounds=(-6, 4), options={"xatol": 1e-6})
    assert learnt.convergence.converged and learnt.model.blocks[0] is model.blocks[0]
    assert float(learnt.model.blocks[1].potential.precision) == pytest.approx(np.exp(best.x), rel=1e-3)
    with refused("learn_hyperparameters"):
        md.inference.learn_hyperparameters(model, engine, rng, noise=True)
    with refused("learn_hyperparameters"):
        md.inference.learn_hyperparameters(
            md.GeneralizedLinearModel.of_sites(model.blocks[:1]), engine, rng, noise=False
        )


@pytest.mark.parametrize("variances", [Exact(), MonteCarlo(300, tolerance=1e-5)], ids=lambda v: type(v).__name__)
def test_a_prior_alone_on_images(variances, rng):
    """Orthonormal Laplace sites on moduli: z = gamma per real component, so tau sqrt(z) = 2 at the fixed point."""
    shape = (8, 8)
    model = md.GeneralizedLinearModel.of_sites([md.SiteBlock("wavelet", Wavelet(shape, "db1", 2), Laplace(1.7))])
    posterior = md.DoubleLoop(variances, outer_iterations=60, tolerance=1e-9).infer(model, rng)
    assert np.abs(posterior.mean).max() == 0
    tolerance = 1e-5 if isinstance(variances, Exact) else 0.25
    np.testing.assert_allclose(1.7 * np.sqrt(posterior.marginals.values[0]), 2, rtol=tolerance)


def dense(precision: PosteriorPrecision) -> float:
    return float(np.linalg.slogdet(precision.dense_real())[1])


@pytest.mark.parametrize(
    ("model_name", "real"),
    [
        ("groups", np.float64),
        ("groups", np.float32),
        ("coils", np.float64),
        *(slow_case(name, np.float64) for name in ("parts", "real image", "wavelet")),
    ],
)
def test_within_its_standard_error(tiny_model, model_name, real, random_precisions):
    model = tiny_model(model_name, real=real)
    precision = PosteriorPrecision(model.measurement, model.blocks, random_precisions(model, 3))
    like = model.back_projection()
    value, error, convergence = LogDeterminant(probes=60, steps=40)(precision, np.random.default_rng(0), like)
    assert abs(value - dense(precision)) < 4 * error + (1e-9 if real is np.float64 else 1e-3)
    assert error < 0.15 * np.sqrt(model.measurement.in_size)
    assert convergence.matvecs <= 60 * 40


def test_the_circulant_alone_is_exact_where_a_is_circulant(tiny_model):
    model = tiny_model("moduli")
    pi = (np.full((1, 1), 0.7), np.full((2, 1, 1), 1.3))
    precision = PosteriorPrecision(md.operators.cartesian(range(6), (6, 5)), model.blocks, pi)
    value, error, _ = LogDeterminant(2, 3)(precision, np.random.default_rng(0), model.back_projection())
    assert value == pytest.approx(dense(precision), rel=1e-10) and error < 1e-9


def test_too_few_steps_are_said_to_be_that():
    shape = (12, 12)
    block = md.SiteBlock("pixels", Identity(shape), Laplace(1.0))
    pi = np.exp(np.random.default_rng(0).normal(0, 2.5, shape))
    precision = PosteriorPrecision(md.operators.cartesian([5, 6], shape), (block,), (pi,))
    like = np.zeros(shape, complex)
    estimates = [LogDeterminant(40, steps)(precision, np.random.default_rng(0), like) for steps in (4, 60)]
    (short, _, early), (long, error, late) = estimates
    assert not early.converged and late.converged
    assert short > long + 4 * error and abs(long - dense(precision)) < 4 * error
