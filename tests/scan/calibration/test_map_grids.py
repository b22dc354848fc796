"""Coil maps on other grids and fields of view."""

import numpy as np

from mri_design.calibration.map_grids import maps_on_grid


def smooth(shape, field=(1.0, 1.0)):
    """Two maps by place in fields of view of the first grid, over a field that is so many times as wide."""
    y, x = ((np.arange(n) - n // 2) / n * wide for n, wide in zip(shape, field, strict=True))
    maps = np.stack([np.exp(1j * (y[:, None] + 2 * x)), 1 + 0.5 * x + 0.2j * y[:, None]])
    return (maps / np.linalg.norm(maps, axis=0)).astype(np.complex64)


def test_the_same_grid_changes_nothing():
    np.testing.assert_allclose(maps_on_grid(smooth((12, 9)), (12, 9)), smooth((12, 9)), atol=1e-6)


def test_other_grids_and_fields_of_view_keep_places():
    found = maps_on_grid(smooth((40, 50)), (64, 30), (0.5, 0.75))
    np.testing.assert_allclose(found, smooth((64, 30), (0.5, 0.75)), atol=2e-3)


def test_beyond_the_field_of_view_maps_are_those_of_its_edge():
    found = maps_on_grid(smooth((16, 16)), (32, 32), (2.0, 2.0))
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), 1, atol=1e-6)
    np.testing.assert_allclose(found[:, 16, 0], found[:, 16, 8], atol=1e-6)
