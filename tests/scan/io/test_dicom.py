"""DICOM images become stacks of images, without anything about the patient; damaged ones are refused."""

import io
import shutil
import struct
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mri_design import ImageStack, InputError, ReadLimits, read
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.formats import summary
from mri_design.scan.summary import ImageSummary
from mri_design.scan.writing.dicom import DicomLabels, dicom_bytes

IMAGE = np.random.default_rng(0).random((6, 5))


def changed(path: Path, **elements: Any) -> Path:
    """A sound file with other elements."""
    pydicom = pytest.importorskip("pydicom")
    content = dicom_bytes(IMAGE, SliceGeometry((1.5, 2.0), 5.0), DicomLabels("magnitude", "6 of 6 lines", "a run"))
    file = pydicom.dcmread(io.BytesIO(content))
    for name, value in elements.items():
        if name == "TransferSyntaxUID":
            file.file_meta.TransferSyntaxUID = value
        else:
            setattr(file, name, value)
    file.save_as(path)
    return path


def test_pixels_are_rescaled_and_the_patient_is_left_out(tmp_path: Path) -> None:
    stack = read(changed(tmp_path / "slice.dcm", PatientName="Somebody^Else", PatientID="77"))
    assert isinstance(stack, ImageStack) and stack.images.shape == (1, 6, 5)
    np.testing.assert_allclose(stack.images[0], IMAGE, atol=1e-4)
    assert stack.header["pixel_mm"] == "1.5 x 2" and "noise are simulated" in stack.header["kind"]
    assert "Somebody" not in str(stack.header) and "77" not in str(stack.header)


@pytest.mark.filterwarnings("ignore:The value length")  # pydicom about what the test writes
def test_identifiers_come_along_apart_and_wrong_ones_are_named(tmp_path: Path) -> None:
    path = changed(tmp_path / "slice.dcm", PatientName="Somebody^Else", PatientID="77", StudyDate="20200304")
    stack = read(path)
    assert isinstance(stack, ImageStack) and stack.source is not None
    assert stack.source.identifiers["PatientID"] == "77" and stack.source.identifiers["StudyDate"] == "20200304"
    assert "PatientSex" not in stack.source.identifiers  # it is empty
    stack = read(changed(tmp_path / "other.dcm", PatientID="77", StudyID="7" * 17))
    assert (
        isinstance(stack, ImageStack) and stack.source is not None and "StudyID" in stack.header["identifiers_left_out"]
    )
    stack = read(changed(tmp_path / "third.dcm", PatientID="7" * 65, PatientName="Somebody^Else"))
    assert (
        isinstance(stack, ImageStack)
        and stack.source is None
        and "none, without" in stack.header["identifiers_left_out"]
    )


@pytest.mark.parametrize(
    ("elements", "said"),
    [
        ({"Manufacturer": "Maker", "ManufacturerModelName": "One", "MagneticFieldStrength": 1.5}, "Maker One, 1.5 T"),
        ({"Manufacturer": "Maker", "ManufacturerModelName": ""}, "Maker"),
        ({}, None),  # an image of this package names no maker
    ],
)
def test_the_scanner_is_told_as_far_as_it_is_known(
    tmp_path: Path, elements: dict[str, object], said: str | None
) -> None:
    assert read(changed(tmp_path / "slice.dcm", **elements)).header.get("scanner") == said


def test_frames_are_slices(tmp_path: Path) -> None:
    counts = np.arange(48, dtype=np.uint16).reshape(2, 6, 4)
    scaled = {"RescaleSlope": 2, "RescaleIntercept": -1}
    path = changed(tmp_path / "two.dcm", NumberOfFrames=2, Columns=4, PixelData=counts.tobytes(), **scaled)
    stack = read(path)
    np.testing.assert_array_equal(stack.images, 2.0 * counts - 1)
    assert "no magnitudes" in stack.header["values"]


