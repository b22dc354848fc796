"""A frame of air, and one into which the object folds."""

import numpy as np
import pytest

from mri_design.evaluation.metrics import looks_folded


def disc(radius: float, side: int = 48) -> np.ndarray:
    y, x = (np.arange(side) - side // 2) / (side / 2), (np.arange(side) - side // 2) / (side / 2)
    return (np.hypot(y[:, None], x) < radius).astype(float)


@pytest.mark.parametrize(("radius", "folded"), [(0.8, False), (0.95, False), (1.25, True), (1.4, True)])
def test_an_object_beyond_the_edges_is_told(radius: float, folded: bool) -> None:
    noise = 0.02 * np.random.default_rng(0).standard_normal((48, 48))
    assert looks_folded(disc(radius) * np.exp(1j) + noise) == folded


def test_an_object_that_one_edge_cuts_is_not_folded() -> None:
    assert not looks_folded(np.roll(disc(0.7), 12, axis=0)[:, :] * (np.arange(48) > 12)[:, None])
