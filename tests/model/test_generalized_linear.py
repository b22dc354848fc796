"""The linear model: blocks, precision of its numbers, noise covariances, null spaces, and what makes no model."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

import mri_design as md
from mri_design.model import (
    AlikePatches,
    Companion,
    ExpectedImage,
    ImageFacts,
    PhaseMap,
    PhasePrior,
    companion_patches,
    estimate_phase,
    find_alike,
    require_determined,
)
from mri_design.operators import (
    CentredFFT,
    Dense,
    Diagonal,
    FiniteDifferences,
    Identity,
    PhasedParts,
    RealImage,
    Wavelet,
)
from mri_design.readouts import LineReadouts
from mri_design.registry import BLOCKS
from mri_design.sites import Gaussian, Hinge, Laplace, Logistic, Poisson, Tilted
from mri_design.variances import Exact
from tests.arrays import as_real, noise
from tests.refusals import refused

SHAPE = (6, 5)


def pixels(**changes: object) -> md.SiteBlock:
    return md.SiteBlock(**{"name": "pixels", "analysis": Identity(SHAPE), "potential": Laplace(1.0), **changes})


def test_site_power_pools_moduli_over_groups_and_scales_broadcast_over_sites():
    s = np.arange(60.0).reshape(2, 6, 5) * (1 - 2j)
    single = md.SiteBlock("differences", FiniteDifferences(SHAPE), Laplace(1.0))
    grouped = md.SiteBlock("differences", FiniteDifferences(SHAPE), Laplace(1.0), (-3,))
    assert single.site_shape == (2, 6, 5) and grouped.site_shape == (1, 6, 5)
    np.testing.assert_allclose(single.site_power(s), np.abs(s) ** 2)
    np.testing.assert_allclose(grouped.site_power(s), np.sum(np.abs(s) ** 2, axis=0, keepdims=True))
    np.testing.assert_allclose(grouped.site_power(s.real), np.sum(s.real**2, axis=0, keepdims=True))
    for scale in (np.ones((6, 1)), np.ones(5), np.ones((6, 5))):
        assert pixels(potential=Laplace(scale)).site_shape == SHAPE
    vectors = md.SiteBlock("entries", Dense(np.eye(4)), Laplace(np.ones(4)))
    assert vectors.site_shape == (4,)


def test_roles_are_derived_unless_they_are_given_also_in_copies():
    X = Dense(np.eye(2))

    def role(site, **more):
        return "likelihood" if md.SiteBlock("b", X, site, **more).is_likelihood else "prior"

    assert role(Laplace(1.0)) == role(Tilted(Gaussian(1.0), 0.5)) == "prior"
    assert role(Laplace(1.0), offset=np.ones(2)) == "likelihood"
    for site in (Logistic([1, -1]), Poisson([0, 2]), Hinge([1, -1])):
        assert role(site) == "likelihood" and role(site, role="prior") == "prior"
    assert role(Tilted(Gaussian(1.0), 0.5), role="likelihood") == "likelihood"
    assert role(Laplace(1.0), offset=np.ones(2), role="prior") == "prior"
    said = md.SiteBlock("b", Dense(np.eye(2)), Gaussian(1.0), role="prior")
    derived = md.SiteBlock("b", Dense(np.eye(2)), Gaussian(1.0))
    assert not replace(said, offset=np.ones(2)).is_likelihood
    assert replace(derived, offset=np.ones(2)).is_likelihood
    assert not replace(replace(derived, offset=np.ones(2)), offset=None).is_likelihood
    assert replace(derived, potential=Poisson([1, 2])).is_likelihood


@pytest.mark.parametrize(("ratio", "double"), [(100.0, False), (300.0, True)])
def test_data_with_little_noise_become_double(ratio: float, double: bool) -> None:
    """The condition number grows as the squared ratio of signal to noise."""
    X = md.operators.cartesian([0, 3], SHAPE)
    data = np.full(X.out_shape, np.sqrt(3), dtype=np.complex64)  # of energy 30: one per pixel
    assert np.sum(np.abs(data) ** 2) == pytest.approx(30)
    model = md.GeneralizedLinearModel(X, data, ratio**-2, (pixels(),))
    assert model.data.dtype == (np.complex128 if double else np.complex64)


SMALL = (6, 4)


def model_of(X, *analyses, names=("differences", "more")) -> md.GeneralizedLinearModel:
    blocks = tuple(md.SiteBlock(name, B, Laplace(1.0)) for name, B in zip(names, analyses, strict=False))
    return md.GeneralizedLinearModel(X, np.zeros(X.out_shape, complex if X.out_complex else float), 1.0, blocks)


SLOPES, STEPS = FiniteDifferences(SMALL), Dense(np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]))
REAL_SLOPES = FiniteDifferences(SMALL, is_complex=False)


@pytest.mark.parametrize(
    "model",
    [
        model_of(md.operators.cartesian([0, 3], SMALL), FiniteDifferences(SMALL)),
        model_of(md.operators.cartesian([0, 1], SMALL), Identity(SMALL)),
        model_of(md.operators.cartesian([0], SMALL), Wavelet(SMALL, "db1", 1)),
        model_of(md.operators.cartesian([0, 1], SMALL), FiniteDifferences(SMALL), Identity(SMALL)),
        model_of(md.operators.cartesian([0, 1], SMALL, noise((2, *SMALL))), FiniteDifferences(SMALL)),
        model_of(md.operators.cartesian([3], SMALL) @ RealImage(SMALL), FiniteDifferences(SMALL, is_complex=False)),
        model_of(Dense(np.ones((1, 3))), STEPS),
    ],
)
def test_determined_models_pass(model):
    require_determined(model)


@pytest.mark.parametrize(
    "model",
    [
        model_of(md.operators.cartesian([0, 1], SMALL), FiniteDifferences(SMALL)),
        model_of(md.operators.cartesian([0, 1], SMALL) @ RealImage(SMALL), FiniteDifferences(SMALL, is_complex=False)),
        model_of(md.operators.cartesian([0, 1], SMALL, np.array([1, 0.5j])[:, None, None] * np.ones(SMALL)), SLOPES),
        model_of(Dense(np.array([[1.0, -1.0, 0.0]])), STEPS),
        md.GeneralizedLinearModel.of_sites([md.SiteBlock("differences", FiniteDifferences(SMALL), Laplace(1.0))]),
    ],
)
def test_a_common_null_space_is_refused_with_its_blocks_and_the_cure(model):
    with refused("model with blocks 'differences'"):
        require_determined(model)
    with refused("model with blocks 'differences'"):
        md.DoubleLoop().infer(model, np.random.default_rng(0))


def test_where_a_block_is_known_to_see_every_image_nothing_is_solved(monkeypatch):
    monkeypatch.setattr("mri_design.model.generalized_linear._null_direction_found", lambda *_: pytest.fail())
    shape = (40, 20)
    rotation = np.exp(1j * np.random.default_rng(0).uniform(-3, 3, shape))
    pixels, slopes = (PhasedParts(B, rotation, 3.0) for B in (Identity(shape), FiniteDifferences(shape)))
    require_determined(model_of(md.operators.cartesian([0, 3], shape, np.ones((2, *shape))), slopes, pixels))
    with pytest.raises(pytest.fail.Exception):  # differences alone see no constant image
        require_determined(model_of(md.operators.cartesian([0, 3], shape, np.ones((2, *shape))), slopes))


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
    require_determined(model_of(Dense(rows[:450]), Dense(rows[450:])))
    require_determined(model_of(Dense(1e6 * rows[:450]), Dense(1e-3 * rows[450:])))
    with refused("model with blocks 'differences'"):
        require_determined(model_of(Dense(rows[:400]), Dense(rows[400:790])))


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
    ("name", "kind"), [("matrix", "variances"), ("matrix", "matrix"), ("coils", "coils"), ("coils", "matrix")]
)
def test_the_gaussian_factor_has_that_covariance(name, kind, tiny_model):
    """Gaussian sites: the bound is the evidence, a normal density of the data in their own units, and exact."""
    model = tiny_model(name, Gaussian)
    pixels = Identity(model.image_shape, is_complex=model.measurement.in_complex)
    model = replace(model, blocks=(md.SiteBlock("pixels", pixels, Gaussian(0.7)),))
    argument, C = covariances(model, kind)
    white = md.model.with_noise_covariance(model, **argument)
    posterior = md.DoubleLoop(Exact(), tolerance=1e-8).infer(white, np.random.default_rng(0))
    X, sigma2, n = model.measurement.to_dense_real(), model.noise_variance, model.measurement.in_size
    y = as_real(model.data, np.iscomplexobj(model.data))
    inverse = np.linalg.inv(C)
    A = X.T @ inverse @ X + 0.7 * np.eye(n)
    np.testing.assert_allclose(posterior.precision.dense_real(), A, atol=1e-10)
    np.testing.assert_allclose(
        as_real(posterior.mean, np.iscomplexobj(model.data)), np.linalg.solve(A, X.T @ inverse @ y), atol=1e-4
    )
    normaliser = 0.5 * n * np.log(2 * np.pi * sigma2 / 0.7)
    marginal = scipy.stats.multivariate_normal(cov=sigma2 * (C + X @ X.T / 0.7)).logpdf(y)
    assert md.inference.evidence_bound(white, posterior.criterion[-1]) == pytest.approx(marginal + normaliser, abs=1e-5)


@pytest.mark.parametrize("kind", ["variances", "coils", "matrix"])
def test_whitenings_have_their_adjoint_and_batches(kind, tiny_model):
    model = tiny_model("coils")
    X = md.model.with_noise_covariance(model, **covariances(model, kind)[0]).measurement
    u, v = (noise((2, *shape), seed=len(shape)) for shape in (X.in_shape, X.out_shape))
    assert np.sum((X(u) * v.conj()).real) == pytest.approx(np.sum((u * X.adjoint(v).conj()).real))
    np.testing.assert_allclose(X(u)[1], X(u[1]))
    single = md.model.with_noise_covariance(tiny_model("coils", real=np.float32), **covariances(model, kind)[0])
    assert single.data.dtype == np.complex64


N = (16, 12)
NOISE = noise(N, seed=1)
IMAGE = np.outer(np.hanning(N[0]), np.hanning(N[1])) * np.exp(0.2j)
STRIPES = np.cos(np.arange(144.0)).reshape(12, 12) + 0.1 * np.arange(12)
FLAT = PhaseMap.known(np.zeros(SHAPE))
THREE = Dense(np.eye(3))


def model(**changes: object) -> md.GeneralizedLinearModel:
    X = md.operators.cartesian([0, 3], SHAPE)
    valid = {"measurement": X, "data": np.ones(X.out_shape, complex), "noise_variance": 0.1, "blocks": (pixels(),)}
    return md.GeneralizedLinearModel(**{**valid, **changes})


def one_slice(**changes: object) -> md.SliceModel:
    known = {"kspace": (CentredFFT(N)(IMAGE) + 0.01 * NOISE)[None], "measured": np.ones(N[0], bool)}
    return md.SliceModel(**{**known, "noise_variance": 1e-4, **changes})


MODELS = [
    *(("data", lambda y=y: model(data=y)) for y in (np.ones((1, 3, 5), complex), np.full((1, 2, 5), np.nan + 0j))),
    *(("data", lambda y=y: model(data=y)) for y in (np.full((1, 2, 5), np.inf + 0j), np.array([[["x"]]]))),
    ("measurement and data", lambda: model(data=None)),
    *(
        ("noise_variance", lambda v=v: model(noise_variance=v))
        for v in (0.0, None, 1 + 1j, np.ones(2), "x", -1.0, np.nan, np.inf)
    ),
    ("measurement and data", lambda: model(measurement=None)),
    ("blocks", lambda: model(blocks=())),
    ("block 'pixels'", lambda: model(blocks=(pixels(analysis=Identity((5, 6))),))),
    ("block 'pixels'", lambda: model(blocks=(pixels(analysis=Identity(SHAPE, is_complex=False)),))),
    ("blocks", lambda: md.GeneralizedLinearModel.of_sites([])),
    ("analysis and potentials", lambda: md.GeneralizedLinearModel(THREE, np.ones(3), 0.1, analysis=THREE)),
    ("data", lambda: replace(model_of(THREE, THREE), data=np.ones(3) + 1j)),
    ("block 'pixels'", lambda: pixels(potential="Laplace")),
    ("block 'pixels'", lambda: pixels(analysis=np.eye(3))),
    *(("block 'pixels': group_axes", lambda a=a: pixels(group_axes=a)) for a in ((-1, -1), (0,), (-3,))),
    *(
        ("block 'pixels': rate of the sites", lambda s=s: pixels(potential=Laplace(s)))
        for s in (np.ones(4), np.ones((2, 6, 5)))
    ),
    ("block 'pixels': rate of the sites", lambda: pixels(potential=Laplace(np.ones((6, 5))), group_axes=(-1,))),
    ("block 'pixels': role", lambda: pixels(role="belief")),
    ("block 'data': offset", lambda: md.SiteBlock("data", THREE, Laplace(1.0), offset=np.array([1.0, np.nan, 1.0]))),
    ("block 'data': odd part of the sites", lambda: md.SiteBlock("data", Dense(np.eye(2)), Logistic(np.ones(3)))),
    ("block 'data'", lambda: md.SiteBlock("data", Dense(np.eye(2) + 0j), Hinge(np.array([1.0, -1.0])))),
]
COVARIANCES = [
    *(("noise covariance", given) for given in ({}, {"variances": 1.0, "coils": np.eye(3)})),
    *(("noise variances", {"variances": v}) for v in (0.0, -1.0, np.nan, np.ones(7))),
    *(("coil covariance", {"coils": c}) for c in (np.eye(2), np.diag([1.0, 1.0, 0.0]), np.diag([1.0, np.inf, 1.0]))),
    ("coil covariance", {"coils": np.triu(np.ones((3, 3)))}),
    ("noise covariance", {"matrix": np.eye(4)}),
]
PRIORS = [
    *(("image", lambda n=n: find_alike(n)) for n in (NOISE, np.ones((20, 20)), np.zeros((20, 20)))),
    *(("image", lambda n=n: find_alike(n)) for n in (np.full((9, 9), np.nan), np.ones(9), np.ones((2, 9, 9)))),
    *(("neighbours", lambda s=s: find_alike(np.resize(STRIPES, s), 99)) for s in ((1, 1), (1, 40), (4, 4))),
    ("neighbours", lambda: find_alike(STRIPES, 0)),
    ("alike patches", lambda: AlikePatches(np.zeros((2, 3, 3), int), np.zeros((1, 3, 3)))),
    *(("image", lambda n=n: companion_patches([n])) for n in (np.ones(N), NOISE.real)),
    *(("companion", lambda n=n: companion_patches([n])) for n in (np.zeros(N), np.full(N, np.nan))),
    ("companion other", lambda: Companion("other", np.ones((2, *N)))),
    ("repeat", lambda: ExpectedImage(NOISE, np.ones((3, 3)))),
    ("companion", lambda: replace(one_slice(), companion=companion_patches([STRIPES]))),
    *(
        ("tau_limit_bright", lambda k=k: md.SparsityBlock(k, 1.0, tau_limit=0.4, tau_limit_bright=0.02))
        for k in ("differences", "non-local")
    ),
    ("tau_limit_bright", lambda: md.SparsityBlock("pixels", 1.0, tau_limit_bright=0.02)),
    ("reweighted", lambda: md.SparsityBlock("pixels", 1.0, tau_limit=0.4, reweighted=True)),
    ("site", lambda: md.SparsityBlock("pixels", 1.0, site="laplas")),
    ("phase", lambda: md.SparsityBlock("pixels", 1.0).sites(ImageFacts(N, 1.0), 1.0, PhasePrior())),
    ("site", lambda: md.register_site("a b", Laplace)),
    ("block kind mine", lambda: md.register_block("mine", 3)),
    *(("phase", lambda s=s: estimate_phase(0.3 * NOISE[:, :s], 0.09)) for s in (12, 11)),
    *(
        ("image", lambda i=i: estimate_phase(i, 0.1))
        for i in (np.ones(N), np.ones((2, *N), complex), np.full(N, np.nan + 0j))
    ),
    ("noise_variance", lambda: estimate_phase(np.ones(N, complex), -1.0)),
    ("phase", lambda: estimate_phase(np.zeros(N, complex), 0.0)),
    ("phase map", lambda: PhaseMap(np.ones(N, complex), np.ones((3, 3)))),
    ("phase map", lambda: PhaseMap(2 * np.ones(N, complex), np.ones(N))),
    *(("phase map", lambda c=c: PhaseMap(np.ones(N, complex), np.full(N, c))) for c in (2.0, np.nan)),
    ("imaginary_ratio", lambda: PhasePrior(FLAT, 0.0)),
    ("phase", lambda: one_slice(phase=PhasePrior(FLAT))),
]
SLICES = [
    ("kspace", lambda: one_slice(kspace=np.ones(N, complex))),
    ("kspace", lambda: one_slice(readouts=LineReadouts((12, 16)))),
    ("prior", lambda: one_slice(prior="wavelet")),
    ("prior[1]", lambda: one_slice(prior=(md.SparsityBlock("pixels", 1.0), "wavelet"))),
    ("coil maps", lambda: one_slice(kspace=np.ones((2, *N), complex))),
    ("coil maps", lambda: one_slice(maps=np.ones((3, *N)))),
    ("measured", lambda: one_slice(measured=np.ones(12, bool))),
    ("samples", lambda: one_slice(samples=np.ones(N))),
    *(("noise_variance", lambda v=v: one_slice(noise_variance=v)) for v in (0.0, -1.0, np.nan)),
    ("k-space centre", lambda: one_slice(kspace=np.zeros((1, *N), complex)).model([8])),
    ("k-space centre", lambda: one_slice().model([])),
    ("k-space centre", lambda: one_slice(kspace=NOISE[None], noise_variance=1.0).model(range(4, 13))),
    ("phase", lambda: one_slice(kspace=0.01 * NOISE[None], phase=PhasePrior()).model([8, 7, 9, 6], signal=1.0)),
    ("lines", lambda: one_slice().model([8, 8])),
    *(("lines", lambda n=n: one_slice().acquire(n)) for n in ([2, 16], [-1])),
    ("lines", lambda: one_slice(measured=np.arange(N[0]) != 3).acquire([2, 3])),
    ("lines", lambda: one_slice().model([8, 16])),
    ("block kind", lambda: one_slice(prior=(md.SparsityBlock("curvelets", 1.0),)).model([8])),
    ("rate", lambda: one_slice(prior=(md.SparsityBlock("pixels", 0.0),)).model([8])),
    ("wavelet levels", lambda: one_slice(prior=(md.SparsityBlock("wavelet", 1.0, levels=9),)).model([8])),
    ("blocks", lambda: one_slice(prior=()).model([8])),
    ("noise_variance", lambda: md.KSpaceData(np.ones((1, 1, *N), np.complex64), np.ones(N[0], bool)).slice_model()),
    ("coil maps", lambda: md.KSpaceData(noise((1, 2, *N)), np.ones(N[0], bool), noise_variance=1).slice_model()),
]


@pytest.mark.parametrize(("field", "call"), [*MODELS, *PRIORS, *SLICES])
def test_what_cannot_be_is_refused_by_its_field(field, call):
    with refused(field):
        call()


@pytest.mark.parametrize(("field", "covariance"), COVARIANCES)
def test_covariances_that_cannot_be_are_refused(field, covariance, tiny_model):
    with refused(field):
        md.model.with_noise_covariance(tiny_model("coils"), **covariance)


def test_a_block_that_makes_no_operator_is_refused_by_its_name(monkeypatch):
    monkeypatch.setitem(BLOCKS, "nothing", lambda block, image: None)
    with refused("block nothing"):
        md.SparsityBlock("nothing", 1.0).sites(ImageFacts((4, 4), 1.0), 0.1)
