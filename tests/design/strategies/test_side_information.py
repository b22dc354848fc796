"""How far side information is trusted beside the error model: the better its record, the more."""

import numpy as np
import pytest

from mri_design.design.strategies.calibrated import weight_of_side_information

NO_LINES = np.empty(0)


def test_side_information_is_trusted_first_and_equal_records_count_alike() -> None:
    wrong = np.tile([0.6, -0.9, 0.4], 200)
    assert weight_of_side_information(NO_LINES, NO_LINES, NO_LINES) > 0.9
    assert weight_of_side_information(wrong, wrong, np.zeros(600)) == pytest.approx(0.5, abs=0.02)


def test_the_better_record_counts_more_and_the_more_so_the_longer_it_is() -> None:
    good, bad = np.full(20, 0.05), np.full(20, -0.8)
    weights = [weight_of_side_information(bad[:n], good[:n], np.zeros(n)) for n in (0, 1, 5, 20)]
    assert weights[0] > 0.9 and all(np.diff(weights) < 0) and weights[-1] < 0.02
    assert weight_of_side_information(good, bad, np.zeros(20)) > 0.99


def test_lines_that_hold_little_but_noise_say_little() -> None:
    wrong, right = np.full(5, 2.0), np.zeros(5)
    clear, noisy = (weight_of_side_information(wrong, right, np.full(5, noise)) for noise in (0.0, 10.0))
    nothing = weight_of_side_information(NO_LINES, NO_LINES, NO_LINES)
    assert clear < 0.05 and 0.5 < noisy < nothing
