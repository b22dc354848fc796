"""Figures of predictions show the numbers they were given."""

import numpy as np
import pytest

from mri_design import InputError
from mri_design.evaluation import plots
from tests.evaluation.conftest import texts


def test_error_course_in_per_cent_with_a_band_around_the_actual_error():
    figure = plots.error_course([4, 5, 6], [0.3, 0.2, 0.1], [4, 6], [0.25, 0.1], [0.5, 0.2], "some lines")
    predicted, actual, there = figure.axes[0].lines
    np.testing.assert_allclose(predicted.get_xydata(), [[4, 30], [5, 20], [6, 10]])
    np.testing.assert_allclose(actual.get_xydata(), [[4, 50], [6, 20]])
    np.testing.assert_allclose(there.get_xydata(), [[4, 25], [6, 10]])
    band = figure.axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx((10, 100))
    assert "(%)" in figure.axes[0].get_ylabel()
    assert "actual, some lines" in texts(figure) and "predicted, all lines" in texts(figure)
    assert len(plots.error_course([4, 5], [0.3, 0.2]).axes[0].lines) == 1


def test_innovations_and_their_ratio():
    figure = plots.innovation_course([3, 4], [2.0, 8.0], [4.0, 4.0], [0.5, 1.0], noise=[1.0, 1.0], unit="mV")
    above, below = figure.axes
    np.testing.assert_allclose([line.get_ydata() for line in above.lines], [[2, 8], [4, 4], [1, 1]])
    _, each, running = below.lines
    np.testing.assert_allclose(each.get_xydata(), [[3, 0.5], [4, 2]])
    np.testing.assert_allclose(running.get_xydata(), [[3, 0.5], [4, 1]])
    assert "(mV)" in texts(figure)


def test_line_panels_share_a_scale_and_leave_out_what_is_not_positive():
    acquired = np.array([False, False, True, False])
    panel = plots.LinePanel("two lines", np.array([1.0, 2, 0.1, 1]), np.array([2.0, -1, np.nan, 9]), acquired)
    figure = plots.line_predictions([panel, panel], "mV")
    first, second = figure.axes
    actual, _, predicted, measured = (line.get_xydata() for line in first.lines)
    np.testing.assert_allclose(actual, [[-2, 2], [-1, np.nan], [0, np.nan], [1, 9]])
    np.testing.assert_allclose(predicted[:, 1], [1, 2, np.nan, 1])
    np.testing.assert_allclose(measured[:, 1], [np.nan, np.nan, 0.1, np.nan])
    assert [bar.get_x() + bar.get_width() / 2 for bar in first.patches] == [0]
    assert first.get_ylim() == second.get_ylim()
    assert "two lines" in texts(figure) and "(mV)" in texts(figure)


def test_impossible_predictions_are_refused():
    good = plots.LinePanel("x", np.ones(4), np.ones(4), np.ones(4, bool))
    for wrong in (
        lambda: plots.error_course([1, 2], [0.1]),
        lambda: plots.error_course([1], [np.nan]),
        lambda: plots.error_course([1], [0.1], [1], [0.1], []),
        lambda: plots.innovation_course([], [], [], []),
        lambda: plots.innovation_course([1], [1.0], [0.0], [1.0]),
        lambda: plots.innovation_course([1], [1.0], [np.nan], [1.0]),
        lambda: plots.line_predictions([]),
        lambda: plots.line_predictions([good, plots.LinePanel("y", np.ones(3), np.ones(3), np.ones(3, bool))]),
        lambda: plots.line_predictions([plots.LinePanel("y", -np.ones(3), np.full(3, np.nan), np.ones(3, bool))]),
    ):
        with pytest.raises(InputError):
            wrong()
