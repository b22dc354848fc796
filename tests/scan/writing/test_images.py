"""NIfTI files open in nibabel with values, sizes and place that were given; BART's pairs are those of its manual."""

from pathlib import Path

import numpy as np
import pytest

from mri_design.scan import SliceGeometry
from mri_design.scan.writing import nifti_bytes, pair_files

IMAGE = np.random.default_rng(0).random((6, 5)).astype(np.float32)
PLACED = SliceGeometry((1.5, 2.0), 5.0, (1.0, 2.0, 3.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("place", [PLACED, SliceGeometry((1.5, 2.0), 5.0)], ids=["placed", "sizes"])
def test_nibabel_reads_what_was_written(tmp_path: Path, place: SliceGeometry, compressed: bool) -> None:
    nibabel = pytest.importorskip("nibabel")
    path = tmp_path / f"image.nii{'.gz' if compressed else ''}"
    path.write_bytes(nifti_bytes(IMAGE, place, "magnitude", compressed=compressed))
    read = nibabel.load(path)
    np.testing.assert_array_equal(np.asarray(read.dataobj)[:, :, 0].T, IMAGE)
    assert read.header.get_zooms() == (2.0, 1.5, 5.0)
    assert read.header.get_xyzt_units()[0] == "mm"
    assert int(read.header["sform_code"]) == int(read.header["qform_code"]) == int(place.placed)
    if place.placed:
        np.testing.assert_allclose(read.affine, place.affine((6, 5)), atol=1e-6)
        assert nibabel.aff2axcodes(read.affine) == ("L", "P", "S")


def test_slices_follow_one_another() -> None:
    nibabel = pytest.importorskip("nibabel")
    stack = np.random.default_rng(1).random((3, 6, 5)).astype(np.float32)
    read = nibabel.Nifti1Image.from_bytes(nifti_bytes(stack, PLACED, "x", compressed=False))
    np.testing.assert_array_equal(np.asarray(read.dataobj).T, stack)
    assert read.header.get_zooms() == (2.0, 1.5, 5.0)


def test_samples_lie_in_fortran_order_behind_sixteen_dimensions() -> None:
    rng = np.random.default_rng(0)
    for array in (
        rng.standard_normal((3, 5, 2)) + 1j * rng.standard_normal((3, 5, 2)),
        np.broadcast_to(np.array([True, False, True]), (2, 3)),
    ):
        header, samples = pair_files(Path("name"), array).values()
        lines = header.decode().splitlines()
        dims = [int(word) for word in lines[1].split()]
        assert lines[0] == "# Dimensions" and dims == [*array.shape, *[1] * (16 - array.ndim)]
        read = np.frombuffer(samples, dtype="<c8").reshape(dims, order="F").squeeze()
        np.testing.assert_array_equal(read, array.astype(np.complex64))
