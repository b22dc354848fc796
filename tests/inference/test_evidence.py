"""The bound lies below log P(y) for every site, and Bayes factors are those of quadrature where they can be."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from mri_design import (
    Dense,
    DoubleLoop,
    Exact,
    FiniteDifferences,
    Gaussian,
    GeneralizedLinearModel,
    Hinge,
    Identity,
    Laplace,
    Logistic,
    MonteCarlo,
    Poisson,
    Site,
    SiteBlock,
    StudentT,
    Tilted,
    VariationalGaussian,
    Wavelet,
    cartesian,
    evidence_bound,
    log_bayes_factor,
    log_evidence,
    with_noise_covariance,
)
from mri_design.inference import prior_log_normaliser, site_groups
from tests.refusals import refused


def model_of(rows, y, analysis, site, sigma2: float = 0.3) -> GeneralizedLinearModel:
    block = SiteBlock("rows", Dense(np.array(analysis)), site)
    return GeneralizedLinearModel(Dense(np.array(rows)), np.array(y), sigma2, (block,))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "overcomplete") for name in ("Student-t", "mixture", "logistic", "tilted")),
        *((name, "one complex") for name in ("Laplace", "sech^2", "power 0.6")),
        *((name, "scalar") for name in ("power 1.5", "own")),
    ],
)
def test_the_bound_lies_below_log_p(name, kind, sites, accurate, rng, log_evidence):
    site = sites[name](1.2)
    if kind == "scalar":
        model = model_of([[1.2], [0.4]], [0.9, -0.5], [[1.0]], site)
    elif kind == "overcomplete":
        model = model_of([[1.0, 0.5]], [0.8], [[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]], site)
    else:
        model = model_of([[0.8 + 0.3j]], [1.1 - 0.4j], [[1.0 + 0j], [0.5 - 1j]], site)
    posterior = accurate.infer(model, rng)
    gap = log_evidence(model) - evidence_bound(model, posterior.criterion[-1])
    assert posterior.convergence.converged
    assert 0 < gap < 1.1


PRIORS = {"Laplace": Laplace(1.5), "Gaussian": Gaussian(0.8), "Student-t": StudentT(3.0, 1.5)}


@pytest.mark.parametrize(
    ("first", "second"), [("Laplace", "Laplace"), ("Laplace", "Gaussian"), ("Gaussian", "Student-t")]
)
def test_factors_between_priors_by_quadrature(first, second, accurate, rng, log_evidence):
    """Normalised over u = s / 2 by hand."""
    posteriors, truths = [], []
    for name in (first, second):
        model = model_of([[1.2], [0.4]], [0.9, -0.5], [[2.0]], PRIORS[name])
        posteriors.append(accurate.infer(model, rng))
        z = scipy.integrate.quad(
            lambda u, t=PRIORS[name]: np.exp(float(t.log_t(np.array(2 * u / np.sqrt(0.3))))), -60, 60
        )[0]
        truths.append(log_evidence(model) - np.log(z))
        assert prior_log_normaliser(model) == pytest.approx(np.log(z), abs=1e-3 if name == "Student-t" else 1e-6)
    found = log_bayes_factor(*posteriors)
    assert found.value == pytest.approx(truths[0] - truths[1], abs=0.3)
    assert found.kind == "difference of lower bounds"
    assert found.normaliser == ("shared" if first == second else "closed form")


def test_gaussian_models_have_their_exact_evidence(accurate, rng):
    """Also with more sites than unknowns."""
    X, y, B = np.array([[1.0, 0.5], [0.2, -1.0]]), np.array([0.8, 0.1]), np.array([[1.0, 0], [0, 1], [1, -1]])
    for p, sigma2 in ((0.7, 0.3), (2.0, 0.1)):
        posterior = accurate.infer(model_of(X, y, B, Gaussian(p), sigma2), rng)
        covariance = sigma2 * (np.eye(2) + X @ np.linalg.inv(p * B.T @ B) @ X.T)
        reference = scipy.stats.multivariate_normal(cov=covariance).logpdf(y)
        found = log_evidence(posterior)
        assert found.value == pytest.approx(reference, abs=1e-8) and found.kind == "lower_bound"


def test_normalisers_of_images_are_the_dense_ones():
    """By spectra and by dense algebra (a scale that varies from pixel to pixel in the last digit)."""
    shape, X = (4, 6), cartesian([0], (4, 6))
    data = np.zeros(X.out_shape, complex)
    for analysis, site in (
        (Wavelet(shape, "db1", 1), Laplace),
        (Identity(shape), Laplace),
        (Identity(shape), Gaussian),
    ):
        values = [
            prior_log_normaliser(GeneralizedLinearModel(X, data, 0.3, (SiteBlock("one", analysis, site(scale)),)))
            for scale in (1.3, 1.3 * (1 + 1e-13 * np.arange(24).reshape(shape)))
        ]
        assert values[0] == pytest.approx(values[1], rel=1e-9)
        per_site = {"Laplace": np.log(2 * np.pi / 1.3**2), "Gaussian": np.log(2 * np.pi / 1.3)}[site.__name__]
        assert values[0] == pytest.approx(24 * (per_site + np.log(0.3)), rel=1e-9)


def test_robust_and_logistic_likelihoods_are_normalised(accurate, rng):
    """Against quadrature with densities of the data written out."""
    x, y = np.array([[1.0], [0.5], [-1.0]]), np.array([0.9, 0.8, -0.7])
    prior = SiteBlock("weight", Identity((1,), is_complex=False), Gaussian(0.5))
    sigma2 = 0.25
    noise = SiteBlock("data", Dense(x), Laplace(1.5), offset=y)
    model = GeneralizedLinearModel.of_sites([noise, prior], sigma2)

    def laplace_noise(u: float) -> float:
        rate = 1.5 / 0.5
        log_p = np.sum(np.log(rate / 2) - rate * np.abs(x[:, 0] * u - y))
        return np.exp(log_p) * scipy.stats.norm(0, 0.5 / np.sqrt(0.5)).pdf(u)

    truth = np.log(scipy.integrate.quad(laplace_noise, -8, 8, points=[0.7, 0.9, 1.6])[0])
    found = log_evidence(accurate.infer(model, rng))
    assert truth - 0.6 < found.value < truth
    labels = SiteBlock("labels", Dense(x), Logistic(np.sign(y)))
    model = GeneralizedLinearModel.of_sites([labels, prior])

    def labelled(u: float) -> float:
        log_p = -np.sum(np.log1p(np.exp(-np.sign(y) * x[:, 0] * u)))
        return np.exp(log_p) * scipy.stats.norm(0, 1 / np.sqrt(0.5)).pdf(u)

    truth = np.log(scipy.integrate.quad(labelled, -12, 12)[0])
    found = log_evidence(accurate.infer(model, rng))
    assert truth - 0.1 < found.value < truth


def image_model(pixels: float, differences: float, sigma2: float = 0.01, seed: int = 0) -> GeneralizedLinearModel:
    shape = (6, 5)
    blocks = tuple(
        SiteBlock(name, B, Laplace(scale))
        for (name, B), scale in zip(OPERATORS.items(), (pixels, differences), strict=True)
    )
    X = cartesian([0, 2, 3], shape)
    rng = np.random.default_rng(seed)
    data = X(np.ones(shape, complex)) + 0.1 * rng.standard_normal(X.out_shape) + 0j
    return GeneralizedLinearModel(X, data, sigma2, blocks)


OPERATORS = {"pixels": Identity((6, 5)), "differences": FiniteDifferences((6, 5))}


def test_overcomplete_priors_compare_where_the_normaliser_cancels(accurate, rng):
    """All rates doubled: Z falls by 2^n. Doubling noise sd and tau keeps the prior."""
    a, b = (accurate.infer(image_model(s, 2 * s), rng) for s in (1.0, 2.0))
    n = a.model.measurement.in_size
    found = log_bayes_factor(a, b)
    bounds = [evidence_bound(p.model, p.criterion[-1]) for p in (a, b)]
    assert found.normaliser == "shared" and found.kind == "difference of lower bounds"
    assert found.value == pytest.approx(bounds[0] - bounds[1] - n * np.log(2.0), rel=1e-10)
    assert log_bayes_factor(b, a).value == pytest.approx(-found.value)
    louder = accurate.infer(image_model(2.0, 4.0, 0.04), rng)
    bound = evidence_bound(louder.model, louder.criterion[-1])
    assert log_bayes_factor(a, louder).value == pytest.approx(bounds[0] - bound, rel=1e-10)


def test_other_overcomplete_priors_are_refused_or_estimated(accurate, rng):
    a, b = (accurate.infer(image_model(1.0, s), rng) for s in (1.0, 3.0))
    assert prior_log_normaliser(a.model) is None
    with refused("prior"):
        log_bayes_factor(a, b)
    with refused("prior"):
        log_evidence(a)
    found = log_bayes_factor(a, b, allow_estimates=True)
    assert found.kind == "estimate" and found.normaliser == "variational"
    values = [log_evidence(p, allow_estimates=True) for p in (a, b)]
    assert values[0].kind == "estimate"
    assert found.value == pytest.approx(values[0].value - values[1].value, rel=1e-10)


@pytest.mark.slow
def test_what_cannot_be_compared_is_refused(accurate, rng):
    model = image_model(1.0, 2.0)
    exact = accurate.infer(model, rng)
    none = DoubleLoop(MonteCarlo(4)).infer(model, rng)
    with refused("posterior"):
        log_bayes_factor(exact, none)
    guessed = DoubleLoop(MonteCarlo(100), criterion="estimate").infer(model, rng)
    with refused("posterior"):
        log_bayes_factor(exact, guessed)
    mixed = log_bayes_factor(exact, guessed, allow_estimates=True)
    assert mixed.kind == "estimate" and abs(mixed.value) < 0.05 * model.measurement.in_size
    other = accurate.infer(image_model(1.0, 2.0, seed=1), rng)
    with refused("Bayes factor"):
        log_bayes_factor(exact, other)


class OwnLaplace(Laplace):
    """A site whose author wrote no `rescaled`."""

    offers = Laplace.offers - {"scale"}
    rescaled = Site.rescaled


def test_equal_priors_on_operators_built_twice_share_their_normaliser(accurate, rng):
    def posterior(wavelet: str, sigma2: float = 0.04):
        model = image_model(1.0, 1.0, sigma2)
        blocks = (
            SiteBlock("wavelet", Wavelet(model.image_shape, wavelet, 1), OwnLaplace(1.0)),
            SiteBlock("differences", FiniteDifferences(model.image_shape), Laplace(2.0)),
        )
        return accurate.infer(replace(model, blocks=blocks), rng)

    a, b = posterior("db1"), posterior("db1")
    found = log_bayes_factor(a, b)
    assert found.normaliser == "shared" and found.value == pytest.approx(0, abs=1e-9)
    with refused("prior"):
        log_bayes_factor(a, posterior("db2"))


@pytest.mark.slow
def test_whitened_models_of_different_data_are_not_compared(accurate, rng):
    plain = image_model(1.0, 2.0)
    white = with_noise_covariance(plain, variances=2.0)
    other = with_noise_covariance(replace(plain, data=plain.data + 0.1), variances=2.0)
    a, b, c = (accurate.infer(model, rng) for model in (white, other, plain))
    assert np.isfinite(log_bayes_factor(a, c).value)
    twice = with_noise_covariance(with_noise_covariance(plain, variances=2.0), variances=0.5)
    assert log_bayes_factor(accurate.infer(twice, rng), c).value == pytest.approx(0, abs=1e-6)
    for one, two in ((a, b), (b, c)):
        with refused("Bayes factor"):
            log_bayes_factor(one, two)


def test_improper_priors_are_refused(rng):
    X, B = Dense(np.eye(2)), Dense(np.array([[1.0, -1.0]]))
    model = GeneralizedLinearModel(X, np.ones(2), 0.3, (SiteBlock("difference", B, Laplace(1.0)),))
    posterior = DoubleLoop(Exact()).infer(model, rng)
    with refused("prior"):
        log_evidence(posterior)
    heavy = GeneralizedLinearModel(
        Dense(np.eye(1) + 0j), np.ones(1) + 0j, 0.3, (SiteBlock("one", Dense(np.eye(1) + 0j), StudentT(1.0, 1.0)),)
    )
    with refused("prior"):
        prior_log_normaliser(heavy)


def test_blocks_say_what_the_evidence_counts_as_data(rng):
    """Data with Gaussian noise as a factor, as sites with an offset, and as tilted sites that say what they are."""
    identity, rows, y, noise = Identity((2,), is_complex=False), Dense(np.array([[1.0, 0.4]])), np.array([0.8]), 0.3
    prior = SiteBlock("prior", identity, Gaussian(1.4))
    factor = GeneralizedLinearModel(Dense(rows.matrix / np.sqrt(noise)), y / np.sqrt(noise), 1.0, (prior,))
    residual = SiteBlock("data", rows, Gaussian(1 / noise), offset=y)
    tilted = SiteBlock("data", rows, Tilted(Gaussian(1 / noise), y / noise), role="likelihood")
    engine = VariationalGaussian(Exact(), tolerance=1e-10)
    models = (factor, GeneralizedLinearModel.of_sites((residual, prior)))
    whole, parts = (log_evidence(engine.infer(model, rng)).value for model in models)
    assert parts == pytest.approx(whole - 0.5 * np.log(noise), abs=1e-8)
    said = log_evidence(engine.infer(GeneralizedLinearModel.of_sites((tilted, prior)), rng)).value
    assert said == pytest.approx(parts, abs=1e-6)
    centred = SiteBlock("prior", identity, Gaussian(1.4), offset=np.array([0.2, -0.1]), role="prior")
    moved = log_evidence(engine.infer(GeneralizedLinearModel.of_sites((residual, centred)), rng)).value
    variance = noise + rows.matrix @ rows.matrix.T / 1.4
    miss = y - rows.matrix @ centred.offset
    truth = -0.5 * float(np.log(2 * np.pi * variance[0, 0]) + miss[0] ** 2 / variance[0, 0])
    assert moved == pytest.approx(truth, abs=1e-8)


def test_a_likelihood_has_no_scale_to_learn():
    blocks = (
        SiteBlock("weights", Identity((2,), is_complex=False), Laplace(1.0)),
        SiteBlock("counts", Dense(np.eye(2)), Poisson([1, 2])),
        SiteBlock("labels", Dense(np.eye(2)), Hinge([1, -1])),
    )
    groups = site_groups(GeneralizedLinearModel.of_sites(blocks))
    assert [group.name for group in groups] == ["weights"]


def test_units_of_the_data_shift_the_bound_by_their_jacobian(accurate, rng, settled):
    """Data and noise scaled by c: a density of the data in other units, c^-m times the old, where n scales back."""
    c = 7.0
    posterior = settled("matrix")
    model = posterior.model
    scaled = GeneralizedLinearModel(model.measurement, c * model.data, c**2 * model.noise_variance, model.blocks)
    bounds = [evidence_bound(p.model, p.criterion[-1]) for p in (posterior, accurate.infer(scaled, rng))]
    n, m = model.measurement.in_size, model.measurement.out_size
    assert bounds[1] - bounds[0] == pytest.approx((n - m) * np.log(c), rel=1e-8)
