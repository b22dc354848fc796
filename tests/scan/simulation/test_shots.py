"""Simulated shots: the object of the Cartesian scan, its noise, and what a grid cannot explain."""

import numpy as np
import pytest

from mri_design import (
    InputError,
    equispaced_angles,
    golden_angles,
    interleaf_angles,
    load_phantom,
    load_phantom_shots,
    nyquist_turns,
    radial_spokes,
    turned,
)
from mri_design.scan.trajectories.spiral import spiral_curve

SPOKES = radial_spokes(32, golden_angles(6), oversampling=2)
SPIRALS = turned(spiral_curve(32, nyquist_turns(32, 4), points=120), interleaf_angles(3))


def shots(trajectory, **settings):
    return load_phantom_shots("brain", trajectory, shape=32, rng=np.random.default_rng(1), **settings)


def waves(trajectory, shape):
    """Rows of the orthonormal transform at a trajectory, (sample, ky, kx)."""
    y, x = ((np.arange(n) - n // 2) / n for n in shape)
    k = np.reshape(trajectory, (-1, 2))
    each = np.exp(-2j * np.pi * k[:, :1] * y)[:, :, None] * np.exp(-2j * np.pi * k[:, 1:] * x)[:, None]
    return each / np.sqrt(shape[0] * shape[1])


@pytest.mark.parametrize("n_coils", [1, 3])
def test_a_spoke_along_kx_is_the_middle_line_of_the_cartesian_scan(n_coils):
    line = load_phantom("brain", shape=32, n_coils=n_coils, noise=0, rng=np.random.default_rng(1))
    made = shots(radial_spokes(32, equispaced_angles(1)), n_coils=n_coils, noise=0)
    np.testing.assert_allclose(made.kspace, line.kspace[0, :, 16], atol=1e-5)
    np.testing.assert_array_equal(made.reference, line.reference[0])
    assert made.noise_variance is None
    if n_coils == 1:
        assert made.coil_maps is None and line.coil_maps is None
    else:
        np.testing.assert_array_equal(made.coil_maps, line.coil_maps[0])


@pytest.mark.parametrize("trajectory", [SPOKES, SPIRALS])
def test_layout_and_noise(trajectory):
    count = trajectory.shape[0] * trajectory.shape[1]
    noisy, clean = shots(trajectory, n_coils=4, noise=0.02), shots(trajectory, n_coils=4, noise=0)
    assert noisy.kspace.shape == (4, count) and noisy.kspace.dtype == np.complex64
    assert noisy.trajectory.shape == (count, 2) and noisy.coil_maps.shape == (4, 32, 32)
    noise = noisy.kspace - clean.kspace
    assert noisy.noise_variance == pytest.approx(4e-4)
    for part in (noise.real, noise.imag):
        assert part.var() == pytest.approx(4e-4, rel=4 * np.sqrt(2 / part.size))  # 4 standard errors
    assert noisy.card["licence"] == "CC0 1.0" and noisy.card["samples"] == str(count)


def test_the_model_of_images_on_the_grid_explains_the_samples_nearly():
    """No inverse crime: what is left is larger than rounding, and lies at the rim."""
    made = shots(SPOKES, n_coils=2, noise=0)
    rows = waves(made.trajectory, (32, 32))
    shown = np.stack(load_phantom("brain", shape=32, n_coils=2, noise=0, rng=np.random.default_rng(1)).kspace[0])
    grid = waves(np.stack(np.meshgrid(np.arange(32) - 16, np.arange(32) - 16, indexing="ij"), -1), (32, 32))
    images = np.einsum("syx,cs->cyx", grid.conj(), shown.reshape(2, -1))
    left = np.abs(np.einsum("syx,cyx->cs", rows, images) - made.kspace)
    scale, radius = np.linalg.norm(made.kspace), np.linalg.norm(made.trajectory, axis=1)
    assert 1e-3 < np.linalg.norm(left) / scale < 0.05
    per_signal = [
        np.linalg.norm(left[:, ring]) / np.linalg.norm(made.kspace[:, ring]) for ring in (radius < 8, radius > 14)
    ]
    assert per_signal[0] < 0.02 and per_signal[1] > 5 * per_signal[0]


def test_bad_input():
    with pytest.raises(InputError, match="cycles per pixel"):
        shots(SPOKES / 32)
    with pytest.raises(InputError, match="larger grid"):
        load_phantom_shots("brain", SPOKES, shape=24, rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="phantom"):
        load_phantom_shots("t2w", SPOKES, rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="phase"):
        shots(SPOKES, phase="rough")
    with pytest.raises(InputError, match="noise"):
        shots(SPOKES, noise=-1.0)
