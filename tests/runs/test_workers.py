"""Pieces and slices in other processes give what this process would give; what kills its process is found."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import mri_design as md
from mri_design import InputError, MriDesignError, UsageError
from mri_design.design import Choice, DesignState, DesignView, Forecast, Strategy, expected_energies
from mri_design.errors import MissingPackageError
from mri_design.experiment import Checkpoint, DesignOptions, DesignPlan, design_engine, design_seed, load_state
from mri_design.readouts import Readouts
from mri_design.runs import workers
from mri_design.runs.workers import Workers, design_among, require_executor
from tests.slow_cases import slow_cases

ROOT = Path(__file__).parents[2]
TARGET = 11


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


def process(*_: object) -> int:
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
    """Results of the pieces that do not fail, before the error of the one that does."""
    got = []
    with pytest.raises(MriDesignError):
        for found in workers.finished(function, [1, 2, 3]):
            got.append(found)
    return got


def within(seconds: float, true: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture(scope="module")
def two() -> Iterator[Workers[Any]]:
    """Two processes."""
    with Workers(3, 2) as workers:
        yield workers


def test_of_pieces_that_fail_the_others_finish_first() -> None:
    with Workers(3, 1) as workers:
        assert others(workers, poisonous) == [(0, 3), (2, 9)]
        with pytest.raises(ZeroDivisionError):
            list(workers.map(poisonous, [1, 2, 3]))
        with pytest.raises(InputError) as caught:
            list(workers.finished(refused, [1, 2]))
        assert caught.value.got == "1"  # at once


@pytest.mark.slow
def test_what_kills_its_process_is_found_and_the_others_finish(two) -> None:
    assert others(two, killed) == [(0, 3), (2, 9)]
    for function, error in ((refused, InputError), (late, TimeoutError)):
        with pytest.raises(error):
            list(two.map(function, [1, 2]))
    idle = two.executor.submit(process, 0).result()
    os.kill(idle, signal.SIGKILL)
    within(20, lambda: not Path("/proc", str(idle), "exe").exists())
    assert list(two.map(product, [4, 5, 6])) == [12, 15, 18]  # in new processes, which have the material


@pytest.mark.slow
def test_a_piece_whose_process_was_lost_is_computed_again_and_ended_work_has_ended(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with Workers(tmp_path, 2) as workers:
        assert list(workers.map(killed_once, [1, 2, 3])) == [10, 20, 30]
        assert len(set(threading.enumerate()) - before) > 0
    assert set(threading.enumerate()) <= before


PARENT = """
import signal
import sys
from mri_design.runs.workers import Workers
from tests.runs.test_workers import waiting

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell in the background has its children ignore
    with Workers(sys.argv[1], 2) as workers:
        list(workers.map(waiting, [1, 2]))
"""


@pytest.mark.slow
def test_a_script_whose_processes_would_run_it_again_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "bare.py"
    script.write_text("from mri_design.runs.workers import Workers\nlist(Workers(2, 2).map(pow, [1, 2]))\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=60)
    last = ended.stderr.splitlines()[-1]
    assert "UsageError" in last and "__main__" in last


def waiting(folder: str, item: int) -> None:
    Path(folder, str(item)).write_text(str(os.getpid()))
    time.sleep(600)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
def test_processes_end_with_the_command(tmp_path: Path, by: signal.Signals) -> None:
    """Where it is killed, or interrupted in all its processes."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (tmp_path / "errors").open("wb") as errors:
        parent = subprocess.Popen(
            [sys.executable, script, tmp_path], env=environment, start_new_session=True, stderr=errors
        )
    known = [tmp_path / "1", tmp_path / "2"]
    within(60, lambda: all(path.exists() and path.read_text() for path in known))
    if by == signal.SIGKILL:
        parent.kill()
    else:
        os.killpg(parent.pid, by)
    parent.wait(timeout=30)
    assert (tmp_path / "errors").read_bytes().count(b"KeyboardInterrupt\n") == (by == signal.SIGINT)  # its own alone
    within(20, lambda: not any(Path("/proc", path.read_text(), "exe").exists() for path in known))


@pytest.mark.parametrize("text", ["", "slurm", "local:1", "dask:", "local,dask"])
def test_other_executors_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        require_executor(text)


def test_without_dask_a_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingPackageError):
        Workers(3, 2, "dask")


@pytest.fixture
def slices(phased_slice: md.SliceModel) -> list[md.SliceModel]:
    ramps = (np.exp(2j * np.pi * shift * np.arange(24) / 24) for shift in (0, 2, -1))
    return [replace(phased_slice, kspace=(phased_slice.kspace * ramp[:, None]).astype(np.complex64)) for ramp in ramps]


