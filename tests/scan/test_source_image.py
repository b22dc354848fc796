"""Identifiers of a DICOM image: each in its form, none alone that would mean somebody else."""

import pytest

from mri_design import InputError
from mri_design.scan.source_image import SourceImage

NEEDED = {"StudyInstanceUID": "1.2.3", "SOPClassUID": "1.2.840.10008.5.1.4.1.1.4", "SOPInstanceUID": "1.2.3.4"}
PATIENT = {"PatientName": "Müller^Eva", "PatientID": "77 b", "PatientBirthDate": "19800102", "PatientSex": "F"}


def test_a_manifest_keeps_them() -> None:
    source, wrong = SourceImage.of_elements({**NEEDED, **PATIENT, "StudyID": ""}, frames=3)
    assert source is not None and not wrong
    assert source.identifiers == {**NEEDED, **PATIENT}
    third = source.of_frame(2)
    assert third.frame == 3 and SourceImage.from_settings("manifest", third.as_settings()) == third
    assert SourceImage(NEEDED).of_frame(0) == SourceImage(NEEDED)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PatientName", "x" * 195),
        ("PatientName", "two\nlines"),
        ("PatientBirthDate", "1980.01.02"),
        ("PatientSex", "female"),
        ("FrameOfReferenceUID", "1.02.3"),
        ("FrameOfReferenceUID", "1." + "2" * 63),
        ("StudyID", "a\\b"),
    ],
)
def test_what_is_not_as_dicom_has_it_is_left_out_by_name(name: str, text: str) -> None:
    source, wrong = SourceImage.of_elements({**NEEDED, "PatientID": "77", name: text})
    assert wrong == (name,) and source is not None
    assert source.identifiers == {**NEEDED, "PatientID": "77"}
    with pytest.raises(InputError, match="an identifier as DICOM has it"):
        SourceImage({**NEEDED, name: text})


@pytest.mark.parametrize("name", ["StudyInstanceUID", "SOPInstanceUID", "PatientID"])
def test_without_a_decisive_one_none_is_kept(name: str) -> None:
    assert SourceImage.of_elements({**NEEDED, **PATIENT, name: "a\tb"}) == (None, (name,))
    if name in NEEDED:
        assert SourceImage.of_elements({**NEEDED, **PATIENT, name: ""}) == (None, ())


RAW = {**PATIENT, "StudyDate": "20200304", "FrameOfReferenceUID": "1.2.9", "SeriesInstanceUIDRoot": "1.2.8"}


def test_raw_data_have_no_image_and_may_say_little() -> None:
    source, left_out = SourceImage.of_raw_data({**RAW, "StudyInstanceUID": ""})
    assert source is not None and not source.image and left_out == ()
    assert source.identifiers == RAW
    assert SourceImage.from_settings("manifest", source.as_settings()) == source
    assert SourceImage.of_raw_data({"PatientName": ""}) == (None, ())


@pytest.mark.parametrize(
    ("name", "text"),
    [("StudyInstanceUID", "1.2.x"), ("SeriesInstanceUIDRoot", "1." * 40 + "1"), ("PatientName", "x" * 195)],
)
def test_what_is_wrong_in_raw_data_is_left_out_alone(name: str, text: str) -> None:
    source, left_out = SourceImage.of_raw_data({**RAW, name: text})
    assert source is not None and left_out == (name,)
    assert source.identifiers == {key: value for key, value in RAW.items() if key != name}


def test_without_the_patient_s_number_the_name_could_be_somebody_else_s() -> None:
    source, left_out = SourceImage.of_raw_data({**RAW, "PatientID": "7" * 65})
    assert source is not None and left_out == tuple(PATIENT)
    assert not source.identifiers.keys() & PATIENT.keys() and "StudyDate" in source.identifiers


@pytest.mark.parametrize(
    "stored",
    [
        None,
        {"identifiers": NEEDED},
        {"identifiers": NEEDED, "frames": 2, "frame": 3},
        {"identifiers": NEEDED, "frames": 2, "frame": "1"},
        {"identifiers": {**NEEDED, "Diagnosis": "none"}, "frames": 1, "frame": None},
        {"identifiers": {**NEEDED, "PatientID": 77}, "frames": 1, "frame": None},
        {"identifiers": PATIENT, "frames": 1, "frame": None},
        {"identifiers": {**PATIENT, "SOPInstanceUID": "1.2.3"}, "frames": 1, "frame": None, "image": False},
        {"identifiers": PATIENT, "frames": 1, "frame": None, "image": 0},
        {"identifiers": {**NEEDED, "SeriesInstanceUIDRoot": "1.2"}, "frames": 1, "frame": None},
    ],
)
def test_anything_else_is_refused(stored: object) -> None:
    with pytest.raises(InputError):
        SourceImage.from_settings("manifest", stored)
