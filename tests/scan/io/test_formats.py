"""The content decides the format; a file that is no scan is refused; a format from outside is a registered reader."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

import mri_design as md
from mri_design.scan import Sampling, measured_lines
from mri_design.scan.io import SlicedSource, check_declared_shape, opened, read, source, summary
from tests.command_line import called
from tests.refusals import refused
from tests.scan.io.reading import read_here


def test_every_format_is_recognised_under_any_name(
    tmp_path: Path, scan: np.ndarray, fastmri_file: Path, mrd: type
) -> None:
    np.save(tmp_path / "a.npy", scan)
    np.savez(tmp_path / "b.npz", kspace=scan)
    with h5py.File(tmp_path / "block.h5", "w", userblock_size=1024) as file:  # bytes of a user before HDF5's own
        file["kspace"] = scan.swapaxes(-1, -2)
    (tmp_path / "link.npy").symlink_to(tmp_path / "a.npy")
    for path in (
        *(tmp_path / name for name in ("a.npy", "b.npz", "block.h5")),
        mrd().add_scan(scan).write(),
        fastmri_file,
    ):
        misnamed = shutil.copy(path, tmp_path / "scan.dat")
        np.testing.assert_array_equal(read_here(misnamed).kspace, scan)
    assert read(tmp_path / "link.npy").name == "link"


@pytest.mark.parametrize(
    ("head", "cure"),
    [
        (b"", "Copy or download"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "git lfs pull"),
        (b"/annex/objects/SHA256E-s9--0.h5\n", "git annex get"),
        (b"hello, world", ""),
        (b"\x89HDF", ""),
        (b'{"lines": 24, "samples": 20}\n', "mri-design adapt"),
        (b"# Pulseq sequence file", "mri-design info"),
        (b"MATLAB 5.0 MAT-file, Platform: GLNXA64", "scipy.io.loadmat"),
        (b"\3\0\x20\0\0\0<?xml version='1.0'?>", "ismrmrd_stream_to_hdf5"),
        (b"\1\0default.xml" + bytes(1100), "ismrmrd_stream_to_hdf5"),
        (b"yardl\1", "mrd_to_ismrmrd"),
        (b"##TITLE=Parameter List, ParaVision 6.0", "bruker_to_ismrmrd"),
        (b"# === DATA DESCRIPTION FILE ====", "philips_to_ismrmrd"),
        (b"\x80\4\x95", "numpy.save"),
        (b"mrtrix image\n", "mrconvert"),
        (b"\x89PNG\r\n", "NIfTI"),
    ],
)
def test_files_that_hold_no_scan_are_refused_with_the_known_way_on(tmp_path: Path, head: bytes, cure: str) -> None:
    path = tmp_path / "scan.raw"
    path.write_bytes(head + (bytes(64) if head[-1:] not in (b"\n", b"") else b""))
    with refused(str(path), cure):
        read(path)


@pytest.mark.parametrize("name", ["weights", "parts/real"])
def test_hdf5_of_other_arrays_is_refused_with_what_it_holds(tmp_path: Path, name: str) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file[name] = file["parts/imag"] = np.ones((8, 8))
    with pytest.raises(md.InputError) as caught:
        read(tmp_path / "other.h5")
    assert name in caught.value.got and "numpy.savez" in caught.value.cure


def test_folders_pipes_and_missing_files_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "none.npy", "a\0b"):
        with refused(str(path)):
            read(path)


class Toy(SlicedSource):
    """Files of four letters, the sides of the grid, and samples."""

    by_headers = True

    def __init__(self, path: Path, options: md.ReadOptions) -> None:
        self.path, self.shape = path, struct.unpack("<4I", path.read_bytes()[4:20])
        check_declared_shape("shape", self.shape, 8, options.limits, available=path.stat().st_size - 20)

    def _scan(self, first: int, count: int) -> md.KSpaceData:
        size = int(np.prod(self.shape[1:]))
        stored = np.fromfile(self.path, np.complex64, count * size, offset=20 + 8 * first * size)
        kspace = stored.reshape(count, *self.shape[1:])
        return md.KSpaceData(kspace, measured_lines("samples", kspace), name=self.path.stem)

    def load(self) -> md.KSpaceData:
        return self._scan(0, self.shape[0])

    def slice(self, index: int) -> md.KSpaceData:
        return self._scan(index, 1)

    def samplings(self) -> tuple[Sampling, ...]:
        return (Sampling(np.ones(self.shape[2:], bool)),) * self.shape[0]


def at_once(path: Path, options: md.ReadOptions) -> md.KSpaceData:
    return Toy(path, options).load()


@pytest.fixture(params=[Toy, at_once], ids=["slice by slice", "at once"])
def toy(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file of two slices, whose reader is registered as a script does it."""
    scan = md.load_phantom("shepp-logan", shape=(32, 32), noise=1e-3, n_coils=1, rng=np.random.default_rng(0))
    path, kspace = tmp_path / "head.toy", np.concatenate([scan.kspace, scan.kspace])
    path.write_bytes(b"TOY1" + np.array(kspace.shape, "<u4").tobytes() + kspace.tobytes())
    md.register_reader("toy files (.toy)", b"TOY1")(request.param)
    yield path
    source.REGISTERED.pop(0)


def test_a_registered_reader_serves_all_that_reads_scans(toy: Path, tmp_path: Path) -> None:
    assert read(toy).n_slices == summary(toy).n_slices == 2 and md.load(toy).data.name == "head"
    with refused("head.toy: shape"):  # the file is named for the reader
        read(toy, limits=md.ReadLimits(max_bytes=64))
    with refused("contrast"):
        read(toy, counters={"contrast": 1})
    with opened(toy, md.ReadOptions()) as file, file.slice_reader() as slices:
        np.testing.assert_array_equal(slices.read(1).kspace, file.load().select_slice(1).kspace)
        assert file.slice(0).name == slices.read(0).name == "head[0]"
    told = called(["info", toy])
    assert told.exit_code == 0 and "32 phase-encode lines" in told.output
    words = ["--slice", "1", "--lines", "10", "--strategy", "low-pass", "--no-report", "--out"]
    assert called(["design", toy, *words, tmp_path / "lines"]).exit_code == 0
    assert np.load(tmp_path / "lines" / "mask.npy").sum() == 10


def test_a_reader_that_reads_nothing_is_refused(tmp_path: Path) -> None:
    with refused("begins"):
        md.register_reader("all files", b"")(lambda path, options: None)
    md.register_reader("odd files", b"ODD1")(lambda path, options: 3)
    try:
        (tmp_path / "x.odd").write_bytes(b"ODD1")
        with refused("reader of odd files"):
            read(tmp_path / "x.odd")
    finally:
        source.REGISTERED.pop(0)
