"""Draws get the spectrum of errors: what is measured stays as noise, what is not follows readouts held back."""

from dataclasses import replace

import numpy as np
import pytest

from mri_design import load_recipe, prepare
from mri_design.evidence import error_ratios, found_ratios, hold_back, radii, with_brightness, with_spectrum_of_errors
from mri_design.evidence.draws import BRIGHTNESS, KNOWN, MIDDLES, OFFSETS, SLOPES, USUAL
from mri_design.experiment import load_input
from mri_design.operators import to_image, to_kspace

SIDE, NOISE = 32, 1e-4


def test_measured_lines_keep_the_power_of_noise_and_others_get_that_of_errors() -> None:
    rng = np.random.default_rng(0)
    white = rng.normal(size=(400, SIDE, SIDE)) + 1j * rng.normal(size=(400, SIDE, SIDE))
    size = np.where(np.arange(SIDE) % 2 == 0, np.sqrt(NOISE), 3.0)[:, None]
    for found in (None, np.full(len(USUAL), 3.0)):
        made = with_spectrum_of_errors(to_image(white * size), NOISE, found)
        power = np.mean(np.abs(to_kspace(made)) ** 2, axis=0) / (2 * size**2)
        at = radii((SIDE, SIDE))
        for first, ratios in ((0, KNOWN), (1, error_ratios(found))):
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
    recipe = load_recipe("local").replacing("simulation", matrix=SIDE)
    one = prepare(load_input("phantom:brain", recipe), recipe).slice_model(0, recipe)
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