@pytest.mark.parametrize(
    ("elements", "match"),
    [
        ({"Rows": 60000, "Columns": 60000}, "Rows: got 60000"),
        ({"Rows": 600}, "truncated|bytes"),
        ({"NumberOfFrames": 100000}, "NumberOfFrames"),
        ({"SamplesPerPixel": 3}, "grey pixels"),
        ({"PhotometricInterpretation": "RGB"}, r"PhotometricInterpretation: got RGB; wanted MONOCHROME2.*in colour"),
        ({"PhotometricInterpretation": "PALETTE COLOR"}, "got PALETTE COLOR; wanted MONOCHROME2"),
        ({"PhotometricInterpretation": "MONOCHROME1"}, "got MONOCHROME1; wanted MONOCHROME2.*larger values are darker"),
        ({"PhotometricInterpretation": None}, "PhotometricInterpretation: got none"),
        ({"BitsAllocated": None}, "BitsAllocated: got none"),
        ({"BitsAllocated": 64}, "BitsAllocated"),
        ({"PixelData": bytes(8)}, "DICOM image|bytes"),
        ({"PixelData": bytes(60)}, "all zeros"),
    ],
)
def test_what_is_no_grey_image_is_refused(tmp_path: Path, elements: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        read(changed(tmp_path / "x.dcm", **elements), limits=ReadLimits(max_slices=64))


def test_values_by_a_table_are_refused(tmp_path: Path) -> None:
    table = pytest.importorskip("pydicom").Dataset()
    table.LUTExplanation = "by a table"
    with pytest.raises(InputError, match="ModalityLUTSequence: got a table of values"):
        read(changed(tmp_path / "x.dcm", ModalityLUTSequence=[table]))


def test_a_summary_has_the_range_of_all_frames(tmp_path: Path) -> None:
    counts = np.arange(48, dtype=np.uint16).reshape(2, 6, 4)
    scaled = {"RescaleSlope": 2, "RescaleIntercept": -1}
    path = changed(tmp_path / "two.dcm", NumberOfFrames=2, Columns=4, PixelData=counts.tobytes(), **scaled)
    told, whole = summary(path), read(path)
    assert isinstance(told, ImageSummary) and isinstance(whole, ImageStack)
    assert told.values == (-1, 93) and told.shape == (2, 6, 4) and not told.has_phase
    assert told == ImageSummary.of(replace(whole, header=told.header))
    with pytest.raises(InputError, match="all zeros"):
        summary(changed(tmp_path / "x.dcm", PixelData=bytes(60)))


def test_files_without_pixels_say_what_they_are(tmp_path: Path) -> None:
    pydicom = pytest.importorskip("pydicom")
    path = changed(tmp_path / "x.dcm", SOPClassUID="1.2.840.10008.5.1.4.1.1.4.2")
    file = pydicom.dcmread(path)
    for name in ("PixelData", "SamplesPerPixel", "PhotometricInterpretation", "Rows", "Columns"):
        del file[name]
    file.save_as(path)
    with pytest.raises(InputError, match=r"PixelData: got none: MR Spectroscopy Storage; wanted a DICOM image"):
        read(path)
    file.FloatPixelData = bytes(120)
    file.save_as(path)
    with pytest.raises(InputError, match="PixelData: got pixels in floating point"):
        read(path)


@pytest.mark.parametrize(
    ("syntax", "tool"),
    [
        ("1.2.840.10008.1.2.5", "dcmdrle"),
        ("1.2.840.10008.1.2.4.70", "dcmdjpeg"),
        ("1.2.840.10008.1.2.4.80", "dcmdjpls"),
        ("1.2.840.10008.1.2.4.90", "gdcmconv --raw"),
        ("1.2.840.10008.1.2.4.91", "gdcmconv --raw"),
    ],
)
def test_compressed_pixels_are_refused_with_the_program_that_decodes_them(
    tmp_path: Path, syntax: str, tool: str
) -> None:
    path = _of_syntax(tmp_path / "x.dcm", syntax)
    with pytest.raises(InputError, match=rf"uncompressed pixels. Decompress it first, by `{tool} compressed.dcm"):
        read(path)


def test_a_compression_that_no_program_here_knows_is_refused_all_the_same(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="with a program that knows this transfer syntax"):
        read(_of_syntax(tmp_path / "x.dcm", "1.2.840.10008.1.2.4.100"))


def _of_syntax(path: Path, syntax: str) -> Path:
    """The file with pixels of another transfer syntax, as far as it says: they are no such code."""
    pydicom = pytest.importorskip("pydicom")
    file = pydicom.dcmread(changed(path))
    file.file_meta.TransferSyntaxUID = syntax
    file.PixelData = pydicom.encaps.encapsulate([bytes(60)])
    file["PixelData"].is_undefined_length = True
    file.save_as(path)
    return path


@pytest.mark.slow
def test_the_program_that_is_named_for_run_lengths_makes_a_file_that_is_read(tmp_path: Path) -> None:
    pydicom, tool = pytest.importorskip("pydicom"), shutil.which("dcmdrle")
    if tool is None:
        pytest.skip("DCMTK is not installed")
    path = changed(tmp_path / "plain.dcm")
    before = read(path)
    file = pydicom.dcmread(path)
    file.compress(pydicom.uid.RLELossless)
    file.save_as(tmp_path / "packed.dcm")
    with pytest.raises(InputError, match="dcmdrle"):
        read(tmp_path / "packed.dcm")
    subprocess.run([tool, tmp_path / "packed.dcm", tmp_path / "again.dcm"], check=True)
    np.testing.assert_array_equal(read(tmp_path / "again.dcm").images, before.images)


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    path = changed(tmp_path / "x.dcm")
    whole = path.read_bytes()
    for length in (140, 400, len(whole) - 20):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"x\.dcm"):
            read(path)


