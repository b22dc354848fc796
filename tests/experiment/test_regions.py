"""Regions of a slice that are to be known: masks over it, what noise alone leaves, and what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from mri_design.design import Within
from mri_design.evidence.regions import Distances, region_means
from mri_design.experiment.recipe import within_of
from mri_design.experiment.reconstruction import Image, image_rng, reconstruct_prepared
from mri_design.experiment.regions import EchoFit, Regions, WantedRegions, first_seen
from mri_design.model import SliceModel
from mri_design.signals.maps import fit_map
from mri_design.signals.models import signal_model
from mri_design.status import Convergence, Status
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
    found = wanted.over([None], SHAPE, 0.9)
    assert found.names == ("lesion", "region 2 1", "region 2 2", "first - second")
    np.testing.assert_array_equal(found.masks["lesion"][0], MIDDLE == 1)
    assert wanted.files == [str(tmp_path / "lesion.npy")] and bool(wanted) and not WantedRegions()


def test_regions_of_equal_names_are_told_apart_and_the_same_region_is_one(tmp_path: Path) -> None:
    other = np.roll(MIDDLE, 3)
    for folder, mask in (("a", MIDDLE), ("b", other)):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "t1.lesion.npy", mask)
    files = (tmp_path / "a" / "t1.lesion.npy", tmp_path / "b" / "t1.lesion.npy")
    found = WantedRegions(files, (files,)).over([None], SHAPE, 0.9)
    first, second = "t1.lesion", "t1.lesion (2)"
    assert found.names == (first, second, f"{first} - {second}") and len(found.masks) == 2
    np.testing.assert_array_equal(found.masks[second][0], other == 1)
    with refused("difference"):
        WantedRegions((), ((MIDDLE, MIDDLE.astype(bool)),)).over([None], SHAPE, 0.9)


@pytest.mark.parametrize(
    ("field", "means", "differences"),
    [
        ("region", (np.zeros(SHAPE),), ()),
        ("region", (np.ones((8, 8)),), ()),
        ("second", (), ((MIDDLE, TWO),)),
        ("region", (np.full(SHAPE, 0.5),), ()),
    ],
    ids=["empty", "another grid", "two regions on a side", "no flags"],
)
def test_masks_that_cannot_serve_are_refused(field: str, means: tuple, differences: tuple) -> None:
    with refused(field):
        WantedRegions(means, differences).over([None], SHAPE, 0.9)


def test_intervals_are_those_of_the_means_of_the_image(one: SliceModel, recipe: md.Recipe) -> None:
    image = reconstruct_prepared(one, range(8, 24), "mean", recipe, image_rng(0))
    regions = WantedRegions((MIDDLE,), ((MIDDLE, np.roll(MIDDLE, 6, axis=1)),)).over([None], SHAPE, 0.8)
    mean, apart = regions.measured({0: image}, {0: one.kspace[0]})
    rows = regions.intervals(regions.measured({0: image}))
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
    gaussian = Distances((0.9,), (1.645,))
    regions = Regions({"a": MIDDLE[None] == 1, "b": other[None]}, ("a",), (("a", "b"),), 0.9, gaussian)
    found = np.abs(image + noise[:, 0])
    means, others = found[:, MIDDLE == 1].mean(axis=1), found[:, other].mean(axis=1)
    halves = 1.645 * np.array([means.std(), (means - others).std()])
    variances = first_seen(seen, range(12, 20))[1]
    np.testing.assert_allclose(regions.shortest({0: (image, variances)})[:, 1], halves, rtol=0.06)


def test_what_can_never_be_known_is_refused_at_once(one: SliceModel) -> None:
    start = range(12, 20)
    inside, outside = (Regions({name: mask[None] == 1}, (name,)) for name, mask in (("a", MIDDLE), ("air", CORNER)))
    inside.require([one], start, Within(0.05))
    with refused("air"):
        outside.require([one], start, Within(0.05))
    least = inside.shortest({0: first_seen(one, start)})[0]
    for relative, length in ((True, least[1] / least[2]), (False, least[1])):
        inside.require([one], start, Within(0.8 * length, relative))
        with refused("until_interval"):
            inside.require([one], start, Within(0.7 * length, relative))


def test_what_noise_leaves_is_in_the_units_of_the_file(one: SliceModel) -> None:
    """A scan in other units has other images and other noise, and the same relative interval."""
    regions, start = Regions({"a": MIDDLE[None] == 1}, ("a",)), range(12, 20)
    mine, theirs = (regions.shortest({0: first_seen(replace(one, unit=n), start)})[0] for n in (1.0, 3.0))
    np.testing.assert_allclose(theirs, 3.0 * mine, rtol=1e-6)


VOLUME = np.zeros((4, *SHAPE), dtype=int)
VOLUME[1, 12:18, 10:16] = VOLUME[2, 14:18, 10:16] = 1
"""Of four slices: a region of two of them."""


@pytest.mark.parametrize(
    ("numbers", "given", "pixels"),
    [
        ((2, 1), VOLUME, (24, 36)),
        ((3, 1, 2), VOLUME, (0, 36, 24)),
        ((2, 1), VOLUME[1:3], (24, 36)),
        ((2, 1), MIDDLE, (36, 0)),
    ],
    ids=["of all slices", "of three", "of the chosen ones in their order", "of that of the image"],
)
def test_a_mask_of_a_volume_lies_on_the_slices_that_share_the_mask(
    numbers: tuple[int, ...], given: np.ndarray, pixels: tuple[int, ...]
) -> None:
    found = WantedRegions((given,)).over([None] * len(numbers), SHAPE, 0.9, numbers, 4)
    assert tuple(np.count_nonzero(found.masks["region"], axis=(1, 2))) == pixels
    assert found.places == [place for place, count in enumerate(pixels) if count]


@pytest.mark.parametrize(("numbers", "count"), [((0, 3), 4), ((0,), 1)], ids=["other slices", "a scan of one slice"])
def test_a_region_in_no_slice_that_shares_the_mask_is_refused(numbers: tuple[int, ...], count: int) -> None:
    with refused("region"):
        WantedRegions((VOLUME,)).over([None] * len(numbers), SHAPE, 0.9, numbers, count)


def test_every_slice_of_several_scans_has_to_know_the_regions_that_lie_on_it() -> None:
    """Of a volume two slices of four do, of a mask without place all."""
    slices = [("a[0]", None, 0, 4), ("a[1]", None, 1, 4), ("b[2]", None, 2, 4)]
    found = WantedRegions((VOLUME,)).over_each(slices, SHAPE, 0.9)
    assert found.names == ("region of a[1]", "region of b[2]") and found.places == [1, 2]
    np.testing.assert_array_equal(found.masks["region of b[2]"][2], VOLUME[2] == 1)
    every = WantedRegions((), ((MIDDLE, np.roll(MIDDLE, 9, axis=1)),)).over_each(slices, SHAPE, 0.9)
    assert every.names == tuple(f"first of {one} - second of {one}" for one, *_ in slices)
    with refused("region"):
        WantedRegions((VOLUME,)).over_each(slices[:1], SHAPE, 0.9)


def test_a_region_that_goes_through_a_slice_of_noise_is_refused() -> None:
    found = WantedRegions((VOLUME,)).over([None] * 3, SHAPE, 0.9, (1, 2, 3), 4)
    assert found.among((True, True, False), (1, 2, 3)).places == [0, 1]
    with refused("region"):
        found.among((True, False, True), (1, 2, 3))


def test_the_mean_of_a_region_is_over_all_its_slices_whose_draws_are_independent(
    one: SliceModel, recipe: md.Recipe
) -> None:
    images = {n: reconstruct_prepared(one, range(8, 24), "mean", recipe, image_rng(n)) for n in (0, 2)}
    both = np.stack([MIDDLE, np.zeros_like(MIDDLE), np.roll(MIDDLE, 1, axis=0)]) == 1
    (found,) = Regions({"a": both}, ("a",)).measured(images)
    alone = [Regions({"a": both[n][None]}, ("a",)).measured({0: images[n]})[0] for n in (0, 2)]
    assert found.value == pytest.approx(np.mean([each.value for each in alone]))
    scatter = [np.var(each.deviations[0], ddof=1) / 4 for each in alone]
    assert np.sum([np.var(each, ddof=1) for each in found.deviations]) == pytest.approx(np.sum(scatter))


TIMES, T2, NOISE = np.array([10.0, 20.0, 40.0, 80.0]), 50.0, 0.02


def echoes(times: np.ndarray = TIMES, sd: float = NOISE, draws: int = 32) -> dict[int, Image]:
    """Images of echoes of a T2 that is the same everywhere, with noise, and their draws."""
    rng, ended = np.random.default_rng(1), Convergence(Status.CONVERGED, 0, 0.0)

    def noise(*shape: int) -> np.ndarray:
        return np.asarray(sd * (rng.normal(size=shape) + 1j * rng.normal(size=shape)))

    found = dict[int, Image]()
    for place, time in enumerate(times):
        image = np.exp(-time / T2) + noise(*SHAPE)
        found[place] = Image(image, np.full(SHAPE, sd * np.sqrt(2)), ended, draws=image + noise(draws, *SHAPE))
    return found


def of_map(times: np.ndarray = TIMES) -> Regions:
    masks = {"a": MIDDLE[None] == 1, "b": np.roll(MIDDLE, 9, axis=1)[None] == 1}
    return Regions(masks, ("a",), (("a", "b"),), fit=EchoFit(signal_model("T2"), times))


def test_regions_of_a_map_are_those_of_the_fit_to_all_echoes() -> None:
    regions, images = of_map(), echoes()
    assert regions.places == [0, 1, 2, 3]
    parts = (np.stack([getattr(one, name) for one in images.values()]) for name in ("image", "draws", "std"))
    made = fit_map(signal_model("T2"), TIMES, *parts)
    means = region_means(regions.masks, made.value[None], [made.draws])
    wanted = [means[0], means[0].minus(means[1], "a - b", together=True)]
    found = regions.measured(images)
    for one, other in zip(found, wanted, strict=True):
        assert one.interval(0.9) == pytest.approx(other.interval(0.9)) and one.name == other.name
    assert found[0].value == pytest.approx(T2, rel=0.03)


def test_a_region_whose_echoes_do_not_determine_the_map_is_not_known() -> None:
    """All echoes are alike in a third of its pixels, or everywhere."""
    for part in (MIDDLE.cumsum().reshape(SHAPE) * MIDDLE > 24, np.ones(SHAPE, dtype=bool)):
        flat = {n: replace(one, image=np.where(part, 1.0, one.image)) for n, one in echoes().items()}
        flat = {n: replace(one, draws=np.where(part, 1.0, one.draws)) for n, one in flat.items()}
        rows = of_map().intervals(of_map().measured(flat))
        assert np.isinf(rows[:, 1]).all() and np.isinf(Within(0.05).lengths(rows)).all()


def test_what_noise_leaves_of_a_map_is_known_at_once(one: SliceModel) -> None:
    """Twice the noise leaves twice the interval, and less is refused."""
    clean = replace(one, noise_variance=0.04 * one.noise_variance)
    scans = [replace(clean, kspace=one.kspace * np.exp(-time / T2)) for time in TIMES]
    start, regions = range(12, 20), of_map()
    noisy = [replace(each, noise_variance=4 * each.noise_variance) for each in scans]
    once, twice = (
        regions.shortest({n: first_seen(each, start) for n, each in enumerate(some)}) for some in (scans, noisy)
    )
    np.testing.assert_allclose(twice[:, 1], 2 * once[:, 1], rtol=0.1)
    least = Within(0.05).lengths(once).max()
    regions.require(scans, start, Within(0.8 * least))
    with refused("until_interval"):
        regions.require(scans, start, Within(0.7 * least))


@pytest.mark.parametrize(
    ("text", "length", "relative"),
    [("2%", 0.02, True), (0.02, 0.02, True), ("0.02", 0.02, True), ("3.5 units", 3.5, False)],
)
def test_an_interval_is_a_share_or_a_length(text: float | str, length: float, relative: bool) -> None:
    assert within_of(text) == Within(length, relative)


@pytest.mark.parametrize("text", ["2", "much", "-1%", "units", "3 m m", "0%", "nan%"])
def test_other_intervals_are_refused(text: str) -> None:
    with refused("until_interval"):
        within_of(text)


@pytest.mark.parametrize(("fit", "own", "other"), [("T2", "2 ms", "2 s"), (None, "2units", "2 ms")])
def test_a_length_is_in_the_unit_of_the_map_or_in_those_of_the_image(fit: str | None, own: str, other: str) -> None:
    wanted = WantedRegions((np.ones((4, 4)),), fit=None if fit is None else signal_model(fit), times="1,2")
    for text in (own, "2 units", "2%"):
        wanted.recipe(md.Recipe().replacing("design", until_interval=text))
    with refused("until_interval"):
        wanted.recipe(md.Recipe().replacing("design", until_interval=other))


def test_masks_that_hold_nothing_or_too_much_are_refused_by_the_name_of_their_file(tmp_path: Path) -> None:
    empty, labels = tmp_path / "empty.npy", tmp_path / "labels.npy"
    np.save(empty, np.zeros((4, 4)))
    np.save(labels, np.arange(16).reshape(4, 4) // 6)
    for field, wanted in (
        ("empty.npy", WantedRegions((empty,))),
        ("labels.npy", WantedRegions(differences=((labels, np.eye(4)),))),
    ):
        with refused(field):
            wanted.over([None], (4, 4), 0.9)
