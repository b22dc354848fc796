"""Density compensation: what is dense counts less, and a well-sampled image comes back."""

import numpy as np
import pytest

from mri_design import NonUniformFourier
from mri_design.operators import density_weights

pytest.importorskip("finufft")


def test_every_sample_of_a_full_grid_stands_for_itself():
    k = np.argwhere(np.ones((9, 8))) - np.array([4, 4])
    np.testing.assert_allclose(density_weights(k, (9, 8)), 1, rtol=1e-9)


def test_samples_that_come_twice_share_their_weight():
    k = np.argwhere(np.ones((8, 8))) - 4
    weights = density_weights(np.concatenate([k, k[:20]]), (8, 8))
    np.testing.assert_allclose(weights[20:64], 1, rtol=1e-4)
    np.testing.assert_allclose(weights[:20] + weights[64:], 1, rtol=1e-4)


def test_along_spokes_weights_grow_with_the_distance_from_the_centre(spokes):
    count, n = 48, 24
    k = spokes(count, n)
    weights, radius = density_weights(k, (n, n)), np.linalg.norm(k, axis=1)
    ring = (radius > 2) & (radius < 9)
    area = np.pi * radius[ring] / count / 2  # between spokes, and between samples
    np.testing.assert_allclose(weights[ring], area, rtol=0.05)
    assert weights[radius == 0].max() < area.min() / 5


def test_the_weighted_adjoint_shows_the_image(spokes):
    n = 24
    k = spokes(48, n)
    X = NonUniformFourier(k, (n, n))
    y, x = np.meshgrid(*2 * (np.arange(n) - n // 2,), indexing="ij")
    image = np.exp(-((y - 2) ** 2 + 2 * (x + 1) ** 2) / 30) * (1 + 0.5j)
    shown = X.adjoint(density_weights(k, (n, n)) * X(image))
    assert np.linalg.norm(shown - image) < 0.02 * np.linalg.norm(image)
    plain = X.adjoint(X(image))
    fitted = plain * np.vdot(plain, image) / np.vdot(plain, plain)
    assert np.linalg.norm(fitted - image) > 0.3 * np.linalg.norm(image)


def test_given_weights_keep_their_ratios_and_get_the_area_of_the_computed_ones() -> None:
    k = np.random.default_rng(1).uniform(-4, 4, (40, 2))
    given = np.random.default_rng(0).uniform(0, 100, len(k))
    weights = density_weights(k, (8, 8), given=given)
    np.testing.assert_allclose(weights / weights[0], given / given[0], rtol=1e-12)
    np.testing.assert_allclose(weights.sum(), density_weights(k, (8, 8)).sum(), rtol=1e-12)
    np.testing.assert_array_equal(density_weights(k, (8, 8), given=0 * given), density_weights(k, (8, 8)))
