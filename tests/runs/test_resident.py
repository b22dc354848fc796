"""Slices that live in other processes give the design that this process would have made, whatever happens to them."""

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import pytest

import mri_design as md
from mri_design.design import Choice, DesignState, DesignView, Forecast, Strategy, expected_energies
from mri_design.experiment import Checkpoint, DesignOptions, DesignPlan, design_engine, design_seed, load_state
from mri_design.readouts import Readouts
from mri_design.runs import resident
from mri_design.runs.resident import design_among
from mri_design.runs.workers import Processes, Workers
from tests.slow_cases import slow_cases

TARGET = 11


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


def ended(*about: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def two() -> Iterator[Workers[Any]]:
    """Two processes that no test ends."""
    with Workers(None, 2) as workers:
        yield workers


@dataclass(frozen=True)
class ByHand(Strategy):
    """A strategy of somebody who knows posteriors only as they are in one process."""

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
    closing = isinstance(strategy, str)
    here = design(slices, recipe, strategy=strategy, closing=closing)
    there = design(slices, recipe, two, strategy, closing=closing)
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
def test_the_slices_of_lost_processes_are_inferred_again(slices, recipe, tmp_path, monkeypatch, kept):
    """From the checkpoint, or from the beginning."""
    started, killed, each = list[int](), list[int](), Processes.each
    here = design(slices, recipe)

    def noted(self: Processes, most: int) -> list[Processes]:
        made = each(self, most)
        started.append(made[0].submit(process, None).result())
        return made

    def kill(state: DesignState) -> None:
        if len(state.trace.lines) == 7 and not killed:
            killed.append(started[0])
            os.kill(started[0], signal.SIGKILL)

    monkeypatch.setattr(Processes, "each", noted)
    options = {"checkpoint": Checkpoint(tmp_path / "c.npz", "me")} if kept else {}
    with Workers(None, 2) as workers:
        assert_same(design(slices, recipe, workers, callback=kill, **options), here)
    assert len(killed) == 1 and len(started) == 2


def process(*_: object) -> int:
    return os.getpid()


def test_a_slice_that_kills_every_process_ends_the_design(slices, recipe, monkeypatch):
    monkeypatch.setattr(resident, "_asked", ended)
    with pytest.raises(md.MriDesignError), Workers(None, 2) as workers:
        design(slices, recipe, workers)


def test_an_interruption_while_processes_work_loses_no_line(slices, recipe, tmp_path, monkeypatch):
    here, kept, shown, answers = design(slices, recipe), Checkpoint(tmp_path / "c.npz", "me"), list[int](), count()
    outcome = resident.outcome

    def interrupted(*about: Any) -> Any:
        if next(answers) == 22:
            raise KeyboardInterrupt
        return outcome(*about)

    with Workers(None, 2) as workers:
        with pytest.raises(KeyboardInterrupt), monkeypatch.context() as patch:
            patch.setattr(resident, "outcome", interrupted)
            design(slices, recipe, workers, checkpoint=kept, callback=lambda s: shown.append(len(s.trace.lines)))
        assert len(load_state(kept).trace.lines) == shown[-1] > 5
        assert_same(design(slices, recipe, workers, checkpoint=kept), here)


def test_a_state_is_looked_at_before_the_design_goes_on(slices, recipe, two):
    states: list[DesignState] = []
    design(slices, recipe, two, callback=states.append)
    assert len(states[0].warm) == 3 and states[0].trace.n_lines == 24
    with pytest.raises(md.MriDesignError):
        _ = states[0].warm[0]


@pytest.mark.thorough
class TestDask:
    def test_the_design_is_that_of_this_process(self, slices, recipe, address):
        with Workers(None, 1, address) as workers:
            assert_same(design(slices, recipe, workers), design(slices, recipe))
            time.sleep(0.1)
        assert not resident._kept  # the cluster's workers are threads of this process here

    @pytest.mark.slow
    def test_the_slices_of_a_lost_worker_are_inferred_again(self, slices, recipe):
        pytest.importorskip("distributed")
        lost: list[str] = []
        with Workers(None, 2, "dask") as workers:
            executor: Any = workers.executor

            def kill(state: DesignState) -> None:
                if len(state.trace.lines) == 7 and not lost:
                    lost.extend(executor.addresses()[:1])
                    executor._client.restart_workers(lost, raise_for_error=False)

            assert_same(design(slices, recipe, workers, callback=kill), design(slices, recipe))
