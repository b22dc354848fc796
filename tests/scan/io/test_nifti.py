"""NIfTI images become stacks of images; damaged ones are refused before memory is taken."""

import gzip
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from mri_design import ImageStack, InputError, ReadLimits, read
from mri_design.errors import MissingPackageError
from mri_design.experiment.description import measured_how
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.formats import summary
from mri_design.scan.summary import ImageSummary
from mri_design.scan.writing.nifti import nifti_bytes

VOLUME = np.random.default_rng(0).random((6, 5, 3)).astype(np.float32)
SHAPE_AT, TYPE_AT, OFFSET_AT, SLOPE_AT = 40, 70, 108, 112


def saved(path: Path, data: np.ndarray, *, second: bool = False) -> Path:
    nibabel = pytest.importorskip("nibabel")
    made = (nibabel.Nifti2Image if second else nibabel.Nifti1Image)(data, np.diag([2.0, 1.5, 5.0, 1.0]))
    nibabel.save(made, path)
    return path


def changed(path: Path, place: int, values: bytes) -> Path:
    content = bytearray(path.read_bytes())
    content[place : place + len(values)] = values
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("name", ["head.nii", "head.nii.gz"])
def test_slices_lie_along_z_and_rows_along_y(tmp_path: Path, name: str, second: bool) -> None:
    stack = read(saved(tmp_path / name, VOLUME, second=second))
    assert isinstance(stack, ImageStack) and stack.name == "head"
    np.testing.assert_array_equal(stack.images, VOLUME.transpose(2, 1, 0))
    assert stack.header["pixel_mm"] == "2 x 1.5 x 5" and "noise are simulated" in stack.header["kind"]


def test_what_export_writes_is_read_as_it_was(tmp_path: Path) -> None:
    pytest.importorskip("nibabel")
    image = VOLUME[..., 0]
    (tmp_path / "x.nii.gz").write_bytes(nifti_bytes(image, SliceGeometry((1.5, 2.0), 5.0), "magnitude"))
    np.testing.assert_array_equal(read(tmp_path / "x.nii.gz").images[0], image)


@pytest.mark.parametrize(
    ("affine", "unit", "pixel"),
    [
        (np.eye(4), "unknown", None),  # what nobody gave sizes
        (np.eye(4), "mm", (1.0, 1.0)),
        (np.diag([0.9, 1.1, 3.0, 1.0]), "unknown", (1.1, 0.9)),
        (np.diag([200.0, 300.0, 200.0, 1.0]), "micron", (0.3, 0.2)),
        (np.diag([0.001, 0.002, 0.003, 1.0]), "mm", None),
        (np.diag([0.001, 0.002, 0.003, 1.0]), "meter", (2.0, 1.0)),
    ],
)
def test_sizes_that_nobody_gave_are_not_known(
    tmp_path: Path, affine: np.ndarray, unit: str, pixel: tuple[float, float] | None
) -> None:
    nibabel = pytest.importorskip("nibabel")
    made = nibabel.Nifti1Image(VOLUME, affine)
    made.header.set_xyzt_units(unit)
    nibabel.save(made, tmp_path / "x.nii")
    stack = read(tmp_path / "x.nii")
    assert isinstance(stack, ImageStack)
    assert (stack.geometry is None) == (pixel is None) == ("pixel_mm" not in stack.header)
    assert stack.geometry is None or stack.geometry.pixel == pytest.approx(pixel)


def test_a_sidecar_tells_how_the_images_were_measured(tmp_path: Path) -> None:
    path = saved(tmp_path / "head_T2w.nii.gz", np.ones((5, 4, 3), np.float32))
    assert summary(path).source is None
    beside = tmp_path / "head_T2w.json"
    beside.write_text('{"EchoTime": 0.0925, "RepetitionTime": 5.2, "FlipAngle": 120, "ProtocolName": "t2 tse"}')
    found = summary(path)
    assert measured_how(found.source) == {"sequence": "t2 tse, TE 92.5 ms, TR 5200 ms, flip 120 degrees"}
    assert found.header["sidecar"] == "head_T2w.json" and read(path).source == found.source


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"EchoTime": "long", "RepetitionTime": true, "FlipAngle": NaN}', "head.json"),
        (f'{{"EchoTime": 1{"0" * 400}, "ProtocolName": "a\\\\b"}}', "head.json"),
        ("{", "head.json was not read"),
        ("[1]", "head.json was not read"),
        ("[" * 10**5, "head.json was not read"),
        (" " * 2**22 + "{}", "head.json was not read"),
    ],
)
def test_a_sidecar_that_says_nothing_of_use_hinders_nobody(tmp_path: Path, text: str, said: str) -> None:
    path = saved(tmp_path / "head.nii", np.ones((5, 4, 3), np.float32))
    (tmp_path / "head.json").write_text(text)
    found = summary(path)
    assert found.source is None and found.header["sidecar"].startswith(said)


