"""A reconstructed volume as NIfTI and DICOM: every pixel of every slice stands where its scan's header says."""

from dataclasses import replace
from pathlib import Path

import nibabel
import numpy as np
import pydicom
import pytest

from mri_design import load_phantom
from mri_design.scan import SliceGeometry
from mri_design.scan.writing import mrd_scan_bytes
from tests.cli.folders import Run

COUNT, GAP = 3, 6.5
TILT = np.array([[0.0, 1.0, 0.0], [0.8, 0.0, -0.6], [-0.6, 0.0, -0.8]])
"""Directions of ky, kx and across the slices: oblique."""
FIRST = SliceGeometry((2.0, 3.0), 5.0, (10.0, -20.0, 30.0), *map(tuple, TILT.tolist()))


def place(number: int) -> SliceGeometry:
    """Slices of 5 mm, 6.5 mm apart."""
    return replace(FIRST, centre=tuple(np.array(FIRST.centre) + GAP * number * TILT[2]))


@pytest.fixture(scope="module")
def scan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Slices of an ISMRMRD file, the second one above the third, as scanners number them that interleave slices."""
    data = load_phantom("brain", shape=(24, 20), noise=1e-3, rng=np.random.default_rng(0))
    kspace = np.concatenate([data.kspace * (1 + k) for k in range(COUNT)])
    places = (place(0), place(2), place(1))
    path = tmp_path_factory.mktemp("scan") / "scan.h5"
    made = replace(data, kspace=kspace, reference=None, geometry=places)
    path.write_bytes(mrd_scan_bytes(made, places))
    return path


@pytest.fixture(scope="module")
def reconstructed(scan: Path, work: Path, run: Run) -> Path:
    out = scan.with_name("run")
    run("recon", scan, "--recipe", "quick.toml", "--no-report", "--jobs", 1, "--out", out, code=(0, 4))
    return out


def where(number: int, row: int, column: int) -> np.ndarray:
    """A pixel's place in the patient's coordinates of DICOM."""
    (dy, dx), centre = FIRST.pixel, np.array(place(number).centre)
    return np.asarray(centre + dy * (row - 12) * TILT[0] + dx * (column - 10) * TILT[1])


def test_a_nifti_volume_has_its_slices_where_they_lie(reconstructed: Path, run: Run, tmp_path: Path) -> None:
    run("export", reconstructed, "--to", "nifti", "--out", tmp_path / "v.nii.gz", code=0)
    volume, images = nibabel.load(tmp_path / "v.nii.gz"), np.abs(np.load(reconstructed / "recon.npy"))
    assert volume.shape == (20, 24, COUNT) and int(volume.header["sform_code"]) == 1
    np.testing.assert_allclose(volume.header.get_zooms(), (3, 2, GAP), rtol=1e-5)
    for above, number in enumerate((0, 2, 1)):
        np.testing.assert_array_equal(volume.get_fdata(dtype=np.float32)[:, :, above], images[number].T)
        for row, column in ((0, 0), (23, 4)):
            found = volume.affine @ (column, row, above, 1)
            np.testing.assert_allclose(found[:3], where(above, row, column) * (-1, -1, 1), atol=1e-3)
    std = nibabel.load(tmp_path / "v_std.nii.gz")
    np.testing.assert_array_equal(std.get_fdata(dtype=np.float32)[:, :, 2], np.load(reconstructed / "std.npy")[1].T)


def test_dicom_has_a_file_for_every_slice_in_one_series(reconstructed: Path, run: Run, tmp_path: Path) -> None:
    run("export", reconstructed, "--to", "dicom", "--out", tmp_path / "v.dcm", code=0)
    images = np.abs(np.load(reconstructed / "recon.npy"))
    files = [pydicom.dcmread(tmp_path / f"v_{n:04d}.dcm") for n in (1, 2, 3)]
    assert len({file.SeriesInstanceUID for file in files}) == 1 and len({file.SOPInstanceUID for file in files}) == 3
    assert len({float(file.RescaleSlope) for file in files}) == 1
    for file, image, above in zip(files, images, (0, 2, 1), strict=True):
        shown = file.pixel_array * float(file.RescaleSlope)
        np.testing.assert_allclose(shown, image, atol=float(images.max()) / 65000)
        np.testing.assert_allclose(file.ImagePositionPatient, where(above, 0, 0), atol=1e-4)
        np.testing.assert_allclose(file.ImageOrientationPatient, [*TILT[1], *TILT[0]], atol=1e-6)
    assert (tmp_path / "v_std_0003.dcm").is_file()
