"""The centre of k-space from samples along spokes: where it is dense, what it holds, and the noise at the rim."""

from __future__ import annotations

import numpy as np
import pytest

from mri_design import NonUniformFourier, TrajectoryData
from mri_design.calibration import dense_centre, rim_noise
from mri_design.operators import to_kspace
from mri_design.scan import gridded_centre
from tests.refusals import refused

N = 32


def spokes(count: int) -> np.ndarray:
    radius, angles = np.arange(-N, N) / 2, np.pi * np.arange(count)[:, None] / count
    return np.stack([radius * np.sin(angles), radius * np.cos(angles)], axis=-1).reshape(-1, 2)


def measured(trajectory: np.ndarray, images: np.ndarray, noise_sd: float = 0.0) -> TrajectoryData:
    pytest.importorskip("finufft")
    samples = NonUniformFourier(trajectory, (N, N))(images)[:, 0]
    rng = np.random.default_rng(0)
    samples = samples + noise_sd * (rng.standard_normal(samples.shape) + 1j * rng.standard_normal(samples.shape))
    return TrajectoryData(samples[None].astype(np.complex64), trajectory, (N, N))


def coil_images() -> np.ndarray:
    y, x = np.meshgrid(*2 * (np.linspace(-1, 1, N),), indexing="ij")
    head = (np.hypot(y / 0.8, x / 0.6) < 1) - 0.5 * (np.hypot(y - 0.2, x) < 0.2)
    return np.array([head * np.exp(-((y - a) ** 2) - (x + a) ** 2 + 1j * a * x) for a in (-1, 0, 1)])


def rim_of(data: TrajectoryData) -> tuple[float, bool]:
    return rim_noise(data.kspace, data.trajectory, data.grid_shape)


@pytest.mark.parametrize(("count", "side"), [(4, 3), (8, 7), (16, 15), (96, 24)])
def test_spokes_are_dense_as_far_as_they_are_close(count: int, side: int) -> None:
    assert abs(dense_centre(spokes(count), 24) - side) <= 1


def test_the_centre_is_that_of_the_fourier_transform() -> None:
    images = coil_images()
    centre = gridded_centre(measured(spokes(48), images), 16)
    inside = (slice(None), slice(8, 24), slice(8, 24))
    truth = to_kspace(images)[inside]
    assert centre.measured.sum() == 16
    assert np.count_nonzero(centre.kspace[0]) == 3 * 16 * 16
    assert np.linalg.norm(centre.kspace[0][inside] - truth) < 0.05 * np.linalg.norm(truth)


def test_the_noise_is_that_of_the_outermost_samples() -> None:
    data = measured(spokes(32), 1e-3 * coil_images(), noise_sd=0.1)
    assert rim_of(data)[0] == pytest.approx(0.01, rel=0.1)


@pytest.mark.parametrize("n_coils", [1, 3])
def test_signal_at_the_rim_is_told_from_noise(n_coils: int) -> None:
    """Ten draws of noise alone are never taken for signal; where signal makes the estimate too large, it is said."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        parts = rng.standard_normal((2, 1, n_coils, len(spokes(32)))).astype(np.float32)
        assert not rim_noise(parts[0] + 1j * parts[1], spokes(32), (N, N))[1]
    sharp = np.zeros((n_coils, N, N), dtype=complex)
    sharp[:, 10:22, 8:20] = 1  # edges, whose transform falls slowly
    data = measured(spokes(32), sharp, noise_sd=1e-3)
    variance, signal = rim_of(data)
    assert variance > 4 * 1e-6 and signal


def test_a_centre_that_is_not_dense_and_samples_without_noise_are_refused() -> None:
    samples = np.zeros((1, 1, 64), np.complex64)
    samples[..., 32] = 1
    sparse = measured(spokes(8), coil_images())
    wrong = {
        "trajectory": lambda: gridded_centre(sparse, 24),
        "noise_variance": lambda: rim_noise(samples, spokes(1), (N, N)),
    }
    for field, call in wrong.items():
        with refused(field):
            call()
