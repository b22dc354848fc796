"""MRD files whose acquisitions have coordinates: samples along a trajectory, each in its place and unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ismrmrd as library
import numpy as np
import pytest

from mri_design import TrajectoryData
from mri_design.scan.io import read
from tests.refusals import refused, refuses

N, SPOKES, LENGTH, COILS = 16, 5, 12, 3


@pytest.fixture
def samples() -> np.ndarray:
    """(2 slices, 3 coils, 5 spokes, 12 samples), every sample different."""
    real, imaginary = np.random.default_rng(7).standard_normal((2, 2, COILS, SPOKES, LENGTH))
    return (real + 1j * imaginary).astype(np.complex64)


def spokes() -> np.ndarray:
    """Columns (kx, ky) in cycles per field of view, (spoke, sample, 2)."""
    radius, angle = np.linspace(-N / 2, N / 2, LENGTH), np.pi * np.arange(SPOKES)[:, None] / SPOKES
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1).astype(np.float32)


def add_spokes(raw: Any, samples: np.ndarray, coordinates: np.ndarray | None = None, **fields: int) -> None:
    """Append every spoke of (slice, coil, spoke, sample), the slices interleaved."""
    k = spokes() if coordinates is None else coordinates
    for spoke, rank in np.ndindex(len(k), len(samples)):
        raw.add(samples[rank, :, spoke], k[spoke], slice=rank, kspace_encode_step_1=spoke, **fields)


def builder(mrd: type, **settings: object) -> Any:
    return mrd(**{"nx": N, "ny": N, "rx": N, "trajectory": "radial", **settings})


@pytest.mark.parametrize("isolated", [True, False])
def test_samples_are_read_with_their_trajectory(samples: np.ndarray, mrd: type, isolated: bool) -> None:
    raw = builder(mrd)
    add_spokes(raw, samples)
    got = read(raw.write(), isolated=isolated)
    np.testing.assert_array_equal(got.kspace, samples.reshape(2, COILS, -1))
    np.testing.assert_allclose(got.trajectory, spokes()[..., ::-1].reshape(-1, 2))
    assert (got.grid_shape, got.n_readouts, got.name) == ((N, N), SPOKES, "raw")


@pytest.mark.parametrize("kind", ["spiral", "goldenangle", "other", ""])
def test_other_names_and_a_third_coordinate_of_zeros(samples: np.ndarray, mrd: type, kind: str) -> None:
    raw = builder(mrd, trajectory=kind)
    add_spokes(raw, samples, np.concatenate([spokes(), np.zeros((SPOKES, LENGTH, 1), np.float32)], axis=-1))
    got = raw.read()
    np.testing.assert_allclose(got.trajectory, spokes()[..., ::-1].reshape(-1, 2))


def test_cycles_per_pixel_are_multiplied_by_the_matrix(samples: np.ndarray, mrd: type) -> None:
    raw = builder(mrd, nx=2 * N, fov=400, ny=12)  # readout oversampling leaves the pixels as they are
    add_spokes(raw, samples, spokes() / N)
    got = raw.read()
    assert got.grid_shape == (12, N)
    np.testing.assert_allclose(got.trajectory, (spokes() / N * [N, 12])[..., ::-1].reshape(-1, 2), rtol=1e-6)


def test_discarded_samples_are_left_out_with_their_coordinates(samples: np.ndarray, mrd: type) -> None:
    raw = builder(mrd)
    wild = np.pad(spokes(), ((0, 0), (2, 1), (0, 0)), constant_values=1e4)
    add_spokes(raw, np.pad(samples, ((0, 0),) * 3 + ((2, 1),), constant_values=99), wild, discard_pre=2, discard_post=1)
    got = raw.read()
    np.testing.assert_array_equal(got.kspace, samples.reshape(2, COILS, -1))
    np.testing.assert_allclose(got.trajectory, spokes()[..., ::-1].reshape(-1, 2))


def test_shots_are_in_the_order_of_their_counter(samples: np.ndarray, mrd: type) -> None:
    raw = builder(mrd)
    for spoke in (3, 0, 4, 1, 2):
        raw.add(samples[0, :, spoke], spokes()[spoke], kspace_encode_step_1=spoke)
    got = raw.read()
    np.testing.assert_array_equal(got.kspace, samples[:1].reshape(1, COILS, -1))


def test_repeated_shots_need_a_policy(samples: np.ndarray, mrd: type) -> None:
    raw = builder(mrd)
    for factor in (1, 3):
        add_spokes(raw, factor * samples)
    path = raw.write()
    with refused("data[10]: traj", "duplicates='average'"):
        read(path)
    for policy, factor in (("average", 2), ("first", 1), ("last", 3)):
        got = read(path, duplicates=policy)
        np.testing.assert_allclose(got.kspace, factor * samples.reshape(2, COILS, -1), rtol=1e-6)


def test_noise_readouts_and_dead_coils(samples: np.ndarray, mrd: type) -> None:
    rng, raw = np.random.default_rng(0), builder(mrd)
    noise = 0.1 * (rng.standard_normal((COILS, 500)) + 1j * rng.standard_normal((COILS, 500)))
    raw.add(noise, flag=library.ACQ_IS_NOISE_MEASUREMENT).sample_time_us = 5
    samples[:, 1] = 0
    add_spokes(raw, samples)
    for readout in raw.readouts[1:]:
        readout.sample_time_us = 10
    got = read(raw.write())
    assert isinstance(got, TrajectoryData) and got.noise_covariance is not None
    np.testing.assert_array_equal(got.kspace, samples[:, [0, 2]].reshape(2, 2, -1))
    np.testing.assert_allclose(got.noise_covariance, 0.01 / 2 * np.eye(2), atol=5e-4)
    assert got.scaled(2).noise_covariance == pytest.approx(4 * got.noise_covariance)


def every(change: Callable[[Any], object], step: int = 1) -> Callable[[Any], object]:
    """Change every readout, or every second one."""
    return lambda raw: [change(one) for one in raw.readouts[step - 1 :: step]]


def scaled(factor: float) -> Callable[[Any], object]:
    return every(lambda one: one.traj.__imul__(np.float32(factor)))


def with_weights(one: Any) -> None:
    k = one.traj.copy()
    one.resize(LENGTH, COILS, 3)
    one.traj[:, :2], one.traj[:, 2] = k, 0.5


def interpolated(raw: Any) -> None:
    raw.rx = 2 * N
    scaled(1 / N)(raw)


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        (lambda raw: raw.readouts[7].resize(LENGTH, COILS, 0), "data[7]: trajectory_dimensions"),
        (every(lambda one: one.resize(LENGTH, COILS, 1)), "data[0]: trajectory_dimensions"),
        (lambda raw: raw.readouts[7].resize(LENGTH + 1, COILS, 2), "data[7]: number_of_samples"),
        (lambda raw: setattr(raw.readouts[7], "discard_pre", 1), "data[7]: number_of_samples"),
        (lambda raw: setattr(raw.readouts[7].idx, "kspace_encode_step_2", 1), "data[7]: kspace_encode_step_2"),
        (lambda raw: setattr(raw, "nz", 4), "encodedSpace.matrixSize.z"),
        (lambda raw: raw.readouts[7].traj.__setitem__((3, 1), np.nan), "data[7]: traj"),
        (every(lambda one: one.traj.__setitem__(slice(None), one.traj[:, ::-1].copy()), 2), "data[1]: traj"),
        (lambda raw: raw.readouts.pop(), "data[1]: traj"),
        *((case, "data: traj") for case in (scaled(2), scaled(2 / N), scaled(2 * np.pi / N), every(with_weights))),
        (interpolated, "data: traj"),
    ],
)
def test_what_is_no_such_trajectory_is_refused(samples, mrd, spoil, field):
    raw = builder(mrd)
    add_spokes(raw, samples)
    spoil(raw)
    refuses(field, raw.read)


def test_coordinates_of_a_cartesian_scan_are_not_used(scan: np.ndarray, mrd: type) -> None:
    raw = mrd()
    for line in range(12):
        raw.add(scan[0, :, line], np.zeros((16, 2)), kspace_encode_step_1=line)
    got = raw.read()
    np.testing.assert_array_equal(got.kspace, scan[:1])
    assert "coordinates_skipped" in got.provenance.left_out


def test_only_the_first_of_each_counter_and_no_navigation(samples: np.ndarray, mrd: type) -> None:
    raw = builder(mrd)
    raw.add(samples[0, :, 0], flag=library.ACQ_IS_NAVIGATION_DATA)
    raw.add(samples[0, :, 0], spokes()[0], flag=library.ACQ_IS_PARALLEL_CALIBRATION)
    add_spokes(raw, -samples, repetition=1)
    add_spokes(raw, samples)
    path = raw.write()
    got = read(path)
    np.testing.assert_array_equal(got.kspace, samples.reshape(2, COILS, -1))
    assert got.provenance.series["repetition"][1] == (0, 1)
    np.testing.assert_array_equal(read(path, counters={"repetition": 1}).kspace, -got.kspace)
