"""Energies, variances and gains of lines, samples and shots against dense linear algebra."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg

import mri_design as md
from mri_design.design import (
    controlled_variances,
    exact_gains,
    expected_energies,
    gains_and_energies,
    lines_of,
    regressed_variances,
    residual_energies,
    rows_of,
)
from mri_design.design.greedy import energies
from mri_design.inference import with_unseen
from mri_design.model import GaussianPosterior, PosteriorPrecision
from mri_design.operators import FiniteDifferences, Identity, PhasedParts, Wavelet, radial_spokes
from mri_design.readouts import LineReadouts, PlaneReadouts, Readouts, ShotReadouts
from mri_design.sites import Laplace
from mri_design.variances import CirculantControl, ControlVariate, MonteCarlo, ScaledControl
from tests.design.conftest import make_slice
from tests.design.plane.conftest import plane_posterior
from tests.refusals import refused
from tests.slow_cases import slow_case

LINES, PLANE = LineReadouts((16, 16)), PlaneReadouts((16, 16))
SHOTS = ShotReadouts((16, 16), radial_spokes(16, np.linspace(0, np.pi, 6, endpoint=False)))


def posterior_of(encoding: Readouts, coils: int, draws: int = 24) -> GaussianPosterior:
    """After some candidates, with plain draws or those of a control variate."""
    if encoding is PLANE:
        return plane_posterior(coils, draws=draws)
    one = make_slice(coils)
    if encoding is SHOTS:
        truth = one.encoding().adjoint(one.kspace)
        data = SHOTS.rows(range(6), one.maps)(truth).reshape(coils, *SHOTS.shots.shape[:2]).astype(np.complex64)
        one = replace(one, kspace=data, measured=np.ones(6, dtype=bool), readouts=SHOTS)
    ids = (0, 2) if encoding is SHOTS else (8, 7, 9, 6, 3)
    loop = md.DoubleLoop(ControlVariate(draws, 1e-4), outer_iterations=2)
    return loop.infer(one.model(ids), np.random.default_rng(0))


def dense_energies(posterior: GaussianPosterior, encoding: Readouts) -> np.ndarray:
    """E |X_* (u - mean)|^2 of every candidate."""
    lower = scipy.linalg.cholesky(posterior.precision.dense_real(), lower=True)
    maps = posterior.model.measurement.maps
    rows = (encoding.rows([k], maps).to_dense_real() for k in range(encoding.size))
    return posterior.model.noise_variance * np.array(
        [np.sum(scipy.linalg.solve_triangular(lower, x.T, lower=True) ** 2) for x in rows]
    )


@pytest.mark.parametrize("coils", [1, 3])
@pytest.mark.parametrize("encoding", [LINES, PLANE, SHOTS], ids=["lines", "plane", "shots"])
def test_draws_estimate_the_dense_energies(encoding: Readouts, coils: int) -> None:
    posterior = posterior_of(encoding, coils)
    exact = dense_energies(posterior, encoding)
    estimated = energies(posterior, encoding, np.random.default_rng(1), 24)
    assert np.median(np.abs(estimated / exact - 1)) < 0.25
    assert abs(np.mean(estimated) / np.mean(exact) - 1) < 0.1
    both = expected_energies([posterior, posterior], encoding, np.random.default_rng(1), 24)
    np.testing.assert_allclose(both, 2 * estimated, rtol=1e-5)


@pytest.mark.parametrize("coils", [1, slow_case(2)])
@pytest.mark.parametrize("encoding", [LINES, PLANE], ids=["lines", "plane"])
def test_gains_follow_the_dense_ones(encoding: Readouts, coils: int) -> None:
    posterior = posterior_of(encoding, coils)
    scores, expected = gains_and_energies(posterior, encoding, np.random.default_rng(0), 24)
    exact = exact_gains(posterior.precision, encoding)
    np.testing.assert_allclose(scores, exact, rtol=0.6)
    assert abs(np.mean(scores / exact) - 1) < 0.2
    np.testing.assert_allclose(expected, energies(posterior, encoding, np.random.default_rng(0), 24), rtol=1e-5)
    one = encoding.rows([4], posterior.model.measurement.maps)
    assert exact[4] == pytest.approx(md.design.information_gain(posterior, one), rel=1e-3)


@pytest.mark.parametrize("encoding", [LINES, PLANE, SHOTS], ids=["lines", "plane", "shots"])
def test_residuals_are_energies_of_what_the_mean_misses(encoding: Readouts) -> None:
    posterior = posterior_of(encoding, 2)
    truth = make_slice(2).encoding().adjoint(make_slice(2).kspace)
    found = residual_energies(posterior, encoding, truth)
    for candidate in (0, 3, encoding.size - 1):
        wrong = encoding.rows([candidate], posterior.model.measurement.maps)(posterior.mean - truth)
        assert found[candidate] == pytest.approx(float(np.sum(np.abs(wrong) ** 2)), rel=1e-4)


def precision_of(shape: tuple[int, int], seed: int = 0) -> PosteriorPrecision:
    """Random site precisions on every kind of block that fits the grid."""
    rng = np.random.default_rng(seed)
    blocks = [
        md.SiteBlock("pixels", Identity(shape), Laplace(1.0)),
        md.SiteBlock("differences", FiniteDifferences(shape), Laplace(1.0)),
    ]
    if shape[0] % 4 == shape[1] % 4 == 0:
        blocks.append(md.SiteBlock("wavelet", Wavelet(shape, "db2", 2), Laplace(1.0)))
    lines = [shape[0] // 2, shape[0] // 2 - 1, 0, 1]
    pi = tuple(rng.uniform(0.1, 3, b.site_shape) for b in blocks)
    return PosteriorPrecision(md.operators.cartesian(lines, shape), tuple(blocks), pi)


def dense(function: Callable[[np.ndarray], np.ndarray], shape: tuple[int, int]) -> np.ndarray:
    n = shape[0] * shape[1]
    return np.asarray(function(np.eye(n, dtype=complex).reshape(n, *shape))).reshape(n, n).T


@pytest.mark.parametrize("make", [LineReadouts, PlaneReadouts], ids=["lines", "plane"])
@pytest.mark.parametrize("shape", [slow_case((8, 8)), (9, 6), slow_case((8, 16)), slow_case((7, 11))])
def test_the_moments_are_the_dense_ones(
    make: Callable[[tuple[int, int]], LineReadouts | PlaneReadouts], shape: tuple[int, int]
) -> None:
    precision, encoding = precision_of(shape), make(shape)
    control = CirculantControl.of(precision)
    A, P = dense(precision, shape), dense(control.image, shape)
    E = dense(encoding.values, shape)
    moments = encoding.moments(control.inverse, control.gram, control.sites)
    np.testing.assert_allclose(moments[0].ravel(), np.diag(E @ P @ E.conj().T).real, rtol=1e-10)
    np.testing.assert_allclose(moments[1].ravel(), np.diag(E @ P @ A @ P @ E.conj().T).real, rtol=1e-10)


def closer(precision: PosteriorPrecision, exact: np.ndarray, estimate: Callable[..., np.ndarray]) -> float:
    """How much estimates of line variances scatter beside plain ones; they are unbiased over sixty seeds."""
    lines, estimates, plain = LineReadouts(exact.shape), list[np.ndarray](), list[np.ndarray]()
    for seed in range(60):
        begin = np.zeros(exact.shape, complex)
        made = ControlVariate(8, tolerance=1e-6)(precision, [], np.random.default_rng(seed), begin)
        drawn, explained = (lines.values(v)[:, 0] for v in (made.samples, made.explained))
        estimates.append(estimate(drawn, explained))
        plain.append(np.mean(np.abs(drawn) ** 2, axis=0) / 2)
    spread = np.std(estimates, axis=0)
    scores = (np.mean(estimates, axis=0) - exact) / (spread / np.sqrt(60))
    assert np.mean(np.abs(scores) < 3) > 0.97 and abs(np.mean(scores)) < 0.25
    return float(np.median(spread) / np.median(np.std(plain, axis=0)))


def test_the_variances_are_unbiased_and_closer_than_plain_ones() -> None:
    shape = (8, 12)
    precision, lines = precision_of(shape), LineReadouts(shape)
    E = dense(lines.values, shape)
    exact = np.diag(E @ np.linalg.inv(dense(precision, shape)) @ E.conj().T).real.reshape(shape)
    control = CirculantControl.of(precision)
    moments = lines.moments(control.inverse, control.gram, control.sites)
    assert closer(precision, exact, lambda drawn, explained: controlled_variances(drawn, explained, *moments)) < 0.3


def test_variances_behind_a_phase_are_unbiased_and_closer_than_plain_ones() -> None:
    shape, rng = (10, 12), np.random.default_rng(3)
    y, x = np.meshgrid(*(np.linspace(-1, 1, n) for n in shape), indexing="ij")
    rotation = np.exp(1j * (0.9 * y + 0.7 * x * y))
    parts = [PhasedParts(B, rotation, 1.5) for B in (Identity(shape), FiniteDifferences(shape))]
    blocks = tuple(md.SiteBlock(f"block {k}", B, Laplace(1.0)) for k, B in enumerate(parts))
    pi = tuple(rng.uniform(0.3, 3, B.out_shape) * np.array([1.0, 2.0]) for B in parts)
    precision, lines = PosteriorPrecision(md.operators.cartesian([5, 4, 6, 1], shape), blocks, pi), LineReadouts(shape)
    control = ScaledControl.of(precision)
    n = shape[0] * shape[1]
    unit = np.concatenate([np.eye(n), 1j * np.eye(n)]).reshape(-1, *shape)
    E, P = (
        np.concatenate([v.real, v.imag], axis=1).T
        for v in (np.reshape(f(unit), (2 * n, n)) for f in (lines.values, control.image))
    )
    known, exact = (
        np.einsum("ij,jk,ik->i", E, m, E).reshape(2, *shape).mean(axis=0)
        for m in (P, np.linalg.inv(precision.dense_real()))
    )
    assert control.inverse.scale is not None
    first = lines.scaled_moment(control.inverse.own, control.inverse.turn)
    np.testing.assert_allclose(first, known, rtol=1e-10)
    assert closer(precision, exact, lambda drawn, explained: regressed_variances(drawn, explained, first)) < 0.5


@pytest.mark.parametrize("coils", [1, slow_case(2)])
def test_unseen_lines_change_the_scores_as_the_dense_covariance_says(coils: int) -> None:
    one, start = make_slice(coils), (8, 7, 9, 6)
    estimator = MonteCarlo(400, 1e-4)
    posterior = md.DoubleLoop(estimator, outer_iterations=2).infer(one.model(start), np.random.default_rng(0))
    ahead = with_unseen(posterior, rows_of(posterior, LINES, (*start, 4, 12)), estimator, np.random.default_rng(0))
    scores, _ = gains_and_energies(ahead, LINES, np.random.default_rng(1), 12)
    exact, before = (exact_gains(each.precision, LINES) for each in (ahead, posterior))
    np.testing.assert_allclose(scores, exact, rtol=0.15)
    assert np.all(exact < before)
    assert np.max(np.abs(exact / before - 1)) > 0.3  # far more than the tolerance above
    np.testing.assert_array_equal(ahead.mean, posterior.mean)


def test_a_posterior_of_other_measurements_has_no_candidates() -> None:
    posterior = posterior_of(LINES, 1)
    other = replace(posterior.model, measurement=Identity((16, 16)), data=np.zeros((16, 16), dtype=np.complex64))
    with refused("posterior"):
        energies(replace(posterior, model=other), LINES, np.random.default_rng(0), 4)
    with refused("posterior"):
        lines_of(replace(posterior, model=other))
