"""The verb `convert`: files are written, said and protected, and refusals name what is wrong."""

from pathlib import Path

import ismrmrd
import numpy as np
import pytest

from mri_design import KSpaceData
from mri_design.scan.io import read
from tests.cli.folders import Run


def test_a_field_of_view_that_nobody_knows_is_not_invented_on_the_way(run: Run, work: Path, tmp_path: Path) -> None:
    previous = "scan.npz"
    for name in ("a.h5", "b.cfl", "c.npz", "d.mrd"):
        run("convert", previous, tmp_path / name, code=0)
        previous = str(tmp_path / name)
        scan = read(previous, isolated=False)
        assert isinstance(scan, KSpaceData) and scan.geometry is None
    out = tmp_path / "run"
    run("recon", previous, "--recipe", "fast.toml", "--out", out, code=0)
    run("export", out, "--to", "seq", "--out", tmp_path / "s.seq", code=2)
    pydicom = pytest.importorskip("pydicom")
    run("export", out, "--to", "dicom", "--out", tmp_path / "i.dcm", code=0)
    image = pydicom.dcmread(tmp_path / "i.dcm")
    assert "PixelSpacing" not in image and "SliceThickness" not in image


@pytest.fixture(scope="module")
def echoes(run: Run, work: Path) -> Path:
    """echoes.h5: scan.npz as contrast 0, and twice as strong as contrast 1."""
    path = work / "echoes.h5"
    run("convert", "scan.npz", path, code=0)
    with ismrmrd.Dataset(str(path), mode="r+") as file:
        for number in range(file.number_of_acquisitions()):
            second = file.read_acquisition(number)
            second.idx.contrast = 1
            second.data[:] *= 2
            file.append_acquisition(second)
    return path


def test_a_contrast_is_chosen_by_its_number_in_every_verb(run: Run, work: Path, tmp_path: Path, echoes: Path) -> None:
    kspace = np.load(work / "scan.npz")["kspace"]
    run("recon", "scan.npz", "--recipe", "fast.toml", "--out", tmp_path / "one", code=0)
    for words, factor in (((), 1), (("--contrast", 1), 2), (("--contrast", 0, "--set", 0), 1)):
        run("convert", echoes, tmp_path / "a.npy", *words, "--overwrite", code=0)
        np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), factor * kspace)
    run("recon", echoes, "--recipe", "fast.toml", "--contrast", 1, "--out", tmp_path / "two", code=0)
    one, two = (np.load(tmp_path / name / "recon.npy") for name in ("one", "two"))
    np.testing.assert_allclose(two, 2 * one, rtol=1e-5)
    run("info", echoes, "--contrast", 7, code=2)
