"""Regions of a slice that are to be known: masks over it, what noise alone leaves, and what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from mri_design.design import Within
from mri_design.experiment.recipe import within_of
from mri_design.experiment.reconstruction import image_rng, reconstruct_prepared
from mri_design.experiment.regions import Regions, WantedRegions
from mri_design.model import SliceModel
from tests.refusals import refused

SHAPE = (32, 32)
MIDDLE, CORNER = np.zeros(SHAPE, dtype=int), np.zeros(SHAPE, dtype=int)
MIDDLE[12:18, 10:16], CORNER[:4, :4] = 1, 1
TWO = np.where(MIDDLE, 1, np.roll(2 * MIDDLE, 8, axis=1))


@pytest.fixture(scope="module")
def recipe() -> md.Recipe:
    return md.load_recipe("local").replacing("reconstruction", draws=16)


@pytest.fixture(scope="module")
def one(recipe: md.Recipe) -> SliceModel:
    scan = md.load_phantom("t2w", shape=SHAPE, noise=0.01, rng=np.random.default_rng(0))
    return md.calibrate(scan, recipe).slice_model(0, **recipe.slice_settings)


def test_regions_have_names_and_differences_two_of_them(tmp_path: Path) -> None:
    np.save(tmp_path / "lesion.npy", MIDDLE)
    pair = np.roll(MIDDLE, 2), np.roll(MIDDLE, 3)
    wanted = WantedRegions((tmp_path / "lesion.npy", np.roll(TWO, 1, axis=0)), (pair,))
    found = wanted.over(None, SHAPE, 0.9)
    assert found.names == ("lesion", "region 2 1", "region 2 2", "first - second")
    np.testing.assert_array_equal(found.masks["lesion"], MIDDLE == 1)
    assert wanted.files == [str(tmp_path / "lesion.npy")] and bool(wanted) and not WantedRegions()


def test_regions_of_equal_names_are_told_apart_and_the_same_region_is_one(tmp_path: Path) -> None:
    other = np.roll(MIDDLE, 3)
    for folder, mask in (("a", MIDDLE), ("b", other)):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "t1.lesion.npy", mask)
    files = (tmp_path / "a" / "t1.lesion.npy", tmp_path / "b" / "t1.lesion.npy")
    found = WantedRegions(files, (files,)).over(None, SHAPE, 0.9)
    first, second = "t1.lesion", "t1.lesion (2)"
    assert found.names == (first, second, f"{first} - {second}") and len(found.masks) == 2
    np.testing.assert_array_equal(found.masks[second], other == 1)
    with refused("difference"):
        WantedRegions((), ((MIDDLE, MIDDLE.astype(bool)),)).over(None, SHAPE, 0.9)


@pytest.mark.parametrize(
    ("field", "means", "differences"),
    [
        ("region", (np.zeros(SHAPE),), ()),
        ("region", (np.ones((8, 8)),), ()),
        ("second 1", (), ((MIDDLE, TWO),)),
        ("region", (np.full(SHAPE, 0.5),), ()),
    ],
    ids=["empty", "another grid", "two regions on a side", "no flags"],
)
def test_masks_that_cannot_serve_are_refused(field: str, means: tuple, differences: tuple) -> None:
    with refused(field):
        WantedRegions(means, differences).over(None, SHAPE, 0.9)


def test_intervals_are_those_of_the_means_of_the_image(one: SliceModel, recipe: md.Recipe) -> None:
    image = reconstruct_prepared(one, range(8, 24), "mean", recipe, image_rng(0))
    regions = WantedRegions((MIDDLE,), ((MIDDLE, np.roll(MIDDLE, 6, axis=1)),)).over(None, SHAPE, 0.8)
    mean, apart = regions.measured(image, one.kspace[0])
    rows = regions.intervals(regions.measured(image))
    low, high = mean.interval(0.8)
    assert rows[0] == pytest.approx([(low + high) / 2, (high - low) / 2, mean.value])
    assert rows[1] == pytest.approx([apart.middle, apart.half_length(0.8), apart.brightness])
    assert mean.true == pytest.approx(np.abs(one.kspace[0][MIDDLE == 1]).mean())


@pytest.mark.parametrize("coils", [1, 3])
def test_noise_alone_leaves_what_a_complete_scan_without_a_prior_has(one: SliceModel, coils: int) -> None:
    """Of many images, with the noise of the samples, combined by the coil maps."""
    rng, sd = np.random.default_rng(0), float(np.sqrt(one.noise_variance))
    maps = None if coils == 1 else (rng.normal(size=(coils, *SHAPE)) + 1j * rng.normal(size=(coils, *SHAPE)))
    known = None if maps is None else maps.astype(np.complex64)
    seen = replace(one, kspace=np.repeat(one.kspace, coils, axis=0), maps=known)
    noise = sd * (rng.normal(size=(4000, coils, *SHAPE)) + 1j * rng.normal(size=(4000, coils, *SHAPE)))
    if maps is not None:
        noise = np.sum(maps.conj() * noise, axis=1, keepdims=True) / np.sum(np.abs(maps) ** 2, axis=0)
    image = np.full(SHAPE, 100 * sd)
    other = np.roll(MIDDLE, 6, axis=1) == 1
    regions = Regions({"a": MIDDLE == 1, "b": other}, ("a",), (("a", "b"),), 0.9)
    found = np.abs(image + noise[:, 0])
    means, others = found[:, MIDDLE == 1].mean(axis=1), found[:, other].mean(axis=1)
    halves = 1.645 * np.array([means.std(), (means - others).std()])
    np.testing.assert_allclose(regions.shortest(seen, image)[:, 1], halves, rtol=0.06)


def test_what_can_never_be_known_is_refused_at_once(one: SliceModel) -> None:
    image = one.central_image(range(12, 20))
    inside, outside = Regions({"a": MIDDLE == 1}, ("a",)), Regions({"air": CORNER == 1}, ("air",))
    inside.require(one, image, Within(0.05))
    with refused("air"):
        outside.require(one, image, Within(0.05))
    least = inside.shortest(one, image)[0]
    for relative, length in ((True, least[1] / least[2]), (False, least[1])):
        inside.require(one, image, Within(0.8 * length, relative))
        with refused("until_interval"):
            inside.require(one, image, Within(0.7 * length, relative))


@pytest.mark.parametrize(
    ("text", "length", "relative"),
    [("2%", 0.02, True), (0.02, 0.02, True), ("0.02", 0.02, True), ("3.5 units", 3.5, False)],
)
def test_an_interval_is_a_share_or_a_length(text: float | str, length: float, relative: bool) -> None:
    assert within_of(text) == Within(length, relative)


@pytest.mark.parametrize("text", ["2", "much", "-1%", "units", "3 mm", "0%", "nan%"])
def test_other_intervals_are_refused(text: str) -> None:
    with refused("until_interval"):
        within_of(text)
