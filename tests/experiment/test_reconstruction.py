from dataclasses import replace

import numpy as np
import pytest

from mri_design import (
    DoubleLoop,
    Exact,
    InferenceOptions,
    Recipe,
    SliceModel,
    pixel_std,
    reconstruct,
)
from mri_design.experiment.reconstruction import METHODS

LINES = (8, 7, 9, 6, 10, 5, 11, 3, 13)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_an_image_and_only_the_mean_error_bars(
    one: SliceModel, small: Recipe, rng: np.random.Generator, method: str
) -> None:
    result = reconstruct(one, LINES, method, small, rng)  # type: ignore[arg-type]
    assert result.image.shape == (16, 16) and np.iscomplexobj(result.image)
    assert result.convergence.converged
    assert (result.std is not None) == (method == "mean")


def test_zero_filling_is_the_inverse_transform_of_the_lines(
    one: SliceModel, small: Recipe, rng: np.random.Generator
) -> None:
    kspace = np.zeros((16, 16), dtype=complex)
    kspace[list(LINES)] = one.kspace[0, list(LINES)]
    image = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(kspace), norm="ortho"))
    result = reconstruct(one, LINES, "zero-filled", small, rng)
    np.testing.assert_allclose(result.image, image, atol=1e-5 * np.abs(image).max())


def test_the_error_bars_can_be_left_out(one: SliceModel, small: Recipe) -> None:
    with_std, without = (
        reconstruct(one, LINES, "mean", small, np.random.default_rng(0), with_std=wanted) for wanted in (True, False)
    )
    assert without.std is None
    np.testing.assert_array_equal(with_std.image, without.image)


@pytest.mark.slow
def test_a_given_signal_level_replaces_the_measured_one(one: SliceModel, small: Recipe) -> None:
    level = one.signal_level(LINES)
    same, other = (
        reconstruct(one, LINES, "map", small, np.random.default_rng(0), options=InferenceOptions(signal=s)).image
        for s in (level, 50 * level)  # a lower one changes little: noise limits the rates
    )
    np.testing.assert_array_equal(same, reconstruct(one, LINES, "map", small, np.random.default_rng(0)).image)
    assert np.abs(same - other).max() > 0.05 * np.abs(same).max()


def test_one_loop_from_cold_is_reported_as_not_converged(
    one: SliceModel, small: Recipe, rng: np.random.Generator
) -> None:
    hasty = replace(small, inference=replace(small.inference, loops=1))
    assert not reconstruct(one, LINES, "mean", hasty, rng).convergence.converged


def test_pixel_std_from_draws_agrees_with_the_exact_one(one: SliceModel) -> None:
    posterior = DoubleLoop(Exact(), outer_iterations=3).infer(one.model(LINES), np.random.default_rng(0))
    covariance = one.noise_variance * np.linalg.inv(posterior.precision.dense_real())
    variances = np.diag(covariance)
    expected = np.sqrt(variances[:256] + variances[256:]).reshape(16, 16)
    exact = pixel_std(posterior, 8, np.random.default_rng(1))
    np.testing.assert_allclose(exact, expected, rtol=1e-3)
    assert exact.dtype == np.float32
    sampled = replace(posterior, marginals=replace(posterior.marginals, kind="unbiased"))
    drawn = pixel_std(sampled, 400, np.random.default_rng(1))
    assert np.abs(drawn / expected - 1).mean() < 0.05
