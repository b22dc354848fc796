"""Phase maps: range, smoothness, local exceptions, reproducibility."""

import numpy as np
import pytest

from mri_design import InputError
from mri_design.scan.simulation.phase import no_phase, rough_phase, smooth_phase


@pytest.mark.parametrize("shape", [(64, 64), (33, 50)])
def test_smooth_phase_fills_its_range_and_is_smooth(shape):
    phase = smooth_phase(shape, np.random.default_rng(0))
    assert phase.shape == shape
    assert np.abs(phase).max() == pytest.approx(np.pi / 2)
    assert max(np.abs(np.diff(phase, axis=a)).max() for a in (0, 1)) < 0.4
    assert np.abs(smooth_phase(shape, np.random.default_rng(0), amplitude=0.2)).max() == pytest.approx(0.2)


def test_smooth_phase_is_a_polynomial_of_its_degree():
    phase = smooth_phase(40, np.random.default_rng(1), degree=2)
    mixed = np.diff(np.diff(phase, n=2, axis=0), axis=1)
    for third in (np.diff(phase, n=3, axis=0), np.diff(phase, n=3, axis=1), mixed):
        assert np.abs(third).max() < 1e-12
    assert np.abs(np.diff(phase, n=2, axis=0)).max() > 1e-6


def test_rough_phase_adds_local_exceptions_only():
    smooth = smooth_phase(128, np.random.default_rng(2))
    rough = rough_phase(128, np.random.default_rng(2))
    added = np.abs(rough - smooth)
    assert added.max() > 0.2
    assert (added < 0.01).mean() > 0.5


def test_no_phase_and_seeds():
    assert not no_phase((6, 5)).any()
    first, again, other = (rough_phase(32, np.random.default_rng(seed)) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.1


def test_wrong_settings_are_refused_by_name():
    for amplitude in (-1.0, np.nan):
        with pytest.raises(InputError, match="amplitude"):
            rough_phase(16, np.random.default_rng(0), amplitude=amplitude)
    with pytest.raises(InputError, match="degree"):
        smooth_phase(16, np.random.default_rng(0), degree=0)
