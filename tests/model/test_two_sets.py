"""Two sets of coil maps: the image over twice the field of view is that of both, and objects that fold are found."""

from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.calibration import maps_from_lines
from mri_design.calibration.coils import seen_by_coils
from mri_design.experiment import Method
from mri_design.experiment.calibration import calibrate, truth_of
from mri_design.experiment.reconstruction import image_rng, reconstruct_prepared
from mri_design.model.two_sets import TwoSets
from mri_design.operators import to_image, to_kspace
from tests.folded_scans import folded

QUICK = md.load_recipe("local")


@pytest.fixture(scope="module")
def scan() -> md.KSpaceData:
    return calibrate(folded(), QUICK, growing=True)


LINES = (*range(20, 28), *range(0, 20, 3), *range(28, 48, 3))


def random_slice(shape: tuple[int, int], coils: int = 3, mixing: np.ndarray | None = None) -> md.SliceModel:
    rng = np.random.default_rng(2)
    sets = rng.normal(size=(3, coils, *shape, 2)).view(np.complex128)[..., 0].astype(np.complex64)
    maps = sets[:2] / np.linalg.norm(sets[:2], axis=1, keepdims=True)
    measured = np.ones(shape[0], dtype=bool)
    return md.SliceModel(sets[2], measured, 1.0, maps[0], second_maps=maps[1], mixing=mixing)


@pytest.mark.parametrize("shape", [(8, 6), (7, 5)])
def test_lines_see_the_sum_of_what_both_sets_see(shape: tuple[int, int]) -> None:
    both = TwoSets.of(random_slice(shape))
    assert both is not None
    images = np.random.default_rng(3).normal(size=(2, *shape, 2)).view(np.complex128)[..., 0]
    lines = [0, 3, 4, shape[0] - 1]
    seen = both.wide.encoding(lines)(both.joined(images))
    np.testing.assert_allclose(seen, to_kspace(seen_by_coils(images, both.maps))[:, lines], atol=1e-5)
    np.testing.assert_array_equal(both.apart(both.joined(images)), images)


@pytest.mark.parametrize("mixed", [False, True])
def test_the_image_is_as_bright_as_its_coil_images_as_read(mixed: bool) -> None:
    mixing = np.array([[2, 0, 0], [1, 1, 0], [0, 0.5, 3]], dtype=np.complex128) if mixed else None
    one = random_slice((8, 6), mixing=mixing)
    both = TwoSets.of(one)
    assert both is not None
    images = np.random.default_rng(3).normal(size=(2, 8, 6, 2)).view(np.complex128)[..., 0].astype(np.complex64)
    wide, seen = both.joined(images), seen_by_coils(images, both.maps)
    weights = both.weights(wide)
    shown = both.shown(wide, weights) * one.image_unit
    as_read = seen if mixing is None else np.tensordot(np.linalg.inv(mixing), seen, axes=1)
    np.testing.assert_allclose(np.abs(shown), np.linalg.norm(as_read, axis=0), rtol=1e-4)
    np.testing.assert_allclose(both.shown(2j * wide, weights), 2j * both.shown(wide, weights), rtol=1e-4)
    np.testing.assert_allclose(both.combined(seen), both.shown(wide, weights), rtol=0.05, atol=0.02)


