"""Every format holds what the run left, and says what the run does not know."""

import io
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mri_design import InputError, UsageError
from mri_design.runs.export import ENDINGS, ExportRequest, ScanParameters, SequenceRequest, export_run
from mri_design.runs.made_files import write_made_files
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.formats import outline
from mri_design.sequences.scanner import load_scanner
from mri_design.sequences.settings import SequenceSettings
from tests.runs.export.conftest import IMAGE, LINES, PLACED, STD, TRAINS


def _settings(extents: tuple[float, float], samples: int, in_trains: bool, scan: ScanParameters) -> SequenceSettings:
    return SequenceSettings(
        kind="tse" if in_trains else "gre",
        field_of_view=extents,
        samples=samples,
        echo_time=0.015,
        repetition_time=0.2,
        flip_angle=20.0,
        bandwidth=300.0,
    )


def _sequence(resolution: float | None = None) -> SequenceRequest:
    return SequenceRequest(load_scanner("generic"), _settings, resolution)


def test_csv_and_npy_have_the_order_of_measurement(folder: Callable[..., Path], tmp_path: Path) -> None:
    path, table, array = folder(trains=True), tmp_path / "o.csv", tmp_path / "o.npy"
    text = export_run(ExportRequest(path, "csv", table)).files[table].decode()
    rows = ["order,line,ky,shot,echo", "0,3,-5,0,1", "1,9,1,0,2", "2,0,-8,1,1", "3,12,4,1,2", "4,8,0,2,1"]
    assert text.splitlines() == rows
    lines = np.load(io.BytesIO(export_run(ExportRequest(path, "npy", array)).files[array]))
    assert lines.tolist() == [line for train in TRAINS for line in train]


@pytest.mark.parametrize(("images", "columns"), [(True, 12), (False, 1)])
def test_cfl_has_the_mask_over_the_grid(
    folder: Callable[..., Path], tmp_path: Path, images: bool, columns: int
) -> None:
    exported = export_run(ExportRequest(folder(images=images), "cfl", tmp_path / "m.cfl"))
    assert exported.files[tmp_path / "m.hdr"].split(b"\n")[1].split()[:3] == [b"%d" % columns, b"16", b"1"]
    mask = np.frombuffer(exported.files[tmp_path / "m.cfl"], dtype="<c8").reshape(16, columns)
    assert np.flatnonzero(mask[:, 0]).tolist() == sorted(LINES) and (mask == mask[:, :1]).all()


@pytest.mark.skipif(shutil.which("bart") is None, reason="needs BART, a system package")
def test_bart_shows_the_mask(folder: Callable[..., Path], tmp_path: Path) -> None:
    write_made_files(export_run(ExportRequest(folder(), "cfl", tmp_path / "m.cfl")))
    done = subprocess.run(["bart", "show", "-d", "1", str(tmp_path / "m")], capture_output=True, text=True, check=True)
    assert int(done.stdout) == 16


def test_nifti_has_magnitude_and_error_bars(folder: Callable[..., Path], tmp_path: Path) -> None:
    nibabel = pytest.importorskip("nibabel")
    exported = export_run(ExportRequest(folder(place=PLACED), "nifti", tmp_path / "i.nii.gz"))
    write_made_files(exported)
    image, std = (nibabel.load(tmp_path / name) for name in ("i.nii.gz", "i_std.nii.gz"))
    np.testing.assert_allclose(image.get_fdata()[:, :, 0].T, np.abs(IMAGE), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(std.dataobj)[:, :, 0].T, STD)
    np.testing.assert_allclose(image.affine, PLACED.affine((16, 12)), atol=1e-6)
    assert len(exported.sentences) == 2


@pytest.mark.parametrize(
    ("place", "extents", "zooms", "said"),
    [
        (None, None, (1.0, 1.0, 1.0), "sizes of 1 without a unit"),
        (None, (0.24, 0.24), (20.0, 15.0, 1.0), "no place or directions"),
        (SliceGeometry((2.0, 2.5), 5.0), None, (2.5, 2.0, 5.0), "no place or directions"),
        (PLACED, (0.24, 0.24), (20.0, 15.0, 5.0), "standard deviation"),
    ],
)
def test_what_nifti_does_not_know_it_says(
    folder: Callable[..., Path],
    tmp_path: Path,
    place: SliceGeometry | None,
    extents: tuple[float, float] | None,
    zooms: tuple[float, ...],
    said: str,
) -> None:
    nibabel = pytest.importorskip("nibabel")
    request = ExportRequest(folder(place=place), "nifti", tmp_path / "i.nii", field_of_view=extents)
    exported = export_run(request)
    read = nibabel.Nifti1Image.from_bytes(exported.files[tmp_path / "i.nii"])
    assert read.header.get_zooms() == pytest.approx(zooms)
    assert said in exported.sentences[-1]


