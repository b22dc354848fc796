"""MRD files whose acquisitions have coordinates: samples along a trajectory, each in its place and unit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ismrmrd as library
import numpy as np
import pytest

from mri_design import InputError, TrajectoryData
from mri_design.scan.io import read
from tests.scan.io.reading import read_here

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


def scan_of(path: Path, **settings: Any) -> TrajectoryData:
    got = read_here(path, **settings)
    assert isinstance(got, TrajectoryData)
    return got


@pytest.mark.parametrize("isolated", [True, False])
def test_samples_are_read_with_their_trajectory(samples: np.ndarray, mrd: type, isolated: bool) -> None:
    raw = builder(mrd)
    add_spokes(raw, samples)
    got = read(raw.write(), isolated=isolated)
    assert isinstance(got, TrajectoryData)
    np.testing.assert_array_equal(got.kspace, samples.reshape(2, COILS, -1))
    np.testing.assert_allclose(got.trajectory, spokes()[..., ::-1].reshape(-1, 2))
    assert (got.grid_shape, got.n_readouts, got.name) == ((N, N), SPOKES, "raw")
    assert got.header["trajectory_unit"] == "cycles per field of view, up to 8"


@pytest.mark.parametrize("kind", ["spiral", "goldenangle", "other", ""])
def test_other_names_and_a_third_coordinate_of_zeros(samples: np.ndarray, mrd: type, kind: str) -> None:
    raw = builder(mrd, trajectory=kind)
    add_spokes(raw, samples, np.concatenate([spokes(), np.zeros((SPOKES, LENGTH, 1), np.float32)], axis=-1))
    got = scan_of(raw.write())
    np.testing.assert_allclose(got.trajectory, spokes()[..., ::-1].reshape(-1, 2))


def test_cycles_per_pixel_are_multiplied_by_the_matrix(samples: np.ndarray, mrd: type) -> None:
    raw = builder(mrd, nx=2 * N, fov=400, ny=12)  # readout oversampling leaves the pixels as they are
    add_spokes(raw, samples, spokes() / N)
    got = scan_of(raw.write())
    assert got.grid_shape == (12, N)
    np.testing.assert_allclose(got.trajectory, (spokes() / N * [N, 12])[..., ::-1].reshape(-1, 2), rtol=1e-6)
    assert got.header["trajectory_unit"] == "cycles per pixel, up to 0.5; multiplied by the 12 x 16 pixels (ky, kx)"


def test_discarded_samples_are_left_out_with_their_coordinates(samples: np.ndarray, mrd: type) -> None:
    raw = builder(mrd)
    wild = np.pad(spokes(), ((0, 0), (2, 1), (0, 0)), constant_values=1e4)
    add_spokes(raw, np.pad(samples, ((0, 0),) * 3 + ((2, 1),), constant_values=99), wild, discard_pre=2, discard_post=1)
    got = scan_of(raw.write())
    np.testing.assert_array_equal(got.kspace, samples.reshape(2, COILS, -1))
    np.testing.assert_allclose(got.trajectory, spokes()[..., ::-1].reshape(-1, 2))


def test_shots_are_in_the_order_of_their_counter(samples: np.ndarray, mrd: type) -> None:
    raw = builder(mrd)
    for spoke in (3, 0, 4, 1, 2):
        raw.add(samples[0, :, spoke], spokes()[spoke], kspace_encode_step_1=spoke)
    got = scan_of(raw.write())
    np.testing.assert_array_equal(got.kspace, samples[:1].reshape(1, COILS, -1))


def test_only_the_first_of_each_counter_and_no_navigation(samples: np.ndarray, mrd: type) -> None:
    raw = builder(mrd)
    raw.add(samples[0, :, 0], flag=library.ACQ_IS_NAVIGATION_DATA)
    raw.add(samples[0, :, 0], spokes()[0], flag=library.ACQ_IS_PARALLEL_CALIBRATION)
    add_spokes(raw, -samples, repetition=1)
    add_spokes(raw, samples)
    path = raw.write()
    got = scan_of(path)
    np.testing.assert_array_equal(got.kspace, samples.reshape(2, COILS, -1))
    assert got.header["repetition"] == "0, the first of 2 (0, 1); the others were not read"
    assert got.header["readouts_skipped"].startswith("1 of 22")
    assert got.header["calibration_skipped"].startswith("1 readouts")
    np.testing.assert_array_equal(scan_of(path, counters={"repetition": 1}).kspace, -got.kspace)


def test_repeated_shots_need_a_policy(samples: np.ndarray, mrd: type) -> None:
    raw = builder(mrd)
    for factor in (1, 3):
        add_spokes(raw, factor * samples)
    path = raw.write()
    with pytest.raises(InputError, match=r"data\[10\]: traj.*as acquisition 0.*duplicates='average'"):
        read_here(path)
    for policy, factor in (("average", 2), ("first", 1), ("last", 3)):
        got = scan_of(path, duplicates=policy)
        np.testing.assert_allclose(got.kspace, factor * samples.reshape(2, COILS, -1), rtol=1e-6)
        assert got.header["duplicates"].startswith(policy)


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
    assert got.header["coils_dropped"] == "coil 1 holds zeros only"
    assert got.scaled(2).noise_covariance == pytest.approx(4 * got.noise_covariance)


def drop_coordinates(raw: Any) -> None:
    raw.readouts[7].resize(LENGTH, COILS, 0)


def lengthen(raw: Any) -> None:
    raw.readouts[7].resize(LENGTH + 1, COILS, 2)


def other_discard(raw: Any) -> None:
    raw.readouts[7].discard_pre = 1


def one_dimension(raw: Any) -> None:
    for readout in raw.readouts:
        readout.resize(LENGTH, COILS, 1)


def other_partition(raw: Any) -> None:
    raw.readouts[7].idx.kspace_encode_step_2 = 1


def partitions(raw: Any) -> None:
    raw.nz = 4


def not_finite(raw: Any) -> None:
    raw.readouts[7].traj[3, 1] = np.nan


def turned_slice(raw: Any) -> None:
    for readout in raw.readouts[1::2]:
        readout.traj[:] = readout.traj[:, ::-1]


def missing_spoke(raw: Any) -> None:
    raw.readouts.pop()


def scaled_by(factor: float) -> Callable[[Any], None]:
    def apply(raw: Any) -> None:
        for readout in raw.readouts:
            readout.traj[:] = readout.traj * np.float32(factor)

    return apply


def weights(raw: Any) -> None:
    for readout in raw.readouts:
        k = readout.traj.copy()
        readout.resize(LENGTH, COILS, 3)
        readout.traj[:, :2], readout.traj[:, 2] = k, 0.5


def interpolated(raw: Any) -> None:
    raw.rx = 2 * N
    scaled_by(1 / N)(raw)


@pytest.mark.parametrize(
    ("spoil", "field", "text"),
    [
        (drop_coordinates, "data[7]: trajectory_dimensions", "no coordinates, in a file with radial trajectory"),
        (one_dimension, "data[0]: trajectory_dimensions", "2 or 3"),
        (lengthen, "data[7]: number_of_samples", "12, as acquisition 0"),
        (other_discard, "data[7]: number_of_samples", "the same ones in every readout"),
        (other_partition, "data[7]: kspace_encode_step_2", "2-D"),
        (partitions, "encodedSpace.matrixSize.z", "trajectories are read in two dimensions"),
        (not_finite, "data[7]: traj", "NaN"),
        (turned_slice, "data[1]: traj", "the same trajectory in every slice"),
        (missing_spoke, "data[1]: traj", "the same trajectory in every slice"),
        (scaled_by(2), "data: traj", "a larger grid"),
        (scaled_by(2 / N), "data: traj", "Multiply the columns by half the grid's lengths"),
        (scaled_by(2 * np.pi / N), "data: traj", "radians per pixel"),
        (weights, "data: traj", "weights of the samples"),
        (interpolated, "data: traj", "cycles per field of view"),
    ],
)
def test_what_is_no_such_trajectory_is_refused(
    samples: np.ndarray, mrd: type, spoil: Callable[[Any], None], field: str, text: str
) -> None:
    raw = builder(mrd)
    add_spokes(raw, samples)
    spoil(raw)
    with pytest.raises(InputError) as caught:
        raw.read()
    assert field in caught.value.field
    assert text in str(caught.value)


def test_coordinates_of_a_cartesian_scan_are_not_used(scan: np.ndarray, mrd: type) -> None:
    raw = mrd()
    for line in range(12):
        raw.add(scan[0, :, line], np.zeros((16, 2)), kspace_encode_step_1=line)
    got = raw.read()
    np.testing.assert_array_equal(got.kspace, scan[:1])
    assert got.header["coordinates_skipped"].endswith("by the header the scan is cartesian")
