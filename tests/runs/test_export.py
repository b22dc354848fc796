"""What a run left comes back, in every format; what the run does not know is said."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mri_design import InputError, UsageError
from mri_design.design import DesignTrace
from mri_design.runs.export import FORMATS, SequenceRequest, export_run
from mri_design.runs.stored_run import StoredRun, read_result, read_run, write_made_files
from mri_design.scan import SliceGeometry, SourceImage
from mri_design.scan.io import summary
from mri_design.scan.io.atomic import npy_bytes, npz_bytes
from mri_design.sequences import load_scanner
from tests.refusals import refused
from tests.stored_runs import differences, left

nibabel = pytest.importorskip("nibabel")
pydicom = pytest.importorskip("pydicom")
pytest.importorskip("pypulseq")

LINES = [8, 3, 12, 9, 0]
TRAINS = ((3, 9), (0, 12), (8,))
PLACED = SliceGeometry((2.0, 2.5), 5.0, (1.0, 2.0, 3.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
IMAGE = (np.random.default_rng(0).standard_normal((16, 12)) + 1j).astype(np.complex64)
STD = np.random.default_rng(1).random((16, 12)).astype(np.float32)


MASK = np.isin(np.arange(16), LINES)


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Make the folder of a run of lines: with images unless told otherwise, and with other parts where asked for."""

    def make(*, images: bool = True, place: SliceGeometry | None = None, **parts: Any) -> Path:
        arrays = {"image": IMAGE, "std": STD} if images else {}
        known = {"mask": MASK, "chosen": tuple(LINES), "readouts": "lines", "identity": "its own"}
        places = () if place is None else (place,)
        return left(tmp_path / "run", StoredRun(**arrays | {"places": places} | known | parts))

    return make


def test_everything_comes_back(folder: Callable[..., Path]) -> None:
    run = read_run(folder(place=PLACED))
    assert (run.name, run.grid_order().rows, run.geometry) == ("run", 16, PLACED)
    assert run.trains() == tuple((line,) for line in LINES)
    np.testing.assert_array_equal(run.image, IMAGE)
    np.testing.assert_array_equal(run.std, STD)
    run = read_run(folder(acquired=TRAINS, images=False))
    assert run.trains() == TRAINS  # the order of measurement goes before that of choice
    assert run.image is None and run.std is None and run.geometry is None


def test_other_folders_are_refused(tmp_path: Path, folder: Callable[..., Path]) -> None:
    with pytest.raises(UsageError):
        read_run(tmp_path)
    path = folder()
    (path / "manifest.json").unlink()
    (path / "checkpoint.npz").touch()
    with pytest.raises(UsageError):
        read_run(path)
    path = left(tmp_path / "old", StoredRun(mask=MASK, readouts="lines"), settings={"identity": "its own"})
    (path / "result.npz").unlink()
    with refused("old/result.npz"):
        read_run(path)


OTHERWISE: dict[str, dict[str, Any]] = {
    "samples": {"mask": np.ones(IMAGE.shape, bool), "readouts": "plane", "chosen": tuple(range(IMAGE.size))},
    "shots": {"readouts": "radial"},
    "readouts": {"readouts": "readouts", "chosen": ()},
}
"""Parts of runs that measured something else."""


@pytest.mark.parametrize(
    ("counted", "measured"),
    [("samples", "192 of 192 samples"), ("shots", "5 of 16 shots"), ("readouts", "5 of 16 readouts")],
)
def test_runs_over_anything_but_lines_have_images_and_no_lines(folder, counted, measured):
    images = read_run(folder(**OTHERWISE[counted]))
    assert (images.counted, images.measured) == (counted, measured)
    np.testing.assert_array_equal(images.image, IMAGE)
    with pytest.raises(UsageError):
        images.grid_order()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("result.npz", content) for content in (b"", b"PK", b"\x93NUMPY")),
        ("mask.npy", b"\x93NUMPY"),
        ("recon.npy", b"no array"),
        *(("mask.npy", array) for array in (np.ones(16), np.ones((4, 4, 4), dtype=bool))),
        *(("recon.npy", array) for array in (None, STD, IMAGE[:8], IMAGE[0], np.where(STD > 0.9, np.nan, IMAGE))),
        *(("std.npy", array) for array in (None, STD[:, :8], IMAGE)),
        *(("draws.npy", array) for array in (None, IMAGE, b"\x93NUMPY", npz_bytes({"draws": IMAGE[np.newaxis]}))),
    ],
)
def test_damaged_and_missing_files_are_refused_by_name(folder, name, content):
    path = folder(draws=IMAGE[np.newaxis])
    if content is None:
        (path / name).unlink()
    else:
        (path / name).write_bytes(content if isinstance(content, bytes) else npy_bytes(content))
    with refused(f"run/{name}"):
        read_run(path)


