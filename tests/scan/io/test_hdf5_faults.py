"""F2, F14: damaged and hostile HDF5 files end in an error or in their own data, never in another file's."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from mri_design import InputError, ReadLimits, read

SECRET = b"the secret of another file, long enough to fill a small k-space. " * 64


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.bin"
    path.write_bytes(SECRET)
    return path


def external_storage(file: h5py.File, secret: Path) -> None:
    file.create_dataset("kspace", (1, 1, 16, 16), "c8", external=[(str(secret), 0, 2048)])


def external_link(file: h5py.File, secret: Path) -> None:
    with h5py.File(secret.with_suffix(".h5"), "w") as other:
        other["kspace"] = np.frombuffer(SECRET[:2048], np.complex64).reshape(1, 1, 16, 16)
    file["kspace"] = h5py.ExternalLink(str(secret.with_suffix(".h5")), "kspace")


def virtual_dataset(file: h5py.File, secret: Path) -> None:
    with h5py.File(secret.with_suffix(".h5"), "w") as other:
        other["kspace"] = np.frombuffer(SECRET[:2048], np.complex64).reshape(1, 1, 16, 16)
    layout = h5py.VirtualLayout((1, 1, 16, 16), "c8")
    layout[:] = h5py.VirtualSource(str(secret.with_suffix(".h5")), "kspace", (1, 1, 16, 16))
    file.create_virtual_dataset("kspace", layout)


def soft_link(file: h5py.File, secret: Path) -> None:
    file["real"] = np.ones((1, 1, 16, 16), np.complex64)
    file["kspace"] = h5py.SoftLink("/real")


def link_loop(file: h5py.File, secret: Path) -> None:
    file["kspace"] = h5py.SoftLink("/kspace")


def group_loop(file: h5py.File, secret: Path) -> None:
    file["kspace"] = file["/"]


def external_raw_data(file: h5py.File, secret: Path) -> None:
    file.create_group("dataset")
    file["dataset/data"] = np.ones(3)
    file["dataset/xml"] = h5py.ExternalLink(str(secret), "xml")


def huge_shape(file: h5py.File, secret: Path) -> None:
    file.create_dataset("kspace", (2**20, 2**12, 2**12, 64), "c8", chunks=(1, 1, 64, 64))


def huge_chunk(file: h5py.File, secret: Path) -> None:
    chunk = (1, 1, 2**15, 2**14)
    file.create_dataset("kspace", (1, 1, 16, 16), "c8", chunks=chunk, maxshape=(None,) * 4)


def unwritten(file: h5py.File, secret: Path) -> None:
    file.create_dataset("kspace", (64, 16, 256, 256), "c8", chunks=(1, 1, 256, 256))


def gzip_bomb(file: h5py.File, secret: Path) -> None:
    made = file.create_dataset("kspace", (16, 8, 512, 512), "c8", chunks=(1, 1, 512, 512), compression=9)
    squeezed = zlib.compress(bytes(512 * 512 * 8), 9)
    for index in range(16):
        for coil in range(8):
            made.id.write_direct_chunk((index, coil, 0, 0), squeezed)


def foreign_filter(file: h5py.File, secret: Path) -> None:
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_chunk((1, 1, 16, 16))
    creation.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, (1,))
    space = h5py.h5s.create_simple((1, 1, 16, 16))
    h5py.h5d.create(file.id, b"kspace", h5py.h5t.py_create(np.dtype("c8")), space, creation)


def references(file: h5py.File, secret: Path) -> None:
    file.create_dataset("kspace", (1, 1, 16, 16), h5py.ref_dtype)


def vlen_elements(file: h5py.File, secret: Path) -> None:
    file.create_dataset("kspace", (1, 1, 16, 16), h5py.vlen_dtype(np.float32))


def empty_dataset(file: h5py.File, secret: Path) -> None:
    file["kspace"] = h5py.Empty("c8")


def no_rows(file: h5py.File, secret: Path) -> None:
    file.create_dataset("kspace", (1, 1, 0, 16), "c8")


def many_names(file: h5py.File, secret: Path) -> None:
    for number in range(1100):
        file.create_group(str(number))


HOSTILE = [
    external_storage,
    external_link,
    virtual_dataset,
    soft_link,
    link_loop,
    group_loop,
    external_raw_data,
    huge_shape,
    huge_chunk,
    unwritten,
    gzip_bomb,
    foreign_filter,
    references,
    vlen_elements,
    empty_dataset,
    no_rows,
    many_names,
]


@pytest.mark.slow
def test_hostile_files_are_refused_by_name_within_a_second(
    tmp_path: Path, secret: Path, read_in_child: Callable[..., list]
) -> None:
    paths = []
    for make in HOSTILE:
        paths.append(tmp_path / f"{make.__name__}.h5")
        with h5py.File(paths[-1], "w") as file:
            make(file, secret)
    for outcome in read_in_child(paths, limit=2**29):
        assert outcome.kind == "InputError", outcome
        assert str(outcome.path) in outcome.message, outcome
        assert "secret of another" not in outcome.message
        assert outcome.seconds < 1, outcome


def test_a_truncated_file_is_refused_or_read_as_it_was(tmp_path: Path, fastmri_file: Path, scan: np.ndarray) -> None:
    whole = fastmri_file.read_bytes()
    path = tmp_path / "cut.h5"
    for tenth in range(10):
        path.write_bytes(whole[: len(whole) * tenth // 10])
        with pytest.raises(InputError, match=r"cut\.h5"):
            read(path, isolated=False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fastmri", "mrd"])
def test_bit_flips_never_crash_and_never_change_the_file(
    tmp_path: Path, scan: np.ndarray, fastmri_file: Path, mrd: type, kind: str, read_in_child: Callable[..., list]
) -> None:
    original = fastmri_file
    if kind == "mrd":
        original = mrd().add_scan(scan).write()
    whole = original.read_bytes()
    rng = np.random.default_rng(11)
    paths, digests = [], []
    for number in range(30):
        damaged = bytearray(whole)
        reach = len(whole) if number % 2 else min(len(whole), 4096)  # half of them in the metadata
        damaged[rng.integers(reach)] ^= 1 << rng.integers(8)
        paths.append(tmp_path / f"flip{number}.h5")
        paths[-1].write_bytes(damaged)
        digests.append(hashlib.sha256(damaged).hexdigest())
    outcomes = read_in_child(paths)
    for outcome in outcomes:
        if outcome.kind == "crash":  # a defect of the HDF5 library, which reading in isolation contains
            with pytest.raises(InputError):
                read(outcome.path)
    kinds = {outcome.kind for outcome in outcomes}
    assert kinds <= {"InputError", "KSpaceData", "crash"}
    assert "InputError" in kinds
    assert [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths] == digests


def test_the_memory_budget_is_a_setting(fastmri_file: Path, scan: np.ndarray) -> None:
    read(fastmri_file, limits=ReadLimits(max_bytes=scan.nbytes), isolated=False)
    with pytest.raises(InputError, match="max_bytes"):
        read(fastmri_file, limits=ReadLimits(max_bytes=scan.nbytes - 1), isolated=False)
