"""Posterior, MAP and least squares of samples along spokes and spirals, one coil and several, beside dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

import mri_design as md
from mri_design.model import PosteriorPrecision
from mri_design.operators import FiniteDifferences, Identity, NonUniformFourier
from mri_design.sites import Laplace
from mri_design.variances import ControlVariate, Exact
from tests.arrays import smooth_maps, spiral, spokes

pytest.importorskip("finufft")
N = 12
SHAPE = (N, N)
NOISE_SD = 0.01


@pytest.fixture(scope="module", params=[("spokes", 3), ("spiral", 1)], ids=str)
def model(request: pytest.FixtureRequest) -> md.GeneralizedLinearModel:
    name, coils = request.param
    rng = np.random.default_rng(0)
    y, x = np.meshgrid(*2 * (np.linspace(-1, 1, N),), indexing="ij")
    points = spokes(7, N) if name == "spokes" else spiral(N, 1, 3, 3, 60)
    X = NonUniformFourier(points, SHAPE, smooth_maps(SHAPE, coils))
    image = ((np.hypot(y, x) < 0.8) - 0.5 * (np.abs(y - 0.2) + np.abs(x) < 0.4)) * np.exp(0.5j * x)
    data = X(image) + NOISE_SD * (rng.standard_normal(X.out_shape) + 1j * rng.standard_normal(X.out_shape))
    blocks = (
        md.SiteBlock("pixels", Identity(SHAPE), Laplace(0.3)),
        md.SiteBlock("differences", FiniteDifferences(SHAPE), Laplace(0.1), (-3,)),
    )
    return md.GeneralizedLinearModel(X, data, NOISE_SD**2, blocks)


def test_mean_and_variances_are_those_of_dense_matrices(model):
    posterior = md.DoubleLoop(Exact(), outer_iterations=5).infer(model, np.random.default_rng(1))
    X = model.measurement.to_dense()
    A = X.conj().T @ X
    for block, pi in zip(model.blocks, posterior.site_precisions, strict=True):
        B = block.analysis.to_dense()
        A += B.conj().T @ (np.broadcast_to(pi, block.analysis.out_shape).reshape(-1, 1) * B)
    mean = np.linalg.solve(A, X.conj().T @ model.data.ravel())
    np.testing.assert_allclose(posterior.mean.ravel(), mean, atol=2e-3 * np.abs(mean).max())
    variances = 2 * model.noise_variance * np.diag(np.linalg.inv(A)).real
    np.testing.assert_allclose(posterior.image_variances.ravel(), variances, rtol=1e-6)
    precision = PosteriorPrecision(model.measurement, model.blocks, posterior.site_precisions)
    unit = np.eye(N * N).reshape(-1, *SHAPE) + 0j
    np.testing.assert_allclose(precision(unit).reshape(N * N, -1).T, A, atol=1e-9 * np.abs(A).max())


def test_single_precision_does_where_samples_crowd_around_the_centre():
    """An adjoint that is not exact to rounding leaves objectives without a minimum."""
    rng, n = np.random.default_rng(3), 16
    X = NonUniformFourier(spiral(n, 2, 2, 6, 150), (n, n))
    y, x = np.meshgrid(*2 * (np.linspace(-1, 1, n),), indexing="ij")
    data = X((np.hypot(y, x) < 0.8) * np.exp(0.5j * x))
    data = data + 0.007 * (rng.standard_normal(data.shape) + 1j * rng.standard_normal(data.shape))
    blocks = (
        md.SiteBlock("pixels", Identity((n, n)), Laplace(0.4)),
        md.SiteBlock("differences", FiniteDifferences((n, n)), Laplace(0.07)),
    )
    single, double = (
        md.DoubleLoop(ControlVariate(samples=4), outer_iterations=2).infer(model, np.random.default_rng(1))
        for model in (
            md.GeneralizedLinearModel(X, data.astype(kind), 0.007**2, blocks) for kind in (np.complex64, complex)
        )
    )
    assert np.linalg.norm(single.mean - double.mean) < 0.01 * np.linalg.norm(double.mean)
