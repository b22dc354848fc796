"""Noise that is kept is the noise that would be made anew, and generators go on as after making it."""

import numpy as np
import pytest

from mri_design import CartesianLines, FiniteDifferences, Identity
from mri_design.model import RecentNoise

SHAPE = (8, 6)
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


class Counted(FiniteDifferences):
    """Counts how often it makes noise."""

    made = 0

    def shared_noise(self, rng, count, real):
        self.made += 1
        return super().shared_noise(rng, count, real)


@pytest.mark.parametrize("numbers", [np.random.PCG64, np.random.MT19937])
def test_equal_generators_get_the_same_noise_and_go_on_alike(numbers):
    kept, operator = RecentNoise(1 << 20), Counted(SHAPE)
    anew = np.random.Generator(numbers(3))
    expected, following = operator.shared_noise(anew, 2, SINGLE), anew.standard_normal(4)
    for _ in range(3):
        rng = np.random.Generator(numbers(3))
        np.testing.assert_array_equal(kept(operator, rng, 2, SINGLE), expected)
        np.testing.assert_array_equal(rng.standard_normal(4), following)
    assert operator.made == 2


def test_other_generators_kinds_counts_or_precisions_are_other_noise_added_lines_are_not():
    kept = RecentNoise(1 << 20)
    asked = [
        (FiniteDifferences(SHAPE), 0, 2, SINGLE),
        (FiniteDifferences(SHAPE), 1, 2, SINGLE),
        (FiniteDifferences(SHAPE), 0, 3, SINGLE),
        (FiniteDifferences(SHAPE), 0, 2, DOUBLE),
        (Identity(SHAPE), 0, 2, SINGLE),
        (CartesianLines([1, 2], SHAPE), 0, 2, SINGLE),
    ]
    for _ in range(2):
        for operator, seed, count, real in asked:
            found = kept(operator, np.random.default_rng(seed), count, real)
            expected = operator.shared_noise(np.random.default_rng(seed), count, real)
            np.testing.assert_array_equal(found, expected)
    kept = RecentNoise(1 << 20)
    few, more = CartesianLines([1, 2], SHAPE), CartesianLines([1, 2, 5], SHAPE)
    assert kept(few, np.random.default_rng(0), 2, SINGLE) is kept(more, np.random.default_rng(0), 2, SINGLE)
