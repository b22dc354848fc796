"""Trajectories as curves: one for each readout, on axes that span the grid."""

import numpy as np
import pytest

from mri_design.errors import InputError
from mri_design.evaluation.plots import trajectory_curves


def spiral(readouts: int, samples: int) -> np.ndarray:
    along = np.linspace(0, 1, samples)
    angles = 6 * np.pi * along + 2 * np.pi * np.arange(readouts)[:, None] / readouts
    return np.stack([8 * along * np.sin(angles), 8 * along * np.cos(angles)], axis=-1).reshape(-1, 2)


def test_each_readout_is_a_curve_and_the_first_is_on_top():
    points = spiral(3, 50)
    (axes,) = trajectory_curves(points, 3, (16, 20)).axes
    assert len(axes.lines) == 3
    np.testing.assert_array_equal(axes.lines[-1].get_xydata(), points[:50, ::-1])
    assert axes.get_xlim() == (-10, 10) and axes.get_ylim() == (-8, 8)


def test_long_readouts_are_drawn_with_fewer_points():
    (axes,) = trajectory_curves(spiral(40, 2000), 40, (16, 16)).axes
    assert 6000 < sum(len(line.get_xydata()) for line in axes.lines) <= 12040


def test_readouts_of_one_sample_are_dots():
    (axes,) = trajectory_curves(spiral(1, 30), 30, (16, 16)).axes
    assert len(axes.lines) == 1 and axes.lines[0].get_marker() == "."


def test_readouts_that_do_not_divide_the_samples_are_refused():
    with pytest.raises(InputError, match="trajectory"):
        trajectory_curves(spiral(1, 30), 7, (16, 16))
