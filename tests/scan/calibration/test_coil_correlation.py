"""Correlations of coils that are those of signal say by how much, and beyond which limit."""

import numpy as np
import pytest

from mri_design.scan.calibration.noise import correlated_by_signal


@pytest.mark.parametrize(
    ("correlation", "said"), [(0.4999, ""), (0.5003, "by 0.500, which is more than 0.5,"), (0.97, "by 0.970, which is")]
)
def test_correlations_just_beyond_the_limit_are_said_to_be_beyond_it(correlation: float, said: str) -> None:
    covariance = np.array([[4, 2 * correlation], [2 * correlation, 1]], dtype=np.complex128)
    assert said in correlated_by_signal(covariance)
    assert bool(said) == bool(correlated_by_signal(covariance))