@pytest.fixture
def recipe(tiny: md.Recipe) -> md.Recipe:
    """One whose model of a slice follows its image while it designs."""
    return tiny.replacing("phase", model="aware")


def design(slices, recipe, workers=None, strategy="information-gain", **options):
    rule = md.make_strategy(strategy) if isinstance(strategy, str) else strategy
    given = DesignOptions(**options)
    if workers is None:
        return md.run_design(slices, rule, TARGET, recipe, seed=0, start=4, options=given)
    plan = DesignPlan.of(rule, recipe, slices[0].candidates)
    first = plan.rules.start(slices[0].measured, 4)
    return design_among(workers, design_engine(plan, recipe, design_seed(0)), slices, first, TARGET, given)


def assert_same(one: DesignState, other: DesignState) -> None:
    assert one.trace.lines == other.trace.lines
    for a, b in zip(one.trace.steps, other.trace.steps, strict=True):
        np.testing.assert_array_equal(a.choice.scores, b.choice.scores)
    assert len(one.warm) == len(other.warm) == 3
    for first, second in zip(one.warm, other.warm, strict=True):
        np.testing.assert_array_equal(first.mean, second.mean)


@dataclass(frozen=True)
class ByHand(Strategy):
    """A user's strategy, which knows posteriors only as they are in one process."""

    name: str = "by hand"

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        return 1

    def total(self, view: DesignView, rng: np.random.Generator) -> float:
        assert [p.mean.shape for p in view.posteriors[:2]] == [(24, 16)] * 2
        return sum(float(np.sum(posterior.image_variances)) for posterior in view.posteriors)

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        left = np.flatnonzero(view.candidates.remaining)
        return Choice(int(left[int(1e6 * self.total(view, rng)) % len(left)]), forecast=Forecast())


@dataclass(frozen=True)
class DrawsAgain(ByHand):
    """A strategy that uses the generator of a step again after the slices have drawn from theirs."""

    name: str = "draws again"

    def total(self, view: DesignView, rng: np.random.Generator) -> float:
        energies = [expected_energies(view.posteriors, view.readouts, rng, 9) for _ in range(2)]
        return energies[1].sum() + rng.uniform()


@pytest.mark.parametrize("strategy", ["information-gain", *slow_cases("calibrated"), DrawsAgain(), ByHand()])
def test_the_design_is_that_of_this_process(slices, recipe, strategy, two, tmp_path):
    """Also in blocks of which the last one is cut off, so that the state before it is kept."""
    closing, frames = isinstance(strategy, str), (list[Any](), list[Any]())
    watches = [lambda moment, seen=seen: seen.append(moment.frame()) for seen in frames]
    here = design(slices, recipe, strategy=strategy, closing=closing, watch=watches[0])
    there = design(slices, recipe, two, strategy, closing=closing, watch=watches[1])
    for one, other in zip(*frames, strict=True):
        np.testing.assert_array_equal(one.image, other.image)
        np.testing.assert_equal(one.deviation, other.deviation)
    if strategy == "information-gain":
        blocks = recipe.replacing("design", block=3)
        states = [Checkpoint(tmp_path / f"{name}.npz", "me") for name in "ab"]
        for workers, kept in zip((None, two), states, strict=True):
            design(slices, blocks, workers, strategy, closing=True, checkpoint=kept)
        assert_same(*map(load_state, states))
    if not closing:
        assert there.trace.lines == here.trace.lines
        return
    assert_same(there, here)
    np.testing.assert_array_equal(there.trace.closing.expected, here.trace.closing.expected)  # type: ignore[union-attr]


@pytest.mark.parametrize("kept", [True, False])
def test_the_slices_of_lost_processes_are_inferred_again(slices, recipe, two, tmp_path, kept):
    """From the checkpoint, or from the beginning."""
    here, killed = design(slices, recipe), list[int]()

    def kill(state: DesignState) -> None:
        if len(state.trace.lines) == 7 and not killed:
            killed.append(two.executor.submit(process, None, 0).result())
            os.kill(killed[0], signal.SIGKILL)

    options = {"checkpoint": Checkpoint(tmp_path / "c.npz", "me")} if kept else {}
    assert_same(design(slices, recipe, two, callback=kill, **options), here)
    assert len(killed) == 1