@pytest.mark.parametrize(
    "parts",
    [
        {"chosen": (8, 3, 12, 9, 1)},  # others than those of the mask
        {"chosen": (8, 3, 12, 9, 0, 8)},
        {"chosen": (8, 3, 12, 9, 99)},
        {"acquired": ((8,), (3,))},
        {"chosen": (1.5,)},
        {"chosen": (True,)},
        {"readouts": "edges"},
        {"places": 7},
        {"seed": "x"},
        {"layout": "upside down"},
        {"numbers": (0,)},  # of an image of one slice
        {"axis": "set"},
        {"places": (PLACED,) * 2},
        {"sources": (SourceImage({"EchoTime": "12.5"}, image=False),) * 2},
        {"std": STD[:8]},
        {"draws": IMAGE},
        {"maps": IMAGE[np.newaxis, :, :8]},
        {"mask": MASK[:13]},
        {"image": None},  # beside its error bars
        {"shots": np.zeros((5, 4))},
        {"trace": DesignTrace("rule", 16, tuple(LINES))},  # without an acceleration
        {"trace": DesignTrace("rule", 16, (1, 2)), "acceleration": 2.0},
    ],
)
def test_contents_that_contradict_each_other_are_refused(folder, parts):
    with refused("run/result.npz"):
        read_run(folder(**parts)).grid_order()


def test_a_run_about_an_image_that_holds_none_is_refused(tmp_path: Path) -> None:
    class StoredImage(StoredRun):
        pass

    path = left(tmp_path / "run", StoredImage(mask=MASK, chosen=tuple(LINES), readouts="lines"))
    with refused("run/result.npz"):
        read_result(path, StoredImage)


@pytest.mark.parametrize("seed", range(40))
def test_a_flipped_bit_gives_the_run_or_an_error(folder, seed):
    path, rng = folder(place=PLACED, maps=np.ones((3, *IMAGE.shape), np.complex64)), np.random.default_rng(seed)
    whole, content = read_run(path), bytearray((path / "result.npz").read_bytes())
    content[rng.integers(len(content))] ^= 1 << rng.integers(8)
    (path / "result.npz").write_bytes(content)
    with suppress(InputError):
        assert list(differences(read_run(path), whole)) == []


def test_links_and_objects_are_refused(folder: Callable[..., Path], tmp_path: Path) -> None:
    result = folder() / "result.npz"
    np.savez(result, text=np.array([{"kind": "StoredRun"}]), numbers=np.zeros(1, np.uint8))
    with refused("run/result.npz"):
        read_run(result.parent)
    (folder() / "result.npz").rename(tmp_path / "elsewhere.npz")
    result.symlink_to(tmp_path / "pipe")
    with pytest.raises((InputError, UsageError)):
        read_run(result.parent)


def _sequence(resolution: float | None = None) -> SequenceRequest:
    wanted = {"echo_time": 0.015, "repetition_time": 0.2, "flip_angle": 20.0, "bandwidth": 300.0}
    return SequenceRequest(load_scanner("generic"), wanted=wanted, resolution=resolution)


def test_csv_and_npy_have_the_order_of_measurement(folder: Callable[..., Path], tmp_path: Path) -> None:
    path, table, array = folder(acquired=TRAINS), tmp_path / "o.csv", tmp_path / "o.npy"
    text = export_run(path, table).files[table].decode()
    rows = ["order,line,ky,shot,echo", "0,3,-5,0,1", "1,9,1,0,2", "2,0,-8,1,1", "3,12,4,1,2", "4,8,0,2,1"]
    assert text.splitlines() == rows
    lines = np.load(io.BytesIO(export_run(path, array).files[array]))
    assert lines.tolist() == [line for train in TRAINS for line in train]


@pytest.mark.parametrize(("kind", "axes"), [("image", b"12 16 1"), ("mask alone", b"1 16 1"), ("samples", b"1 16 12")])
def test_cfl_has_the_mask_over_the_grid_and_the_coil_maps_along_its_axes(folder, tmp_path, kind, axes):
    parts = OTHERWISE["samples"] if kind == "samples" else {}
    maps = None if kind == "mask alone" else np.ones((3, *IMAGE.shape), np.complex64)
    path = folder(images=kind != "mask alone", maps=maps, **parts)
    files = export_run(path, tmp_path / "m.cfl").files
    sizes = [file.split(b"\n")[1].split() for name, file in sorted(files.items()) if name.suffix == ".hdr"]
    assert [b" ".join(size[:3]) for size in sizes] == [axes] * len(sizes)
    assert len(sizes) == 1 or sizes[1][3] == b"3"
    if kind != "samples":
        mask = np.frombuffer(files[tmp_path / "m.cfl"], dtype="<c8").reshape(16, -1)
        assert np.flatnonzero(mask[:, 0]).tolist() == sorted(LINES) and (mask == mask[:, :1]).all()


