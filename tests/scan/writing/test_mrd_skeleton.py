"""MRD files without samples: python-ismrmrd reads them, and our own reader places filled ones where they belong."""

from pathlib import Path

import ismrmrd
import numpy as np
import pytest

from mri_design import InputError, read
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.writing.mrd import mrd_skeleton_bytes

TRAINS = ((6, 3), (1, 11), (0,))
PLACED = SliceGeometry((1.5, 2.0), 5.0, (1.0, 2.0, 3.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "skeleton.h5"
    file.write_bytes(mrd_skeleton_bytes(TRAINS, (12, 16), PLACED))
    return file


def test_the_ismrmrd_package_reads_header_and_labels(path: Path) -> None:
    with ismrmrd.Dataset(str(path), mode="r") as file:
        (encoding,) = ismrmrd.xsd.CreateFromDocument(file.read_xml_header()).encoding
        readouts = [file.read_acquisition(i) for i in range(file.number_of_acquisitions())]
    space, limits = encoding.encodedSpace, encoding.encodingLimits.kspace_encoding_step_1
    assert (space.matrixSize.x, space.matrixSize.y, space.matrixSize.z) == (16, 12, 1)
    assert (space.fieldOfView_mm.x, space.fieldOfView_mm.y, space.fieldOfView_mm.z) == (32.0, 18.0, 5.0)
    assert (limits.minimum, limits.maximum, limits.center) == (0, 11, 6)
    assert encoding.echoTrainLength == [2] or encoding.echoTrainLength == 2
    assert [readout.idx.kspace_encode_step_1 for readout in readouts] == [6, 3, 1, 11, 0]
    assert [readout.idx.segment for readout in readouts] == [0, 0, 1, 1, 2]
    assert [readout.scan_counter for readout in readouts] == [0, 1, 2, 3, 4]
    assert all(readout.data.shape == (1, 16) and readout.center_sample == 8 for readout in readouts)
    assert readouts[0].is_flag_set(ismrmrd.ACQ_FIRST_IN_SLICE)
    assert readouts[-1].is_flag_set(ismrmrd.ACQ_LAST_IN_SLICE)
    assert readouts[-1].is_flag_set(ismrmrd.ACQ_LAST_IN_MEASUREMENT)
    assert list(readouts[2].position) == [1.0, 2.0, 3.0] and list(readouts[2].phase_dir) == [0.0, 1.0, 0.0]


def test_filled_with_samples_it_is_a_scan_with_these_lines(path: Path) -> None:
    with ismrmrd.Dataset(str(path), mode="r+") as file:
        for i in range(file.number_of_acquisitions()):
            readout = file.read_acquisition(i)
            readout.data[:] = 1 + readout.idx.kspace_encode_step_1
            file.write_acquisition(readout, i)
    scan = read(path)
    np.testing.assert_array_equal(np.flatnonzero(scan.measured), [0, 1, 3, 6, 11])
    np.testing.assert_array_equal(scan.kspace[0, 0, :, 0].real, [1, 2, 0, 4, 0, 0, 7, 0, 0, 0, 0, 12])
    assert scan.geometry == (PLACED,)


def test_without_samples_it_is_no_scan(path: Path) -> None:
    with pytest.raises(InputError, match="zeros in all 5 readouts"):
        read(path)


def test_equal_designs_give_equal_bytes(path: Path) -> None:
    assert path.read_bytes() == mrd_skeleton_bytes(TRAINS, (12, 16), PLACED)


def test_lines_off_the_grid_and_lines_twice_are_refused() -> None:
    with pytest.raises(InputError, match="row 12"):
        mrd_skeleton_bytes(((6, 12),), (12, 16), PLACED)
    with pytest.raises(InputError, match="each line once"):
        mrd_skeleton_bytes(((6, 6),), (12, 16), PLACED)
    with pytest.raises(InputError, match="at most 65535"):
        mrd_skeleton_bytes(((6,),), (70_000, 16), PLACED)
