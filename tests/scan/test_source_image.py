"""Identifiers of a DICOM image: each in its form, none alone that would mean somebody else."""

import pytest

from mri_design.errors import InputError
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
    ],
)
def test_anything_else_is_refused(stored: object) -> None:
    with pytest.raises(InputError):
        SourceImage.from_settings("manifest", stored)
