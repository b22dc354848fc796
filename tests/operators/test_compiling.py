"""Compiled loops are kept, renewed where a file changes, and at work where no cache can be written."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.errors import NumbaError

from mri_design.operators.kernels.compiling import compiled, load, store

COMPILES = """
import numpy as np
from mri_design.operators.kernels.pixels import pulled
x = np.arange(1.0, 9)
print(pulled(x, 3 * x, 0.5))
"""
# The package's own folder takes no cache either, as one that belongs to another user.
READ_ONLY = """
from numba.core.caching import InTreeCacheLocator as Own, UserWideCacheLocator as Wide
Own.from_function = Wide.from_function = classmethod(lambda *_: None)
"""


@pytest.mark.thorough
def test_without_a_folder_for_the_cache_loops_are_compiled_all_the_same(tmp_path: Path) -> None:
    """Folders that lie below a file cannot be written, for whichever user."""
    (tmp_path / "file").write_text("no folder")
    below, file = str(tmp_path / "file" / "below"), tmp_path / "code.py"
    unwritable = {"NUMBA_CACHE_DIR": below, "HOME": below, "XDG_CACHE_HOME": below}

    def ran(code: str, **folders: str) -> subprocess.CompletedProcess[str]:
        file.write_text(code)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | folders
        return subprocess.run([sys.executable, str(file)], check=True, env=environment, capture_output=True, text=True)

    kept, anew = ran(COMPILES, NUMBA_CACHE_DIR=str(tmp_path)), ran(READ_ONLY + COMPILES, **unwritable)
    assert anew.stdout == kept.stdout and kept.stderr == ""
    assert anew.stderr.count("\n") == 1 and "NUMBA_CACHE_DIR" in anew.stderr


@pytest.mark.slow
@pytest.mark.thorough
def test_a_loop_that_another_process_wrote_over_is_compiled_anew(tmp_path: Path) -> None:
    """As where two processes compile one loop for different numbers at a time, and choose one file for both."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "NUMBA_CACHE_DIR": str(tmp_path)}
    code = (
        "from mri_design.operators.kernels.pixels import pulled; import numpy as np\n"
        "for number in (np.float32, np.float64):\n"
        "    x = np.arange(1, 9, dtype=number); print(pulled(x, 3 * x, 0.5))"
    )

    def printed() -> str:
        done = subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True, text=True)
        return done.stdout

    first = printed()
    single, double = sorted(tmp_path.rglob("*_pulled*.nbc"))
    double.write_bytes(single.read_bytes())
    assert printed() == first
    assert double.read_bytes() != single.read_bytes()  # it is kept again


def test_a_loop_whose_cache_cannot_be_written_or_read_is_compiled(tmp_path: Path, monkeypatch) -> None:
    """As on a disk that has become full, and behind an index that another version left with its code."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    def twice(x):
        return 2 * x

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(os, "replace", full)
        assert compiled(twice)(2) == 4
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]
    older = compiled(twice)
    older._cache._cache_file._source_stamp = "an older version"
    older(2)
    (code,) = tmp_path.rglob("*.nbc")
    before = code.read_bytes()
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(type(older._cache._cache_file), "_save_data", full)  # the index was written in time
        assert compiled(twice)(2) == 4
    newer = compiled(twice)
    assert newer(2) == 4 and not newer.stats.cache_hits and code.read_bytes() != before
    again = compiled(twice)
    assert again(2) == 4 and again.stats.cache_hits


def test_a_change_of_any_file_of_loops_makes_the_cache_stale() -> None:
    from mri_design.operators.kernels import compiling, fft

    names = {name for name, _, _ in compiled(lambda x: x)._cache._cache_file._source_stamp}
    files = [Path(module.__file__) for module in (compiling, fft)]
    assert {str(file.relative_to(files[0].parent)) for file in files} < names


def test_registers_are_read_and_written_in_flat_contiguous_arrays_alone() -> None:
    @numba.njit
    def copied(source, target):
        store(target, 0, load(source, 0))

    source, target = np.arange(1.0, 33), np.zeros(32)
    copied(source, target)
    assert np.array_equal(target[target > 0], source[: np.count_nonzero(target)]) and target.any()
    for other in (source[::2], source.reshape(4, 8)):
        for arrays in ((other, target), (source, other)):
            with pytest.raises(NumbaError):
                copied(*arrays)