def test_dicom_has_both_images_in_one_study(folder: Callable[..., Path], tmp_path: Path) -> None:
    pydicom = pytest.importorskip("pydicom")
    exported = export_run(ExportRequest(folder(), "dicom", tmp_path / "i.dcm"))
    image, std = (pydicom.dcmread(io.BytesIO(exported.files[tmp_path / name])) for name in ("i.dcm", "i_std.dcm"))
    assert image.StudyInstanceUID == std.StudyInstanceUID
    assert [image.SeriesDescription, std.SeriesDescription] == ["magnitude", "standard deviation"]
    assert image.DerivationDescription == "5 of 16 lines, reconstructed by mri-design"
    np.testing.assert_allclose(std.pixel_array * float(std.RescaleSlope), STD, atol=1e-5)
    assert "how large pixels are" in exported.sentences[-1]


def test_runs_without_images_have_none_to_export(folder: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="run holds no image; nifti is for runs of design and recon"):
        export_run(ExportRequest(folder(images=False), "nifti", tmp_path / "i.nii"))


@pytest.mark.parametrize("images", [True, False])
def test_mrd_has_the_grid_and_says_what_is_not_known(folder: Callable[..., Path], tmp_path: Path, images: bool) -> None:
    exported = export_run(ExportRequest(folder(images=images), "mrd", tmp_path / "s.h5"))
    columns = 12 if images else 16
    assert f"<x>{columns}</x><y>16</y><z>1</z>".encode() in exported.files[tmp_path / "s.h5"]
    assert "those of 1 mm are written, marked as not known" in exported.sentences[-1]
    (tmp_path / "s.h5").write_bytes(exported.files[tmp_path / "s.h5"])
    assert outline(tmp_path / "s.h5", isolated=False).geometry is None
    assert ("as many as there are lines" in exported.sentences[1]) is not images


def test_seq_takes_geometry_and_readouts_from_the_run(folder: Callable[..., Path], tmp_path: Path) -> None:
    pytest.importorskip("pypulseq")
    exported = export_run(ExportRequest(folder(place=PLACED), "seq", tmp_path / "l.seq", sequence=_sequence()))
    assert b"\nFOV 0.03 0.032 0.005 \nFlipAngle 20 " in exported.files[tmp_path / "l.seq"]
    assert b"\nMatrix 12 16 1 \n" in exported.files[tmp_path / "l.seq"]
    assert exported.sentences[0] == f"gre, 5 lines: {tmp_path / 'l.seq'}"


def test_seq_plays_trains_as_turbo_spin_echo(folder: Callable[..., Path], tmp_path: Path) -> None:
    pytest.importorskip("pypulseq")
    request = ExportRequest(
        folder(trains=True, images=False),
        "seq",
        tmp_path / "l.seq",
        field_of_view=(0.24, 0.2),
        sequence=_sequence(0.01),
    )
    exported = export_run(request)
    assert exported.sentences[0].startswith("tse, echo trains of 2, 5 lines")
    assert "Pixels of 15 x 10 mm (ky x kx), slices of 5 mm, effective echo time 15 ms" in exported.sentences[1]
    assert b"\nMatrix 20 16 1 \n" in exported.files[tmp_path / "l.seq"]


def test_what_seq_needs_is_asked_for(folder: Callable[..., Path], tmp_path: Path) -> None:
    path = folder()
    with pytest.raises(UsageError, match=r"give the field of view in metres, as --fov 0\.24"):
        export_run(ExportRequest(path, "seq", tmp_path / "l.seq", sequence=_sequence()))
    asked = ExportRequest(path, "seq", tmp_path / "l.seq", field_of_view=(0.2, 0.2), sequence=_sequence(0.0333))
    with pytest.raises(InputError, match=r"resolution: got 0\.0333 m.*as 0\.0333333 m"):
        export_run(asked)


@pytest.mark.parametrize("form", ENDINGS)
def test_names_end_as_their_format_does(form: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"a.txt is no file name ending in {re.escape(' or '.join(ENDINGS[form]))}"):
        ExportRequest(tmp_path, form, tmp_path / "a.txt")
    with pytest.raises(UsageError, match="is no file name ending in"):
        ExportRequest(tmp_path, form, tmp_path / ENDINGS[form][0])
    with pytest.raises(UsageError, match="there is no format 'tiff'"):
        ExportRequest(tmp_path, "tiff", tmp_path / "a.tiff")


def test_files_that_are_there_stay_unless_they_may_go(folder: Callable[..., Path], tmp_path: Path) -> None:
    exported = export_run(ExportRequest(folder(), "cfl", tmp_path / "new" / "m.cfl"))
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "m.hdr").write_text("somebody's")
    with pytest.raises(UsageError, match=r"m\.hdr is there already.*--overwrite"):
        write_made_files(exported)
    assert os.listdir(tmp_path / "new") == ["m.hdr"]
    write_made_files(exported, overwrite=True)
    assert sorted(os.listdir(tmp_path / "new")) == ["m.cfl", "m.hdr"]
    (tmp_path / "new" / "m.cfl").unlink()
    (tmp_path / "new" / "m.cfl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="symbolic link"):
        write_made_files(exported, overwrite=True)
    assert not (tmp_path / "elsewhere").exists()