def test_places_come_in_the_unit_of_the_sizes(tmp_path: Path) -> None:
    nibabel = pytest.importorskip("nibabel")
    affine = np.diag([2.0, 1.5, 5.0, 1.0])
    affine[:3, 3] = 10, -20, 30
    stacks = []
    for unit, factor in (("mm", 1.0), ("meter", 1e-3)):
        made = nibabel.Nifti1Image(VOLUME, np.diag([factor, factor, factor, 1.0]) @ affine)
        made.header.set_xyzt_units(unit)
        nibabel.save(made, tmp_path / "x.nii")
        stacks.append(read(tmp_path / "x.nii"))
    first, second = (stack.geometry for stack in stacks if isinstance(stack, ImageStack))
    assert first is not None and second is not None and first.placed and second.placed
    np.testing.assert_allclose(second.vectors, first.vectors, atol=1e-4)
    assert (*second.pixel, second.thickness) == pytest.approx((1.5, 2.0, 5.0))


@pytest.mark.parametrize(
    ("place", "pixel", "thickness"), [(80, None, None), (84, None, None), (88, (1.5, 2.0), None)], ids=["x", "y", "z"]
)
def test_a_size_of_zero_is_not_known_and_nibabel_does_not_talk_about_it(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    place: int,
    pixel: tuple[float, float] | None,
    thickness: float | None,
) -> None:
    stack = read(changed(saved(tmp_path / "x.nii", VOLUME), place, struct.pack("<f", 0)))
    assert isinstance(stack, ImageStack)
    found = None if stack.geometry is None else (stack.geometry.pixel, stack.geometry.thickness)
    assert found == (None if pixel is None else (pixel, thickness))
    assert caplog.records == []


@pytest.mark.parametrize("name", ["head.hdr", "head.img"])
def test_an_image_in_two_files_is_refused_with_what_makes_one(tmp_path: Path, name: str) -> None:
    nibabel = pytest.importorskip("nibabel")
    nibabel.save(nibabel.Nifti1Pair(VOLUME, np.eye(4)), tmp_path / "head.img")
    with pytest.raises(InputError, match="in two files") as caught:
        read(tmp_path / name)
    assert "nib-convert head.img head.nii" in caught.value.cure


def test_sizes_that_export_does_not_know_stay_unknown(tmp_path: Path) -> None:
    pytest.importorskip("nibabel")
    (tmp_path / "x.nii").write_bytes(nifti_bytes(VOLUME[..., 0], None, "magnitude", compressed=False))
    stack = read(tmp_path / "x.nii")
    assert isinstance(stack, ImageStack) and stack.geometry is None


def test_integers_are_scaled_and_complex_images_stay_complex(tmp_path: Path) -> None:
    counts = np.arange(24, dtype=np.int16).reshape(4, 6)
    path = changed(saved(tmp_path / "counts.nii", counts), SLOPE_AT, struct.pack("<2f", 0.5, 3.0))
    np.testing.assert_allclose(read(path).images[0], 0.5 * counts.T + 3)
    wave = (VOLUME[..., 0] + 1j).astype(np.complex64)
    np.testing.assert_array_equal(read(saved(tmp_path / "wave.nii", wave)).images[0], wave.T)


def test_the_first_of_several_volumes_is_read(tmp_path: Path) -> None:
    stack = read(saved(tmp_path / "x.nii", np.stack([VOLUME, 2 * VOLUME], axis=-1)))
    np.testing.assert_array_equal(stack.images, VOLUME.transpose(2, 1, 0))
    assert stack.header["volumes"] == "first of 2; the others were not read"