def test_an_element_longer_than_memory_is_refused(tmp_path: Path, read_in_child: Callable[..., list]) -> None:
    whole = changed(tmp_path / "slice.dcm").read_bytes()
    first = 132  # the element behind the preamble: a tag, two letters and a length of two bytes
    lie = b"\x02\x00\x02\x00UN\x00\x00" + struct.pack("<I", 2**32 - 16)
    (tmp_path / "lie.dcm").write_bytes(whole[:first] + lie + whole[first:])
    (outcome,) = read_in_child([tmp_path / "lie.dcm"], limit=3 * 2**30)
    assert outcome.kind == "InputError" and "memory" in outcome.message


COUNTS = np.full((2, 6, 4), 100, dtype=np.uint16)
AXIAL, CORONAL = [1, 0, 0, 0, 1, 0], [1, 0, 0, 0, 0, -1]


def group(**elements: Any) -> Any:
    """An item of functional groups, each element in the sequence that the standard has it in."""
    pydicom = pytest.importorskip("pydicom")
    macros = {
        "PixelValueTransformationSequence": ("RescaleSlope", "RescaleIntercept"),
        "PixelMeasuresSequence": ("PixelSpacing", "SliceThickness"),
        "PlanePositionSequence": ("ImagePositionPatient",),
        "PlaneOrientationSequence": ("ImageOrientationPatient",),
    }
    item = pydicom.Dataset()
    for macro, names in macros.items():
        inner = pydicom.Dataset()
        for name in set(names) & set(elements):
            setattr(inner, name, elements[name])
        if len(inner):
            setattr(item, macro, [inner])
    return item


def enhanced(path: Path, frames: list[Any], shared: Any = None, counts: np.ndarray = COUNTS, **elements: Any) -> Path:
    """A file of frames whose own elements say nothing about scaling and sizes."""
    pydicom = pytest.importorskip("pydicom")
    groups: dict[str, Any] = {"PerFrameFunctionalGroupsSequence": frames}
    if shared is not None:
        groups["SharedFunctionalGroupsSequence"] = [shared]
    size = {"NumberOfFrames": len(counts), "Columns": counts.shape[2], "PixelData": counts.tobytes()}
    changed(path, **size, **groups, **elements)
    file = pydicom.dcmread(path)
    for name in ("RescaleSlope", "RescaleIntercept", "PixelSpacing", "SliceThickness"):
        if name not in elements and name in file:
            del file[name]
    file.save_as(path)
    return path


