"""Point-spread functions against sums written out and known sets."""

import numpy as np
import pytest

from mri_design import (
    interleaf_angles,
    nyquist_turns,
    point_spread,
    turned,
)
from mri_design.scan import SideLobe, conjugate_redundancy, largest_side_lobe, spiral_curve, spread_of_mask
from tests.refusals import refused


def grid(rows, columns):
    ky, kx = np.meshgrid(np.arange(rows) - rows // 2, np.arange(columns) - columns // 2, indexing="ij")
    return np.stack([ky, kx], axis=-1).astype(float)


@pytest.mark.parametrize("shape", [(8, 12), (9, 7)])
def test_the_whole_grid_images_a_point_as_a_point(shape):
    expected = np.zeros(shape)
    expected[shape[0] // 2, shape[1] // 2] = 1
    np.testing.assert_allclose(point_spread(grid(*shape), shape), expected, atol=1e-13)


def test_the_sum_written_out():
    rng = np.random.default_rng(3)
    k, w = rng.uniform(-4, 4, (3, 5, 2)), rng.random((3, 5))
    made = point_spread(k, (8, 10), weights=w)
    y, x = (2 - 4) / 8, (7 - 5) / 10
    expected = np.sum(w * np.exp(2j * np.pi * (k[..., 0] * y + k[..., 1] * x))) / w.sum()
    np.testing.assert_allclose(made[2, 7], expected, rtol=1e-12)
    assert made[4, 5] == pytest.approx(1)


def test_a_sum_over_more_samples_than_are_held_at_once_is_that_of_its_parts():
    rng = np.random.default_rng(4)
    k, w = rng.uniform(-4, 4, (9000, 2)), rng.random(9000)
    parts = [
        point_spread(k[some], (8, 8), weights=w[some]) * w[some].sum() for some in (slice(4000), slice(4000, None))
    ]
    np.testing.assert_allclose(point_spread(k, (8, 8), weights=w), sum(parts) / w.sum(), atol=1e-12)


def test_bad_input():
    with refused("weights"):
        point_spread(grid(8, 8), (8, 8), weights=np.ones(3))
    with refused("weights"):
        point_spread(grid(8, 8), (8, 8), weights=np.zeros((8, 8)))
    with refused("trajectory"):
        point_spread(grid(8, 8), (6, 6))


ARM = spiral_curve(64, nyquist_turns(64, 24), points=400)


def redundancy(count, spread):
    return conjugate_redundancy(turned(ARM, interleaf_angles(count, spread)))


def test_an_even_number_of_spirals_over_the_full_turn_measures_everything_twice():
    assert redundancy(6, "full-turn") > 0.99
    for count, spread in ((6, "half-turn"), (6, "one-missing"), (5, "full-turn"), (7, "full-turn")):
        assert redundancy(count, spread) < 0.4, (count, spread)


@pytest.mark.parametrize("shape", [(12,), (15,), (8, 9), (7, 6)])
def test_the_spread_of_a_mask_is_the_sum_over_its_samples(shape: tuple[int, ...]) -> None:
    mask = np.random.default_rng(1).random(shape) < 0.4
    grid = (*shape, 1) if len(shape) == 1 else shape
    k = np.argwhere(mask.reshape(grid)) - np.array(grid) // 2
    np.testing.assert_allclose(spread_of_mask(mask).reshape(grid), point_spread(k, grid), atol=1e-12)


def test_side_lobes_are_maxima_beside_the_point_whatever_its_width() -> None:
    comb = np.arange(32) % 4 == 0
    assert largest_side_lobe(spread_of_mask(comb)) == SideLobe(pytest.approx(1), (-16,))
    assert largest_side_lobe(spread_of_mask(np.ones(32, dtype=bool))).height == 0
    low_pass = abs(np.arange(64) - 32) <= 4  # nine lines: sin(9 x) / (9 sin x), whose first lobe lies at 9 x = 4.4934
    found = largest_side_lobe(spread_of_mask(low_pass))
    x = np.pi * np.arange(1, 32) / 64
    kernel = abs(np.sin(9 * x) / (9 * np.sin(x)))
    assert found.height == pytest.approx(kernel[8:14].max()) and abs(found.place[0]) == 9 + kernel[8:14].argmax()
    assert found.decibels == pytest.approx(20 * np.log10(found.height))
    plane = np.outer(low_pass, np.ones(16, dtype=bool))
    assert largest_side_lobe(spread_of_mask(plane)) == SideLobe(pytest.approx(found.height), (found.place[0], 0))
