"""What the header says beside the places of readouts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mri_design.scan.io import DEFAULT_LIMITS, MrdHeader, parse_mrd_header


def header(before: str = "", behind: str = "", fov: tuple[float, ...] = (16, 12, 1)) -> MrdHeader:
    """A small header with more elements before and behind its encoding."""
    lengths = "".join(f"<{axis}>{length}</{axis}>" for axis, length in zip("xyz", fov, strict=True))
    space = f"<matrixSize><x>16</x><y>12</y><z>1</z></matrixSize><fieldOfView_mm>{lengths}</fieldOfView_mm>"
    encoding = f"<encodedSpace>{space}</encodedSpace><reconSpace>{space}</reconSpace>"
    text = f'<ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD">{before}<encoding>{encoding}</encoding>{behind}</ismrmrdHeader>'
    return parse_mrd_header("header", text, DEFAULT_LIMITS)


SUBJECT = "<patientName>Doe^Jo</patientName><patientID>77</patientID><patientBirthdate>1980-01-02</patientBirthdate>"
STUDY = (
    "<studyDate>2020-03-04+01:00</studyDate><studyTime>23:59:07.5Z</studyTime><studyID>5</studyID>"
    "<accessionNumber>12</accessionNumber><studyInstanceUID>1.2.3</studyInstanceUID>"
)
MEASUREMENT = (
    "<patientPosition>HFS</patientPosition><protocolName>t2_tse</protocolName>"
    "<seriesInstanceUIDRoot>1.2.840.7</seriesInstanceUIDRoot><frameOfReferenceUID>1.2.9</frameOfReferenceUID>"
)


def said(subject: str = "", study: str = "", measurement: str = "") -> str:
    """Elements about patient, study and measurement."""
    parts = {"subject": subject, "study": study, "measurement": measurement}
    return "".join(f"<{name}Information>{text}</{name}Information>" for name, text in parts.items())


def test_patient_study_and_measurement_are_told_as_dicom_has_them() -> None:
    told = header(said(SUBJECT + "<patientGender>F</patientGender>", STUDY, MEASUREMENT))
    assert told.source is not None and not told.source.image and told.notes == {}
    assert told.source.identifiers == {
        "PatientName": "Doe^Jo",
        "PatientID": "77",
        "PatientBirthDate": "19800102",
        "PatientSex": "F",
        "StudyInstanceUID": "1.2.3",
        "StudyDate": "20200304",
        "StudyTime": "235907.5",
        "StudyID": "5",
        "AccessionNumber": "12",
        "FrameOfReferenceUID": "1.2.9",
        "ProtocolName": "t2_tse",
        "SeriesInstanceUIDRoot": "1.2.840.7",
    }
    assert header().source is None


@pytest.mark.parametrize(
    ("element", "name"),
    [
        ("<studyInstanceUID>1.2.three</studyInstanceUID>", "StudyInstanceUID"),
        (f"<studyID>{'x' * 10_000}</studyID>", "StudyID"),
        ("<studyDate>2020-13-04</studyDate>", "StudyDate"),
        ("<studyTime>25:00:00</studyTime>", "StudyTime"),
    ],
)
def test_a_wrong_identifier_is_left_out_with_a_note(element: str, name: str) -> None:
    told = header(said(SUBJECT, element))
    assert told.source is not None and set(told.source.identifiers) == {"PatientName", "PatientID", "PatientBirthDate"}
    assert told.notes["identifiers_left_out"].startswith(name)


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [
        ("unknownSizes", "x y z", (False, False, False)),
        ("unknownSizes", "z", (True, True, False)),
        ("unknownSizes", "x and y", (True, True, True)),
        ("unknownSizes", "", (True, True, True)),
        ("comment", "x y z", (True, True, True)),
    ],
)
def test_lengths_that_the_header_marks_are_not_known(name: str, value: str, known: tuple[bool, ...]) -> None:
    parameter = f"<userParameterString><name>{name}</name><value>{value}</value></userParameterString>"
    (encoding,) = header(behind=f"<userParameters>{parameter}</userParameters>").encodings
    for space in (encoding.encoded, encoding.reconstructed):
        assert tuple(not math.isnan(length) for length in space.field_of_view) == known


@pytest.mark.parametrize(
    ("times", "contrast", "wanted"),
    [
        (("3",), 1, "3"),
        (("3", "5.5"), 0, "3"),
        (("3", "5.5"), 1, "5.5"),
        (("3", "5.5"), 2, None),
        (("3", "x"), 1, None),
    ],
)
def test_the_echo_time_is_that_of_the_contrast(times: tuple[str, ...], contrast: int, wanted: str | None) -> None:
    echoes = "".join(f"<TE>{time}</TE>" for time in times)
    got = header(behind=f"<sequenceParameters><TR>10</TR>{echoes}</sequenceParameters>").source_of(contrast)
    assert got.identifiers == {"RepetitionTime": "10"} | ({"EchoTime": wanted} if wanted else {})


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        ((0.256, 0.256, 0.005), (256, 256, 5)),
        ((25.0, 20.0, 0.5), (25, 20, 0.5)),
        ((256, 256, 0.01), (256, 256, np.nan)),
        ((1e5, 256, 5), (np.nan, 256, 5)),
        ((1.0, 3.0, 5.0), (np.nan, 3, 5)),
    ],
)
def test_fields_of_view_that_cannot_be_are_metres_or_unknown(said: tuple[float, ...], taken: tuple[float, ...]) -> None:
    told = header(fov=said)
    np.testing.assert_allclose(told.encodings[0].encoded.field_of_view, taken)
    assert ("field_of_view_in_file" in told.notes) == (said != taken)
