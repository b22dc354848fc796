"""Draws from the Gaussian posterior."""

import numpy as np
import pytest

from mri_design import Convergence, GaussianPosterior, GeneralizedLinearModel, Status
from mri_design.model import PosteriorPrecision, Variances
from tests.slow_cases import slow_case

DONE = Convergence(Status.CONVERGED, 1, 0.0)


def posterior_of(model: GeneralizedLinearModel, pi: tuple[np.ndarray, ...], samples=None) -> GaussianPosterior:
    precision = PosteriorPrecision(model.measurement, model.blocks, pi)
    return GaussianPosterior(
        model, model.back_projection(), precision, Variances((), "exact", DONE, samples=samples), convergence=DONE
    )


@pytest.mark.parametrize("model_name", ["groups", "matrix", slow_case("parts")])
def test_draws_have_covariance_inverse_A(tiny_model, model_name, random_precisions):
    model = tiny_model(model_name)
    posterior = posterior_of(model, random_precisions(model, 1))
    count = 4_000
    draws, convergence = posterior.draw(np.random.default_rng(2), count, tolerance=1e-6, max_iterations=500)
    assert convergence.converged and draws.shape == (count, *model.image_shape)
    flat = draws.reshape(count, -1)
    if model.measurement.in_complex:
        flat = np.concatenate([flat.real, flat.imag], axis=1)
    covariance = np.linalg.inv(posterior.precision.dense_real())
    variances = covariance.diagonal()
    z = (flat.T @ flat / count - covariance) / np.sqrt((np.outer(variances, variances) + covariance**2) / count)
    assert np.abs(z).max() < 5
    assert 0.75 < np.sqrt(np.mean(z**2)) < 1.25


def test_draws_keep_their_precision_repeat_with_the_seed_and_say_if_they_stopped_short(tiny_model, random_precisions):
    model = tiny_model("moduli", real=np.float32)
    posterior = posterior_of(model, tuple(p.astype(np.float32) for p in random_precisions(model, 3)))
    first, again, other = (posterior.draw(np.random.default_rng(seed), 3)[0] for seed in (4, 4, 5))
    assert first.dtype == np.complex64
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.1
    model = tiny_model("moduli")
    posterior = posterior_of(model, random_precisions(model, 6))
    assert posterior.draw(np.random.default_rng(7), 2, max_iterations=1)[1].status is Status.MAX_ITERATIONS


@pytest.mark.parametrize(("made", "wanted", "given"), [(None, 5, 5), (8, 5, 8), (3, 5, 5)])
def test_deviations_reuse_the_draws_of_inference(made, wanted, given, tiny_model, random_precisions):
    model = tiny_model("moduli")
    samples = None if made is None else np.full((made, *model.image_shape), 7 + 1j)
    posterior = posterior_of(model, random_precisions(model, 8), samples)
    own = posterior.own_deviations(np.random.default_rng(9), wanted)
    assert len(own) == wanted if made is None else own is samples
    deviations = posterior.deviations(np.random.default_rng(9), wanted)
    assert len(deviations) == given
    if made is not None:
        np.testing.assert_array_equal(deviations[:made], samples)
        assert not np.any(deviations[made:] == 7 + 1j)
