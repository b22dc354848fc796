import numpy as np
import pytest

from mri_design import InputError
from mri_design.scan.simulation.random_body import random_body


def test_a_body_is_wider_than_deep_with_a_rim_and_air_around() -> None:
    lying = []
    for seed in range(6):
        magnitude = np.abs(random_body(96, np.random.default_rng(seed)))
        assert np.percentile(magnitude, 99.5) == pytest.approx(1)
        assert magnitude[:8, :8].max() < 0.1  # ringing at most
        there = magnitude > 0.1
        through = there[:, 44:52].any(axis=1).sum(), there[44:52].any(axis=0).sum()
        assert min(through) > 25 and max(through) > 1.2 * min(through)
        lying.append(through[1] > through[0])
    assert 0 < sum(lying) < 6  # some lie across the lines, some along them


def test_the_seed_decides() -> None:
    first, again, other = (random_body((48, 40), np.random.default_rng(s)) for s in (1, 1, 2))
    assert first.shape == (48, 40)
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_a_wrong_phase_is_refused() -> None:
    with pytest.raises(InputError, match="phase: got 'odd'"):
        random_body(32, np.random.default_rng(0), phase="odd")  # type: ignore[arg-type]
