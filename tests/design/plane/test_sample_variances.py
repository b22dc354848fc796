"""Variances of samples against dense linear algebra."""

import numpy as np
import pytest
import scipy.linalg

from mri_design import (
    ControlVariate,
    DoubleLoop,
    Exact,
    GaussianPosterior,
    InputError,
    MRSlice,
    information_gain,
    load_phantom,
)
from mri_design.design.plane.by_posterior import InformationGainSamples, gain_of_samples
from mri_design.design.sample_variances import (
    expected_sample_energies,
    least_sample_energies,
    plane_of,
    sample_moments,
    sample_variances,
    squared_correlation,
)
from mri_design.operators.encodings import PlaneEncoding
from mri_design.variances.circulant import CirculantControl
from tests.design.plane.conftest import measured_ids, plane_posterior, plane_slice


def dense_variances(posterior: GaussianPosterior) -> np.ndarray:
    """Per real component and sample, summed over coils."""
    plane, measured = plane_of(posterior)
    rows = plane.rows(range(plane.size), measured.maps).to_dense_real()
    root = scipy.linalg.solve_triangular(
        scipy.linalg.cholesky(posterior.precision.dense_real(), lower=True), rows.T, lower=True
    )
    components = np.sum(root**2, axis=0).reshape(2, -1, plane.size)
    return np.asarray(components.sum(axis=(0, 1)) / 2)


@pytest.mark.parametrize(("coils", "worst"), [(1, 0.15), (3, 0.4)])
def test_draws_estimate_the_dense_variances(coils: int, worst: float) -> None:
    posterior, exact = plane_posterior(coils), dense_variances(plane_posterior(coils))
    estimated = sample_variances(posterior, np.random.default_rng(1), 8)
    assert np.median(np.abs(estimated / exact - 1)) < worst
    assert abs(np.mean(estimated) / np.mean(exact) - 1) < 0.1


def test_a_circulant_makes_variances_of_one_coil_more_exact() -> None:
    posterior, exact = plane_posterior(1), dense_variances(plane_posterior(1))
    plane, _ = plane_of(posterior)
    plain = np.mean(np.abs(plane.values(posterior.marginals.samples)[:, 0, :, 0]) ** 2, axis=0) / 2
    controlled = sample_variances(posterior, np.random.default_rng(1), 8)
    errors = [np.sqrt(np.mean((estimate / exact - 1) ** 2)) for estimate in (controlled, plain)]
    assert errors[0] < 0.6 * errors[1]


def test_the_moments_are_those_of_the_control() -> None:
    posterior = plane_posterior(1, draws=4)
    control = CirculantControl.of(posterior.precision)
    assert control is not None
    rows = PlaneEncoding((16, 16)).rows(range(256)).to_dense_real()
    unit = np.eye(512).reshape(512, 2, 16, 16)
    images = unit[:, 0] + 1j * unit[:, 1]
    filtered = control.image(images)
    p = np.concatenate([filtered.real.reshape(512, -1), filtered.imag.reshape(512, -1)], axis=1)
    assert control.gram is not None
    first, second = sample_moments(control, control.gram)
    np.testing.assert_allclose(np.diag(rows @ p @ rows.T)[:256], first, rtol=1e-6)
    a = posterior.precision.dense_real()
    np.testing.assert_allclose(np.diag(rows @ p @ a @ p @ rows.T)[:256], second, rtol=1e-5)


def test_what_is_left_once_all_others_are_measured_is_less_than_now() -> None:
    posterior, estimator = plane_posterior(1), ControlVariate(8, 1e-3)
    rng = np.random.default_rng(0)
    every = least_sample_energies(posterior, range(256), estimator, rng)
    now = expected_sample_energies([posterior], rng, 8)
    unmeasured = ~PlaneEncoding((16, 16)).mask(measured_ids(16)).reshape(-1)
    assert np.all(every[unmeasured] < now[unmeasured])
    assert np.all(every < 2.2 * posterior.model.noise_variance)  # the noise of a complex sample


def test_the_correlation_is_that_of_independent_pixels() -> None:
    posterior = plane_posterior(1)
    squared = squared_correlation([posterior, posterior])
    assert squared.max() == squared[8, 8] == pytest.approx(1)
    weights = np.asarray(posterior.image_variances, dtype=float)
    y, x = np.mgrid[:16, :16]
    rho = np.sum(weights * np.exp(-2j * np.pi * (2 * y + 3 * x) / 16)) / weights.sum()
    assert squared[8 + 2, 8 + 3] == pytest.approx(abs(rho) ** 2)


@pytest.mark.parametrize("coils", [1, 3])
def test_the_share_is_what_dense_algebra_removes_where_pixels_are_independent(coils: int) -> None:
    posterior = plane_posterior(coils)
    plane, measured = plane_of(posterior)
    noise = posterior.model.noise_variance
    halves = np.tile(np.asarray(posterior.image_variances, dtype=float).ravel() / 2, 2)  # of real and imaginary part
    here = plane.rows([100], measured.maps).to_dense_real()
    inverse = np.linalg.inv(here * halves @ here.T + (noise if coils > 1 else 0) * np.eye(2 * coils))
    squared = squared_correlation([posterior])
    for y, z in ((0, 0), (0, 1), (1, 0), (-2, 1), (5, -3)):
        there = plane.rows([100 + 16 * y + z], measured.maps).to_dense_real()
        cross = there * halves @ here.T
        share = np.trace(cross @ inverse @ cross.T) / np.trace(there * halves @ there.T)
        assert squared[8 + y, 8 + z] == pytest.approx(share, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("coils", [1, 2])
def test_gains_follow_the_dense_ones(coils: int) -> None:
    posterior = plane_posterior(coils, draws=24)
    scores = InformationGainSamples(draws=24).scores(posterior, np.random.default_rng(0))
    plane, measured = plane_of(posterior)
    some = [0, 60, 100, 119, 200, 255]
    exact = np.array([information_gain(posterior, plane.rows([k], measured.maps)) for k in some])
    np.testing.assert_allclose(scores[some], exact, rtol=0.45)
    assert abs(np.mean(scores[some] / exact) - 1) < 0.2


def test_fewer_draws_than_coils_give_the_same_determinant() -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal((3, 5, 4, 1)) + 1j * rng.standard_normal((3, 5, 4, 1))
    wide = gain_of_samples(values)
    for sample, score in enumerate(wide):
        root = values[:, :, sample, 0].T
        assert score == pytest.approx(2 * np.linalg.slogdet(np.eye(5) + root @ root.conj().T / 6)[1])


def test_a_posterior_of_lines_has_no_samples() -> None:
    data = load_phantom("brain", shape=(16, 16), rng=np.random.default_rng(0))
    model = MRSlice.from_data(data).model((8, 7, 9, 6, 3))
    posterior = DoubleLoop(Exact(), outer_iterations=1).infer(model, np.random.default_rng(0))
    with pytest.raises(InputError, match="single samples of a plane"):
        sample_variances(posterior, np.random.default_rng(0), 4)


def test_a_slice_of_a_plane_measures_samples() -> None:
    mr_slice = plane_slice(2)
    assert mr_slice.acquire([5, 3]).shape == (2, 2) and mr_slice.measured.shape == (256,)
    with pytest.raises(InputError, match="not measured"):
        from dataclasses import replace

        replace(mr_slice, measured=np.arange(256) > 3).acquire([3])
