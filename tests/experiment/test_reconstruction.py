"""Images by every method: what rivals minimise, error bars, and draws that vary as the dense posterior does."""

from dataclasses import replace

import numpy as np
import pytest
import pywt
from scipy.ndimage import gaussian_filter

import mri_design as md
from mri_design.evidence import posterior_deviations, scaled_deviations
from mri_design.experiment import TEXTBOOK, InferenceOptions, check_draws, check_size_of_draws, load_scan
from mri_design.experiment.reconstruction import ITERATIONS, METHODS, textbook
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


GRID = (32, 24)
WITH_GAPS = [0, 3, 6, 9, 12, 13, 14, 15, 16, 17, 18, 19, 21, 24, 27, 30]


@pytest.fixture(scope="module", params=[1, 4])
def rival(request: pytest.FixtureRequest) -> md.SliceModel:
    scan = md.load_phantom("brain", shape=GRID, n_coils=request.param, rng=np.random.default_rng(1))
    return md.calibrate(scan, md.Recipe()).slice_model(0, **md.Recipe().slice_settings)


def objective(rival: md.SliceModel, image: np.ndarray, method: str, weight: float) -> float:
    """By this program's own operators and PyWavelets."""
    x = rival.measurement(WITH_GAPS)
    scale = weight * np.abs(x.adjoint(rival.acquire(WITH_GAPS))).max()
    misfit = np.sum(np.abs(x(image) - rival.acquire(WITH_GAPS)) ** 2) / 2
    if method == "total-variation":
        return float(misfit + scale * sum(np.abs(image - np.roll(image, 1, axis)).sum() for axis in (0, 1)))
    bands = pywt.wavedecn(image, "db4", mode="zero")
    return float(misfit + scale * np.abs(pywt.coeffs_to_array(bands)[0]).sum())


@pytest.mark.parametrize("method", TEXTBOOK)
def test_the_image_has_a_lower_objective_than_others(rival: md.SliceModel, method: str) -> None:
    image, convergence = textbook(rival, WITH_GAPS, method, 0.01)
    found = objective(rival, image, method, 0.01)
    noise = np.random.default_rng(2).normal(size=(2, *GRID)).astype(np.float32) * np.abs(image).max() / 100
    others = [
        rival.plain_image(WITH_GAPS),
        md.reconstruct(rival, WITH_GAPS, "least-squares").image,
        image + noise[0] + 1j * noise[1],
    ]
    others += [0.97 * image, 1.03 * image, *(textbook(rival, WITH_GAPS, method, weight)[0] for weight in (0.02, 0.005))]
    assert all(found < objective(rival, other, method, 0.01) for other in others)
    assert convergence.converged and image.dtype == np.complex64


def test_total_variation_is_at_its_minimum(rival: md.SliceModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rival that stops on the way is none."""
    image, _ = textbook(rival, WITH_GAPS, "total-variation", 0.002)
    monkeypatch.setattr("mri_design.experiment.reconstruction.ITERATIONS", 3 * ITERATIONS)
    least, _ = textbook(rival, WITH_GAPS, "total-variation", 0.002)
    assert np.linalg.norm(image - least) < 0.005 * np.linalg.norm(least)


@pytest.mark.parametrize("method", TEXTBOOK)
def test_scans_in_other_units_have_the_same_image_and_runs_the_same_bits(rival: md.SliceModel, method: str) -> None:
    image, _ = textbook(rival, WITH_GAPS, method, 0.01)
    weighted = md.Recipe().replacing("reconstruction", weight=0.01)
    np.testing.assert_array_equal(md.reconstruct(rival, WITH_GAPS, method, weighted).image, image)
    brighter = replace(rival, kspace=rival.kspace * np.float32(1024))
    np.testing.assert_allclose(textbook(brighter, WITH_GAPS, method, 0.01)[0], 1024 * image, rtol=1e-4, atol=1e-3)


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
