"""Inference that knows the phase: solvers agree, variances against dense ones, half of k-space tells the other half."""

from dataclasses import replace

import numpy as np
import pytest

from mri_design import (
    ADMM,
    IRLS,
    LBFGS,
    Automatic,
    ControlVariate,
    DoubleLoop,
    Exact,
    ExactByColumns,
    InputError,
    Lanczos,
    MapEstimate,
    MonteCarlo,
    MRSlice,
    PenalisedProblem,
    WarmStart,
)
from mri_design.model.mr_image import phase_refined
from mri_design.model.phase import PhaseMap, PhasePrior
from mri_design.operators.cartesian import CentredFFT
from tests.slow_cases import slow_case

N = (24, 20)
SD = 0.005
HALF = [*range(N[0] // 2 - 3, N[0])]  # lines -3 and up: the lower half is seen through conjugate symmetry alone


def angle() -> np.ndarray:
    y, x = np.mgrid[: N[0], : N[1]] / np.array(N)[:, None, None] - 0.5
    return 1.5 * y + 3 * x**2


def image() -> np.ndarray:
    rng = np.random.default_rng(5)
    y, x = np.mgrid[: N[0], : N[1]] / np.array(N)[:, None, None] - 0.5
    body = 1.0 * (y**2 + x**2 < 0.2)
    return body * (0.2 + 0.8 * rng.uniform(size=N)) * np.exp(1j * angle())  # texture: nothing piecewise constant


def one_slice(phase: PhasePrior | None = None) -> MRSlice:
    rng = np.random.default_rng(0)
    noise = SD * (rng.standard_normal(N) + 1j * rng.standard_normal(N))
    return MRSlice((CentredFFT(N)(image()) + noise)[None], np.ones(N[0], bool), SD**2, phase=phase)


def error(mean: np.ndarray) -> float:
    return float(np.linalg.norm(mean - image()) / np.linalg.norm(image()))


KNOWN = PhasePrior(PhaseMap.known(angle()), 3.0)


def test_half_of_kspace_is_enough_for_who_knows_the_phase():
    loop = DoubleLoop(MonteCarlo(16, 1e-2), outer_iterations=2)
    modulus = loop.infer(one_slice().model(HALF), np.random.default_rng(0))
    for sites in ("shared", "apart"):
        aware = loop.infer(one_slice(replace(KNOWN, sites=sites)).model(HALF), np.random.default_rng(0))
        assert error(aware.mean) < 0.5 * error(modulus.mean)
    estimated = phase_refined(one_slice(KNOWN), modulus.mean)
    assert error(loop.infer(estimated.model(HALF), np.random.default_rng(0)).mean) < 0.7 * error(modulus.mean)


def test_a_wrong_phase_does_harm():
    loop, wrong = (
        DoubleLoop(MonteCarlo(16, 1e-2), outer_iterations=2),
        PhasePrior(PhaseMap.known(angle() + np.pi / 2), 10.0),
    )
    modulus = loop.infer(one_slice().model(HALF), np.random.default_rng(0))
    assert error(loop.infer(one_slice(wrong).model(HALF), np.random.default_rng(0)).mean) > 1.05 * error(modulus.mean)


@pytest.mark.parametrize("sites", ["shared", slow_case("apart")])
def test_the_inner_solvers_agree(sites):
    model = one_slice(replace(KNOWN, sites=sites)).model(HALF)
    z = tuple(np.full(block.site_shape, 0.3) for block in model.blocks)
    problem, start = PenalisedProblem.smoothed(model, z), model.back_projection()
    found = [
        solver(problem, start) for solver in (IRLS(1e-10, 500), LBFGS(1e-10, 3000), Automatic(1e-9), ADMM(1e-8, 5000))
    ]
    for u, convergence in found:
        assert convergence.converged
        np.testing.assert_allclose(u, found[0][0], atol=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("sites", ["shared", "apart"])
@pytest.mark.parametrize(
    "estimator", [MonteCarlo(400, 1e-3), ControlVariate(400, 1e-2)], ids=lambda e: type(e).__name__
)
def test_sampled_variances_are_those_of_the_dense_matrix(sites, estimator):
    model = one_slice(replace(KNOWN, sites=sites)).model(HALF)
    precision = DoubleLoop(Exact(), outer_iterations=2).infer(model, np.random.default_rng(0)).precision
    analyses = [block.analysis for block in model.blocks]
    like = np.zeros(N, complex)
    exact = Exact()(precision, analyses, np.random.default_rng(1), like)
    drawn = estimator(precision, analyses, np.random.default_rng(1), like)
    assert drawn.kind == "unbiased"
    for a, b, deviation in zip(exact.values, drawn.values, drawn.std_error, strict=True):
        standard = (b - a) / deviation
        assert np.abs(standard).max() < 6
        assert 0.8 < np.sqrt(np.mean(standard**2)) < 1.25


@pytest.mark.slow
@pytest.mark.parametrize("sites", ["shared", "apart"])
def test_the_criterion_falls_and_warm_starts_stay(sites):
    model = one_slice(replace(KNOWN, sites=sites)).model(HALF)
    loop = DoubleLoop(Exact(), inner=IRLS(1e-8, 200), outer_iterations=20, tolerance=1e-2)
    posterior = loop.infer(model, np.random.default_rng(0))
    assert posterior.convergence.converged and posterior.criterion_kind == "exact"
    assert np.all(np.diff(posterior.criterion) < 1e-6 * np.abs(posterior.criterion[0]))
    again = loop.infer(model, np.random.default_rng(0), warm_start=WarmStart.from_posterior(posterior))
    assert again.convergence.iterations == 1
    np.testing.assert_allclose(again.mean, posterior.mean, atol=5e-3)


def test_a_map_estimate_knows_the_phase_too():
    modulus = MapEstimate()(one_slice().model(HALF))[0]
    aware = MapEstimate()(one_slice(KNOWN).model(HALF))[0]
    assert error(aware) < 0.6 * error(modulus)


def test_estimators_that_need_complex_linearity_say_so():
    model = one_slice(KNOWN).model(HALF)
    with pytest.raises(InputError, match="Lanczos"):
        DoubleLoop(Lanczos(10)).infer(model, np.random.default_rng(0))
    with pytest.raises(InputError):
        DoubleLoop(ExactByColumns()).infer(model, np.random.default_rng(0))
