"""Predictions of lines before they come, and the choice of a model by them."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg

from mri_design.design.model_choice import best_model, predict_line
from mri_design.errors import InputError
from mri_design.inference.double_loop.loop import DoubleLoop
from mri_design.model.mr_image import MRSlice
from mri_design.model.phase.map import PhaseMap
from mri_design.model.phase.prior import PhasePrior
from mri_design.operators.fourier import CentredFFT
from mri_design.variances.exact import Exact
from mri_design.variances.monte_carlo import MonteCarlo
from tests.slow_cases import slow_case

N = (24, 20)


def half_sampled_slice(seed: int) -> tuple[MRSlice, np.ndarray]:
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: N[0], : N[1]] / np.array(N)[:, None, None] - 0.5
    angle = 1.5 * y + 3 * x**2
    image = (y**2 + x**2 < 0.2) * (0.2 + 0.8 * rng.uniform(size=N)) * np.exp(1j * angle)
    noise = 0.005 * (rng.standard_normal(N) + 1j * rng.standard_normal(N))
    return MRSlice((CentredFFT(N)(image) + noise)[None], np.ones(N[0], bool), 0.005**2), angle


@pytest.mark.parametrize("n_coils", [1, slow_case(3)])
def test_moments_are_those_of_the_dense_posterior(n_coils, make_slice):
    one = make_slice(n_coils)
    posterior = DoubleLoop(Exact(), outer_iterations=2).infer(one.model([8, 7, 9]), np.random.default_rng(0))
    draws, _ = posterior.draw(np.random.default_rng(1), 1000, tolerance=1e-3)
    found = predict_line(one, posterior, 5, draws)
    rows = one.encoding([5]).to_dense_real()
    covariance = rows @ scipy.linalg.inv(posterior.precision.dense_real()) @ rows.T
    noise = one.noise_variance
    expected = noise * (np.trace(covariance) + len(rows))
    assert found.expected_energy == pytest.approx(expected, rel=0.08)
    residual = one.acquire([5]) - one.encoding([5])(posterior.mean)
    assert found.energy == pytest.approx(np.sum(np.abs(residual) ** 2), rel=1e-5)
    likely = replace(found, innovation=np.sqrt(2 * found.variance))
    assert likely.log_density > found.log_density or found.energy < likely.energy
    wider = replace(likely, variance=2 * likely.variance)
    narrower = replace(likely, variance=0.5 * likely.variance)
    assert likely.log_density > max(wider.log_density, narrower.log_density)


@pytest.mark.slow
def test_lines_choose_the_phase_where_it_is_right_and_not_where_it_is_wrong():
    for offset, better in ((0.0, True), (np.pi / 2, False)):
        energies = []
        one, angle = half_sampled_slice(0)
        phase = PhasePrior(PhaseMap.known(angle + offset), 3.0)
        for line in (4, 5, 6, 7):
            lines = [*range(9, 24), *(other for other in (4, 5, 6, 7) if other < line)]
            pair = []
            for candidate in (one, replace(one, phase=phase)):
                loop = DoubleLoop(MonteCarlo(8), outer_iterations=2)
                posterior = loop.infer(candidate.model(lines, 1.0), np.random.default_rng(0))
                pair.append(predict_line(candidate, posterior, line, posterior.marginals.samples).energy)
            energies.append(pair)
        assert best_model(energies) == int(better)


def test_the_first_model_is_kept_without_evidence():
    rng = np.random.default_rng(0)
    even = np.exp(rng.standard_normal((20, 1))) * np.exp(0.01 * rng.standard_normal((20, 3)))
    assert best_model(even, margin=3.0) == 0
    better = even * [1.0, 0.8, 0.5]
    assert best_model(better) == 2
    assert best_model(better * [1.0, 1.0, 10.0]) == 1
    assert best_model(better[:3]) == 0  # too few
    assert best_model(np.zeros((0, 2))) == 0


@pytest.mark.parametrize("energies", [[1.0, 2.0], [[1.0, 0.0]], [[1.0, np.nan]], np.ones((3, 0))])
def test_refusals(energies):
    with pytest.raises(InputError, match="energies"):
        best_model(energies)
