"""Images by every method: what rivals minimise, error bars, and draws that vary as the dense posterior does."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import mri_design as md
from mri_design.evidence import posterior_deviations, scaled_deviations
from mri_design.experiment import InferenceOptions, check_draws, check_size_of_draws, load_scan
from mri_design.experiment.reconstruction import METHODS
from mri_design.variances import Exact
from tests.refusals import refused

LINES = (8, 7, 9, 6, 10, 5, 11, 3, 13)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_an_image_and_only_the_mean_error_bars(
    one: md.SliceModel, small: md.Recipe, rng: np.random.Generator, method: str
) -> None:
    result = md.reconstruct(one, LINES, method, small, rng)  # type: ignore[arg-type]
    assert result.image.shape == (16, 16) and np.iscomplexobj(result.image)
    assert result.convergence.converged
    assert (result.std is not None) == (method == "mean")


def test_the_error_bars_can_be_left_out(one: md.SliceModel, small: md.Recipe) -> None:
    with_std, without = (
        md.reconstruct(one, LINES, "mean", small, np.random.default_rng(0), with_std=wanted) for wanted in (True, False)
    )
    assert without.std is None
    np.testing.assert_array_equal(with_std.image, without.image)


@pytest.mark.slow
def test_a_given_signal_level_replaces_the_measured_one(one: md.SliceModel, small: md.Recipe) -> None:
    level = one.signal_level(LINES)
    same, other = (
        md.reconstruct(one, LINES, "map", small, np.random.default_rng(0), options=InferenceOptions(signal=s)).image
        for s in (level, 50 * level)  # a lower one changes little: noise limits the rates
    )
    np.testing.assert_array_equal(same, md.reconstruct(one, LINES, "map", small, np.random.default_rng(0)).image)
    assert np.abs(same - other).max() > 0.05 * np.abs(same).max()


def test_pixel_std_from_draws_agrees_with_the_exact_one(one: md.SliceModel) -> None:
    posterior = md.DoubleLoop(Exact(), outer_iterations=3).infer(one.model(LINES), np.random.default_rng(0))
    covariance = one.noise_variance * np.linalg.inv(posterior.precision.dense_real())
    variances = np.diag(covariance)
    expected = np.sqrt(variances[:256] + variances[256:]).reshape(16, 16)
    exact = md.experiment.pixel_std(posterior, 8, np.random.default_rng(1))
    np.testing.assert_allclose(exact, expected, rtol=1e-3)
    assert exact.dtype == np.float32
    sampled = replace(posterior, marginals=replace(posterior.marginals, kind="unbiased"))
    drawn = md.experiment.pixel_std(sampled, 400, np.random.default_rng(1))
    assert np.abs(drawn / expected - 1).mean() < 0.05


EVEN = range(0, 16, 2)
COUNT = 384
FAR = 4 / np.sqrt(2 * COUNT)
"""Four standard errors of a standard deviation from so many draws."""
REGIONS = np.zeros((2, 16, 16))
REGIONS[0, 3:7, 4:8] = REGIONS[1, 8:11, 6:12] = 1
WEIGHTS = REGIONS / REGIONS.sum(axis=(1, 2), keepdims=True)


def test_means_of_regions_and_their_difference_vary_as_the_dense_covariance_says(
    one: md.SliceModel, small: md.Recipe
) -> None:
    posterior = small.inference.engine().infer(one.model(EVEN), np.random.default_rng(0))
    drawn = posterior_deviations(posterior, COUNT, np.random.default_rng(1))
    assert drawn is not None and drawn.shape == (COUNT, 16, 16) and drawn.dtype == posterior.mean.dtype
    dense = posterior.model.noise_variance * np.linalg.inv(posterior.precision.dense_real())
    flat = np.concatenate([WEIGHTS, [WEIGHTS[0] - WEIGHTS[1]]]).reshape(3, -1)
    parts = dense.reshape(2, 256, 2, 256)  # of components, all real ones first
    both = parts[0, :, 0] + parts[1, :, 1]  # E[(u - m)(u - m)^H] of complex pixels
    wanted = np.sqrt(np.einsum("ij,jk,ik->i", flat, both, flat))
    found = np.sqrt(np.mean(np.abs(drawn.reshape(COUNT, -1) @ flat.T) ** 2, axis=0))
    np.testing.assert_allclose(found, wanted, rtol=FAR)
    alone = np.sqrt(np.einsum("ij,j,ij->i", flat, np.diag(both), flat))
    assert (np.abs(alone / wanted - 1) > 2 * FAR).all()  # pixels are correlated, by which a map of errors misleads
    pixels = np.sqrt(np.diag(both).reshape(16, 16))
    np.testing.assert_allclose(np.mean(np.abs(drawn) ** 2 / pixels**2, axis=0), 1, atol=6 / np.sqrt(COUNT))


def test_draws_are_scaled_to_the_map_and_change_nothing_else() -> None:
    recipe = md.load_recipe("local").replacing("input", matrix=32)
    one = md.calibrate(load_scan("phantom:brain", recipe), recipe).slice_model(0, **recipe.slice_settings)
    lines, asked = sorted({*range(12, 20), *range(1, 32, 3)}), recipe.replacing("reconstruction", draws=24)
    plain, made = (md.reconstruct(one, lines, recipe=each) for each in (recipe, asked))
    assert plain.draws is None and made.draws is not None and made.std is not None and made.std_factor is not None
    np.testing.assert_array_equal(made.image, plain.image)
    np.testing.assert_array_equal(made.std, plain.std)
    power = np.mean(np.abs(made.draws - made.image) ** 2, axis=0)
    assert power.sum() == pytest.approx(np.sum(made.std**2), rel=1e-4)
    assert np.median(power / made.std**2) == pytest.approx(1, abs=0.1)
    twice = made.times(2.0)
    np.testing.assert_allclose(twice.draws, 2 * made.draws)
    other = md.reconstruct(one, lines, recipe=asked, options=InferenceOptions(number=1))
    shared = np.vdot(other.draws - other.image, made.draws - made.image) / (24 * np.sum(made.std**2))
    assert abs(shared) < 0.02  # of another slice they are others


def test_variances_of_draws_become_those_of_a_map() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(200, 24, 24)) + 1j * rng.normal(size=(200, 24, 24))
    map_of_std = np.broadcast_to(1 + 0.5 * np.sin(np.arange(24) / 4), (24, 24))
    made = scaled_deviations(drawn * np.linspace(1, 4, 24)[:, None], map_of_std)
    power = np.mean(np.abs(made) ** 2, axis=0)
    assert power.sum() == pytest.approx(np.sum(map_of_std**2))
    near, wanted = (gaussian_filter(each, 2.0) for each in (power, map_of_std**2))
    np.testing.assert_allclose(near, wanted, rtol=0.1)  # within the errors of few draws, of means over some pixels
    assert not scaled_deviations(drawn, np.zeros((24, 24))).any()


def test_what_has_no_draws_and_more_than_a_file_holds_is_refused() -> None:
    recipe = md.Recipe.of({"reconstruction": {"method": "map", "draws": 8}}).reconstruction
    with pytest.raises(md.UsageError):
        check_draws(recipe)
    check_draws(md.Recipe().reconstruction)
    with refused("draws"):
        check_size_of_draws(recipe, 512, (1024, 1024))
