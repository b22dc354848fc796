"""NIfTI images become stacks of images; damaged ones are refused before memory is taken."""

import gzip
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from mri_design.errors import MissingPackageError
from mri_design.formats import ReadLimits
from mri_design.scan import SliceGeometry
from mri_design.scan.geometry import THICKNESS_UNKNOWN
from mri_design.scan.io import read
from mri_design.scan.writing import nifti_bytes
from tests.refusals import refused, refuses

nibabel = pytest.importorskip("nibabel")
VOLUME = np.random.default_rng(0).random((6, 5, 3)).astype(np.float32)
SHAPE_AT, TYPE_AT, SIZES_AT, OFFSET_AT, SLOPE_AT = 40, 70, 80, 108, 112


def saved(path, data, affine=(2.0, 1.5, 5.0, 1.0), unit="", second=False):
    kind = nibabel.Nifti2Image if second else nibabel.Nifti1Image
    made = kind(data, np.diag(affine) if np.ndim(affine) == 1 else affine)
    if unit:
        made.header.set_xyzt_units(unit)
    nibabel.save(made, path)
    return path


def changed(path: Path, place: int, values: bytes) -> Path:
    content = bytearray(path.read_bytes())
    content[place : place + len(values)] = values
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("name", ["head.nii", "head.nii.gz"])
@pytest.mark.parametrize("kind", [np.float32, np.int16, np.complex64])
def test_slices_lie_along_z_and_rows_along_y(tmp_path: Path, name: str, kind: type, second: bool) -> None:
    volume = (100 * VOLUME - 20).astype(kind)
    path = saved(tmp_path / name, volume, second=second)
    if name.endswith("gz"):  # members one after the other, and the zeros that some programs add
        whole = gzip.decompress(path.read_bytes())
        path.write_bytes(gzip.compress(whole[:500]) + gzip.compress(b"") + gzip.compress(whole[500:]) + bytes(1000))
    stack = read(path)
    np.testing.assert_array_equal(stack.images, volume.transpose(2, 1, 0))
    assert stack.name == "head" and stack.geometry is not None and stack.geometry.pixel == (1.5, 2.0)


@pytest.mark.parametrize("thickness", [5.0, 1.0, None])
@pytest.mark.parametrize("description", ["magnitude", "m" * 79])
def test_what_export_writes_is_read_as_it_was(tmp_path: Path, thickness: float | None, description: str) -> None:
    image, geometry, path = VOLUME[..., 0], SliceGeometry((1.5, 2.0), thickness), tmp_path / "x.nii.gz"
    path.write_bytes(nifti_bytes(image, geometry, description))
    stack = read(path)
    np.testing.assert_array_equal(stack.images[0], image)
    assert stack.geometry == geometry
    header = nibabel.load(path).header
    assert header.get_zooms() == (2.0, 1.5, thickness or 1.0)  # a volume has to have some
    assert (THICKNESS_UNKNOWN in bytes(header["descrip"]).decode()) == (thickness is None)
    path.write_bytes(nifti_bytes(image, None, description))
    assert read(path).geometry is None


@pytest.mark.parametrize(
    ("affine", "unit", "pixel"),
    [
        (np.eye(4), "unknown", None),  # what has no sizes
        (np.eye(4), "mm", (1.0, 1.0)),
        (np.diag([0.9, 1.1, 3.0, 1.0]), "unknown", (1.1, 0.9)),
        (np.diag([200.0, 300.0, 200.0, 1.0]), "micron", (0.3, 0.2)),
        (np.diag([0.001, 0.002, 0.003, 1.0]), "mm", None),
        (np.diag([0.001, 0.002, 0.003, 1.0]), "meter", (2.0, 1.0)),
    ],
)
def test_sizes_are_known_where_the_file_has_them(tmp_path, affine, unit, pixel):
    stack = read(saved(tmp_path / "x.nii", VOLUME, affine, unit))
    assert (stack.geometry is None) == (pixel is None)
    assert stack.geometry is None or stack.geometry.pixel == pytest.approx(pixel)


@pytest.mark.parametrize(("axis", "known"), [(0, None), (1, None), (2, ((1.5, 2.0), None))], ids=["x", "y", "z"])
def test_a_size_of_zero_is_not_known_and_nibabel_does_not_talk_about_it(tmp_path, caplog, axis, known):
    stack = read(changed(saved(tmp_path / "x.nii", VOLUME), SIZES_AT + 4 * axis, struct.pack("<f", 0)))
    assert (None if stack.geometry is None else (stack.geometry.pixel, stack.geometry.thickness)) == known
    assert caplog.records == []


def test_places_come_in_the_unit_of_the_sizes(tmp_path: Path) -> None:
    affine, places = np.diag([2.0, 1.5, 5.0, 1.0]), []
    affine[:3, 3] = 10, -20, 30
    for unit, factor in (("mm", 1.0), ("meter", 1e-3)):
        scaled = np.diag([factor, factor, factor, 1.0]) @ affine
        places.append(read(saved(tmp_path / "x.nii", VOLUME, scaled, unit)).geometry)
    first, second = places
    assert first is not None and second is not None and first.placed and second.placed
    np.testing.assert_allclose(second.vectors, first.vectors, atol=1e-4)
    assert (*second.pixel, second.thickness) == pytest.approx((1.5, 2.0, 5.0))


