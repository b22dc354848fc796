"""Spirals: their geometry, and waveforms that real gradients can play."""

import itertools

import numpy as np
import pytest

from mri_design import GradientLimits, nyquist_turns, spiral_readout
from mri_design.scan import fastest_readout, require_playable, spiral_curve
from mri_design.scan.trajectories import PROTON
from tests.refusals import refused

LIMITS = GradientLimits(amplitude=0.03, slew=120.0)
FIELD = 0.24


def crossings(curve):
    """Radii at which a spiral crosses the positive kx axis."""
    angle = np.unwrap(np.arctan2(curve[:, 0], curve[:, 1]))
    whole = np.arange(1, int(angle[-1] / (2 * np.pi) + 1e-9) + 1) * 2 * np.pi
    return np.interp(whole, angle, np.linalg.norm(curve, axis=1))


def test_turns_of_archimedes_are_equally_far_apart_and_fill_the_plane():
    turns = nyquist_turns(64, 4)
    assert turns == pytest.approx(8.0)
    radii = crossings(spiral_curve(64, turns, points=40_000))
    np.testing.assert_allclose(np.diff(radii), 4.0, rtol=1e-3)  # four interleaves: one cycle each


@pytest.mark.parametrize("density", [1.5, 2.5])
def test_variable_density_has_nyquist_gaps_at_the_rim_and_narrower_ones_inside(density):
    turns = nyquist_turns(64, 4, density=density)
    t = np.array([1 - 1 / turns, 1.0])
    assert np.diff(32 * t**density)[0] == pytest.approx(4.0)
    gaps = np.diff(crossings(spiral_curve(64, turns, density=density, points=40_000)))
    assert (np.diff(gaps) > 0).all() and gaps[0] < 0.9 * gaps[-1]


@pytest.mark.parametrize("density", [1.0, 1.5])
def test_the_readout_keeps_the_limits_and_uses_them_all_the_time(density):
    turns = nyquist_turns(64, 8, density=density)
    made = spiral_readout(64, turns, LIMITS, field_of_view=FIELD, density=density)
    amplitude = np.linalg.norm(made.gradients, axis=1)
    slew = np.linalg.norm(np.diff(made.gradients, axis=0, prepend=0), axis=1) / LIMITS.raster
    assert amplitude.max() <= LIMITS.amplitude and slew.max() <= LIMITS.slew
    busy = (amplitude > 0.98 * LIMITS.amplitude) | (slew > 0.95 * LIMITS.slew)
    assert busy.mean() > 0.95  # no faster way is left


@pytest.mark.parametrize("slew", [5.0, 50.0, 200.0])
@pytest.mark.thorough
def test_readouts_of_every_size_keep_the_limits_of_every_system_and_lose_no_time(slew):
    """In weak systems a raster time's step is shorter than the points of the usual curve are apart."""
    shapes = [(matrix, shots, density) for matrix in (64, 256) for shots in (12, 32) for density in (1.0, 1.5)]
    for amplitude, (matrix, shots, density) in itertools.product((0.01, 0.08), shapes):
        limits = GradientLimits(amplitude=amplitude, slew=slew)
        turns = nyquist_turns(matrix, shots, density=density)
        made = spiral_readout(matrix, turns, limits, field_of_view=FIELD, density=density)
        speed = np.linalg.norm(made.gradients, axis=1) / amplitude
        change = np.linalg.norm(np.diff(made.gradients, axis=0, prepend=0), axis=1) / (limits.raster * slew)
        assert speed.max() <= 1 + 1e-9 and change.max() <= 1 + 1e-9, (amplitude, matrix, shots, density)
        assert np.mean((speed > 0.98) | (change > 0.95)) > 0.95, (amplitude, matrix, shots, density)


@pytest.mark.parametrize("density", [1.0, 1.5])
def test_readouts_within_the_limits_at_once_have_1024_points_for_each_turn(density):
    """Recorded designs stay what they are."""
    limits, turns = GradientLimits(amplitude=0.04, slew=150.0), nyquist_turns(256, 48, density=density)
    curve = spiral_curve(256, turns, density=density, points=int(np.ceil(1024 * turns)))
    made = spiral_readout(256, turns, limits, field_of_view=FIELD, density=density)
    np.testing.assert_array_equal(made.samples, fastest_readout(curve, limits, field_of_view=FIELD).samples)


