"""Compiled loops stay out of the way: imported late, and at work where no cache can be written."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from mri_design.operators.kernels.compiling import compiled


def test_operators_are_imported_without_the_compiler():
    code = "import sys, mri_design.operators, mri_design.model; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})


def test_without_a_folder_for_the_cache_loops_are_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    whole = numba.njit

    def njit(*function: object, cache: bool = False, **options: object):
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return whole(*function, **options)

    monkeypatch.setattr(numba, "njit", njit)
    double = compiled(lambda x: x + x)
    assert double(2.0) == 4.0
    assert asked[:2] == [True, False]


@pytest.mark.slow
def test_compiled_loops_are_kept_on_disk(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "NUMBA_CACHE_DIR": str(tmp_path)}
    code = (
        "from mri_design.operators.kernels.fft import steps; import numpy as np; p = steps.plan(2, 'd');"
        "steps._masked_two(np.ones(16), 0, np.ones(2), 2, 4);"
        "print(sum(steps._masked_two.stats.cache_hits.values()))"
    )
    hits = [
        subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True, text=True).stdout
        for _ in range(2)
    ]
    assert [int(h) for h in hits] == [0, 1]


@pytest.mark.slow
def test_a_loop_that_another_process_wrote_over_is_compiled_anew(tmp_path: Path) -> None:
    """As where two processes compile one loop for different numbers at a time, and choose one file for both."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "NUMBA_CACHE_DIR": str(tmp_path)}
    code = (
        "from mri_design.operators.kernels.along import laplace_along; import numpy as np\n"
        "for number in (np.float32, np.float64):\n"
        "    x = np.arange(1, 9, dtype=number); print(laplace_along((x, x, x), x, x, 0.5, 1e-12))"
    )

    def told() -> str:
        done = subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True, text=True)
        return done.stdout

    first = told()
    single, double = sorted(tmp_path.rglob("*_laplace_along*.nbc"))
    double.write_bytes(single.read_bytes())
    assert told() == first
    assert double.read_bytes() != single.read_bytes()  # it is kept again


def test_a_change_of_any_file_of_loops_makes_the_cache_stale() -> None:
    from mri_design.operators.kernels import compiling, lanes
    from mri_design.operators.kernels.fft import steps

    names = {name for name, _, _ in compiled(lambda x: x)._cache._cache_file._source_stamp}
    files = [Path(module.__file__) for module in (compiling, lanes, steps)]
    assert {str(file.relative_to(files[0].parent)) for file in files} < names
