"""Models: site arithmetic, common null spaces, and noise with a covariance against the dense factor."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

import mri_design as md
from mri_design.model import require_determined
from mri_design.operators import Diagonal, PhasedParts, RealImage
from tests.refusals import refused

SHAPE = (6, 5)


def pixels(**changes: object) -> md.SiteBlock:
    return md.SiteBlock(**{"name": "pixels", "analysis": md.Identity(SHAPE), "potential": md.Laplace(1.0), **changes})


def valid() -> dict:
    X = md.cartesian([0, 3], SHAPE)
    return {"measurement": X, "data": np.ones(X.out_shape, complex), "noise_variance": 0.1, "blocks": (pixels(),)}


def test_site_power_pools_moduli_over_groups_and_scales_broadcast_over_sites():
    s = np.arange(60.0).reshape(2, 6, 5) * (1 - 2j)
    single = md.SiteBlock("differences", md.FiniteDifferences(SHAPE), md.Laplace(1.0))
    grouped = md.SiteBlock("differences", md.FiniteDifferences(SHAPE), md.Laplace(1.0), (-3,))
    assert single.site_shape == (2, 6, 5) and grouped.site_shape == (1, 6, 5)
    np.testing.assert_allclose(single.site_power(s), np.abs(s) ** 2)
    np.testing.assert_allclose(grouped.site_power(s), np.sum(np.abs(s) ** 2, axis=0, keepdims=True))
    np.testing.assert_allclose(grouped.site_power(s.real), np.sum(s.real**2, axis=0, keepdims=True))
    for scale in (np.ones((6, 1)), np.ones(5), np.ones((6, 5))):
        assert pixels(potential=md.Laplace(scale)).site_shape == SHAPE
    vectors = md.SiteBlock("entries", md.Dense(np.eye(4)), md.Laplace(np.ones(4)))
    assert vectors.site_shape == (4,)


def test_roles_are_derived_unless_they_are_given_also_in_copies():
    X = md.Dense(np.eye(2))

    def role(site, **more):
        return md.SiteBlock("b", X, site, **more).role

    assert role(md.Laplace(1.0)) == role(md.Tilted(md.Gaussian(1.0), 0.5)) == "prior"
    assert role(md.Laplace(1.0), offset=np.ones(2)) == "likelihood"
    for site in (md.Logistic([1, -1]), md.Poisson([0, 2]), md.Hinge([1, -1])):
        assert role(site) == "likelihood" and role(site, role="prior") == "prior"
    assert role(md.Tilted(md.Gaussian(1.0), 0.5), role="likelihood") == "likelihood"
    assert role(md.Laplace(1.0), offset=np.ones(2), role="prior") == "prior"
    said = md.SiteBlock("b", md.Dense(np.eye(2)), md.Gaussian(1.0), role="prior")
    derived = md.SiteBlock("b", md.Dense(np.eye(2)), md.Gaussian(1.0))
    assert replace(said, offset=np.ones(2)).role == "prior"
    assert replace(derived, offset=np.ones(2)).is_likelihood
    assert replace(replace(derived, offset=np.ones(2)), offset=None).role == "prior"
    assert replace(derived, potential=md.Poisson([1, 2])).is_likelihood


@pytest.mark.parametrize(("ratio", "double"), [(100.0, False), (300.0, True)])
def test_data_with_little_noise_become_double(ratio: float, double: bool) -> None:
    """The condition number grows as the squared ratio of signal to noise."""
    X = md.cartesian([0, 3], SHAPE)
    data = np.full(X.out_shape, np.sqrt(3), dtype=np.complex64)  # of energy 30: one per pixel
    assert np.sum(np.abs(data) ** 2) == pytest.approx(30)
    model = md.GeneralizedLinearModel(X, data, ratio**-2, (pixels(),))
    assert model.data.dtype == (np.complex128 if double else np.complex64)


SMALL = (6, 4)


def model_of(X, *analyses, names=("differences", "more")) -> md.GeneralizedLinearModel:
    blocks = tuple(md.SiteBlock(name, B, md.Laplace(1.0)) for name, B in zip(names, analyses, strict=False))
    return md.GeneralizedLinearModel(X, np.zeros(X.out_shape, complex if X.out_complex else float), 1.0, blocks)


def coils() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((2, *SMALL)) + 1j * rng.standard_normal((2, *SMALL))


@pytest.mark.parametrize(
    "model",
    [
        model_of(md.cartesian([0, 3], SMALL), md.FiniteDifferences(SMALL)),
        model_of(md.cartesian([0, 1], SMALL), md.Identity(SMALL)),
        model_of(md.cartesian([0], SMALL), md.Wavelet(SMALL, "db1", 1)),
        model_of(md.cartesian([0, 1], SMALL), md.FiniteDifferences(SMALL), md.Identity(SMALL)),
        model_of(md.cartesian([0, 1], SMALL, coils()), md.FiniteDifferences(SMALL)),
        model_of(md.cartesian([3], SMALL) @ RealImage(SMALL), md.FiniteDifferences(SMALL, is_complex=False)),
        model_of(md.Dense(np.ones((1, 3))), md.Dense(np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]))),
    ],
    ids=["centre", "pixels", "wavelet", "both", "coils", "real image", "matrix"],
)
def test_determined_models_pass(model):
    require_determined(model)


@pytest.mark.parametrize(
    "model",
    [
        model_of(md.cartesian([0, 1], SMALL), md.FiniteDifferences(SMALL)),
        model_of(md.cartesian([0, 1], SMALL) @ RealImage(SMALL), md.FiniteDifferences(SMALL, is_complex=False)),
        model_of(
            md.cartesian([0, 1], SMALL, np.array([[[1.0 + 0j]], [[0.5j]]]) * np.ones(SMALL)),
            md.FiniteDifferences(SMALL),
        ),
        model_of(md.Dense(np.array([[1.0, -1.0, 0.0]])), md.Dense(np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]))),
        md.GeneralizedLinearModel.of_sites([md.SiteBlock("differences", md.FiniteDifferences(SMALL), md.Laplace(1.0))]),
    ],
    ids=["no centre", "real image", "flat coils", "matrix", "prior alone"],
)
def test_a_common_null_space_is_refused_with_its_blocks_and_the_cure(model):
    with refused("model with blocks 'differences'"):
        require_determined(model)
    with refused("model with blocks 'differences'"):
        md.DoubleLoop().infer(model, np.random.default_rng(0))


def test_where_a_block_is_known_to_see_every_image_nothing_is_solved(monkeypatch):
    monkeypatch.setattr("mri_design.model.generalized_linear._null_direction_found", lambda *_: pytest.fail("probed"))
    shape = (40, 20)
    rotation = np.exp(1j * np.random.default_rng(0).uniform(-3, 3, shape))
    pixels, slopes = (PhasedParts(B, rotation, 3.0) for B in (md.Identity(shape), md.FiniteDifferences(shape)))
    require_determined(model_of(md.cartesian([0, 3], shape, np.ones((2, *shape))), slopes, pixels))
    with pytest.raises(pytest.fail.Exception, match="probed"):  # differences alone see no constant image
        require_determined(model_of(md.cartesian([0, 3], shape, np.ones((2, *shape))), slopes))


def large(free: int, kind: type) -> md.GeneralizedLinearModel:
    """Beyond dense rank computations and without known spectra: pixels with weights, ``free`` of them 0."""
    shape = (40, 20)
    seen = np.geomspace(1, 100, 800).reshape(shape).astype(kind)
    seen.ravel()[100 : 100 + free] = 0
    one, two = Diagonal(seen), Diagonal(seen[::-1, ::-1] * (seen > 0))
    return model_of(one, two)


@pytest.mark.parametrize(("free", "kind"), [(1, np.float64), (30, np.float32)])
def test_a_null_space_of_a_large_model_is_found_by_a_probe(free, kind):
    with refused("model with blocks 'differences'"):
        require_determined(large(free, kind))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.thorough
def test_large_determined_models_pass_the_probe(kind):
    require_determined(large(0, kind))
    weights = np.geomspace(1e-4, 1, 800).reshape(40, 20).astype(kind)
    require_determined(model_of(Diagonal(weights), Diagonal(weights)))
    rows = np.random.default_rng(0).standard_normal((900, 800)).astype(kind)
    require_determined(model_of(md.Dense(rows[:450]), md.Dense(rows[450:])))
    require_determined(model_of(md.Dense(1e6 * rows[:450]), md.Dense(1e-3 * rows[450:])))
    with refused("model with blocks 'differences'"):
        require_determined(model_of(md.Dense(rows[:400]), md.Dense(rows[400:790])))


def embedded(values: np.ndarray) -> np.ndarray:
    flat = values.ravel()
    return np.concatenate([flat.real, flat.imag]) if np.iscomplexobj(flat) else flat


def covariances(model: md.GeneralizedLinearModel, kind: str) -> tuple[dict, np.ndarray]:
    """The argument, and C on all real measurements."""
    rng = np.random.default_rng(5)
    shape, size = model.measurement.out_shape, model.measurement.out_size
    if kind == "variances":
        v = rng.uniform(0.3, 3, shape)
        return {"variances": v}, np.diag(np.tile(v.ravel(), size // v.size))
    if kind == "coils":
        root = rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3))
        psi = root @ root.conj().T + np.eye(3)
        full = np.kron(psi, np.eye(int(np.prod(shape[1:]))))
        return {"coils": psi}, np.block([[full.real, -full.imag], [full.imag, full.real]])
    root = rng.standard_normal((size, size))
    return {"matrix": root @ root.T / size + np.eye(size)}, root @ root.T / size + np.eye(size)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("matrix", "variances"), ("matrix", "matrix"), ("coils", "coils"), ("coils", "matrix")],
)
def test_the_gaussian_factor_has_that_covariance(name, kind, tiny_model):
    """Gaussian sites: the bound is the evidence, a normal density of the data in their own units, and exact."""
    model = tiny_model(name, md.Gaussian)
    block = md.SiteBlock(
        "pixels", md.Identity(model.image_shape, is_complex=model.measurement.in_complex), md.Gaussian(0.7)
    )
    model = md.GeneralizedLinearModel(model.measurement, model.data, model.noise_variance, (block,))
    argument, C = covariances(model, kind)
    white = md.with_noise_covariance(model, **argument)
    posterior = md.DoubleLoop(md.Exact(), tolerance=1e-8).infer(white, np.random.default_rng(0))
    X, y, sigma2, n = (
        model.measurement.to_dense_real(),
        embedded(model.data),
        model.noise_variance,
        model.measurement.in_size,
    )
    inverse = np.linalg.inv(C)
    A = X.T @ inverse @ X + 0.7 * np.eye(n)
    np.testing.assert_allclose(posterior.precision.dense_real(), A, atol=1e-10)
    np.testing.assert_allclose(embedded(posterior.mean), np.linalg.solve(A, X.T @ inverse @ y), atol=1e-4)
    normaliser = 0.5 * n * np.log(2 * np.pi * sigma2 / 0.7)
    marginal = scipy.stats.multivariate_normal(cov=sigma2 * (C + X @ X.T / 0.7)).logpdf(y)
    assert md.evidence_bound(white, posterior.criterion[-1]) == pytest.approx(marginal + normaliser, abs=1e-5)


@pytest.mark.parametrize("kind", ["variances", "coils", "matrix"])
def test_whitenings_have_their_adjoint_and_batches(kind, tiny_model):
    model = tiny_model("coils")
    X = md.with_noise_covariance(model, **covariances(model, kind)[0]).measurement
    rng = np.random.default_rng(1)
    u, v = ((rng.standard_normal((2, *s)) + 1j * rng.standard_normal((2, *s))) for s in (X.in_shape, X.out_shape))
    assert np.sum((X(u) * v.conj()).real) == pytest.approx(np.sum((u * X.adjoint(v).conj()).real))
    np.testing.assert_allclose(X(u)[1], X(u[1]))
    single = md.with_noise_covariance(tiny_model("coils", real=np.float32), **covariances(model, kind)[0])
    assert single.data.dtype == np.complex64
