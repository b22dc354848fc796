"""Dead and duplicated coils are left out, and the header says so."""

from __future__ import annotations

from pathlib import Path

import h5py
import ismrmrd as library
import numpy as np
import pytest

from mri_design import InputError, KSpaceData
from mri_design.scan.io.samples import only_coils, working_coils
from tests.scan.io.reading import read_here


def test_zeros_and_copies_are_found(scan: np.ndarray) -> None:
    five = np.concatenate([scan, scan[:, :1], np.zeros_like(scan[:, :1])], axis=1)
    coils, notes = working_coils(five)
    assert coils.tolist() == [0, 1, 2]
    assert notes == {"coils_dropped": "coil 4 holds zeros only; coil 3 repeats coil 0"}
    np.testing.assert_array_equal(only_coils(five, coils), scan)


def test_working_coils_are_left_alone(scan: np.ndarray) -> None:
    coils, notes = working_coils(scan)
    assert (coils.tolist(), notes) == ([0, 1, 2], {})
    assert only_coils(scan, coils) is scan
    nearly = np.concatenate([scan, scan[:, :1]], axis=1)
    nearly[0, 3, 5, 5] += 1e-3
    assert working_coils(nearly)[0].size == 4


def test_a_scan_without_any_signal_is_for_others_to_refuse(scan: np.ndarray) -> None:
    assert working_coils(np.zeros_like(scan))[0].size == 3


def test_noise_and_calibration_of_raw_data_follow(scan: np.ndarray, mrd: type) -> None:
    raw = mrd()
    rng = np.random.default_rng(0)
    raw.add(rng.standard_normal((3, 64)) + 1j, flag=library.ACQ_IS_NOISE_MEASUREMENT)
    scan[:, 2] = 0
    raw.add_scan(scan)
    raw.add_scan(scan[:, :, 4:8], flag=library.ACQ_IS_PARALLEL_CALIBRATION)
    got = raw.read()
    assert isinstance(got, KSpaceData) and got.calibration is not None and got.noise_covariance is not None
    assert got.noise_covariance.shape == (2, 2)
    assert got.calibration.shape[1] == got.n_coils == 2
    assert got.header["coils_dropped"] == "coil 2 holds zeros only"


def test_fastmri_files_too(tmp_path: Path, scan: np.ndarray) -> None:
    scan[:, 1] = scan[:, 0]
    with h5py.File(tmp_path / "volume.h5", "w") as file:
        file["kspace"] = scan.swapaxes(-1, -2)
    got = read_here(tmp_path / "volume.h5")
    np.testing.assert_array_equal(got.kspace, scan[:, [0, 2]])
    assert got.header["coils_dropped"] == "coil 1 repeats coil 0"
    scan[:] = 0
    with h5py.File(tmp_path / "empty.h5", "w") as file:
        file["kspace"] = scan.swapaxes(-1, -2)
    with pytest.raises(InputError, match="no signal"):
        read_here(tmp_path / "empty.h5")
