"""Whitened Gaussian factors against the dense one with its covariance."""

import numpy as np
import pytest
import scipy.stats

import mri_design as md


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