def stack_of(path: Path) -> ImageStack:
    stack = read(path)
    assert isinstance(stack, ImageStack)
    return stack


def test_every_frame_has_its_own_scaling(tmp_path: Path) -> None:
    frames = [group(RescaleSlope=1, RescaleIntercept=0), group(RescaleSlope=10, RescaleIntercept=-5)]
    stack = stack_of(enhanced(tmp_path / "x.dcm", frames))
    assert [np.unique(image).tolist() for image in stack.images] == [[100.0], [995.0]]


def test_frames_of_magnitude_and_phase_are_no_stack(tmp_path: Path) -> None:
    pydicom = pytest.importorskip("pydicom")
    frames = [group(RescaleSlope=1, RescaleIntercept=0) for _ in range(2)]
    for kind, frame in zip(("M", "P"), frames, strict=True):
        of_frame = pydicom.Dataset()
        of_frame.FrameType = ["ORIGINAL", "PRIMARY", kind, "NONE"]
        frame.MRImageFrameTypeSequence = [of_frame]
    with pytest.raises(InputError) as caught:
        read(enhanced(tmp_path / "x.dcm", frames))
    assert caught.value.field.endswith("FrameType") and "dcm2niix" in caught.value.cure


def test_a_frame_s_scaling_goes_before_the_shared_one_and_that_before_the_file_s(tmp_path: Path) -> None:
    frames, shared = [group(), group(RescaleSlope=10)], group(RescaleSlope=2, RescaleIntercept=1)
    stack = stack_of(enhanced(tmp_path / "x.dcm", frames, shared, RescaleSlope=7))
    assert stack.images[:, 0, 0].tolist() == [201.0, 1001.0]


def test_scaling_is_found_in_groups_too_long_to_be_read_with_the_header(tmp_path: Path) -> None:
    many = [group(RescaleSlope=1 + number, ImagePositionPatient=[0, 0, number]) for number in range(800)]
    counts = np.full((800, 6, 4), 3, dtype=np.uint16)
    stack = stack_of(enhanced(tmp_path / "x.dcm", many, counts=counts))
    np.testing.assert_array_equal(stack.images[:, 2, 2], 3.0 * (1 + np.arange(800)))


@pytest.mark.parametrize("step", [5.0, -5.0])
def test_sizes_and_places_come_from_the_groups(tmp_path: Path, step: float) -> None:
    frames = [group(ImagePositionPatient=[-3.0, -6.0, 20 + step * number]) for number in range(2)]
    shared = group(PixelSpacing=[1.5, 2.0], SliceThickness=5.0, ImageOrientationPatient=AXIAL)
    stack = stack_of(enhanced(tmp_path / "x.dcm", frames, shared))
    normal = (0.0, 0.0, float(np.sign(step)))
    place = SliceGeometry((1.5, 2.0), 5.0, (1.0, -1.5, 20.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), normal)
    assert stack.geometry == place
    second = stack.select_slice(1).geometry
    assert second is not None and second.centre == (1.0, -1.5, 20 + step)
    assert stack.header["pixel_mm"] == "1.5 x 2" and "frames" not in stack.header


@pytest.mark.parametrize(
    "second",
    [
        {"ImagePositionPatient": [-3.0, -6.0, 26.0], "ImageOrientationPatient": AXIAL},  # a gap
        {"ImagePositionPatient": [-3.0, -6.0, 20.0], "ImageOrientationPatient": AXIAL},  # the same place
        {"ImagePositionPatient": [-3.0, -6.0, 25.0], "ImageOrientationPatient": CORONAL},
    ],
)
def test_places_that_are_no_stack_are_not_made_up(tmp_path: Path, second: dict[str, Any]) -> None:
    frames = [group(ImagePositionPatient=[-3.0, -6.0, 20.0], ImageOrientationPatient=AXIAL), group(**second)]
    stack = stack_of(enhanced(tmp_path / "x.dcm", frames, group(PixelSpacing=[1.5, 2.0], SliceThickness=5.0)))
    assert stack.geometry is not None and stack.geometry.centre == (1.0, -1.5, 20.0)
    assert stack.select_slice(1).geometry == SliceGeometry((1.5, 2.0), None)
    assert "do not follow each other at the distance of their thickness (5 mm)" in stack.header["frames"]


