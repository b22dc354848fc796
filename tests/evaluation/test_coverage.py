"""Radii of error bars: known distributions, and what is promised of images that are exchangeable with the group."""

import json

import numpy as np
import pytest

from mri_design.evaluation import Coverage, radius, scores, share_within
from mri_design.evaluation.metrics import LEVELS
from tests.refusals import refused

Pixels = np.ndarray


def gaussian(rng: np.random.Generator, std: Pixels | float, shape: tuple[int, ...]) -> Pixels:
    """Complex errors whose standard deviation is that of both components together."""
    return std * (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / np.sqrt(2)


@pytest.mark.parametrize("wrong", [1.0, 1.7])
def test_gaussian_errors_have_the_radii_of_rayleigh(wrong: float) -> None:
    rng = np.random.default_rng(0)
    std = rng.uniform(0.1, 3, (40, 50))
    made = {f"{n}": scores(gaussian(rng, wrong * std, std.shape), std) for n in range(6)}
    found = Coverage.of("heads", made)
    for one in found.radii:
        assert one["radius"] == pytest.approx(wrong * np.sqrt(-np.log(1 - one["level"] / 100)), rel=0.03)
        assert one["left_out_mean"] == pytest.approx(one["level"], abs=0.6) and one["left_out_least"] > one["level"] - 3
        assert one["promised"] == pytest.approx(one["level"] * 6 / 7)
    assert found.radius(95) == found.radii[2]["radius"]
    assert (found.group, len(found.images)) == ("heads", 6)


def test_exactly_the_share_is_within_on_the_mean_over_images_however_they_differ() -> None:
    rng = np.random.default_rng(1)
    every = np.stack([scale * np.sort(rng.exponential(size=500)) for scale in (0.2, 1.0, 5.0)])
    for level in LEVELS:
        found = radius(every, level)
        shares = [share_within(one, limit) for limit in (found, np.nextafter(found, 0)) for one in every]
        assert np.mean(shares[:3]) >= level - 1e-9 > np.mean(shares[3:])


@pytest.mark.parametrize("count", [3, 10])
def test_images_that_are_exchangeable_have_at_least_what_is_promised(count: int) -> None:
    """A new image whose size of errors is drawn like that of the group, from a law with a heavy tail."""
    rng, level = np.random.default_rng(count), 80
    shares = []
    for _ in range(1500):
        sizes = np.exp(1.5 * rng.standard_t(2, count + 1))
        every = sizes[:, None] * np.abs(gaussian(rng, 1.0, (count + 1, 40)))
        shares.append(share_within(every[-1], radius(every[:-1], level)))
    mean, spread = np.mean(shares), np.std(shares) / np.sqrt(len(shares))
    assert mean > level * count / (count + 1) - 2 * spread
    assert mean < level + 2 * spread  # which is why no more is promised


def test_what_is_kept_in_a_manifest_comes_back() -> None:
    made = {name: np.random.default_rng(n).random((5, 5)) for n, name in enumerate("ab")}
    found = Coverage.of("heads", made, ["c.npy is left out: it is empty"])
    assert Coverage.from_settings(json.loads(json.dumps(found.as_settings()))) == found


def test_pixels_of_no_width_count_where_they_are_wrong() -> None:
    std, error = np.zeros((10, 10)), np.zeros((10, 10))
    np.testing.assert_array_equal(scores(error, std), 0)
    error[:, :6], std[:, 6:] = 1, 1
    with refused("error bars of x"):
        Coverage.of("x", {"a": scores(error, std), "b": scores(error, std)})
    with refused("images of x"):
        Coverage.of("x", {"a": scores(error, std)})
    with refused("level"):
        Coverage.of("x", {"a": std, "b": std}).radius(90)