@pytest.mark.parametrize(
    ("place", "extents", "zooms"),
    [
        (None, None, (1.0, 1.0, 1.0)),
        (None, (0.24, 0.24), (20.0, 15.0, 1.0)),
        (SliceGeometry((2.0, 2.5), 5.0), None, (2.5, 2.0, 5.0)),
        (PLACED, None, (2.5, 2.0, 5.0)),
        (PLACED, (0.24, 0.24), (20.0, 15.0, 5.0)),
    ],
)
def test_nifti_has_magnitude_error_bars_and_the_sizes_that_are_known_or_given(folder, tmp_path, place, extents, zooms):
    write_made_files(export_run(folder(place=place), tmp_path / "i.nii.gz", field_of_view=extents))
    image, std = (nibabel.load(tmp_path / name) for name in ("i.nii.gz", "i_std.nii.gz"))
    np.testing.assert_allclose(image.get_fdata()[:, :, 0].T, np.abs(IMAGE), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(std.dataobj)[:, :, 0].T, STD)
    assert image.header.get_zooms() == std.header.get_zooms() == pytest.approx(zooms)
    if place is PLACED and extents is None:
        np.testing.assert_allclose(image.affine, PLACED.affine((16, 12)), atol=1e-6)


def test_dicom_has_both_images_in_one_study(folder: Callable[..., Path], tmp_path: Path) -> None:
    exported = export_run(folder(), tmp_path / "i.dcm")
    image, std = (pydicom.dcmread(io.BytesIO(exported.files[tmp_path / name])) for name in ("i.dcm", "i_std.dcm"))
    assert image.StudyInstanceUID == std.StudyInstanceUID
    assert [image.SeriesDescription, std.SeriesDescription] == ["magnitude", "standard deviation"]
    assert "5 of 16" in image.DerivationDescription
    np.testing.assert_allclose(std.pixel_array * float(std.RescaleSlope), STD, atol=1e-5)


@pytest.mark.parametrize("images", [True, False])
def test_mrd_has_the_grid_and_says_what_is_not_known(folder: Callable[..., Path], tmp_path: Path, images: bool) -> None:
    exported = export_run(folder(images=images), tmp_path / "s.h5")
    columns = 12 if images else 16
    assert f"<x>{columns}</x><y>16</y><z>1</z>".encode() in exported.files[tmp_path / "s.h5"]
    (tmp_path / "s.h5").write_bytes(exported.files[tmp_path / "s.h5"])
    assert summary(tmp_path / "s.h5", isolated=False).geometry is None
    if not images:
        with pytest.raises(UsageError):
            export_run(tmp_path / "run", tmp_path / "i.nii")


def test_seq_takes_what_the_run_knows_and_asks_for_the_rest(folder: Callable[..., Path], tmp_path: Path) -> None:
    out, path = tmp_path / "l.seq", folder(place=PLACED)
    text = export_run(path, out, sequence=_sequence()).files[out]
    assert b"\nFOV 0.03 0.032 0.005 \nFlipAngle 20 " in text and b"\nMatrix 12 16 1 \n" in text
    with refused("resolution"):
        export_run(path, out, field_of_view=(0.2, 0.2), sequence=_sequence(0.0333))
    path = folder(acquired=TRAINS, images=False)
    with pytest.raises(UsageError):
        export_run(path, out, sequence=_sequence())
    exported = export_run(path, out, field_of_view=(0.24, 0.2), sequence=_sequence(0.01))
    assert b"\nMatrix 20 16 1 \n" in exported.files[out] and b"\nEchoTrainLength 2 " in exported.files[out]


def test_names_end_as_their_format_does(tmp_path: Path) -> None:
    for form, name in product(("", *FORMATS), ("a.txt", "a.tiff", ".nii", ".npy")):
        with pytest.raises(UsageError):
            export_run(tmp_path, tmp_path / name, form=form)
    with pytest.raises(UsageError):
        export_run(tmp_path, tmp_path / "a.csv", form="nifti")


def test_files_that_are_there_stay_unless_they_may_go(folder: Callable[..., Path], tmp_path: Path) -> None:
    exported = export_run(folder(), tmp_path / "new" / "m.cfl")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "m.hdr").write_text("somebody's")
    with pytest.raises(UsageError):
        write_made_files(exported)
    assert os.listdir(tmp_path / "new") == ["m.hdr"]
    write_made_files(exported, overwrite=True)
    assert sorted(os.listdir(tmp_path / "new")) == ["m.cfl", "m.hdr"]
    (tmp_path / "new" / "m.cfl").unlink()
    (tmp_path / "new" / "m.cfl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError):
        write_made_files(exported, overwrite=True)
    assert not (tmp_path / "elsewhere").exists()