def test_pixels_of_several_sizes_have_no_size(tmp_path: Path) -> None:
    frames = [group(PixelSpacing=[1.0, 1.0]), group(PixelSpacing=[2.0, 2.0])]
    stack = stack_of(enhanced(tmp_path / "x.dcm", frames))
    assert stack.geometry is None and stack.header["frames"] == "their pixels are not of one size"


def test_groups_of_another_number_of_frames_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="PerFrameFunctionalGroupsSequence: got 3 items; wanted 2"):
        read(enhanced(tmp_path / "x.dcm", [group()] * 3))


def mosaic(path: Path, tiles: np.ndarray, count: int | None, **elements: Any) -> Path:
    """A mosaic of Siemens: tiles (9, row, column) as one image, with how many of them hold a slice."""
    pydicom = pytest.importorskip("pydicom")
    whole = np.block([[tiles[3 * row + column] for column in range(3)] for row in range(3)])
    content = dicom_bytes(whole, SliceGeometry((4.0, 4.0), 3.0), DicomLabels("magnitude", "all lines", "a run"))
    file = pydicom.dcmread(io.BytesIO(content))
    file.ImageType = ["ORIGINAL", "PRIMARY", "M", "ND", "MOSAIC"]
    if count is not None:
        file.private_block(0x0019, "SIEMENS MR HEADER", create=True).add_new(0x0A, "US", count)
    for name, value in elements.items():
        setattr(file, name, value)
    file.save_as(path)
    return path


@pytest.mark.parametrize(
    ("count", "elements"),
    [(7, {}), (None, {"AcquisitionMatrix": [8, 0, 0, 8]}), (7, {"SpacingBetweenSlices": "6"})],
    ids=["counted", "by the matrix", "with gaps"],
)
def test_mosaics_are_taken_apart(tmp_path: Path, count: int | None, elements: dict[str, Any]) -> None:
    tiles = np.random.default_rng(2).random((9, 8, 8)) * (np.arange(9) < 7)[:, None, None]
    path = mosaic(tmp_path / "mosaic.dcm", tiles, count, **elements)
    stack, told = read(path), summary(path)
    assert isinstance(stack, ImageStack) and isinstance(told, ImageSummary)
    assert stack.images.shape == told.shape == (7, 8, 8)
    np.testing.assert_allclose(stack.images, tiles[:7], atol=1e-3)
    assert stack.geometry is not None and stack.geometry.pixel == (4, 4)
    assert stack.geometry.thickness == (6 if elements.get("SpacingBetweenSlices") else 3)


@pytest.mark.parametrize("count", [None, 0, 17])
def test_mosaics_that_do_not_say_their_slices_are_refused(tmp_path: Path, count: int | None) -> None:
    path = mosaic(tmp_path / "mosaic.dcm", np.ones((9, 8, 8)), count)
    with pytest.raises(InputError) as caught:
        read(path)
    assert caught.value.field.endswith("ImageType") and "dcm2niix" in caught.value.cure


@pytest.mark.parametrize("elements", [{"PixelSpacing": [0.001, 0.001]}, {"SliceThickness": "5000"}])
def test_sizes_that_cannot_be_count_as_unknown(tmp_path: Path, elements: dict[str, Any]) -> None:
    stack = read(changed(tmp_path / "slice.dcm", **elements))
    assert isinstance(stack, ImageStack) and "impossible_sizes" in stack.header
    assert stack.geometry is None or stack.geometry.thickness is None


def test_times_that_cannot_be_are_left_out(tmp_path: Path) -> None:
    stack = read(changed(tmp_path / "slice.dcm", RepetitionTime="0.002", EchoTime="4"))
    assert isinstance(stack, ImageStack) and stack.source is not None
    assert "RepetitionTime" in stack.header["identifiers_left_out"] and "EchoTime" in stack.source.identifiers