def test_the_samples_are_those_of_the_waveform_and_stay_on_the_spiral():
    turns = nyquist_turns(64, 8)
    made = spiral_readout(64, turns, LIMITS, field_of_view=FIELD)
    played = np.cumsum(made.gradients, axis=0) * PROTON * LIMITS.raster * FIELD
    per_step = round(made.raster / made.dwell)
    ends = np.arange(0, len(made.samples) * 100 + 1) / (
        100 * per_step
    )  # of hundredths of a dwell time, in raster times
    corners = np.concatenate([[0.0], np.arange(len(made.gradients)) + 0.5])
    waveform = np.stack([np.interp(ends, corners, [0.0, *column]) for column in made.gradients.T], axis=1)
    walked = np.cumsum((waveform[1:] + waveform[:-1]) / 2, axis=0) * PROTON * made.dwell / 100 * FIELD
    whole = (len(made.gradients) - 1) * per_step  # the last step goes on as it began
    np.testing.assert_allclose(made.samples[:whole], walked[49::100][:whole], atol=1e-6)
    largest_step = np.linalg.norm(np.diff(made.samples, axis=0), axis=1).max()
    assert largest_step <= 1.0
    curve = spiral_curve(64, turns, points=40_000)
    angle = np.unwrap(np.arctan2(curve[1:, 0], curve[1:, 1]))
    at = np.unwrap(np.arctan2(played[:, 0], played[:, 1]))
    radius = np.linalg.norm(played, axis=1)
    assert np.abs(radius - np.interp(at, angle, np.linalg.norm(curve[1:], axis=1))).max() < 1e-3
    assert radius[-1] == pytest.approx(32, abs=largest_step * per_step)


def test_a_straight_readout_takes_the_time_of_the_trapezium():
    """From rest with slew S to amplitude G, then on: k = gamma (G t - G^2 / (2 S))."""
    line = np.stack([np.zeros(2001), np.linspace(0, 100, 2001)], axis=1)
    made = fastest_readout(line, LIMITS, field_of_view=FIELD)
    G, S = 0.99 * LIMITS.amplitude, 0.99 * LIMITS.slew
    expected = 100 / (FIELD * PROTON * G) + G / (2 * S)
    assert made.duration == pytest.approx(expected, abs=1.1 * LIMITS.raster)


def test_bad_input():
    with refused("interleaves"):
        nyquist_turns(16, 9)
    with refused("density"):
        spiral_curve(16, 2.0, density=0.0, points=10)
    with refused("turns"):
        spiral_readout(16, -1.0, LIMITS, field_of_view=FIELD)
    with refused("field_of_view"):
        spiral_readout(16, 2.0, LIMITS, field_of_view=0.0)


HARDWARE = GradientLimits(amplitude=0.04, slew=150.0)


def test_a_waveform_within_the_limits_passes_and_each_limit_is_refused_by_name():
    ramp = np.linspace(0.0015, 0.0395, 27)[:, None] * np.array([[0.6, 0.8]])
    require_playable(ramp, HARDWARE)
    with refused("gradient amplitude"):
        require_playable(np.concatenate([ramp, [[0.6 * 0.0405, 0.8 * 0.0405]]]), HARDWARE)
    with refused("gradient slew rate"):
        require_playable(ramp + 0.0005 * np.array([[0.6, 0.8]]), HARDWARE)  # it would begin with a jump
    with refused("gradient slew rate"):
        require_playable(np.array([[0.0015], [0.0], [-0.002]]), HARDWARE)


def test_a_corner_cannot_be_played_at_speed():
    """The fastest readout slows down for it: what it makes keeps the limits, or is refused."""
    out = np.linspace(0, 20, 400)
    corner = np.concatenate([np.stack([out, 0 * out], 1), np.stack([20 + 0 * out, out], 1)[1:]])
    made = fastest_readout(corner, HARDWARE, field_of_view=0.25)
    speed = np.linalg.norm(made.gradients, axis=1)
    at_corner = np.argmin(np.linalg.norm(np.cumsum(made.gradients, axis=0) - made.gradients.sum(0) * [1, 0], axis=1))
    assert speed[at_corner] < 0.2 * speed.max()


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"amplitude": 40.0, "slew": 150.0}, "amplitude"),
        ({"amplitude": 0.04, "slew": 150_000.0}, "slew"),
        ({"amplitude": 0.04, "slew": 150.0, "raster": 10.0}, "raster"),
        ({"amplitude": 0.0, "slew": 150.0}, "amplitude"),
        ({"amplitude": 0.04, "slew": float("nan")}, "slew"),
    ],
)
def test_limits_in_other_units_are_refused(settings, field):
    with refused(field):
        GradientLimits(**settings)


def test_bad_limits():
    line = np.stack([np.zeros(50), np.linspace(0, 10, 50)], axis=1)
    with refused("curve"):
        fastest_readout(np.zeros((5, 2)), HARDWARE, field_of_view=0.2)
    with refused("dwell"):
        fastest_readout(line, HARDWARE, field_of_view=0.2, dwell=3e-6)
    with refused("dwell"):
        fastest_readout(line, HARDWARE, field_of_view=0.2, dwell=2e-5)
    with refused("limits"):
        fastest_readout(line, 0.04, field_of_view=0.2)
    with refused("raster"):
        fastest_readout(line, HARDWARE, field_of_view=1e-7)
    with refused("field_of_view"):
        fastest_readout(line, HARDWARE, field_of_view=24)
    assert fastest_readout(line, HARDWARE, field_of_view=0.2, dwell=2.5e-6).dwell == pytest.approx(2.5e-6)
