"""Coil sensitivities: unit root-sum-of-squares, smooth, distinct, the same coils on every grid."""

import numpy as np
import pytest

from mri_design import InputError
from mri_design.scan.simulation.coil_maps import coil_series, root_sum_of_squares, simulate_coil_maps
from mri_design.scan.simulation.settings import pixel_positions


@pytest.mark.parametrize("n_coils", [1, 2, 3, 8, 32])
@pytest.mark.parametrize("shape", [(40, 33), (31, 64)])
def test_maps_have_unit_root_sum_of_squares(n_coils, shape):
    maps = simulate_coil_maps(shape, n_coils, np.random.default_rng(0))
    assert maps.shape == (n_coils, *shape)
    assert maps.dtype == np.complex64
    np.testing.assert_allclose((np.abs(maps) ** 2).sum(axis=0), 1, atol=1e-5)


@pytest.mark.parametrize("n_coils", [2, 4, 16])
def test_series_are_nearly_normalised_already(n_coils):
    positions = pixel_positions(50)
    for seed in range(3):
        rho = root_sum_of_squares(coil_series(n_coils, np.random.default_rng(seed)), positions, positions)
        assert np.abs(rho - 1).max() < 0.04
        assert np.abs(rho - 1).max() > 1e-6  # so the difference must be accounted for


def test_coils_look_from_different_sides_and_vary_slowly():
    maps = simulate_coil_maps(64, 8, np.random.default_rng(2))
    brightest = {np.unravel_index(np.abs(m).argmax(), m.shape) for m in maps}
    assert len(brightest) == 8
    assert all(np.abs(m).max() > 3 * np.abs(m).min() for m in maps)
    assert np.abs(np.diff(maps, axis=1)).max() < 0.15
    gram = np.abs(maps.reshape(8, -1) @ maps.reshape(8, -1).conj().T)
    assert np.linalg.cond(gram) < 1e6


def test_same_seed_gives_the_same_coils_on_every_grid():
    fine = simulate_coil_maps(64, 4, np.random.default_rng(3))
    coarse = simulate_coil_maps((32, 64), 4, np.random.default_rng(3))
    np.testing.assert_allclose(fine[:, ::2], coarse, atol=1e-6)
    other = simulate_coil_maps(64, 4, np.random.default_rng(4))
    assert np.abs(fine - other).max() > 0.1


@pytest.mark.parametrize("n_coils", [0, -2, 129, 2.0, True])
def test_wrong_coil_counts_are_refused(n_coils):
    with pytest.raises(InputError, match="n_coils"):
        simulate_coil_maps(16, n_coils, np.random.default_rng(0))
