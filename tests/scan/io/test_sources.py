"""A file format from outside: registered by a script, or planted as one file and one line in a copy of the package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from mri_design.experiment.recipe import Recipe
from mri_design.runs.info import describe_input
from mri_design.scan.io import source
from mri_design.scan.io.formats import opened, summary

PLANTED = '''
"""A toy format: four letters, the sides of the grid, and samples."""

import struct

import numpy as np

from mri_design.scan.data import KSpaceData
from mri_design.scan.io.safe import check_declared_shape
from mri_design.scan.io.samples import measured_lines
from mri_design.scan.io.source import SlicedSource, starting
from mri_design.scan.sampling import Sampling

is_toy = starting(b"TOY1")


class Toy(SlicedSource):
    by_headers = True

    def __init__(self, path, options):
        self.path, self.shape = path, struct.unpack("<4I", path.read_bytes()[4:20])
        check_declared_shape("shape", self.shape, 8, options.limits, available=path.stat().st_size - 20)

    def _scan(self, first, count):
        size = int(np.prod(self.shape[1:]))
        stored = np.fromfile(self.path, np.complex64, count * size, offset=20 + 8 * first * size)
        kspace = stored.reshape(count, *self.shape[1:])
        return KSpaceData(kspace, measured_lines("samples", kspace), name=self.path.stem)

    def load(self):
        return self._scan(0, self.shape[0])

    def slice(self, index):
        return self._scan(index, 1)

    def samplings(self):
        return (Sampling(np.ones(self.shape[2:], bool)),) * self.shape[0]
'''
LINE = '    Reader("toy files (.toy)", toy.is_toy, toy.Toy),\n'


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A toy file of two slices."""
    scan = md.load_phantom("shepp-logan", shape=(32, 32), noise=1e-3, n_coils=1, rng=np.random.default_rng(0))
    path, kspace = tmp_path / "head.toy", np.concatenate([scan.kspace, scan.kspace])
    path.write_bytes(b"TOY1" + np.array(kspace.shape, "<u4").tobytes() + kspace.tobytes())
    return path


@pytest.fixture
def registered() -> Iterator[None]:
    """A reader of toy files, as a script registers it."""

    @md.register_reader("toy files (.toy)", b"TOY1")
    def read_toy(path: Path, options: md.ReadOptions) -> md.KSpaceData:
        shape = np.frombuffer(path.read_bytes()[4:20], "<u4")
        if shape.prod() * 8 > options.limits.max_bytes:
            raise md.InputError(field="shape", got=str(shape), wanted="fewer samples")
        kspace = np.frombuffer(path.read_bytes()[20:], np.complex64).reshape(shape)
        return md.KSpaceData(kspace, np.any(kspace, axis=(0, 1, 3)), name=path.stem)

    yield
    source.REGISTERED.pop(0)


@pytest.mark.usefixtures("registered")
def test_a_reader_of_a_script_serves_all_that_reads_scans(toy: Path, tmp_path: Path) -> None:
    assert md.read(toy).n_slices == 2
    assert md.load_kspace(toy).name == "head"
    assert summary(toy).n_slices == 2
    assert describe_input(str(toy), Recipe())["name"] == "head"
    with opened(toy, md.ReadOptions()) as file:
        assert file.slice(1).n_slices == 1
    with pytest.raises(md.InputError, match=r"head\.toy: shape"):  # the file is named for the reader
        md.read(toy, limits=md.ReadLimits(max_bytes=64))
    with pytest.raises(md.InputError, match="contrast"):
        md.read(toy, counters={"contrast": 1})
    (tmp_path / "foreign.bin").write_bytes(b"nothing known")
    with pytest.raises(md.InputError, match=r"toy files \(\.toy\).*NumPy"):
        md.read(tmp_path / "foreign.bin")


def test_a_reader_that_reads_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(md.InputError, match="one at least"):
        md.register_reader("all files", b"")(lambda path, options: None)
    md.register_reader("odd files", b"ODD1")(lambda path, options: 3)
    try:
        (tmp_path / "x.odd").write_bytes(b"ODD1")
        with pytest.raises(md.InputError, match="reader of odd files: got 3"):
            md.read(tmp_path / "x.odd")
    finally:
        source.REGISTERED.pop(0)


@pytest.mark.slow
def test_a_format_is_one_file_and_one_line(toy: Path, tmp_path: Path) -> None:
    package, own = tmp_path / "mri_design", Path(md.__file__).parent
    for folder in (Path(), Path("scan")):  # the rest by links, so that nothing is compiled anew
        (package / folder).mkdir()
        for entry in (own / folder).iterdir():
            if entry.name not in ("scan", "io", "__pycache__"):
                (package / folder / entry.name).symlink_to(entry)
    shutil.copytree(own / "scan" / "io", package / "scan" / "io")
    (package / "scan" / "io" / "toy.py").write_text(PLANTED)
    formats = package / "scan" / "io" / "formats.py"
    text = formats.read_text().replace("READERS: list[Reader] = [\n", f"READERS: list[Reader] = [\n{LINE}", 1)
    formats.write_text(text.replace("import bart,", "import toy, bart,", 1))

    def called(*arguments: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        command = [sys.executable, "-m", "mri_design.cli.start", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    told = called("info", toy.name)
    assert "head" in told and "32 phase-encode lines" in told
    called("recon", toy.name, "--slice", "1", "--method", "zero-filled", "--no-report", "--out", "image")
    words = ("--slice", "1", "--lines", "10", "--strategy", "low-pass", "--no-report", "--out", "lines")
    called("design", toy.name, *words)
    assert np.load(tmp_path / "lines" / "mask.npy").sum() == 10
