"""Error bars are scaled to the error predicted for the image, draws have the spectrum of errors."""

from dataclasses import replace

import numpy as np
import pytest

from mri_design import KSpaceData, Recipe, calibrate, load_recipe, reconstruct
from mri_design.evidence import (
    ErrorEvidence,
    HeldBack,
    energies_held_back,
    energy_missing,
    error_ratios,
    found_ratios,
    hold_back,
    predicted_error,
    shaped_std,
    shipped_squared_error_model,
    std_factor,
    with_brightness,
    with_spectrum_of_errors,
)
from mri_design.evidence.error_bars import BOUNDS, BRIGHTNESS, MIDDLES, OFFSETS, SLOPES, USUAL, pull_of_prior
from mri_design.evidence.error_bars import KNOWN as MEASURED
from mri_design.experiment import load_scan, truth_of
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.operators import Array, to_image, to_kspace
from mri_design.operators.elementary import Diagonal, Identity
from mri_design.readouts import Readouts, radii
from mri_design.sites.priors import Laplace
from mri_design.variances import MonteCarlo

LINES = sorted({*range(19, 29), *range(1, 48, 4)})


def recipe_of(name: str = "default", **inference: object) -> Recipe:
    return load_recipe(name).replacing("input", matrix=48).replacing("inference", **inference)


def scan_of(recipe: Recipe, name: str = "brain") -> KSpaceData:
    return calibrate(load_scan(f"phantom:{name}", recipe), recipe)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_where_no_line_can_be_held_back_error_bars_are_those_of_the_posterior() -> None:
    recipe = recipe_of("local", loops=2)
    one = scan_of(recipe).slice_model(0, **recipe.slice_settings)
    result = reconstruct(one, range(14, 34), "mean", recipe, rng())
    assert result.std_factor is None
    plain = recipe.inference.engine().infer(one.model(range(14, 34)), rng())
    assert np.sum(result.std.astype(float) ** 2) == pytest.approx(plain.image_variances.sum(), rel=0.05)


@pytest.mark.parametrize(("name", "changed"), [("tv-wavelet", {}), ("local", {"samples": np.ones((48, 48), bool)})])
def test_under_other_priors_and_of_lines_with_holes_those_held_back_say_all(name: str, changed: dict) -> None:
    recipe = recipe_of(name).replacing("reconstruction", method="mean")
    one = replace(scan_of(recipe).slice_model(0, **recipe.slice_settings), **changed)
    result = reconstruct(one, LINES, "mean", recipe, rng())
    known = result.std_factor.evidence
    assert result.std_factor.how == "held back"
    wanted = known.variance * known.found / known.expected
    assert np.sum(result.std.astype(float) ** 2) == pytest.approx(wanted, rel=1e-4)


