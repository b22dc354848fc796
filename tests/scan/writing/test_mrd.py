"""MRD files with samples: what was written comes back, from our reader and from python-ismrmrd."""

from pathlib import Path

import ismrmrd
import numpy as np
import pytest

from mri_design import KSpaceData
from mri_design.scan import SliceGeometry
from mri_design.scan.io import read
from mri_design.scan.writing import mrd_scan_bytes, mrd_skeleton_bytes
from tests.refusals import refused

AXES = ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
PLACES = tuple(SliceGeometry((1.5, 2.0), 5.0, (1.0, 2.0, 6.0 * number), *AXES) for number in range(2))


def _scan(columns: slice = slice(None), coils: int = 3, shape: tuple[int, int] = (9, 12)) -> KSpaceData:
    rng = np.random.default_rng(0)
    measured = np.zeros(shape[0], dtype=bool)
    measured[[0, 3, 4, 7]] = True
    kspace = np.zeros((2, coils, *shape), np.complex64)
    samples = rng.standard_normal((2, 2, coils, *shape))
    kspace[:, :, measured, columns] = (samples[0] + 1j * samples[1])[:, :, measured, columns]
    return KSpaceData(kspace, measured)


@pytest.mark.parametrize(
    "columns", [slice(None), slice(3, None), slice(0, 9), slice(8, None)], ids=["whole", "late", "early", "without DC"]
)
def test_samples_and_places_come_back(tmp_path: Path, columns: slice) -> None:
    scan, file = _scan(columns), tmp_path / "scan.h5"
    file.write_bytes(mrd_scan_bytes(scan, PLACES))
    again = read(file, isolated=False)
    np.testing.assert_array_equal(again.kspace, scan.kspace)
    np.testing.assert_array_equal(again.measured, scan.measured)
    assert again.geometry == PLACES


def test_the_ismrmrd_package_reads_samples_slices_and_channels(tmp_path: Path) -> None:
    scan, file = _scan(slice(4, None), coils=70), tmp_path / "scan.h5"
    file.write_bytes(mrd_scan_bytes(scan, PLACES))
    with ismrmrd.Dataset(str(file), mode="r") as opened:
        (encoding,) = ismrmrd.xsd.CreateFromDocument(opened.read_xml_header()).encoding
        readouts = [opened.read_acquisition(i) for i in range(opened.number_of_acquisitions())]
    assert encoding.encodingLimits.slice.maximum == 1
    assert [(r.idx.slice, r.idx.kspace_encode_step_1) for r in readouts] == [
        (s, y) for s in (0, 1) for y in (0, 3, 4, 7)
    ]
    assert all(r.data.shape == (70, 8) and r.center_sample == 2 for r in readouts)
    assert all(r.isChannelActive(69) and not r.isChannelActive(70) for r in readouts)
    np.testing.assert_array_equal(readouts[5].data, scan.kspace[1, :, 3, 4:])
    for flag, flagged in ((ismrmrd.ACQ_FIRST_IN_SLICE, [0, 4]), (ismrmrd.ACQ_LAST_IN_SLICE, [3, 7])):
        assert [i for i, r in enumerate(readouts) if r.is_flag_set(flag)] == flagged
    assert list(readouts[4].position) == [1.0, 2.0, 6.0]


@pytest.mark.parametrize(
    ("places", "axes", "expected"),
    [
        (None, "x y z", None),
        ([SliceGeometry((1.5, 2.0), None)] * 2, "z", (SliceGeometry((1.5, 2.0), None),) * 2),
        ([SliceGeometry((1.0, 1.0), 1.0)] * 2, "", (SliceGeometry((1.0, 1.0), 1.0),) * 2),
    ],
    ids=["nothing known", "thickness unknown", "all but the place known"],
)
def test_sizes_that_nobody_knows_are_marked_and_come_back_as_unknown(tmp_path, places, axes, expected):
    file = tmp_path / "scan.h5"
    file.write_bytes(mrd_scan_bytes(_scan(), places))
    with ismrmrd.Dataset(str(file), mode="r") as opened:
        header, readout = ismrmrd.xsd.CreateFromDocument(opened.read_xml_header()), opened.read_acquisition(0)
    # Readers need directions: some that say nothing.
    np.testing.assert_array_equal([readout.read_dir, readout.phase_dir, readout.slice_dir], np.eye(3))
    assert list(readout.position) == [0.0, 0.0, 0.0]
    (sign,), named = header.userParameters.userParameterLong, header.userParameters.userParameterString
    assert (sign.name, sign.value) == ("fourierSign", -1)
    sizes = [("unknownSizes", axes)] if axes else []
    assert [(parameter.name, parameter.value) for parameter in named] == [*sizes, ("unknownPlace", "directions")]
    assert header.encoding[0].encodedSpace.fieldOfView_mm.z == 1.0
    again = read(file, isolated=False)
    assert again.geometry == expected
    # Written again, the file says the same.
    assert mrd_scan_bytes(again, again.geometry) == file.read_bytes()


def test_what_such_a_file_cannot_hold_is_refused() -> None:
    scan = _scan()
    with refused("geometry"):
        mrd_scan_bytes(scan, (PLACES[0], SliceGeometry((1.0, 1.0), 5.0)))
    with refused("coils"):
        mrd_scan_bytes(_scan(coils=1025, shape=(9, 4)), PLACES)
    with refused("grid"):
        mrd_skeleton_bytes(((6,),), (70_000, 16), None)


TRAINS = ((6, 3), (1, 11), (0,))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "skeleton.h5"
    file.write_bytes(mrd_skeleton_bytes(TRAINS, (12, 16), PLACES[1]))
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
    assert list(readouts[2].position) == [1.0, 2.0, 6.0] and list(readouts[2].phase_dir) == [0.0, 1.0, 0.0]


def test_filled_with_samples_it_is_a_scan_with_these_lines(path: Path) -> None:
    with ismrmrd.Dataset(str(path), mode="r+") as file:
        for i in range(file.number_of_acquisitions()):
            readout = file.read_acquisition(i)
            readout.data[:] = 1 + readout.idx.kspace_encode_step_1
            file.write_acquisition(readout, i)
    scan = read(path)
    np.testing.assert_array_equal(np.flatnonzero(scan.measured), [0, 1, 3, 6, 11])
    np.testing.assert_array_equal(scan.kspace[0, 0, :, 0].real, [1, 2, 0, 4, 0, 0, 7, 0, 0, 0, 0, 12])
    assert scan.geometry == PLACES[1:]
