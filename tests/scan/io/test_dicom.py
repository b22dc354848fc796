"""DICOM images become stacks of images, without anything about the patient; damaged ones are refused."""

import io
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mri_design.formats import ReadLimits
from mri_design.scan import SliceGeometry
from mri_design.scan.io import read
from mri_design.scan.writing import DicomLabels, dicom_bytes
from tests.refusals import refused

pydicom = pytest.importorskip("pydicom")
IMAGE = np.random.default_rng(0).random((6, 5))
PLACE = SliceGeometry((1.5, 2.0), 5.0)


def changed(path: Path, image: np.ndarray = IMAGE, place: SliceGeometry = PLACE, **elements: Any) -> Path:
    """A sound file with other elements; those that are ... are left out."""
    file = pydicom.dcmread(io.BytesIO(dicom_bytes(image, place, DicomLabels("magnitude", "all lines", "a run"))))
    for name, value in elements.items():
        if value is ...:
            if name in file:
                del file[name]
        elif name == "TransferSyntaxUID":
            file.file_meta.TransferSyntaxUID = value
        else:
            setattr(file, name, value)
    file.save_as(path)
    return path


PATIENT = {"PatientName": "Somebody^Else", "PatientID": "77", "StudyDate": "20200304"}


def test_pixels_are_rescaled_and_the_patient_comes_along_apart(tmp_path: Path) -> None:
    maker = {"Manufacturer": "Maker", "ManufacturerModelName": "One", "MagneticFieldStrength": 1.5}
    stack = read(changed(tmp_path / "slice.dcm", **PATIENT, **maker, RepetitionTime="0.002", EchoTime="4"))
    assert (
        stack.header["scanner"] == "Maker One, 1.5 T"
        and "RepetitionTime" in stack.provenance.left_out["identifiers_left_out"]
    )
    np.testing.assert_allclose(stack.images, IMAGE[None], atol=1e-4)
    assert stack.geometry is not None and stack.geometry.pixel == (1.5, 2.0)
    assert "Somebody" not in str(stack.header) and "77" not in str(stack.header)
    assert stack.source is not None and PATIENT.items() <= stack.source.identifiers.items()
    assert "PatientSex" not in stack.source.identifiers  # it is empty


def test_frames_are_slices(tmp_path: Path) -> None:
    counts = np.arange(48, dtype=np.uint16).reshape(2, 6, 4)
    scaled = {"RescaleSlope": 2, "RescaleIntercept": -1}
    path = changed(tmp_path / "two.dcm", NumberOfFrames=2, Columns=4, PixelData=counts.tobytes(), **scaled)
    stack = read(path)
    np.testing.assert_array_equal(stack.images, 2.0 * counts - 1)


COUNTS = np.full((2, 6, 4), 100, dtype=np.uint16)
AXIAL, CORONAL = [1, 0, 0, 0, 1, 0], [1, 0, 0, 0, 0, -1]
MACROS = {
    "PixelValueTransformationSequence": ("RescaleSlope", "RescaleIntercept"),
    "PixelMeasuresSequence": ("PixelSpacing", "SliceThickness"),
    "PlanePositionSequence": ("ImagePositionPatient",),
    "PlaneOrientationSequence": ("ImageOrientationPatient",),
    "MRImageFrameTypeSequence": ("FrameType",),
}


def group(**elements: Any) -> Any:
    """An item of functional groups, each element in the sequence that the standard has it in."""
    item = pydicom.Dataset()
    for macro, names in MACROS.items():
        inner = pydicom.Dataset()
        for name in set(names) & set(elements):
            setattr(inner, name, elements[name])
        if len(inner):
            setattr(item, macro, [inner])
    return item


