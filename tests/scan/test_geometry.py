"""Where a slice lies and whose image it is: sizes, places, directions and identifiers, and what makes no sense."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mri_design import InputError
from mri_design.scan import SliceGeometry, SourceImage, around, stacked
from tests.refusals import refuses

AXIAL = ((10.0, 20.0, 30.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))


def _turned() -> SliceGeometry:
    """A slice with all three directions oblique."""
    q, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))
    return SliceGeometry((1.5, 2.0), 5.0, (10.0, -20.0, 30.0), *map(tuple, q))


@pytest.mark.parametrize("shape", [(12, 16), (13, 15)])
def test_the_affine_leads_the_middle_pixel_to_the_centre_and_steps_along_the_directions(shape: tuple[int, int]) -> None:
    place = _turned()
    affine = place.affine(shape)
    to_ras = np.diag([-1.0, -1.0, 1.0])
    middle = affine @ [shape[1] // 2, shape[0] // 2, 0, 1]
    np.testing.assert_allclose(to_ras @ middle[:3], place.centre, atol=1e-9)
    np.testing.assert_allclose(to_ras @ affine[:3, 0], 2.0 * np.array(place.read), atol=1e-12)
    np.testing.assert_allclose(to_ras @ affine[:3, 1], 1.5 * np.array(place.phase), atol=1e-12)
    np.testing.assert_allclose(to_ras @ affine[:3, 2], 5.0 * np.array(place.normal), atol=1e-12)
    for thickness in (5.0, None):  # without a place
        affine = SliceGeometry((1.5, 2.0), thickness).affine((4, 4))
        np.testing.assert_array_equal(np.abs(np.diag(affine)), [2.0, 1.5, thickness or 1.0, 1.0])


@pytest.mark.parametrize(
    "parts", [((1, 0), 1), ((1, 1), math.nan), ((1, 1), 1, (0, 0, 0)), ((1, 1), 1, AXIAL[0], AXIAL[1], *AXIAL[1:3])]
)
def test_sizes_and_places_that_cannot_be_are_refused(parts: Any) -> None:
    with pytest.raises(InputError):
        SliceGeometry(*parts)


def test_headers_give_as_much_as_makes_sense() -> None:
    assert SliceGeometry.of_header((math.nan, 1.0), 1.0, AXIAL) is None
    assert SliceGeometry.of_header((1.0, 2.0), 3.0, [(0.0, 0.0, 0.0)] * 4) == SliceGeometry((1.0, 2.0), 3.0)
    assert SliceGeometry.of_header((1.0, 2.0), 3.0, AXIAL) == SliceGeometry((1.0, 2.0), 3.0, *AXIAL)
    assert SliceGeometry.of_header((1.0, 2.0), math.nan) == SliceGeometry((1.0, 2.0), None)


def test_slices_of_a_stack_follow_along_the_normal_and_a_field_of_view_changes_the_pixels_alone() -> None:
    later = SliceGeometry((1.0, 2.0), 3.0, *AXIAL).slice_after(2)
    assert later == SliceGeometry((1.0, 2.0), 3.0, (10.0, 20.0, 36.0), *AXIAL[1:])
    assert SliceGeometry((1.0, 2.0), None, *AXIAL).slice_after(1) == SliceGeometry((1.0, 2.0), None)
    assert SliceGeometry((1.0, 2.0), 3.0).slice_after(1) == SliceGeometry((1.0, 2.0), 3.0)
    place = _turned().with_field_of_view((0.24, 0.32), (12, 16))
    assert place.pixel == pytest.approx((20.0, 20.0)) and place.centre == _turned().centre


def test_slices_around_one_are_those_above_and_below_in_whichever_order_they_were_measured() -> None:
    first = _turned()
    interleaved = [first.slice_after(height) for height in (0, 2, 4, 1, 3)]
    for number, wanted in (
        (3, [{0: 0.5, 1: 0.5}, {4: 1}]),
        (0, [{3: 1}, {1: 1}]),
        (1, [{3: 0.5, 4: 0.5}, {0: 0.5, 2: 0.5}]),
    ):
        for found, pair in zip(around(dict(enumerate(interleaved)), number, 2), wanted, strict=True):
            assert found == pytest.approx(pair)
    assert around(dict(enumerate([None, *interleaved[1:]])), 3, 1) == [{2: 0.5, 4: 0.5}]
    uneven = [first, first.slice_after(1), first.slice_after(4)]
    assert around(dict(enumerate(uneven)), 1, 1)[0] == pytest.approx({0: 0.75, 2: 0.25})
    _, phase, read, normal = first.vectors  # those in other directions and beside one are not around it
    aside = tuple(np.add(first.slice_after(1).centre, 30 * phase))
    places = [first, first.slice_after(3), replace(first.slice_after(1), centre=aside)]
    crossed = replace(first.slice_after(2), phase=tuple(normal), read=tuple(read), normal=tuple(-phase))
    assert around(dict(enumerate([*places, crossed])), 0, 3) == [{1: 1.0}]


NEEDED = {"StudyInstanceUID": "1.2.3", "SOPClassUID": "1.2.840.10008.5.1.4.1.1.4", "SOPInstanceUID": "1.2.3.4"}
PATIENT = {"PatientName": "Müller^Eva", "PatientID": "77 b", "PatientBirthDate": "19800102", "PatientSex": "F"}
RAW = {**PATIENT, "StudyDate": "20200304", "FrameOfReferenceUID": "1.2.9", "SeriesInstanceUIDRoot": "1.2.8"}


def test_identifiers_are_those_of_the_header() -> None:
    source, wrong = SourceImage.of_elements({**NEEDED, **PATIENT, "StudyID": ""}, frames=3)
    assert source is not None and not wrong
    assert source.identifiers == {**NEEDED, **PATIENT}
    third = source.of_frame(2)
    assert third.frame == 3
    assert SourceImage(NEEDED).of_frame(0) == SourceImage(NEEDED)
    raw, left_out = SourceImage.of_elements({**RAW, "StudyInstanceUID": ""}, image=False)
    assert raw is not None and not raw.image and left_out == () and raw.identifiers == RAW
    assert SourceImage.of_elements({"PatientName": ""}, image=False) == (None, ())


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
    refuses(name, SourceImage, {**NEEDED, name: text})
    raw, left_out = SourceImage.of_elements({**RAW, name: text}, image=False)
    assert raw is not None and left_out == (name,)
    assert raw.identifiers == {key: value for key, value in RAW.items() if key != name}


@pytest.mark.parametrize("name", ["StudyInstanceUID", "SOPInstanceUID", "PatientID"])
def test_without_a_decisive_one_none_is_kept(name: str) -> None:
    assert SourceImage.of_elements({**NEEDED, **PATIENT, name: "a\tb"}) == (None, (name,))
    if name in NEEDED:
        assert SourceImage.of_elements({**NEEDED, **PATIENT, name: ""}) == (None, ())
    raw, left_out = SourceImage.of_elements(
        {**RAW, "PatientID": "7" * 65}, image=False
    )  # the name could be somebody else's
    assert raw is not None and left_out == tuple(PATIENT)
    assert not raw.identifiers.keys() & PATIENT.keys() and "StudyDate" in raw.identifiers


@pytest.mark.parametrize(
    "stored",
    [
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
def test_other_identifiers_are_refused(stored: Any) -> None:
    with pytest.raises(InputError):
        SourceImage(**stored)


def test_without_places_the_numbers_of_slices_order_them() -> None:
    unplaced = SliceGeometry((2.0, 3.0), 5.0)
    geometry, order = stacked([unplaced] * 3, (5, 1, 3))
    assert geometry.thickness == 10.0 and order == [1, 2, 0] and not geometry.placed
    with pytest.raises(InputError):
        stacked([unplaced] * 3, (0, 1, 5))