@pytest.mark.parametrize(
    ("place", "values", "match"),
    [
        (SHAPE_AT, struct.pack("<4h", 3, 30000, 30000, 3), "GiB"),
        (SHAPE_AT, struct.pack("<4h", 3, -6, 5, 3), "dim"),
        (SHAPE_AT, struct.pack("<4h", 3, 0, 5, 3), "dim"),
        (SHAPE_AT, struct.pack("<2h", 7, 6), "dim"),
        (SHAPE_AT, struct.pack("<4h", 3, 6, 5, 30), "truncated"),
        (TYPE_AT, struct.pack("<h", 128), "datatype"),
        (TYPE_AT, struct.pack("<h", 999), "NIfTI image"),
        (OFFSET_AT, struct.pack("<f", 1e9), "vox_offset"),
        (OFFSET_AT, struct.pack("<f", -5), "vox offset"),
        (OFFSET_AT, struct.pack("<f", np.nan), "NIfTI image|vox_offset"),
        (352, struct.pack("<f", np.inf), "NaN or infinite"),
    ],
)
def test_lies_of_the_header_are_refused(tmp_path: Path, place: int, values: bytes, match: str) -> None:
    with pytest.raises(InputError, match=match):
        read(changed(saved(tmp_path / "x.nii", VOLUME), place, values))


def test_cut_files_and_bombs_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "x.nii.gz", VOLUME)
    whole = path.read_bytes()
    for length in (len(whole) // 2, len(whole) - 9):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"x\.nii\.gz"):
            read(path)
    bomb = bytearray(gzip.decompress(whole)[:352])
    bomb[SHAPE_AT : SHAPE_AT + 8] = struct.pack("<4h", 3, 4096, 4096, 2)
    path.write_bytes(gzip.compress(bytes(bomb) + bytes(4096 * 4096 * 8), 1))
    with pytest.raises(InputError, match="compress"):
        read(path)
    with pytest.raises(InputError, match="1 to 5"):
        read(saved(tmp_path / "y.nii", VOLUME), limits=ReadLimits(max_side=5))


def test_without_nibabel_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "x.nii", VOLUME)
    monkeypatch.setitem(sys.modules, "nibabel", None)
    with pytest.raises(MissingPackageError, match="pip install nibabel"):
        read(path)


@pytest.mark.parametrize("description", ["magnitude", "m" * 79])
def test_a_thickness_that_nobody_knows_stays_unknown(tmp_path: Path, description: str) -> None:
    nibabel = pytest.importorskip("nibabel")
    path, geometry = tmp_path / "x.nii", SliceGeometry((1.5, 2.0), None)
    path.write_bytes(nifti_bytes(VOLUME[..., 0], geometry, description, compressed=False))
    header = nibabel.load(path).header
    assert header.get_zooms() == (2.0, 1.5, 1.0)  # a volume has to have some
    assert bytes(header["descrip"]).decode().rstrip("\0").endswith("; slice thickness unknown")
    stack = read(path)
    assert isinstance(stack, ImageStack) and stack.geometry == geometry and stack.header["pixel_mm"] == "2 x 1.5"
    path.write_bytes(nifti_bytes(VOLUME[..., 0], SliceGeometry((1.5, 2.0), 1.0), description, compressed=False))
    known = read(path)
    assert isinstance(known, ImageStack) and known.geometry is not None and known.geometry.thickness == 1.0


@pytest.mark.parametrize("name", ["x.nii", "x.nii.gz"])
@pytest.mark.parametrize("kind", [np.float32, np.int16, np.complex64])
def test_a_summary_is_that_of_all_slices(tmp_path: Path, name: str, kind: type) -> None:
    path = saved(tmp_path / name, (100 * VOLUME - 20).astype(kind))
    told, whole = summary(path), read(path)
    assert isinstance(whole, ImageStack) and told == ImageSummary.of(whole)


def test_a_summary_refuses_what_reading_refuses(tmp_path: Path) -> None:
    path = saved(tmp_path / "x.nii.gz", VOLUME)
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    with pytest.raises(InputError, match=r"x\.nii\.gz"):
        summary(path)
    last = VOLUME.copy()
    last[2, 1, 2] = np.nan
    with pytest.raises(InputError, match=r"data, slice 2: got 1 NaN or infinite values, the first at index \(1, 2\)"):
        summary(saved(tmp_path / "y.nii", last))
    with pytest.raises(InputError, match="all zeros"):
        summary(saved(tmp_path / "z.nii", 0 * VOLUME))
