"""A file is complete or absent, whatever happens while it is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mri_design.scan.io import atomic
from tests.refusals import refuses

_LIMITED = """
import resource, sys
import numpy as np
from mri_design.scan.io import atomic
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
path = sys.argv[1]
writers = {
    "npy": lambda: atomic.write_npy(path, np.ones(5000)),
    "npz": lambda: atomic.write_npz(path, {"a": np.ones(5000)}),
    "bytes": lambda: atomic.write_bytes(path, bytes(40000)),
}
for write in writers.values():
    try:
        write()
    except OSError as error:
        assert error.filename == path, error.filename
    else:
        sys.exit("written")
"""

_KILLED = """
import os, signal, sys
from mri_design.scan.io import atomic
os.replace = lambda *places: os.kill(os.getpid(), signal.SIGKILL)
atomic.write_bytes(sys.argv[1], b"new")
"""


def test_a_size_limit_leaves_the_old_file_and_names_the_path(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    atomic.write_bytes(path, b"old")
    subprocess.run([sys.executable, "-c", _LIMITED, str(path)], check=True)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["checkpoint"]


def test_a_killed_write_leaves_the_old_file_and_a_removable_temporary(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(b"old")
    (tmp_path / ".other").write_bytes(b"not ours")
    child = subprocess.run([sys.executable, "-c", _KILLED, str(path)], check=False)
    assert child.returncode == -9
    assert path.read_bytes() == b"old"
    assert len(os.listdir(tmp_path)) == 3
    assert len(atomic.remove_stale_temporaries(tmp_path)) == 1
    assert sorted(os.listdir(tmp_path)) == [".other", "checkpoint"]
    (tmp_path / ".mri-design-0.partial").symlink_to(path)
    (tmp_path / ".mri-design-1.partial").mkdir()
    assert atomic.remove_stale_temporaries(tmp_path) == [] and path.exists()


@pytest.mark.parametrize("place", ["no/such/folder/file", "file/inside", "folder"])
def test_an_impossible_place_is_an_error_with_the_path(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError) as caught:
        atomic.write_text(tmp_path / place, "new")
    assert caught.value.filename == str(tmp_path / place)
    assert (tmp_path / "file").read_bytes() == b"old" and sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "outside")
    refuses("link", atomic.write_bytes, tmp_path / "link", b"new")
    assert (tmp_path / "outside").read_bytes() == b"old"


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12.0).reshape(3, 4),
        np.asfortranarray(np.arange(12).reshape(3, 4)),
        np.arange(24).reshape(4, 6)[::2, ::3],
        np.array(3.5),
        np.zeros((0, 3), np.complex64),
        np.array(["a", "bc"]),
        np.array([True, False]),
    ],
    ids=["c", "fortran", "strided", "scalar", "empty", "text", "flags"],
)
def test_arrays_come_back_as_numpy_itself_reads_them(tmp_path: Path, array: np.ndarray) -> None:
    atomic.write_npy(tmp_path / "a.npy", array)
    for name in ("a.npz", "b.npz"):
        atomic.write_npz(tmp_path / name, {"first": array, "second": array})
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    single, both = np.load(tmp_path / "a.npy"), np.load(tmp_path / "a.npz")
    for got in (single, both["first"], both["second"]):
        np.testing.assert_array_equal(got, array)
        assert (got.dtype, got.shape) == (array.dtype, array.shape)


def test_objects_and_foreign_names_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    refuses("a.npy", atomic.write_npy, tmp_path / "a.npy", np.array([object()]))
    refuses("a.npz: member name", atomic.write_npz, tmp_path / "a.npz", {"../evil": np.ones(2)})
    assert os.listdir(tmp_path) == []


def test_json_is_strict_and_takes_numpy_numbers(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    atomic.write_json(path, {"lines": np.arange(3), "score": np.float32(0.5), "name": "σ²"})
    assert json.loads(path.read_text(encoding="utf-8")) == {"lines": [0, 1, 2], "score": 0.5, "name": "σ²"}
    for bad in (float("nan"), object(), {1, 2}):
        refuses("record.json", atomic.write_json, path, {"bad": bad})
    assert json.loads(path.read_text(encoding="utf-8"))["score"] == 0.5


def test_new_files_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        atomic.write_text(tmp_path / "report.html", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "report.html").stat().st_mode & 0o777 == 0o640
