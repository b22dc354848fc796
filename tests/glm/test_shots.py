"""Scores of shots against those of their rows, gradients against finite differences, and the way uphill."""

from functools import partial

import numpy as np
import pytest

import mri_design as md
from mri_design.glm import CovarianceRoot
from mri_design.krylov import lanczos
from mri_design.operators import DirectFourier
from mri_design.scan import spiral_curve
from mri_design.variances import Exact

N = 12
SPOKE = md.operators.radial_spokes(N, [0.0])[0]
SPIRAL = spiral_curve(N, 2.0, points=25) * 0.99


@pytest.fixture(scope="module", params=[1, 2])
def posterior(request):
    data = md.load_phantom("brain", shape=N, n_coils=request.param, rng=np.random.default_rng(0))
    model = data.slice_model().model((6, 5, 7, 3, 10))
    return md.DoubleLoop(Exact(), outer_iterations=3).infer(model, np.random.default_rng(0))


@pytest.fixture(scope="module")
def encode(posterior):
    return partial(DirectFourier, grid=(N, N), maps=posterior.model.measurement.maps)


@pytest.fixture(scope="module")
def root(posterior):
    return md.glm.exact_root(posterior)


def differences(function, at, step=1e-5):
    """Central differences of a scalar function in every entry of ``at``."""
    slopes = np.empty_like(at)
    for index in np.ndindex(at.shape):
        shift = np.zeros_like(at)
        shift[index] = step
        slopes[index] = (function(at + shift) - function(at - shift)) / (2 * step)
    return slopes


@pytest.mark.parametrize("angle", [0.0, 0.7, 2.0])
def test_the_score_is_that_of_the_rows(posterior, root, encode, angle):
    (shot,) = md.operators.turned(SPIRAL, [angle])
    gain, real, precision = md.glm.shot_gain(root, shot, encode)[0], encode(shot).to_dense_real(), posterior.precision
    dense = np.linalg.slogdet(precision.dense_real() + real.T @ real)[1] - np.linalg.slogdet(precision.dense_real())[1]
    np.testing.assert_allclose(gain, dense, rtol=1e-10)
    solved = md.design.information_gain(posterior, encode(shot), tolerance=1e-10)  # by products of single precision
    np.testing.assert_allclose(gain, solved, rtol=1e-7)


@pytest.mark.parametrize("kind", ["exact", "draws", "lanczos"])
def test_the_gradient_by_every_sample_is_that_of_finite_differences(posterior, root, encode, kind):
    rng = np.random.default_rng(1)
    if kind == "draws":
        root = md.glm.drawn_root(posterior, rng, 6)
    elif kind == "lanczos":
        start = rng.standard_normal((N, N)) + 1j * rng.standard_normal((N, N))
        root = CovarianceRoot(lanczos(posterior.precision, start, 20).inverse_root(), with_turned=True)
    (shot,) = md.operators.turned(SPIRAL[::4], [0.4])
    _, gradient = md.glm.shot_gain(root, shot, encode)
    expected = differences(lambda k: md.glm.shot_gain(root, k, encode)[0], shot)
    np.testing.assert_allclose(gradient, expected, atol=2e-8 * np.abs(expected).max() + 1e-8)
    assert np.abs(expected).max() > 0.01


def test_draws_and_their_turned_copies_are_one_set(posterior, encode):
    """A root that says it holds half of its images scores as the whole one."""
    half = md.glm.drawn_root(posterior, np.random.default_rng(2), 5)
    whole = CovarianceRoot(np.concatenate([half.images, 1j * half.images]), with_turned=False)
    for one, other in zip(*(md.glm.shot_gain(root, SPIRAL, encode) for root in (half, whole)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_slopes_by_an_angle_and_by_any_parameter(root, encode):
    def stretched(parameters):
        """A spiral with a density and an angle of its own: both derivatives written out."""
        density, angle = parameters
        t = np.linspace(0, 1, 25)[1:]
        radius, turn = 5.9 * t**density, 4 * np.pi * t + angle
        k = radius[:, None] * np.stack([np.sin(turn), np.cos(turn)], axis=1)
        across = radius[:, None] * np.stack([np.cos(turn), -np.sin(turn)], axis=1)
        return k, np.stack([k * np.log(t)[:, None], across])

    for family, at in ((md.glm.rotations(SPOKE), np.array([0.4])), (stretched, np.array([1.4, 0.3]))):
        trajectory, derivatives = family(at)
        slope = np.sum(md.glm.shot_gain(root, trajectory, encode)[1] * derivatives, axis=(1, 2))
        expected = differences(lambda p, family=family: md.glm.shot_gain(root, family(p)[0], encode)[0], at)
        np.testing.assert_allclose(slope, expected, rtol=1e-6)


def test_the_best_angle_between_candidates(root, encode):
    family, grid = md.glm.rotations(SPOKE * 0.99), np.arange(8) * np.pi / 8
    best = md.glm.best_shot(root, family, grid, encode, radius=np.pi / 8)
    assert best.gain >= best.candidate_gains.max() == best.candidate_gains[best.candidate]
    fine = grid[best.candidate] + np.linspace(-1, 1, 81) * np.pi / 8
    scan = np.array([md.glm.shot_gain(root, family(np.array([a]))[0], encode)[0] for a in fine])
    top = fine[np.argmax(scan)]
    assert best.gain >= scan.max() - 1e-6 or abs(best.parameters[0] - top) > np.pi / 80  # else another hill
    assert best.gain > best.candidate_gains.max() * (1 + 1e-6)
    at_edge = np.isclose(abs(best.parameters[0] - grid[best.candidate]), np.pi / 8)
    assert at_edge or best.convergence.residual < 1e-3
    np.testing.assert_allclose(best.trajectory, family(best.parameters)[0])
