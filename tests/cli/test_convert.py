"""The verb `convert`: files are written, said and protected, and refusals name what is wrong."""

from pathlib import Path

import pytest

from mri_design import KSpaceData
from mri_design.scan.io import read
from tests.cli.folders import Run


def test_a_field_of_view_that_nobody_knows_is_not_invented_on_the_way(run: Run, work: Path, tmp_path: Path) -> None:
    previous = "scan.npz"
    for name in ("a.h5", "b.cfl", "c.npz", "d.mrd"):
        run("export", previous, tmp_path / name, code=0)
        previous = str(tmp_path / name)
        scan = read(previous, isolated=False)
        assert isinstance(scan, KSpaceData) and scan.geometry is None
    out = tmp_path / "run"
    run("recon", previous, "--recipe", "fast.toml", "--out", out, code=0)
    run("export", out, "--out", tmp_path / "s.seq", code=2)
    pydicom = pytest.importorskip("pydicom")
    run("export", out, "--out", tmp_path / "i.dcm", code=0)
    image = pydicom.dcmread(tmp_path / "i.dcm")
    assert "PixelSpacing" not in image and "SliceThickness" not in image
