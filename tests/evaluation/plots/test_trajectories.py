"""Figures of trajectories show the curves and numbers they were given."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from mri_design import (
    InputError,
    equispaced_angles,
    interleaf_angles,
    nyquist_turns,
    point_spread,
    radial_spokes,
    turned,
)
from mri_design.evaluation import plots
from mri_design.evaluation.pictures import PALETTE
from mri_design.evaluation.plots.style import INK
from mri_design.scan.trajectories.spiral import spiral_curve
from tests.evaluation.conftest import texts

ARM = spiral_curve(32, nyquist_turns(32, 8), points=90)
SETS = {spread: turned(ARM, interleaf_angles(6, spread)) for spread in ("full-turn", "half-turn")}


def test_curves_lie_as_images_do_and_captions_say_what_is_measured_twice():
    figure = plots.trajectory_curves(SETS, (32, 32))
    for axes, (title, shots) in zip(figure.axes, SETS.items(), strict=True):
        others, first = axes.collections
        np.testing.assert_array_equal(first.get_segments()[0], shots[0, :, ::-1])  # kx across, ky along the page
        assert len(others.get_segments()) == 5
        low, high = axes.get_ylim()
        assert low > 16 > -16 > high  # ky grows downwards
        assert axes.get_title() == title
        assert "6 shots of 90 samples" in axes.get_xlabel()
    captions = texts(figure)
    assert "100 % measured as k and −k" in captions
    assert "cycles per field of view" in captions
    named = plots.trajectory_curves(SETS, (32, 32), first="the first arm of the start")
    assert [text.get_text() for text in named.legends[0].get_texts()] == ["the first arm of the start", "the others"]
    colours = [handle.get_color() for handle in named.legends[0].legend_handles]
    assert [colour[:3] for colour in np.reshape(colours, (2, -1)).tolist()] == [
        list(to_rgb(PALETTE[1])),
        list(to_rgb(INK)),
    ]


def test_one_spoke_alone_can_be_drawn():
    figure = plots.trajectory_curves({"one": radial_spokes(16, equispaced_angles(1))}, (16, 16))
    (axes,) = figure.axes
    assert "1 shot of 16 samples" in axes.get_xlabel() and len(figure.legends[0].get_texts()) == 1
    assert axes.collections[1].get_segments()[0].shape == (16, 2)


def test_spreads_are_in_decibels_below_the_peak_on_one_scale():
    spreads = {title: 3 * point_spread(shots, (32, 32)) for title, shots in SETS.items()}
    figure = plots.point_spread_maps(spreads)
    for axes, spread in zip(figure.axes, spreads.values(), strict=False):
        shown = np.asarray(axes.images[0].get_array())
        np.testing.assert_allclose(10 ** (shown / 20), np.abs(spread) / 3, atol=1e-12)
        assert axes.images[0].get_clim() == (-60, 0)
        assert axes.images[0].get_extent() == [-16.5, 15.5, 15.5, -16.5]  # pixels from the peak, rows downwards
        assert axes.get_xlabel().startswith("pixels from the point")
        aside = np.abs(spread).copy() / 3
        aside[14:19, 14:19] = 0
        assert f"{20 * np.log10(aside.max()):.1f} dB" in axes.get_xlabel()


def test_bad_input():
    with pytest.raises(InputError, match="sets"):
        plots.trajectory_curves({}, (32, 32))
    with pytest.raises(InputError, match="sets"):
        plots.trajectory_curves({"flat": ARM}, (32, 32))
    with pytest.raises(InputError, match="cycles per pixel"):
        plots.trajectory_curves({"x": SETS["half-turn"] / 32}, (32, 32))
    for wrong in ({}, {"a": np.ones((8, 8)), "b": np.ones((8, 9))}, {"a": np.ones(8)}):
        with pytest.raises(InputError, match="spreads"):
            plots.point_spread_maps(wrong)
    with pytest.raises(InputError, match="no peak"):
        plots.point_spread_maps({"dark": np.zeros((16, 16))})


def test_scores_of_angles_stand_above_the_angles_that_are_measured():
    angles = np.pi * np.arange(4) / 4
    scores = {"2 spokes measured": np.array([np.nan, 3.0, np.nan, 2.0]), "3": np.array([np.nan, np.nan, np.nan, 1.0])}
    flags = {"2 spokes measured": np.array([True, False, True, False]), "3": np.array([True, True, True, False])}
    figure = plots.angle_scores(angles, scores, flags)
    first, second = figure.axes
    curve, ticks = first.lines
    np.testing.assert_allclose(curve.get_xdata(), [0, 45, 90, 135])
    np.testing.assert_array_equal(curve.get_ydata(), scores["2 spokes measured"])
    np.testing.assert_allclose(ticks.get_xdata(), [0, 90])
    np.testing.assert_allclose(second.lines[1].get_xdata(), [0, 45, 90])
    assert first.get_ylabel() == "score (nats)"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["score of an angle", "measured angle"]
    for wrong in (lambda: plots.angle_scores(angles, {}, {}), lambda: plots.angle_scores(angles[:3], scores, flags)):
        with pytest.raises(InputError, match="scores"):
            wrong()
