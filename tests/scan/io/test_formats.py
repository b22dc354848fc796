"""The content decides the format, and a file that is no scan is refused with the list of formats."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from mri_design import InputError, read


def test_every_format_is_recognised_under_any_name(
    tmp_path: Path, scan: np.ndarray, fastmri_file: Path, mrd: type
) -> None:
    np.save(tmp_path / "a.npy", scan)
    np.savez(tmp_path / "b.npz", kspace=scan)
    for path in (tmp_path / "a.npy", tmp_path / "b.npz", mrd().add_scan(scan).write(), fastmri_file):
        misnamed = shutil.copy(path, tmp_path / "scan.dat")
        np.testing.assert_array_equal(read(misnamed, isolated=False).kspace, scan)  # type: ignore[union-attr]


def test_a_user_block_before_hdf5_is_allowed(tmp_path: Path, scan: np.ndarray) -> None:
    with h5py.File(tmp_path / "block.h5", "w", userblock_size=1024) as file:
        file["kspace"] = scan.swapaxes(-1, -2)
    np.testing.assert_array_equal(read(tmp_path / "block.h5", isolated=False).kspace, scan)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("content", "got"),
    [
        (b"", "an empty file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "Git LFS"),
        (b"/annex/objects/SHA256E-s9--0.h5\n", "git-annex"),
        (b"hello, world", "a file starting with"),
        (b'{"lines": 24, "samples": 20}\n', "JSON"),
        (b"\x89HDF", "a file starting with"),
        (b"MATLAB 5.0 MAT-file", "MATLAB"),
    ],
)
def test_files_that_hold_no_scan(tmp_path: Path, content: bytes, got: str) -> None:
    (tmp_path / "scan.h5").write_bytes(content)
    with pytest.raises(InputError) as caught:
        read(tmp_path / "scan.h5")
    assert got in caught.value.got
    assert "scan.h5" in caught.value.field


def test_an_unknown_hdf5_layout_lists_what_is_supported(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["weights"] = np.ones(3)
    with pytest.raises(InputError, match=r"weights.*fastMRI.*ISMRMRD"):
        read(tmp_path / "other.h5")


def test_folders_pipes_and_missing_files_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, got in (("", "a folder"), ("pipe", "a device, pipe"), ("none.npy", "No such file")):
        with pytest.raises(InputError) as caught:
            read(tmp_path / name)
        assert caught.value.got.startswith(got)  # not one message inside another
    with pytest.raises(InputError, match="null"):
        read("a\0b")


def test_a_link_to_a_scan_is_followed(tmp_path: Path, scan: np.ndarray) -> None:
    np.save(tmp_path / "store.npy", scan)
    (tmp_path / "scan.npy").symlink_to(tmp_path / "store.npy")
    assert read(tmp_path / "scan.npy").name == "scan"


@pytest.mark.parametrize(
    ("head", "way"),
    [
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
def test_files_of_other_programs_are_refused_with_the_known_way_on(tmp_path: Path, head: bytes, way: str) -> None:
    (tmp_path / "scan.raw").write_bytes(head + bytes(64))
    with pytest.raises(InputError) as caught:
        read(tmp_path / "scan.raw")
    assert caught.value.field == str(tmp_path / "scan.raw") and way in caught.value.cure


def test_hdf5_of_other_arrays_is_refused_with_what_it_holds(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "scan.h5", "w") as file:
        file["parts/real"] = file["parts/imag"] = np.ones((8, 8))
    with pytest.raises(InputError) as caught:
        read(tmp_path / "scan.h5")
    assert "parts/real" in caught.value.got and "numpy.savez" in caught.value.cure
