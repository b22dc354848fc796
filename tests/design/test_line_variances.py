"""Line variances with a control: exact moments, unbiased, and scores as good as from three times the draws."""

from dataclasses import replace

import numpy as np
import pytest

from mri_design import (
    ControlVariate,
    DoubleLoop,
    FiniteDifferences,
    Identity,
    InformationGain,
    Laplace,
    MonteCarlo,
    SiteBlock,
    Wavelet,
    cartesian,
)
from mri_design.design.line_variances import (
    all_lines,
    controlled_line_variances,
    line_moments,
    phased_line_moments,
    phased_line_variances,
    with_unseen_lines,
)
from mri_design.design.strategies.information_gain import exact_gain, gain_from_draws
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.phased import PhasedParts
from mri_design.variances.circulant import CirculantControl
from mri_design.variances.control_variate import PhasedControl
from tests.design.conftest import SliceMaker
from tests.slow_cases import slow_case


def precision_of(shape: tuple[int, int], seed: int = 0) -> PosteriorPrecision:
    """Random site precisions on every kind of block that fits the grid."""
    rng = np.random.default_rng(seed)
    blocks = [
        SiteBlock("pixels", Identity(shape), Laplace(1.0)),
        SiteBlock("differences", FiniteDifferences(shape), Laplace(1.0)),
    ]
    if shape[0] % 4 == shape[1] % 4 == 0:
        blocks.append(SiteBlock("wavelet", Wavelet(shape, "db2", 2), Laplace(1.0)))
    lines = [shape[0] // 2, shape[0] // 2 - 1, 0, 1]
    pi = tuple(rng.uniform(0.1, 3, b.site_shape) for b in blocks)
    return PosteriorPrecision(cartesian(lines, shape), tuple(blocks), pi)


def dense(function, shape: tuple[int, int]) -> np.ndarray:
    n = shape[0] * shape[1]
    return np.asarray(function(np.eye(n, dtype=complex).reshape(n, *shape))).reshape(n, n).T


@pytest.mark.parametrize("shape", [slow_case((8, 8)), (9, 6), slow_case((8, 16)), slow_case((7, 11))])
def test_the_moments_are_the_dense_ones(shape):
    precision = precision_of(shape)
    control = CirculantControl.of(precision)
    A, P = dense(precision, shape), dense(control.image, shape)
    E = dense(lambda u: cartesian(range(shape[0]), shape).columns(u)[:, 0], shape)
    first, second = line_moments(control)
    np.testing.assert_allclose(first, np.diag(E @ P @ E.conj().T).real.reshape(shape), rtol=1e-10)
    np.testing.assert_allclose(second, np.diag(E @ P @ A @ P @ E.conj().T).real.reshape(shape), rtol=1e-10)


def test_the_variances_are_unbiased_and_closer_than_plain_ones():
    shape = (8, 12)
    precision, every = precision_of(shape), cartesian(range(8), shape)
    control = CirculantControl.of(precision)
    E = dense(lambda u: every.columns(u)[:, 0], shape)
    exact = np.diag(E @ np.linalg.inv(dense(precision, shape)) @ E.conj().T).real.reshape(shape)
    estimates, plain = [], []
    for seed in range(60):
        made = ControlVariate(8, tolerance=1e-6)(
            precision, [], np.random.default_rng(seed), np.zeros(shape, dtype=complex)
        )
        estimates.append(controlled_line_variances(made.samples, made.explained, control, every))
        plain.append(np.mean(np.abs(every.columns(made.samples)[:, 0]) ** 2, axis=0) / 2)
    spread = np.std(estimates, axis=0)
    standard_error = spread / np.sqrt(60)
    assert np.mean(np.abs(np.mean(estimates, axis=0) - exact) < 3 * standard_error) > 0.97
    assert np.median(spread) < 0.3 * np.median(np.std(plain, axis=0))


def test_variances_behind_a_phase_are_unbiased_and_closer_than_plain_ones():
    shape, rng = (10, 12), np.random.default_rng(3)
    y, x = np.meshgrid(*(np.linspace(-1, 1, n) for n in shape), indexing="ij")
    rotation = np.exp(1j * (0.9 * y + 0.7 * x * y))
    parts = [PhasedParts(B, rotation, 1.5) for B in (Identity(shape), FiniteDifferences(shape))]
    blocks = tuple(SiteBlock(f"block {k}", B, Laplace(1.0)) for k, B in enumerate(parts))
    pi = tuple(rng.uniform(0.3, 3, B.out_shape) * np.array([1.0, 2.0]) for B in parts)
    precision, every = PosteriorPrecision(cartesian([5, 4, 6, 1], shape), blocks, pi), cartesian(range(10), shape)
    control = PhasedControl.of(precision)
    n = shape[0] * shape[1]
    unit = np.concatenate([np.eye(n), 1j * np.eye(n)]).reshape(-1, *shape)
    E, P = (
        np.concatenate([v.real, v.imag], axis=1).T
        for v in (np.reshape(f(unit), (2 * n, n)) for f in (lambda u: every.columns(u)[:, 0], control.image))
    )
    known, exact = (
        np.einsum("ij,jk,ik->i", E, m, E).reshape(2, *shape).mean(axis=0)
        for m in (P, np.linalg.inv(precision.dense_real()))
    )
    np.testing.assert_allclose(phased_line_moments(control), known, rtol=1e-10)
    estimates, plain = [], []
    for seed in range(60):
        made = ControlVariate(8, tolerance=1e-6)(precision, [], np.random.default_rng(seed), np.zeros(shape, complex))
        estimates.append(phased_line_variances(made.samples, made.explained, control, every))
        plain.append(np.mean(np.abs(every.columns(made.samples)[:, 0]) ** 2, axis=0) / 2)
    spread = np.std(estimates, axis=0)
    scores = (np.mean(estimates, axis=0) - exact) / (spread / np.sqrt(60))
    assert np.mean(np.abs(scores) < 3) > 0.97
    assert abs(np.mean(scores)) < 0.25
    assert np.median(spread) < 0.5 * np.median(np.std(plain, axis=0))


def test_scores_come_nearer_to_the_exact_ones(make_posterior):
    posterior = make_posterior(1)
    every = all_lines(posterior)
    exact = exact_gain(posterior.precision, every)
    errors = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        made = ControlVariate(4, tolerance=1e-4)(posterior.precision, [], rng, posterior.mean)
        scores = InformationGain().scores(replace(posterior, marginals=made), rng)[0]
        errors.append([np.abs(scores - exact), np.abs(gain_from_draws(made.samples, every) - exact)])
    controlled, plain = np.median(np.array(errors) / exact, axis=(0, 2))
    assert controlled < 0.5 * plain
    assert controlled < 0.05


@pytest.mark.parametrize("coils", [1, slow_case(2)])
def test_unseen_lines_change_the_scores_as_the_dense_covariance_says(make_slice: SliceMaker, coils: int) -> None:
    one, start = make_slice(coils), (8, 7, 9, 6)
    estimator = MonteCarlo(400, 1e-4)
    posterior = DoubleLoop(estimator, outer_iterations=2).infer(one.model(start), np.random.default_rng(0))
    ahead = with_unseen_lines(posterior, (*start, 4, 12), estimator, np.random.default_rng(0))
    scores = InformationGain().scores(ahead, np.random.default_rng(1))[0]
    exact = exact_gain(ahead.precision, all_lines(posterior))
    before = exact_gain(posterior.precision, all_lines(posterior))
    np.testing.assert_allclose(scores, exact, rtol=0.15)
    assert np.all(exact < before)
    assert np.max(np.abs(exact / before - 1)) > 0.3  # far more than the tolerance above
    np.testing.assert_array_equal(ahead.mean, posterior.mean)
