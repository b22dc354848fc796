"""Means of regions and their differences: values, standard deviations and intervals against numbers known by hand."""

import numpy as np
import pytest

from mri_design.evidence import regions as module
from mri_design.evidence.regions import Distances, RegionMean, named_regions, region_means, shipped_distances
from mri_design.runs.measure import row_of
from tests.refusals import refuses

SIDE, COUNT = 12, 2000
LABELS = np.zeros((2, SIDE, SIDE), dtype=int)
LABELS[0, 2:5, 2:5], LABELS[:, 7:9, 7:11] = 1, 2


@pytest.fixture(scope="module")
def image() -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.asarray((5 + rng.random((2, SIDE, SIDE))) * np.exp(1j * rng.random((2, SIDE, SIDE))))


def draws_of(image: np.ndarray) -> np.ndarray:
    """Draws of both slices that move up and down together by .1 of a unit, and each pixel by .05, along the phase."""
    rng = np.random.default_rng(1)
    away = 0.1 * rng.normal(size=(2, COUNT, 1, 1)) + 0.05 * rng.normal(size=(2, COUNT, SIDE, SIDE))
    image = image[:, np.newaxis]
    return np.asarray(image * (1 + away / np.abs(image)))


def test_pixels_that_move_together_count_in_a_mean_and_not_in_a_difference(image: np.ndarray) -> None:
    one, two = region_means(named_regions(LABELS), image, draws_of(image), image + 0)
    apart = one.minus(two, "difference", together=True)
    assert (one.name, two.name, apart.pixels) == ("region 1", "region 2", 25)
    assert one.value == pytest.approx(np.abs(image[0, 2:5, 2:5]).mean()) and one.value == one.true
    far = 4 / np.sqrt(2 * COUNT)
    assert one.sd == pytest.approx(np.hypot(0.1, 0.05 / 3), rel=far)
    assert two.sd == pytest.approx(np.sqrt((0.1**2 + 0.05**2 / 8) / 2), rel=far)  # of two independent slices
    # the slice that both share moves one by .1 and the other by half of that
    assert apart.sd == pytest.approx(np.sqrt(2 * 0.05**2 + 0.05**2 / 9 + 0.05**2 / 16), rel=far)
    repeated = one.minus(one, "x", together=False)
    assert repeated.value == 0 and repeated.sd == pytest.approx(np.sqrt(2) * one.sd, rel=far)
    shipped = shipped_distances()
    for level in (0.5, 0.8, 0.95):
        low, high = one.interval(level)
        assert (high - low) / 2 == pytest.approx(one.spread * shipped.within(level, one.pixels))
        assert (low + high) / 2 == pytest.approx(one.value + one.deviations[0].mean() - shipped.shift * one.spread)
        assert sum(apart.interval(level)) / 2 == pytest.approx(
            apart.value + sum(part.mean() for part in apart.deviations)
        )
    assert row_of(one)["error / sd"] == 0 and row_of(one)["draws"] == COUNT
    assert (one.brightness, apart.brightness) == (None, max(one.value, two.value))


def test_few_draws_make_the_interval_wider_and_the_modulus_of_noise_counts(image: np.ndarray) -> None:
    regions = named_regions((LABELS == 1).astype(int))
    (few,) = region_means(regions, image, draws_of(image)[:, :5])
    usual = shipped_distances().within(0.95, few.pixels) * few.spread
    assert few.half_length(0.95) == pytest.approx(
        usual * 2.776 / 2.040, rel=1e-3
    )  # t of 4 and of 31 degrees of freedom
    assert few.name == "region" and few.true is None and "error / sd" not in row_of(few)
    rng = np.random.default_rng(0)
    dark = np.zeros((2, SIDE, SIDE), dtype=complex)
    noise = rng.normal(size=(COUNT, SIDE, SIDE)) + 1j * rng.normal(size=(COUNT, SIDE, SIDE))
    (found,) = region_means(regions, dark, np.stack([noise] * 2))
    assert found.value == 0 and found.sd == pytest.approx(np.sqrt(np.pi / 2), rel=0.03)


def test_what_cannot_be_measured_is_named(image: np.ndarray) -> None:
    regions = named_regions(LABELS)
    nothing = {"lesion": np.zeros(image.shape, dtype=bool)}
    draws = draws_of(image)
    for field, asked, some in (("draws", regions, draws[:, :3]), ("lesion", nothing, draws)):
        refuses(field, region_means, asked, image, some)
    refuses("draws", region_means, regions, image, np.where(draws == draws[0, 0, 2, 2], np.nan, draws))


def test_quantiles_are_those_of_the_regions_that_taught() -> None:
    """Whose distances are Gaussian, and twice as large for regions of a sixteenth of the pixels."""
    rng = np.random.default_rng(0)
    pixels = np.repeat([25.0, 100.0, 400.0], 40_000)
    away = rng.normal(size=pixels.size) * (pixels / 100) ** -0.25
    taught = Distances.of(away, pixels)
    assert taught.power == pytest.approx(-0.25, abs=0.01)
    for level in (0.5, 0.75, 0.9, 0.95, 0.98, 0.99):  # between and beyond those that are kept
        held = np.abs(away) <= taught.within(level, pixels)
        assert held.mean() == pytest.approx(level, abs=0.005)
        assert held[:40_000].mean() == pytest.approx(level, abs=0.01)
    doubled = np.where(np.arange(away.size) % 2, 2 * away, away)
    weights = np.where(np.arange(away.size) % 2, 0.0, 1.0)
    assert Distances.of(doubled, pixels, weights).within(0.9) == pytest.approx(taught.within(0.9), rel=0.02)
    darker = Distances.of(away - 0.3 * weights, pixels, None, weights == 1)  # half of them are means, the others not
    assert darker.shift == pytest.approx(-0.3, abs=0.02) and darker.within(0.9) == pytest.approx(
        taught.within(0.9), rel=0.02
    )


def test_an_interval_lies_where_the_draws_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The truth is there, and as far from their mean as their scatter is: Student's t of 32 draws holds nine of ten."""
    rng, held = np.random.default_rng(0), []
    monkeypatch.setattr(module, "shipped_distances", lambda: Distances((0.9,), (1.722,)))
    for _ in range(3000):
        shift = 0.01 * rng.normal()  # of the image from the draws
        one = RegionMean("x", 100, 1.0 - shift, (shift + 0.05 * rng.normal(size=32),), 1 + 0.05 * rng.normal())
        low, high = one.interval(0.9)
        held.append(low <= one.true <= high)
        assert (high - low) / 2 == pytest.approx(one.half_length(0.9))
        assert one.distance == pytest.approx((one.middle - one.true) / one.spread)
    assert np.mean(held) == pytest.approx(0.9, abs=0.02)