def test_one_set_is_enough_for_an_object_inside_its_field_of_view() -> None:
    inside = md.load_phantom("t1w", shape=(64, 64), noise=0.01, n_coils=8, rng=np.random.default_rng(1))
    for one, wanted in ((folded(), True), (inside, False)):
        measured = np.zeros(one.kspace.shape[2], dtype=bool)
        measured[::3] = measured[len(measured) // 2 - 4 : len(measured) // 2 + 4] = True
        made = maps_from_lines(one.kspace[0], measured, noise_variance=one.noise_variance or 0.0)
        assert (made.second is not None) is wanted


def test_an_image_of_two_sets_shows_what_folds(scan: md.KSpaceData) -> None:
    own = scan.slice_model().calibrated(LINES)
    truth = np.linalg.norm(to_image(own.kspace), axis=0)
    one = replace(own, maps=scan.slice_model().calibrated(LINES, rough=True).maps, second_maps=None)
    errors = []
    for model in (one, own):
        image = np.abs(reconstruct_prepared(model, LINES, "mean", QUICK, image_rng(0), with_std=False).image)
        errors.append(np.linalg.norm(image - truth) / np.linalg.norm(truth))
    assert errors[1] < 0.6 * errors[0]


@pytest.mark.parametrize("method", ["map", "l1-wavelet", "total-variation"])
def test_rivals_show_what_folds_too(scan: md.KSpaceData, method: Method) -> None:
    own = scan.slice_model().calibrated(LINES)
    truth = np.linalg.norm(to_image(own.kspace), axis=0)
    image = np.abs(reconstruct_prepared(own, LINES, method, QUICK, image_rng(0)).image)
    assert np.linalg.norm(image - truth) < 0.12 * np.linalg.norm(truth)


def test_error_bars_and_draws_are_of_the_image_that_is_shown(scan: md.KSpaceData) -> None:
    own = scan.slice_model().calibrated(LINES)
    recipe = QUICK.with_settings(["reconstruction.draws=24"])
    made = reconstruct_prepared(own, LINES, "mean", recipe, image_rng(0))
    assert made.std is not None and made.draws is not None
    assert made.image.shape == made.std.shape == made.draws.shape[1:] == own.shape
    found = np.sqrt(np.mean(np.abs(made.draws - made.image) ** 2))
    assert 0.8 < found / np.sqrt(np.mean(made.std**2)) < 1.25


def test_the_scans_own_image_holds_what_folds(scan: md.KSpaceData) -> None:
    known = calibrate(folded(), QUICK, measured=np.isin(np.arange(48), LINES))
    assert known.second_maps is not None
    truth, size = truth_of(known), np.linalg.norm(to_image(known.kspace[0]), axis=0)
    assert truth is not None
    assert np.linalg.norm(np.abs(truth) - size) < 0.05 * np.linalg.norm(size)


def test_complete_scans_that_fold_have_two_sets_and_others_those_of_espirit() -> None:
    both = folded()
    inside = md.load_phantom("t1w", shape=(48, 64), noise=0.01, n_coils=8, rng=np.random.default_rng(1))
    slices = np.concatenate([inside.kspace, both.kspace])
    known = calibrate(replace(both, kspace=slices), QUICK)
    origin = known.provenance.maps
    assert known.second_maps is not None
    assert [bool(one.any()) for one in known.second_maps] == [False, True]
    assert (origin.second, origin.calibration_lines) == (True, 24)
    truth, size = truth_of(known, 1), np.linalg.norm(to_image(known.kspace[1]), axis=0)
    assert truth is not None and np.linalg.norm(np.abs(truth) - size) < 0.05 * np.linalg.norm(size)
    asked = calibrate(both, QUICK.with_settings(["coils.maps=espirit"]))
    assert (asked.provenance.maps.source, asked.second_maps) == ("espirit", None)


def test_coils_are_not_combined_where_that_would_lose_the_second_set() -> None:
    few = QUICK.with_settings(["coils.coil_compression=4"])
    both = calibrate(folded(), few)
    assert both.n_coils == 8 and both.second_maps is not None and both.provenance.combined == (8, 8, 0.0, 0.0)
    both.as_read(both.kspace[0], None, both.noise_variance)
    assert calibrate(folded(), few.with_settings(["coils.maps=espirit"])).n_coils == 4
    inside = md.load_phantom("t1w", shape=(48, 64), noise=0.01, n_coils=8, rng=np.random.default_rng(1))
    assert calibrate(replace(inside, coil_maps=None), few).n_coils == 4


def test_samples_that_are_no_whole_lines_have_one_set(scan: md.KSpaceData) -> None:
    one = scan.slice_model().calibrated(LINES)
    holes = np.ones(one.shape, dtype=bool)
    holes[3, 5] = False
    assert TwoSets.of(replace(one, samples=holes)) is None
    assert TwoSets.of(replace(one, second_maps=None)) is None
