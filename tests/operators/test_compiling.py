"""Compiled loops stay out of the way: imported late, and at work where no cache can be written."""

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from mri_design.operators.kernels.compiling import compiled


def test_of_processes_that_need_a_loop_at_once_one_compiles_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others wait, and take the code that it leaves. A lock of another file handle stands for another process."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    code = "def doubled(x): return 2 * x"
    file = tmp_path / "loops.py"
    file.write_text(code)
    names: dict[str, Any] = {"__name__": "loops", "__file__": str(file)}
    exec(compile(code, str(file), "exec"), names)
    first, second = compiled(names["doubled"]), compiled(names["doubled"])
    assert first(1.0) == 2.0 and list(first.stats.cache_misses.values()) == [1]
    (lock,) = tmp_path.rglob("*.lock")
    (index,) = tmp_path.rglob("*.nbi")
    index.rename(tmp_path / "away")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting = threading.Thread(target=second, args=(1.0,))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive() and not second.signatures
        (tmp_path / "away").rename(index)
    waiting.join(20)
    assert list(second.stats.cache_hits.values()) == [1] and not second.stats.cache_misses
    with lock.open() as free:
        fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused where it were held still


COMPILES = """
import os, sys, numpy as np
from mri_design.operators.kernels.copies import pulled
if sys.argv[1:] == ["gone"]:
    import pathlib, shutil
    folder = pathlib.Path(os.environ["NUMBA_CACHE_DIR"]); shutil.rmtree(folder); folder.write_text("in the way")
def work(number):
    x = np.arange(1, 9, dtype=number)
    return pulled(x, 3 * x, 0.5)
"""
SERIAL = COMPILES + "print(work(float))"


@pytest.fixture(scope="module")
def unwritable(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process whose folders cannot be written, for whichever user: they lie below a file."""
    file = tmp_path_factory.mktemp("cache") / "file"
    file.write_text("no folder")
    below = str(file / "below")
    path = os.pathsep.join(sys.path)
    return os.environ | {"NUMBA_CACHE_DIR": below, "HOME": below, "XDG_CACHE_HOME": below, "PYTHONPATH": path}


def ran(code: str, environment: dict[str, str], folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """``code`` as a file, as workers load it again."""
    file = folder / "code.py"
    file.write_text(code)
    command = [sys.executable, str(file), *words]
    return subprocess.run(command, check=True, env=environment, capture_output=True, text=True)


NOT_KEPT = "mri-design: compiled loops cannot be kept"


def read_only(code: str) -> str:
    """``code`` where the package's own folder takes no cache either, as one that belongs to another user."""
    return (
        "from numba.core.caching import InTreeCacheLocator as Own, UserWideCacheLocator as Wide\n"
        "Own.from_function = Wide.from_function = classmethod(lambda *_: None)\n" + code
    )


@pytest.mark.thorough
def test_without_a_folder_for_the_cache_loops_are_compiled_all_the_same_and_it_is_said_once(
    unwritable: dict[str, str], tmp_path: Path
) -> None:
    kept = ran(SERIAL, unwritable | {"NUMBA_CACHE_DIR": str(tmp_path)}, tmp_path)
    anew = ran(read_only(SERIAL), unwritable, tmp_path)
    assert anew.stdout == kept.stdout and kept.stderr == ""
    assert anew.stderr.startswith(NOT_KEPT) and anew.stderr.count("\n") == 1 and "NUMBA_CACHE_DIR" in anew.stderr


@pytest.mark.slow
@pytest.mark.thorough
def test_a_loop_that_another_process_wrote_over_is_compiled_anew(tmp_path: Path) -> None:
    """As where two processes compile one loop for different numbers at a time, and choose one file for both."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "NUMBA_CACHE_DIR": str(tmp_path)}
    code = (
        "from mri_design.operators.kernels.copies import pulled; import numpy as np\n"
        "for number in (np.float32, np.float64):\n"
        "    x = np.arange(1, 9, dtype=number); print(pulled(x, 3 * x, 0.5))"
    )

    def told() -> str:
        done = subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True, text=True)
        return done.stdout

    first = told()
    single, double = sorted(tmp_path.rglob("*_pulled*.nbc"))
    double.write_bytes(single.read_bytes())
    assert told() == first
    assert double.read_bytes() != single.read_bytes()  # it is kept again


def test_a_change_of_any_file_of_loops_makes_the_cache_stale() -> None:
    from mri_design.operators.kernels import compiling, fft

    names = {name for name, _, _ in compiled(lambda x: x)._cache._cache_file._source_stamp}
    files = [Path(module.__file__) for module in (compiling, fft)]
    assert {str(file.relative_to(files[0].parent)) for file in files} < names
