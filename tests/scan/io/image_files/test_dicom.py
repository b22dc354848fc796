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
    assert stack.card["pixel_mm"] == "1.5 x 2" and "noise are simulated" in stack.card["kind"]
    assert "Somebody" not in str(stack.card) and "77" not in str(stack.card)


@pytest.mark.filterwarnings("ignore:The value length")  # pydicom about what the test writes
def test_identifiers_come_along_apart_and_wrong_ones_are_named(tmp_path: Path) -> None:
    path = changed(tmp_path / "slice.dcm", PatientName="Somebody^Else", PatientID="77", StudyDate="20200304")
    stack = read(path)
    assert isinstance(stack, ImageStack) and stack.source is not None
    assert stack.source.identifiers["PatientID"] == "77" and stack.source.identifiers["StudyDate"] == "20200304"
    assert "PatientSex" not in stack.source.identifiers  # it is empty
    stack = read(changed(tmp_path / "other.dcm", PatientID="77", StudyID="7" * 17))
    assert (
        isinstance(stack, ImageStack) and stack.source is not None and "StudyID" in stack.card["identifiers_left_out"]
    )
    stack = read(changed(tmp_path / "third.dcm", PatientID="7" * 65, PatientName="Somebody^Else"))
    assert (
        isinstance(stack, ImageStack) and stack.source is None and "none, without" in stack.card["identifiers_left_out"]
    )


def test_frames_are_slices(tmp_path: Path) -> None:
    counts = np.arange(48, dtype=np.uint16).reshape(2, 6, 4)
    scaled = {"RescaleSlope": 2, "RescaleIntercept": -1}
    path = changed(tmp_path / "two.dcm", NumberOfFrames=2, Columns=4, PixelData=counts.tobytes(), **scaled)
    stack = read(path)
    np.testing.assert_array_equal(stack.images, 2.0 * counts - 1)
    assert "no magnitudes" in stack.card["values"]


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


def test_an_outline_has_the_range_of_all_frames(tmp_path: Path) -> None:
    counts = np.arange(48, dtype=np.uint16).reshape(2, 6, 4)
    scaled = {"RescaleSlope": 2, "RescaleIntercept": -1}
    path = changed(tmp_path / "two.dcm", NumberOfFrames=2, Columns=4, PixelData=counts.tobytes(), **scaled)
    told, whole = summary(path), read(path)
    assert isinstance(told, ImageSummary) and isinstance(whole, ImageStack)
    assert told.values == (-1, 93) and told.shape == (2, 6, 4) and not told.has_phase
    assert told == ImageSummary.of(replace(whole, card=told.card))
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