def test_values_are_scaled_and_the_first_of_several_volumes_is_read(tmp_path: Path) -> None:
    counts = np.arange(24, dtype=np.int16).reshape(4, 6)
    path = changed(saved(tmp_path / "counts.nii", counts), SLOPE_AT, struct.pack("<2f", 0.5, 3.0))
    np.testing.assert_allclose(read(path).images[0], 0.5 * counts.T + 3)
    stack = read(saved(tmp_path / "x.nii", np.stack([VOLUME, 2 * VOLUME], axis=-1)))
    np.testing.assert_array_equal(stack.images, VOLUME.transpose(2, 1, 0))
    assert stack.provenance.series["volumes"][1] == (0, 1)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (
            '{"EchoTime": 0.0925, "RepetitionTime": 5.2, "FlipAngle": 120, "ProtocolName": "t2 tse"}',
            {"EchoTime": "92.5", "RepetitionTime": "5200", "FlipAngle": "120", "ProtocolName": "t2 tse"},
        ),
        ('{"EchoTime": "long", "RepetitionTime": true, "FlipAngle": NaN}', None),
        (f'{{"EchoTime": 1{"0" * 400}, "ProtocolName": "a\\\\b"}}', None),
        ("{", None),
        ("[1]", None),
        ("[" * 10**5, None),
        (" " * 2**22 + "{}", None),
    ],
)
def test_a_sidecar_may_say_how_the_images_were_measured(tmp_path, text, known):
    path = saved(tmp_path / "head.nii.gz", np.ones((5, 4, 3), np.float32))
    assert "sidecar" not in read(path).provenance.read_as
    (tmp_path / "head.json").write_text(text)
    found = read(path)
    assert found.provenance.read_as["sidecar"][0] == "head.json"
    assert (None if found.source is None else found.source.identifiers) == known


def lie(place: int, layout: str, *values: float) -> tuple[int, bytes]:
    return place, struct.pack(f"<{layout}", *values)


@pytest.mark.parametrize(
    ("damage", "field"),
    [
        (lie(SHAPE_AT, "4h", 3, 30000, 30000, 3), "dim"),
        *((case, "dim: x") for case in (lie(SHAPE_AT, "4h", 3, -6, 5, 3), lie(SHAPE_AT, "4h", 3, 0, 5, 3))),
        (lie(SHAPE_AT, "2h", 7, 6), "dim"),
        (lie(SHAPE_AT, "4h", 3, 6, 5, 30), "data"),
        (lie(TYPE_AT, "h", 128), "datatype"),
        (lie(TYPE_AT, "h", 999), "header"),
        (lie(OFFSET_AT, "f", 1e9), "vox_offset"),
        *((case, "header") for case in (lie(OFFSET_AT, "f", -5), lie(OFFSET_AT, "f", np.nan))),
        (lie(352 + 4 * 60, "f", np.inf), "data, slice 2"),
        ((352, bytes(4 * 90)), "images"),
    ],
)
def test_lies_of_the_header_are_refused(tmp_path: Path, damage: tuple[int, bytes], field: str) -> None:
    path = changed(saved(tmp_path / "x.nii", VOLUME), *damage)
    refuses(f"x.nii: {field}", read, path)


def test_cut_files_bombs_and_large_images_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "x.nii.gz", VOLUME)
    whole = path.read_bytes()
    sum_of_it = bytearray(whole)
    sum_of_it[-6] ^= 1
    for damaged in (whole[: len(whole) // 2], whole[:-9], whole[:-2], bytes(sum_of_it), whole + b"rest"):
        path.write_bytes(damaged)
        refuses("x.nii.gz: header", read, path)
    bomb = bytearray(gzip.decompress(whole)[:352])
    bomb[SHAPE_AT : SHAPE_AT + 8] = struct.pack("<4h", 3, 4096, 4096, 2)
    path.write_bytes(gzip.compress(bytes(bomb) + bytes(4096 * 4096 * 8), 1))
    refuses("data", read, path)
    refuses("dim: x", read, saved(tmp_path / "y.nii", VOLUME), limits=ReadLimits(max_side=5))


@pytest.mark.parametrize("name", ["head.hdr", "head.img"])
def test_an_image_in_two_files_is_refused_with_what_makes_one(tmp_path: Path, name: str) -> None:
    nibabel.save(nibabel.Nifti1Pair(VOLUME, np.eye(4)), tmp_path / "head.img")
    with refused(name, "nib-convert head.img head.nii"):
        read(tmp_path / name)


def test_without_nibabel_its_name_is_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "x.nii", VOLUME)
    monkeypatch.setitem(sys.modules, "nibabel", None)
    with pytest.raises(MissingPackageError):
        read(path)
