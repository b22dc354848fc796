"""Which contrast, phase, repetition and set of an MRD file is read."""

from __future__ import annotations

from pathlib import Path

import ismrmrd as library
import numpy as np
import pytest

from mri_design import InputError, KSpaceData, read
from mri_design.scan.io import ismrmrd


@pytest.mark.parametrize("counter", ["contrast", "phase", "repetition", "set"])
def test_a_series_is_chosen_by_its_number(tmp_path: Path, scan: np.ndarray, mrd: type, counter: str) -> None:
    raw = mrd()
    for number in (3, 1, 2):
        raw.add_scan(number * scan, **{counter: number})
    path = raw.write(tmp_path / "raw.h5")
    got = ismrmrd.read(path, counters={counter: 2})
    np.testing.assert_array_equal(got.kspace, 2 * scan)
    assert got.card[counter] == "2, one of 3 (1, 2, 3); the others were not read"
    with pytest.raises(InputError) as caught:
        read(path, counters={counter: 0}, isolated=counter == "contrast")
    assert caught.value.field.endswith(f"dataset/data: {counter}")
    assert caught.value.wanted == "a number that the file holds: 1, 2, 3"
    assert caught.value.cure.startswith(f"Change --{counter}, or {counter} under [input]")


def test_the_first_of_what_is_left_where_numbers_depend_on_each_other(
    tmp_path: Path, scan: np.ndarray, mrd: type
) -> None:
    raw = mrd()
    raw.add_scan(scan, contrast=0, repetition=0)
    raw.add_scan(2 * scan, contrast=1, repetition=4)
    got = ismrmrd.read(raw.write(tmp_path / "raw.h5"), counters={"contrast": 1})
    np.testing.assert_array_equal(got.kspace, 2 * scan)
    assert "repetition" not in got.card


def test_calibration_that_was_scanned_once_serves_every_contrast(tmp_path: Path, scan: np.ndarray, mrd: type) -> None:
    raw = mrd()
    raw.add_scan(scan[:, :, 4:8], flag=library.ACQ_IS_PARALLEL_CALIBRATION)
    for number in (0, 1):
        raw.add_scan(scan, contrast=number)
    got = ismrmrd.read(raw.write(tmp_path / "raw.h5"), counters={"contrast": 1})
    assert isinstance(got, KSpaceData) and got.calibration is not None
    assert got.card["calibration_scan"].startswith("8 readouts")


@pytest.mark.parametrize("wrong", [{"echo": 1}, {"contrast": -1}, {"contrast": True}, {"contrast": 1.5}])
def test_other_counters_and_numbers_are_refused(tmp_path: Path, scan: np.ndarray, mrd: type, wrong: dict) -> None:
    raw = mrd()
    raw.add_scan(scan)
    path = raw.write(tmp_path / "raw.h5")
    with pytest.raises(InputError, match="contrast"):
        read(path, counters=wrong)


def test_formats_without_counters_have_number_zero_only(tmp_path: Path, scan: np.ndarray, fastmri_file: Path) -> None:
    np.save(tmp_path / "scan.npy", scan)
    for path in (tmp_path / "scan.npy", fastmri_file):
        read(path, counters={"contrast": 0}, isolated=False)
        with pytest.raises(InputError, match="contrast: got 1 asked for in a file that has no numbers"):
            read(path, counters={"contrast": 1}, isolated=False)