def ended(*about: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_slice_that_kills_every_process_ends_the_design(slices, recipe, two, monkeypatch):
    monkeypatch.setattr(workers, "_call_on_slice", ended)
    with pytest.raises(md.MriDesignError):
        design(slices, recipe, two)


def test_an_interruption_while_processes_work_loses_no_line(slices, recipe, two, tmp_path, monkeypatch):
    here, kept, shown, answers = design(slices, recipe), Checkpoint(tmp_path / "c.npz", "me"), list[int](), count()
    is_lost = workers.is_lost

    def interrupted(*about: Any) -> Any:
        if next(answers) == 22:
            raise KeyboardInterrupt
        return is_lost(*about)

    with pytest.raises(KeyboardInterrupt), monkeypatch.context() as patch:
        patch.setattr(workers, "is_lost", interrupted)
        design(slices, recipe, two, checkpoint=kept, callback=lambda s: shown.append(len(s.trace.lines)))
    assert len(load_state(kept).trace.lines) == shown[-1] > 5
    assert_same(design(slices, recipe, two, checkpoint=kept), here)


def test_a_state_is_looked_at_before_the_design_goes_on(slices, recipe, two):
    states: list[DesignState] = []
    design(slices, recipe, two, callback=states.append)
    assert len(states[0].warm) == 3 and states[0].trace.n_lines == 24
    with pytest.raises(md.MriDesignError):
        _ = states[0].warm[0]


class TestDask:
    @pytest.mark.slow
    def test_a_local_cluster_of_two_processes_gives_the_same_and_replaces_what_is_lost(self, slices, recipe):
        """With workers that keep freed memory and compute with one thread."""
        pytest.importorskip("distributed")
        config, lost = pytest.importorskip("dask").config, list[str]()
        before = dict(config.get("distributed.nanny.pre-spawn-environ"))
        with Workers("OMP_NUM_THREADS", 2, "dask") as workers:
            (found,) = workers.map(environment, ["MALLOC_TRIM_THRESHOLD_"])
            assert found[0] == "1" and int(found[1]) > int(before["MALLOC_TRIM_THRESHOLD_"])
            executor: Any = workers.executor

            def kill(state: DesignState) -> None:
                if len(state.trace.lines) == 7 and not lost:
                    lost.extend(executor.addresses()[:1])
                    executor._client.restart_workers(lost, raise_for_error=False)

            assert_same(design(slices, recipe, workers, callback=kill), design(slices, recipe))
        assert lost and config.get("distributed.nanny.pre-spawn-environ") == before

    @pytest.mark.thorough
    def test_slices_are_forgotten_and_a_poisonous_piece_is_reported_last(self, slices, recipe, address):
        with Workers(3, 1, address) as among:
            assert others(among, poisonous) == [(0, 3), (2, 9)]
            assert_same(design(slices, recipe, among), design(slices, recipe))
            time.sleep(0.1)
        assert not workers._kept  # the cluster's workers are threads of this process here

    @pytest.mark.thorough
    def test_no_scheduler_and_one_without_workers_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        distributed = pytest.importorskip("distributed")
        monkeypatch.setattr(workers, "PATIENCE", 0.2)
        options = {"dashboard_address": "127.0.0.1:0", "protocol": "tcp"}
        with distributed.LocalCluster(n_workers=0, processes=False, **options) as cluster:
            for address in ("tcp://127.0.0.1:9", cluster.scheduler_address):
                with pytest.raises(UsageError):
                    Workers(3, 1, f"dask:{address}")

    @pytest.mark.thorough
    @pytest.mark.slow
    def test_a_cluster_that_is_lost_begins_anew(self) -> None:
        pytest.importorskip("distributed")
        with Workers(3, 1, "dask") as workers:
            results, executor = workers.map(product, [1, 2, 3]), cast(Any, workers.executor)
            assert next(results) == 3
            executor._cluster.close()
            assert list(results) == [6, 9]
            executor._cluster.close()
            assert executor.submit(product, 5, executor.places(1)[0]).result() == 15

    @pytest.mark.thorough
    @pytest.mark.slow
    def test_a_lost_worker_s_piece_is_computed_again_and_one_that_kills_is_found(self, tmp_path: Path) -> None:
        pytest.importorskip("distributed")  # whose settings are among those of dask once it is imported
        at_once = pytest.importorskip("dask").config.set({"distributed.scheduler.allowed-failures": 0})
        with at_once, Workers(tmp_path, 2, "dask") as workers:
            assert list(workers.map(killed_once, [1, 2, 3])) == [10, 20, 30]
            assert others(workers, killed) == [(0, 3), (2, 9)]
