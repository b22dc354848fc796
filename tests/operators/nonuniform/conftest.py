"""Trajectories and maps on small grids."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def random_maps():
    """(shape) -> three random coil maps."""

    def build(shape: tuple[int, int]) -> np.ndarray:
        rng = np.random.default_rng(3)
        return rng.standard_normal((3, *shape)) + 1j * rng.standard_normal((3, *shape))

    return build


@pytest.fixture(scope="session")
def spokes():
    """(count, n) -> spokes over half a turn of an n x n grid, two samples a cycle."""

    def build(count: int, n: int) -> np.ndarray:
        radius = np.arange(-n, n) / 2
        angles = np.pi * np.arange(count) / count
        return np.stack([np.outer(np.sin(angles), radius), np.outer(np.cos(angles), radius)], axis=-1).reshape(-1, 2)

    return build
