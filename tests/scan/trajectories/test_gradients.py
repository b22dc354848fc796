"""Waveforms held against hardware: every limit, in words."""

import numpy as np
import pytest

from mri_design import GradientLimits, InputError
from mri_design.scan.trajectories.spiral import PROTON, fastest_readout, gradients_of, require_playable

LIMITS = GradientLimits(amplitude=0.04, slew=150.0)


def test_gradients_lead_from_position_to_position():
    k = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]])
    made = gradients_of(k, raster=1e-5, field_of_view=0.2)
    np.testing.assert_allclose(made, np.array([[1.0, 0.0], [0.0, 2.0]]) / (0.2 * PROTON * 1e-5))


def test_a_waveform_within_the_limits_passes_and_each_limit_is_refused_by_name():
    ramp = np.linspace(0.0015, 0.0395, 27)[:, None] * np.array([[0.6, 0.8]])
    require_playable(ramp, LIMITS)
    with pytest.raises(InputError, match=r"gradient amplitude: got 40\.5 mT/m at 0\.270 ms; wanted at most 40 mT/m"):
        require_playable(np.concatenate([ramp, [[0.6 * 0.0405, 0.8 * 0.0405]]]), LIMITS)
    with pytest.raises(InputError, match=r"gradient slew rate: got 200 T/m/s at 0\.000 ms"):
        require_playable(ramp + 0.0005 * np.array([[0.6, 0.8]]), LIMITS)  # it would begin with a jump
    with pytest.raises(InputError, match="slew rate"):
        require_playable(np.array([[0.0015], [0.0], [-0.002]]), LIMITS)


def test_a_corner_cannot_be_played_at_speed():
    """The fastest readout slows down for it: what it makes keeps the limits, or is refused."""
    out = np.linspace(0, 20, 400)
    corner = np.concatenate([np.stack([out, 0 * out], 1), np.stack([20 + 0 * out, out], 1)[1:]])
    made = fastest_readout(corner, LIMITS, field_of_view=0.25)
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
    with pytest.raises(InputError, match=field):
        GradientLimits(**settings)


def test_bad_input():
    line = np.stack([np.zeros(50), np.linspace(0, 10, 50)], axis=1)
    with pytest.raises(InputError, match="repeats"):
        fastest_readout(np.zeros((5, 2)), LIMITS, field_of_view=0.2)
    with pytest.raises(InputError, match="dwell"):
        fastest_readout(line, LIMITS, field_of_view=0.2, dwell=3e-6)
    with pytest.raises(InputError, match="dwell"):
        fastest_readout(line, LIMITS, field_of_view=0.2, dwell=2e-5)
    with pytest.raises(InputError, match="limits"):
        fastest_readout(line, 0.04, field_of_view=0.2)
    with pytest.raises(InputError, match="raster times"):
        fastest_readout(line, LIMITS, field_of_view=1e-7)
    with pytest.raises(InputError, match="24 cm are"):
        fastest_readout(line, LIMITS, field_of_view=24)
    with pytest.raises(InputError, match="positions"):
        gradients_of(line[:1], raster=1e-5, field_of_view=0.2)
    assert fastest_readout(line, LIMITS, field_of_view=0.2, dwell=2.5e-6).dwell == pytest.approx(2.5e-6)
