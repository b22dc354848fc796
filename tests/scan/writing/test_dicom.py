"""DICOM files open in pydicom (and in dcmdump, where it is installed) and say nothing that was not known."""

import io
import shutil
import subprocess
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mri_design.scan import SliceGeometry, SourceImage
from mri_design.scan.writing import DicomLabels, dicom_bytes
from tests.refusals import refused

pydicom = pytest.importorskip("pydicom")

IMAGE = np.random.default_rng(0).random((6, 5)) * 3e-7
PLACED = SliceGeometry((1.5, 2.0), 5.0, (1.0, 2.0, 3.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
LABELS = DicomLabels("magnitude", "12 of 32 lines", "the identity of a run")


def _read(content: bytes) -> Any:
    return pydicom.dcmread(io.BytesIO(content))


@pytest.fixture
def content() -> bytes:
    return dicom_bytes(IMAGE, PLACED, LABELS)


def test_pixels_times_the_slope_are_the_image(content: bytes) -> None:
    read = _read(content)
    slope = float(read.RescaleSlope)
    np.testing.assert_allclose(read.pixel_array * slope + float(read.RescaleIntercept), IMAGE, atol=0.51 * slope)
    assert read.pixel_array.max() == 65535
    assert list(read.ImageType) == ["DERIVED", "SECONDARY", "OTHER"]
    for name in ("PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyDate", "AccessionNumber"):
        assert not read[name].value


def test_the_place_is_that_of_the_first_pixel(content: bytes, source: SourceImage) -> None:
    read = _read(content)
    assert list(read.PixelSpacing) == [1.5, 2.0]
    assert list(read.ImageOrientationPatient) == [1, 0, 0, 0, 1, 0]
    assert list(read.ImagePositionPatient) == [1 - 2 * 2.0, 2 - 3 * 1.5, 3]
    unplaced = _read(dicom_bytes(IMAGE, SliceGeometry((1.5, 2.0), 5.0), LABELS))
    assert "PixelSpacing" in unplaced and "ImagePositionPatient" not in unplaced
    flat = _read(dicom_bytes(IMAGE, SliceGeometry((1.5, 2.0), None), LABELS))
    assert "SliceThickness" not in flat and flat.PixelSpacing == [1.5, 2.0]
    unknown = _read(dicom_bytes(IMAGE, None, replace(LABELS, source=replace(source, frames=1, frame=None))))
    assert not {"PixelSpacing", "SliceThickness", "FrameOfReferenceUID"} & {*unknown.dir()}
    assert unknown.StudyInstanceUID == "1.2.3" and "ReferencedFrameNumber" not in unknown.SourceImageSequence[0]


def test_directions_have_six_digits_behind_the_point(content: bytes) -> None:
    turned = 1e-9 + 0.5235987755982988
    phase, read = (-np.sin(turned), np.cos(turned), 0.0), (np.cos(turned), np.sin(turned), -1e-17)
    place = SliceGeometry((1.5, 2.0), 5.0, (0.0, 0.0, 0.0), phase, read, (0.0, 0.0, 1.0))
    stored = _read(dicom_bytes(IMAGE, place, LABELS)).ImageOrientationPatient
    assert [str(cosine) for cosine in stored] == ["0.866025", "0.5", "0", "-0.5", "0.866025", "0"]


def test_identifiers_follow_from_the_contents(content: bytes) -> None:
    assert dicom_bytes(IMAGE, PLACED, LABELS) == content
    first, other = _read(content), _read(dicom_bytes(2 * IMAGE, PLACED, LABELS))
    assert first.SOPInstanceUID != other.SOPInstanceUID
    assert first.StudyInstanceUID == other.StudyInstanceUID
    std = _read(dicom_bytes(IMAGE, PLACED, DicomLabels("standard deviation", "", LABELS.study, 2)))
    assert std.StudyInstanceUID == first.StudyInstanceUID and std.SeriesInstanceUID != first.SeriesInstanceUID
    for uid in (first.SOPInstanceUID, first.StudyInstanceUID, first.SeriesInstanceUID, first.FrameOfReferenceUID):
        assert uid.is_valid and uid.startswith("2.25.")


@pytest.fixture
def source() -> SourceImage:
    """A frame of an enhanced image of somebody with an umlaut."""
    study = {"StudyInstanceUID": "1.2.3", "StudyDate": "20200304", "AccessionNumber": "A7", "StudyID": "5"}
    patient = {"PatientName": "Müller^Eva", "PatientID": "77", "PatientBirthDate": "19800102", "PatientSex": "F"}
    image = {"SOPClassUID": "1.2.840.10008.5.1.4.1.1.4.1", "SOPInstanceUID": "1.2.3.4", "FrameOfReferenceUID": "1.2.9"}
    return SourceImage({**study, **patient, **image}, 3, 2)


def test_patient_and_study_are_those_of_the_source_which_is_named(source: SourceImage) -> None:
    read = _read(dicom_bytes(IMAGE, PLACED, replace(LABELS, source=source)))
    for name in set(source.identifiers) - {"SOPClassUID", "SOPInstanceUID"}:
        assert str(read[name].value) == source.identifiers[name], name
    (referred,) = read.SourceImageSequence
    assert referred.ReferencedSOPInstanceUID == "1.2.3.4" and referred.ReferencedFrameNumber == 2
    assert referred.ReferencedSOPClassUID == source.identifiers["SOPClassUID"]
    assert referred.PurposeOfReferenceCodeSequence[0].CodeValue == "121322"
    assert list(read.ImageType)[:2] == ["DERIVED", "SECONDARY"]
    assert read.SOPInstanceUID.startswith("2.25.") and read.SeriesInstanceUID.startswith("2.25.")


@pytest.mark.parametrize("root", ["1.2.840.7", *(("1.2." + "3" * 64)[:length] for length in (51, 52, 64))])
def test_raw_data_name_patient_and_study_and_no_image(root: str) -> None:
    stated = {"PatientName": "Doe^Jo", "PatientID": "77", "StudyInstanceUID": "1.2.3", "ProtocolName": "t2_tse"}
    source = SourceImage({**stated, "FrameOfReferenceUID": "1.2.9", "SeriesInstanceUIDRoot": root}, image=False)
    labels = replace(LABELS, source=source)
    read, other = (_read(dicom_bytes(IMAGE, PLACED, replace(labels, series=series))) for series in ("one", "other"))
    assert all(str(read[name].value) == text for name, text in stated.items())
    assert "SourceImageSequence" not in read and not read.StudyDate and read.FrameOfReferenceUID == "1.2.9"
    for uid in (read.SeriesInstanceUID, other.SeriesInstanceUID):  # a root without room for a series is not used
        assert uid.is_valid and len(uid) <= 64 and uid.startswith(f"{root}." if len(root) < 52 else "2.25.")
    assert read.SeriesInstanceUID != other.SeriesInstanceUID and read.SOPInstanceUID.startswith("2.25.")


def test_negative_pixels_are_refused() -> None:
    with refused("image"):
        dicom_bytes(-np.ones((4, 4)), None, LABELS)


@pytest.mark.skipif(shutil.which("dciodvfy") is None, reason="needs dciodvfy, of the system package dicom3tools")
@pytest.mark.parametrize("place", [PLACED, SliceGeometry((1.5, 2.0), 5.0), None], ids=["placed", "sizes", "unknown"])
@pytest.mark.parametrize("derived", [False, True], ids=["new", "derived"])
def test_dciodvfy_finds_no_error(place, derived, source, tmp_path):
    labels = replace(LABELS, source=source) if derived else LABELS
    (tmp_path / "image.dcm").write_bytes(dicom_bytes(IMAGE, place, labels))
    done = subprocess.run(["dciodvfy", tmp_path / "image.dcm"], capture_output=True, text=True, check=False)
    assert "SCImage" in done.stderr and "Error" not in done.stderr