def enhanced(path: Path, frames: list[Any], shared: Any = None, counts: np.ndarray = COUNTS, **elements: Any) -> Path:
    """A file of frames whose own elements say nothing about scaling and sizes."""
    groups: dict[str, Any] = {"PerFrameFunctionalGroupsSequence": frames}
    if shared is not None:
        groups["SharedFunctionalGroupsSequence"] = [shared]
    size = {"NumberOfFrames": len(counts), "Columns": counts.shape[2], "PixelData": counts.tobytes()}
    without = dict.fromkeys(("RescaleSlope", "RescaleIntercept", "PixelSpacing", "SliceThickness"), ...)
    return changed(path, **size, **groups, **(without | elements))


def of_syntax(path: Path, syntax: str) -> Path:
    """The file with pixels of another transfer syntax, as far as it says: they are no such code."""
    file = pydicom.dcmread(changed(path))
    file.file_meta.TransferSyntaxUID = syntax
    file.PixelData = pydicom.encaps.encapsulate([bytes(60)])
    file["PixelData"].is_undefined_length = True
    file.save_as(path)
    return path


def lut() -> Any:
    table = pydicom.Dataset()
    table.LUTExplanation = "by a table"
    return [table]


SYNTAX = "1.2.840.10008.1.2"
NO_PIXELS = dict.fromkeys(("PixelData", "SamplesPerPixel", "PhotometricInterpretation", "Rows", "Columns"), ...)


@pytest.mark.parametrize(
    ("make", "field", "cure"),
    [
        *(
            (lambda path, elements=elements: changed(path, **elements), field, cure)
            for elements, field, cure in (
                ({"Rows": 60000, "Columns": 60000}, "Rows", ""),
                ({"Rows": 600}, "PixelData", "truncated"),
                ({"NumberOfFrames": 100000}, "NumberOfFrames", ""),
                ({"SamplesPerPixel": 3}, "SamplesPerPixel", ""),
                ({"PhotometricInterpretation": "RGB"}, "PhotometricInterpretation", "colour"),
                ({"PhotometricInterpretation": "PALETTE COLOR"}, "PhotometricInterpretation", ""),
                ({"PhotometricInterpretation": "MONOCHROME1"}, "PhotometricInterpretation", "MONOCHROME2"),
                ({"PhotometricInterpretation": None}, "PhotometricInterpretation", ""),
                ({"BitsAllocated": None}, "BitsAllocated", ""),
                ({"BitsAllocated": 64}, "BitsAllocated", ""),
                ({"PixelData": bytes(8)}, "elements", ""),
                ({"PixelData": bytes(60)}, "images", ""),
                ({"ModalityLUTSequence": lut()}, "ModalityLUTSequence", ""),
                ({"SOPClassUID": "1.2.840.10008.5.1.4.1.1.4.2", **NO_PIXELS}, "PixelData", "spectra"),
                (NO_PIXELS | {"TransferSyntaxUID": "1.2.3.4"}, "PixelData", "spectra"),
                (NO_PIXELS | {"FloatPixelData": bytes(120)}, "PixelData", ""),
            )
        ),
        *(
            (lambda path, syntax=syntax: of_syntax(path, f"{SYNTAX}.{syntax}"), "TransferSyntaxUID", program)
            for syntax, program in (
                ("5", "`dcmdrle "),
                ("4.70", "`dcmdjpeg "),
                ("4.80", "`dcmdjpls "),
                ("4.90", "`gdcmconv --raw "),
                ("4.91", "`gdcmconv --raw "),
                ("4.100", ""),
            )
        ),
        (lambda path: changed(path, ImageType=["ORIGINAL", "PRIMARY", "M", "ND", "MOSAIC"]), "ImageType", "dcm2niix"),
        (
            lambda path: enhanced(path, [group(FrameType=["ORIGINAL", "PRIMARY", kind, "NONE"]) for kind in "MP"]),
            "FrameType",
            "dcm2niix",
        ),
        (lambda path: enhanced(path, [group()] * 3), "PerFrameFunctionalGroupsSequence", ""),
    ],
)
def test_what_is_no_grey_image_is_refused(tmp_path: Path, make: Callable[[Path], Path], field: str, cure: str) -> None:
    path = make(tmp_path / "x.dcm")
    with refused(f"x.dcm: {field}", cure):
        read(path, limits=ReadLimits(max_slices=64))


