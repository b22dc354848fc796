"""Coil maps from the lines measured so far."""

from math import isnan

import numpy as np
import pytest

from mri_design import load_input
from mri_design.calibration.growing_maps import MapEstimate, maps_from_lines
from mri_design.calibration.nlinv import joint_estimate
from mri_design.errors import InputError
from mri_design.operators.conventions import to_image


@pytest.fixture(scope="module")
def head():
    """Six coils of a raw head at a low resolution, (coil, ky, kx)."""
    return load_input("phantom:head-16ch").kspace[0, :6, 32:96, 32:96]


def lines(*some):
    measured = np.zeros(64, dtype=bool)
    measured[list(some)] = True
    return measured


DESIGNED = lines(6, 14, 19, 22, 25, 27, *range(29, 36), 37, 40, 43, 47, 55)
"""As a design measures: dense at the centre, where seven lines have no gap, and thin outside."""


def unexplained(kspace, maps):
    """Part of the coil images that an image seen through the maps cannot be."""
    images = to_image(kspace)
    seen = maps * np.sum(maps.conj() * images, axis=0)
    return np.linalg.norm(images - seen) / np.linalg.norm(images)


@pytest.mark.parametrize("method", ["espirit", "nlinv"])
def test_maps_rest_on_measured_lines_alone(head, method):
    measured = DESIGNED | lines(36, 28)
    poisoned = np.where(measured[:, None], head, np.nan)
    estimate = maps_from_lines(poisoned, measured, method=method)
    assert np.isfinite(estimate.maps).all()
    np.testing.assert_array_equal(estimate.maps, maps_from_lines(head, measured, method=method).maps)


def test_lines_with_gaps_give_maps_as_good_as_those_of_the_whole_scan(head):
    whole = maps_from_lines(head, np.ones(64, dtype=bool))
    few = maps_from_lines(head, DESIGNED)
    assert (whole.method, few.method) == ("espirit", "nlinv")
    assert unexplained(head, few.maps) < 1.1 * unexplained(head, whole.maps)
    assert few.prediction_error < 0.1
    assert not few.predicts_badly


def test_they_are_better_than_those_of_the_gapless_centre_alone(head):
    measured = DESIGNED | lines(28)
    of_all, of_centre = (maps_from_lines(head, measured, method=method).maps for method in ("nlinv", "espirit"))
    assert unexplained(head, of_all) < 0.9 * unexplained(head, of_centre)


def test_maps_have_unit_root_sum_of_squares_and_say_what_they_rest_on(head):
    estimate = maps_from_lines(head, DESIGNED)
    np.testing.assert_allclose(np.linalg.norm(estimate.maps, axis=0), 1, atol=1e-5)
    assert (estimate.centre, estimate.lines) == (7, 15)
    assert "15 measured lines of the central 32" in estimate.text
    assert f"error of {estimate.prediction_error:.0%} beyond noise" in estimate.text
    square = np.zeros((64, 64), dtype=bool)
    square[27:37, 27:37] = True
    assert "100 measured samples of the central 32 x 32" in maps_from_lines(head, square, check=False).text


def test_coils_that_disagree_with_any_image_predict_badly(head):
    other = head * np.exp(2j * np.pi * np.random.default_rng(0).random(head.shape))
    estimate = maps_from_lines(other.astype(np.complex64), DESIGNED)
    assert estimate.predicts_badly
    assert "which is bad" in estimate.text


def test_four_lines_are_checked_too_and_predict_worse_than_those_of_a_design(head):
    of_few, of_design = (maps_from_lines(head, some).prediction_error for some in (lines(*range(30, 34)), DESIGNED))
    assert 0 < of_design < 0.8 * of_few < 0.5


def test_what_is_held_back_is_predicted_without_being_seen(head):
    """The same check by hand: coils held back line by line, whose samples are no numbers, and what is predicted."""
    measured = np.repeat(DESIGNED[:, None], 64, axis=1)
    held = np.zeros(head.shape, dtype=bool)
    for number, line in enumerate(np.flatnonzero(DESIGNED[16:48]) + 16):
        held[-number % 8 :: 8, line, 16:48] = True
    predicted = joint_estimate(np.where(held, np.nan, head), measured & ~held, rough=True).block
    wanted = np.where(held, head, 0)[:, 16:48, 16:48]
    missed = np.where(held[:, 16:48, 16:48], predicted, 0) - wanted
    error = np.linalg.norm(missed) / np.linalg.norm(wanted)
    assert maps_from_lines(head, DESIGNED).prediction_error == pytest.approx(error, rel=1e-3)


def test_maps_are_the_same_without_a_check(head):
    unchecked, checked = (maps_from_lines(head, DESIGNED, check=check) for check in (False, True))
    np.testing.assert_array_equal(unchecked.maps, checked.maps)
    assert isnan(unchecked.prediction_error) and checked.prediction_error < 1


def test_samples_of_a_plane_give_maps_too(head):
    kept = np.random.default_rng(1).random((64, 64)) < 0.3
    kept[28:36, 28:36] = True
    estimate = maps_from_lines(np.where(kept, head, np.nan), kept)
    assert unexplained(head, estimate.maps) < 1.1 * unexplained(head, maps_from_lines(head, np.ones(64, bool)).maps)


def test_silent_and_equal_coils_stay_what_they_are(head):
    coils = np.stack([head[0], np.zeros_like(head[0]), *head[2:4], head[0]])
    maps = maps_from_lines(coils, DESIGNED).maps
    assert np.abs(maps[1]).max() < 1e-6
    np.testing.assert_allclose(maps[0], maps[4], atol=1e-4)


@pytest.mark.parametrize(
    ("measured", "method", "wanted"),
    [
        (lines(*range(30, 35)), "espirit", "at least 8"),
        (lines(*range(2, 64, 3)), "nlinv", "at least 2"),
        (np.zeros(64, dtype=bool), "auto", "at least 2"),
    ],
)
def test_too_small_a_centre_is_refused(head, measured, method, wanted):
    with pytest.raises(InputError, match=wanted):
        maps_from_lines(head, measured, method=method)


def test_no_signal_and_unknown_methods_are_refused(head):
    with pytest.raises(InputError, match="no signal"):
        maps_from_lines(np.zeros_like(head), DESIGNED)
    with pytest.raises(InputError, match="'auto', 'espirit' or 'nlinv'"):
        maps_from_lines(head, DESIGNED, method="walsh")


def test_two_coils_are_not_called_bad_for_predicting_little():
    maps = np.ones((2, 2, 2), np.complex64)
    assert not MapEstimate(maps, "nlinv", 8, 14, prediction_error=0.8).predicts_badly


def test_noise_is_no_error_of_maps_that_are_sound(head):
    """A signal of ten times the noise; the check would call the maps of such a scan bad by its noise alone."""
    rng = np.random.default_rng(0)
    image = np.sqrt(np.sum(np.abs(to_image(head)) ** 2, axis=0))
    sd = np.percentile(image, 99) / 10
    noise = sd * (rng.standard_normal(head.shape) + 1j * rng.standard_normal(head.shape))
    noisy = (head + noise).astype(np.complex64)
    centre = lines(*range(20, 44))
    assert maps_from_lines(noisy, centre).predicts_badly
    assert not maps_from_lines(noisy, centre, noise_variance=sd**2).predicts_badly
    turned = (head * np.exp(2j * np.pi * rng.random(head.shape)) + noise).astype(np.complex64)
    assert maps_from_lines(turned, centre, noise_variance=sd**2).predicts_badly
