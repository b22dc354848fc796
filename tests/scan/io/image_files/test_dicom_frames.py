"""Frames of enhanced DICOM files have the scaling, the sizes and the places of their functional groups."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mri_design import ImageStack, InputError, read
from mri_design.scan.geometry import SliceGeometry
from tests.scan.io.image_files.test_dicom import changed

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
    assert stack.card["pixel_mm"] == "1.5 x 2" and "frames" not in stack.card


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
    assert "do not follow each other at the distance of their thickness (5 mm)" in stack.card["frames"]


def test_pixels_of_several_sizes_have_no_size(tmp_path: Path) -> None:
    frames = [group(PixelSpacing=[1.0, 1.0]), group(PixelSpacing=[2.0, 2.0])]
    stack = stack_of(enhanced(tmp_path / "x.dcm", frames))
    assert stack.geometry is None and stack.card["frames"] == "their pixels are not of one size"


def test_groups_of_another_number_of_frames_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="PerFrameFunctionalGroupsSequence: got 3 items; wanted 2"):
        read(enhanced(tmp_path / "x.dcm", [group()] * 3))