def test_cut_files_and_elements_longer_than_memory_are_refused(tmp_path, read_in_child):
    whole, first = changed(tmp_path / "x.dcm").read_bytes(), 132
    # Behind the preamble: a tag, two letters and a length of two bytes.
    lie = whole[:first] + b"\x02\x00\x02\x00UN\x00\x00" + struct.pack("<I", 2**32 - 16) + whole[first:]
    damaged = [lie, *(whole[:length] for length in (140, 400, len(whole) - 20))]
    paths = [tmp_path / f"{number}.dcm" for number in range(len(damaged))]
    for path, content in zip(paths, damaged, strict=True):
        path.write_bytes(content)
    for outcome in read_in_child(paths, limit=3 * 2**30):
        assert outcome.kind == "InputError" and outcome.field.startswith(str(outcome.path)), outcome


def test_the_scaling_of_a_frame_goes_before_the_shared_one_and_that_before_the_file_s(tmp_path: Path) -> None:
    frames, shared = [group(), group(RescaleSlope=10)], group(RescaleSlope=2, RescaleIntercept=1)
    stack = read(enhanced(tmp_path / "x.dcm", frames, shared, RescaleSlope=7))
    assert stack.images[:, 0, 0].tolist() == [201.0, 1001.0]
    # groups too long to be read with the header
    many = [group(RescaleSlope=1 + number, ImagePositionPatient=[0, 0, number]) for number in range(800)]
    stack = read(enhanced(tmp_path / "x.dcm", many, counts=np.full((800, 6, 4), 3, dtype=np.uint16)))
    np.testing.assert_array_equal(stack.images[:, 2, 2], 3.0 * (1 + np.arange(800)))


@pytest.mark.parametrize(
    ("step", "orientation", "follows"),
    [(5.0, AXIAL, True), (-5.0, AXIAL, True), (6.0, AXIAL, False), (0.0, AXIAL, False), (5.0, CORONAL, False)],
    ids=["above", "below", "a gap", "the same place", "another direction"],
)
def test_places_come_from_the_groups_and_none_is_made_up(tmp_path, step, orientation, follows):
    frames = [
        group(ImagePositionPatient=[-3.0, -6.0, 20 + step * number], ImageOrientationPatient=directions)
        for number, directions in enumerate((AXIAL, orientation))
    ]
    stack = read(enhanced(tmp_path / "x.dcm", frames, group(PixelSpacing=[1.5, 2.0], SliceThickness=5.0)))
    second = stack.select_slice(1).geometry
    assert stack.geometry is not None and stack.geometry.centre == (1.0, -1.5, 20.0)
    assert ("frames" in stack.provenance.read_as) != follows
    if follows:
        normal = (0.0, 0.0, float(np.sign(step)))
        assert stack.geometry == replace(
            PLACE, centre=(1.0, -1.5, 20.0), phase=(0, 1, 0), read=(1, 0, 0), normal=normal
        )
        assert second is not None and second.centre == (1.0, -1.5, 20 + step)
    else:
        assert second == SliceGeometry((1.5, 2.0), None)


def test_sizes_that_differ_or_cannot_be_count_as_unknown(tmp_path: Path) -> None:
    frames = [group(PixelSpacing=[1.0, 1.0]), group(PixelSpacing=[2.0, 2.0])]
    stack = read(enhanced(tmp_path / "x.dcm", frames))
    assert stack.geometry is None and "frames" in stack.provenance.read_as
    for elements, known in (({"PixelSpacing": [0.001, 0.001]}, False), ({"SliceThickness": "5000"}, True)):
        stack = read(changed(tmp_path / "slice.dcm", **elements))
        assert "impossible_sizes" in stack.provenance.left_out and (stack.geometry is not None) == known
        assert stack.geometry is None or stack.geometry.thickness is None
    stack = read(changed(tmp_path / "slice.dcm", SliceThickness="0"))  # is none
    assert not stack.provenance.left_out and stack.geometry == replace(PLACE, thickness=None)
