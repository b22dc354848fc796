"""Workers give results in order wherever they are computed; what kills its process is found, and the others finish."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from mri_design import InputError, MriDesignError, UsageError
from mri_design.errors import MissingPackageError
from mri_design.runs import workers
from mri_design.runs.workers import Workers, require_executor

ROOT = Path(__file__).parents[2]


def product(material: int, item: int) -> int:
    return material * item


def killed(material: object, item: int) -> int:
    if item == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return 3 * item


def killed_once(folder: Path, item: int) -> int:
    seen = folder / str(item)
    if item == 2 and not seen.exists():
        seen.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 10 * item


def environment(material: str, item: str) -> tuple[str | None, str | None]:
    return os.environ.get(material), os.environ.get(item)


def own_number(material: object, item: int) -> int:
    return os.getpid()


def poisonous(material: int, item: int) -> int:
    if item == 2:
        raise ZeroDivisionError("an image of zeros")
    return material * item


def late(material: int, item: int) -> int:
    raise TimeoutError(item)


def refused(material: int, item: int) -> int:
    raise InputError(field="lines", got=str(item), wanted="more")


def others(workers, function):
    """What the pieces that do not fail give, before the error of the one that does."""
    got = []
    with pytest.raises(MriDesignError):
        for found in workers.finished(function, [1, 2, 3]):
            got.append(found)
    return got


def test_of_pieces_that_fail_the_others_finish_first() -> None:
    with Workers(3, 1) as workers:
        assert others(workers, poisonous) == [(0, 3), (2, 9)]
        with pytest.raises(ZeroDivisionError):
            list(workers.map(poisonous, [1, 2, 3]))
        with pytest.raises(InputError) as caught:
            list(workers.finished(refused, [1, 2]))
        assert caught.value.got == "1"  # at once


@pytest.mark.slow
def test_what_kills_its_process_is_found_and_the_others_finish() -> None:
    with Workers(3, 2) as workers:
        assert others(workers, killed) == [(0, 3), (2, 9)]
        for function, error in ((refused, InputError), (late, TimeoutError)):
            with pytest.raises(error):
                list(workers.map(function, [1, 2]))


@pytest.mark.slow
def test_a_piece_whose_process_was_lost_is_computed_again(tmp_path: Path) -> None:
    with Workers(tmp_path, 2) as workers:
        assert list(workers.map(killed_once, [1, 2, 3])) == [10, 20, 30]


PARENT = """
import os, sys, time
from mri_design.runs.workers import Workers
from tests.runs.test_workers import told_and_waiting

if __name__ == "__main__":
    with Workers(sys.argv[1], 2) as workers:
        list(workers.map(told_and_waiting, [1, 2]))
"""


def told_and_waiting(folder: str, item: int) -> None:
    Path(folder, str(item)).write_text(str(os.getpid()))
    time.sleep(600)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
def test_processes_end_with_the_one_that_began_them_also_where_it_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    parent = subprocess.Popen([sys.executable, script, tmp_path], env={**os.environ, "PYTHONPATH": str(ROOT)})
    told = [tmp_path / "1", tmp_path / "2"]
    within(60, lambda: all(path.exists() and path.read_text() for path in told))
    parent.kill()
    parent.wait()
    within(20, lambda: not any(Path("/proc", path.read_text()).exists() for path in told))


def within(seconds: float, true: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
def test_a_process_that_dies_idle_is_replaced_with_its_material() -> None:
    with Workers(3, 1 + 1) as workers:
        assert list(workers.map(product, [1, 2, 3])) == [3, 6, 9]
        executor = workers.executor
        process = executor.submit(own_number, 0).result()
        os.kill(process, signal.SIGKILL)
        within(20, lambda: not Path("/proc", str(process), "exe").exists())
        assert list(workers.map(product, [4, 5, 6])) == [12, 15, 18]


def test_work_that_is_ended_has_ended() -> None:
    """Else a pool's thread would end while the interpreter exits, which sometimes fails in the standard library."""
    before = set(threading.enumerate())
    with Workers(3, 2) as workers:
        assert list(workers.map(product, [4, 1])) == [12, 3]
        assert len(set(threading.enumerate()) - before) > 1
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("text", ["", "slurm", "local:1", "dask:", "local,dask"])
def test_other_executors_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        require_executor(text)


def test_without_dask_a_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(MissingPackageError):
        Workers(3, 2, "dask")


@pytest.mark.thorough
class TestDask:
    def test_a_poisonous_piece_is_told_of_when_the_others_are_done(self, address: str) -> None:
        with Workers(3, 1, address) as workers:
            assert others(workers, poisonous) == [(0, 3), (2, 9)]

    def test_no_scheduler_and_one_without_workers_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        distributed = pytest.importorskip("distributed")
        monkeypatch.setattr(workers, "PATIENCE", 0.2)
        options = {"dashboard_address": "127.0.0.1:0", "protocol": "tcp"}
        with distributed.LocalCluster(n_workers=0, processes=False, **options) as cluster:
            for address in ("tcp://127.0.0.1:9", cluster.scheduler_address):
                with pytest.raises(UsageError):
                    Workers(3, 1, f"dask:{address}")

    @pytest.mark.slow
    def test_workers_of_its_own_keep_freed_memory_and_compute_with_one_thread(self) -> None:
        config = pytest.importorskip("dask").config
        pytest.importorskip("distributed")
        before = dict(config.get("distributed.nanny.pre-spawn-environ"))
        with Workers("MALLOC_TRIM_THRESHOLD_", 1, "dask") as workers:
            assert list(workers.map(environment, ["OMP_NUM_THREADS"])) == [(None, "1")]
        assert config.get("distributed.nanny.pre-spawn-environ") == before

    @pytest.mark.slow
    def test_a_cluster_that_is_lost_begins_anew(self) -> None:
        pytest.importorskip("distributed")
        with Workers(3, 1, "dask") as workers:
            results, executor = workers.map(product, [1, 2, 3]), cast(Any, workers.executor)
            assert next(results) == 3
            executor._cluster.close()
            assert list(results) == [6, 9]
            executor._cluster.close()
            assert executor.each(1)[0].submit(product, 5).result() == 15

    @pytest.mark.slow
    def test_a_lost_worker_s_piece_is_computed_again_and_one_that_kills_is_found(self, tmp_path: Path) -> None:
        pytest.importorskip("distributed")  # whose settings are among those of dask once it is imported
        at_once = pytest.importorskip("dask").config.set({"distributed.scheduler.allowed-failures": 0})
        with at_once, Workers(tmp_path, 2, "dask") as workers:
            assert list(workers.map(killed_once, [1, 2, 3])) == [10, 20, 30]
            assert others(workers, killed) == [(0, 3), (2, 9)]