def some_of(readouts: Readouts, share: float) -> list[int]:
    """The centre, and others at random, fewer towards the edges."""
    k = np.linalg.norm(readouts.frequencies, axis=1)
    density = 1 / (3 + k) ** 1.5
    chosen = np.random.default_rng(1).choice(readouts.size, int(share * readouts.size), False, density / density.sum())
    return sorted({*chosen.tolist(), *readouts.nearest_to_centre(range(readouts.size), readouts.size // 12)})


@pytest.mark.parametrize(
    ("name", "encoding", "coils"),
    [("local", "lines", 1), ("default", "lines", 1), ("local", "lines", 4), ("local", "plane", 1)],
)
def test_all_pixels_are_scaled_by_one_factor_that_brings_them_to_the_actual_error(name, encoding, coils) -> None:
    recipe = recipe_of(name).replacing("design", encoding=encoding).replacing("simulation", coils=coils)
    scan = scan_of(recipe)
    one, truth = scan.slice_model(0, **recipe.slice_settings), truth_of(scan)
    plain = encoding == "lines" and coils == 1
    result = reconstruct(one, LINES if plain else some_of(one.candidates, 1 / 3), "mean", recipe, rng())
    ratio = float(np.sum(result.std.astype(float) ** 2) / np.sum(np.abs(result.image - truth) ** 2))
    assert 0.5 < ratio < 2 and result.std_factor.how == "learnt" and result.std_factor.unit == one.candidates.unit
    assert result.std.dtype == np.float32 and np.isfinite(result.std).all() and (result.std > 0).all()
    if plain:
        assert abs(np.log(ratio)) < 0.7 * abs(np.log(ratio / result.std_factor.factor**2))


def test_what_is_expected_of_lines_held_back_is_that_of_dense_algebra() -> None:
    recipe = load_recipe("local").replacing("input", matrix=16)
    one = scan_of(recipe).slice_model(0, **recipe.slice_settings)
    lines = [3, *range(5, 12), 13, 15, 1]
    without = hold_back(one, lines, replace(recipe.inference.engine(), variances=MonteCarlo(samples=200)), 0)
    found = energies_held_back([without], without.posterior, 0)
    assert found["held_back"] == len(without.held)
    posterior = without.posterior
    covariance = np.linalg.inv(posterior.precision.dense_real())
    rows = one.measurement(without.held)
    basis = np.eye(256).reshape(256, 16, 16)
    images = np.concatenate([basis, 1j * basis])
    seen = np.stack([rows(image.astype(np.complex64)).ravel() for image in images], axis=1)
    real = np.concatenate([seen.real, seen.imag])
    exact = one.noise_variance * np.trace(real @ covariance @ real.T)
    assert found["expected"] == pytest.approx(exact, rel=0.15)
    energy = sum(
        float(np.sum(np.abs(one.acquire([k]) - one.measurement([k])(posterior.mean)) ** 2)) for k in without.held
    )
    assert found["found"] == pytest.approx(energy - 2 * one.noise_variance * 16 * len(without.held), rel=1e-3)


def test_rings_count_by_what_is_expected_of_the_image_there() -> None:
    """Samples held back that hold c times what is expected in every ring make c, whatever the rings weigh."""
    recipe = load_recipe("local").replacing("input", matrix=32)
    one = scan_of(recipe).slice_model(0, **recipe.slice_settings)
    without = hold_back(one, sorted({*range(11, 21), *range(0, 32, 3)}), recipe.inference.engine(), 0)
    rows, posterior = one.measurement(without.held), without.posterior
    draws = posterior.own_deviations(np.random.default_rng(without.seed), 8)
    power = one.noise_variance * np.mean([np.abs(rows(draw)) ** 2 for draw in draws], axis=0)
    shown = rows(posterior.mean) + np.sqrt(5 * power + 2 * one.noise_variance)
    kspace = one.kspace.copy()
    kspace[:, list(without.held)] = shown.astype(np.complex64)
    found = energies_held_back([_with_data(without, kspace)], posterior, 0)
    assert found["by_ring"] == pytest.approx(5, rel=0.02)
    assert found["found"] / found["expected"] == pytest.approx(5, rel=0.02)


def _with_data(without: HeldBack, kspace: Array) -> HeldBack:
    changed = replace(without, slice_model=replace(without.slice_model, kspace=kspace))
    changed.__dict__["posterior"] = without.posterior
    return changed


@pytest.mark.parametrize("encoding", ["lines", "plane"])
def test_an_image_lacks_what_was_measured_at_the_same_distance_and_it_does_not_show(encoding: str) -> None:
    recipe = load_recipe("local").replacing("input", matrix=32).replacing("design", encoding=encoding)
    one = scan_of(recipe).slice_model(0, **recipe.slice_settings)
    white = np.random.default_rng(0).standard_normal((2, 1, 32, 32)) * np.sqrt(50 * one.noise_variance)
    one = replace(one, kspace=(white[0] + 1j * white[1]).astype(np.complex64))
    lines = some_of(one.candidates, 1 / 2)
    nothing = np.zeros((32, 32), dtype=np.complex64)
    left = 1024 * (1 - len(lines) / one.candidates.size) * 98 * one.noise_variance
    assert energy_missing(one, lines, nothing) == pytest.approx(left, rel=0.15)
    assert energy_missing(one, lines, one.plain_image(lines)) == pytest.approx(left, rel=0.15)
    truth = one.plain_image(range(one.candidates.size))
    assert energy_missing(one, lines, truth) < 0.2 * left
    assert energy_missing(one, range(one.candidates.size), truth) == 0


KNOWN = ErrorEvidence(
    10.0,
    local_variance=12.0,
    noise=3.0,
    share=0.25,
    coils=1,
    encoding="lines",
    phase_aware=False,
    held_back=6,
    found=4.0,
    expected=2.0,
    surprise=1.5,
    by_ring=2.0,
    from_held=20.0,
    from_local=5.0,
    missing=20.0,
)


def test_the_factor_is_bounded() -> None:
    for squared, bound in ((1e-6, BOUNDS[0]), (1e9, BOUNDS[1])):
        scale = std_factor((squared, "learnt", 0.2), KNOWN, "line")
        assert scale.factor == pytest.approx(np.sqrt(bound))
        assert scale.of_error == pytest.approx(0.11, abs=0.01)
    assert std_factor(None, KNOWN, "line") is None


def test_a_scan_unlike_those_that_were_learnt_from_is_scaled_by_what_it_holds_back() -> None:
    usual, model = predicted_error(KNOWN), shipped_squared_error_model()
    assert usual[1] == "learnt" and usual[2] > 0 and not model.unlike(KNOWN)
    for name, far in (
        ("log coils", replace(KNOWN, coils=4000)),
        ("log noise", replace(KNOWN, noise=1e9)),
        ("log share measured", replace(KNOWN, share=1e-6)),
    ):
        squared, how, _ = predicted_error(far)
        assert name in model.unlike(far) and how == "held back" and squared == pytest.approx(12.0 * 4.0 / 2.0)
    squared, how, _ = predicted_error(replace(KNOWN, gain=0.5), learnt=False)  # with a companion
    assert how == "held back" and squared == pytest.approx(24.0 * np.exp(-0.3))
    assert predicted_error(replace(KNOWN, held_back=0)) is None
    assert predicted_error(replace(KNOWN, held_back=1), learnt=False) is None


def test_images_alike_pull_a_straight_line_and_others_leave_it() -> None:
    """At an image that was learnt from, the pull is its own and those of its neighbours; far from all there is none."""
    shipped = shipped_squared_error_model()
    learnt = {"images": np.array([[0.0, 0.0], [2.0, 8.0]]), "pulls": np.array([0.3, -0.1])}
    two = replace(shipped, **learnt, unit=np.array([1.0, 2.0]), reach=2.0)
    distance = 2.0**2 + (8.0 / 2.0) ** 2
    assert two.pull(np.zeros(2)) == pytest.approx(0.3 - 0.1 * np.exp(-distance / 8))
    assert two.pull(np.array([50.0, 0.0])) == pytest.approx(0.0, abs=1e-12)
    place = int(np.argmax(np.abs(shipped.pulls)))
    assert shipped.alike(shipped.images[place])[place] == 1.0
    assert shipped.pull(shipped.images[place] + 100 * shipped.unit) == pytest.approx(0.0, abs=1e-9)


def test_the_map_shows_where_the_image_moved_and_its_squares_sum_to_the_same() -> None:
    std, image = np.full((32, 32), 0.1, dtype=np.float32), np.zeros((32, 32), dtype=np.complex64)
    moved = image.copy()
    moved[8, 20] = 1j
    shaped = shaped_std(std, image, [moved, image])
    assert np.sum(shaped.astype(float) ** 2) == pytest.approx(32 * 32 * 0.01, rel=1e-5)
    assert np.unravel_index(np.argmax(shaped), shaped.shape) == (8, 20)
    assert shaped[28, 4] == pytest.approx(0.1 * np.sqrt(0.5), rel=1e-3)
    np.testing.assert_array_equal(shaped_std(std, image, []), std)
    np.testing.assert_array_equal(shaped_std(std, image, [image]), std)


SIDE, NOISE = 32, 1e-4


def test_measured_lines_keep_the_power_of_noise_and_others_get_that_of_errors() -> None:
    rng = np.random.default_rng(0)
    white = rng.normal(size=(400, SIDE, SIDE)) + 1j * rng.normal(size=(400, SIDE, SIDE))
    size = np.where(np.arange(SIDE) % 2 == 0, np.sqrt(NOISE), 3.0)[:, None]
    for found in (None, np.full(len(USUAL), 3.0)):
        made = with_spectrum_of_errors(to_image(white * size), NOISE, found)
        power = np.mean(np.abs(to_kspace(made)) ** 2, axis=0) / (2 * size**2)
        at = radii((SIDE, SIDE))
        for first, ratios in ((0, MEASURED), (1, error_ratios(found))):
            wanted = np.exp(np.interp(at, MIDDLES, ratios))[first::2]
            assert np.median(power[first::2] / wanted) == pytest.approx(1, abs=0.03)
            assert np.quantile(np.abs(power[first::2] / wanted - 1), 0.99) < 0.3


def test_more_found_on_readouts_held_back_makes_errors_larger_where_it_was_found() -> None:
    np.testing.assert_allclose(error_ratios(None), OFFSETS)
    found = np.array(USUAL)
    found[:2], found[2], found[-1] = np.nan, USUAL[2] + 1, np.nan
    away = error_ratios(found) - OFFSETS
    np.testing.assert_allclose(away[:3], SLOPES[:3])  # as in the nearest ring
    np.testing.assert_allclose(away[3:-1], 0, atol=1e-12)
    np.testing.assert_allclose(error_ratios(np.full(len(USUAL), np.nan)), OFFSETS)


@pytest.mark.parametrize("times", [1.0, 3.0])
def test_an_image_so_far_from_its_mean_is_found_so_far(times: float) -> None:
    recipe = load_recipe("local").replacing("input", matrix=SIDE)
    one = calibrate(load_scan("phantom:brain", recipe), recipe).slice_model(0, **recipe.slice_settings)
    held = hold_back(one, sorted({*range(12, 20), *range(1, SIDE, 3)}), recipe.inference.engine(), 0)
    rng, rows = np.random.default_rng(5), list(held.held)
    sd = np.sqrt(one.noise_variance)
    found = []
    for draw in held.posterior.draw(rng, 8, tolerance=1e-4)[0]:
        kspace = one.kspace.copy()
        noise = sd * (rng.normal(size=(len(rows), SIDE)) + 1j * rng.normal(size=(len(rows), SIDE)))
        kspace[0, rows] = to_kspace(held.posterior.mean + times * sd * draw)[rows] + noise
        found.append(found_ratios(replace(held, slice_model=replace(held.slice_model, kspace=kspace)), 0))
    of_rings = np.array(found)[:, 4:-1]
    assert of_rings.mean() == pytest.approx(2 * np.log(times), abs=0.4)


def test_brightness_varies_by_a_tenth_of_what_pixels_do() -> None:
    rng = np.random.default_rng(0)
    image = 5 * (1 + rng.random((SIDE, SIDE))) * np.exp(1j * rng.random((SIDE, SIDE)))
    drawn = 0.3 * (rng.normal(size=(600, SIDE, SIDE)) + 1j * rng.normal(size=(600, SIDE, SIDE)))
    bright = with_brightness(drawn, image, np.random.default_rng(1)) - drawn
    factors = np.mean(bright / image, axis=(1, 2))
    np.testing.assert_allclose(bright, factors[:, None, None] * image)
    wanted = BRIGHTNESS * np.sqrt(2) * 0.3 * SIDE / np.linalg.norm(image)
    assert np.std(factors) == pytest.approx(wanted, rel=0.12) and not np.abs(factors.imag).max() > 1e-9
    np.testing.assert_array_equal(with_brightness(drawn, 0 * image, rng), drawn)


@pytest.mark.parametrize("twice", [False, True])
def test_the_prior_pulls_bright_pixels_by_its_rate_and_less_where_they_are_measured_twice(twice: bool) -> None:
    generator, noise = rng(), 0.01
    truth = np.zeros((8, 8), complex)
    truth[2:6, 2:6] = np.exp(1j)
    data = truth + noise * (generator.normal(size=(8, 8)) + 1j * generator.normal(size=(8, 8)))
    measured = Diagonal(np.full((8, 8), np.sqrt(1 + twice)))
    block = SiteBlock("pixels", Identity((8, 8)), Laplace(np.where(np.arange(8) < 4, 0.4, 0.2)))
    model = GeneralizedLinearModel(measured, measured(data), noise**2, (block,))
    posterior = Recipe().inference.engine().infer(model, generator)
    lost = np.abs(data) - np.abs(posterior.mean)
    pulled, bright = pull_of_prior(posterior), truth != 0
    np.testing.assert_allclose(pulled[bright], lost[bright], rtol=0.05)
    assert (pulled <= np.abs(posterior.mean)).all()
