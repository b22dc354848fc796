"""Slices that live in other processes give the design that this process would have made, whatever happens to them."""

import os
import pickle
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mri_design import (
    Checkpoint,
    Choice,
    DesignOptions,
    DesignState,
    DesignView,
    Forecast,
    MriDesignError,
    Recipe,
    SliceModel,
    Strategy,
    make_strategy,
    run_design,
)
from mri_design.design import KeptSlice, expected_energies
from mri_design.experiment import load_state
from mri_design.readouts import Readouts
from mri_design.runs import resident
from mri_design.runs.resident import ResidentSlices, keeper_of
from mri_design.runs.workers import Workers
from tests.slow_cases import slow_cases

TARGET = 11


class PlugPulledError(Exception):
    """Somebody pulled the plug."""


@pytest.fixture
def slices(phased_slice: SliceModel) -> list[SliceModel]:
    ramps = (np.exp(2j * np.pi * shift * np.arange(24) / 24) for shift in (0, 2, -1))
    return [replace(phased_slice, kspace=(phased_slice.kspace * ramp[:, None]).astype(np.complex64)) for ramp in ramps]


@pytest.fixture
def recipe(tiny: Recipe) -> Recipe:
    """One whose model of a slice follows its image while it designs."""
    return tiny.replacing("phase", model="aware")


def design(
    slices: list[SliceModel], recipe: Recipe, keeper: Any = None, strategy: Any = "information-gain", **options: Any
) -> DesignState:
    rule = make_strategy(strategy) if isinstance(strategy, str) else strategy
    return run_design(slices, rule, TARGET, recipe, seed=0, start=4, options=DesignOptions(keeper=keeper, **options))


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
class DrawsAgain(Strategy):
    """A strategy that uses the generator of a step again after the slices have drawn from theirs."""

    draws: int
    name: str = "draws again"

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        return 1

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        energies = [expected_energies(view.posteriors, view.readouts, rng, self.draws) for _ in range(2)]
        left = np.flatnonzero(view.candidates.remaining)
        return Choice(int(left[int(1e6 * (energies[1].sum() + rng.uniform())) % len(left)]), forecast=Forecast())


@dataclass(frozen=True)
class ByHand(Strategy):
    """A strategy of somebody who knows posteriors only as they are in one process."""

    name: str = "by hand"

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        return 1

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        total = sum(float(np.sum(posterior.image_variances)) for posterior in view.posteriors)
        assert [p.mean.shape for p in view.posteriors[:2]] == [(24, 16)] * 2
        left = np.flatnonzero(view.candidates.remaining)
        return Choice(int(left[int(1e6 * total) % len(left)]), forecast=Forecast())


@pytest.mark.parametrize("strategy", ["information-gain", *slow_cases("calibrated"), DrawsAgain(9), ByHand()])
def test_the_design_is_that_of_this_process(
    slices: list[SliceModel], recipe: Recipe, strategy: Any, two: Workers[Any]
) -> None:
    closing = isinstance(strategy, str)
    here = design(slices, recipe, strategy=strategy, closing=closing)
    with keeper_of(two, 3) as keeper:
        assert keeper is not None
        there = design(slices, recipe, keeper, strategy, closing=closing)
    if not closing:
        assert there.trace.lines == here.trace.lines
        return
    assert_same(there, here)
    np.testing.assert_array_equal(there.trace.closing.expected, here.trace.closing.expected)  # type: ignore[union-attr]


def test_nothing_but_requests_and_what_is_asked_for_travels(
    slices: list[SliceModel], recipe: Recipe, monkeypatch: pytest.MonkeyPatch, two: Workers[Any]
) -> None:
    """After the first request, with the slices, some bytes go to a process for every line and slice."""
    sent: list[int] = []
    with keeper_of(two, 3) as keeper:
        executor: Any = two.executor
        submit = executor.submit_at

        def counted(place: int, function: Any, *arguments: Any) -> Any:
            sent.append(len(pickle.dumps(arguments)))
            return submit(place, function, *arguments)

        monkeypatch.setattr(executor, "submit_at", counted)
        design(slices, recipe, keeper)
    whole = len(pickle.dumps(KeptSlice(slices[0], 1.0)))
    assert min(sent[:3]) > whole
    assert max(sent[3:]) < 5000


def test_the_slices_of_lost_processes_are_inferred_again(slices: list[SliceModel], recipe: Recipe) -> None:
    here = design(slices, recipe)
    with Workers(None, 2) as workers, keeper_of(workers, 3) as keeper:

        def kill(state: DesignState) -> None:
            if len(state.trace.lines) == 7:
                for place in (0, 1):
                    workers.executor.submit_at(place, ended, place)  # type: ignore[union-attr]

        there = design(slices, recipe, keeper, callback=kill)
    assert_same(there, here)


def test_a_slice_that_kills_every_process_ends_the_design(
    slices: list[SliceModel], recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident, "_performed", ended)
    with (
        pytest.raises(MriDesignError),
        Workers(None, 2) as workers,
        keeper_of(workers, 3) as keeper,
    ):
        design(slices, recipe, keeper)


def test_an_interruption_while_processes_work_loses_no_line(
    slices: list[SliceModel], recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, kept, shown = design(slices, recipe), Checkpoint(tmp_path / "c.npz", "me"), list[int]()
    with pytest.raises(KeyboardInterrupt), Workers(None, 2) as workers, keeper_of(workers, 3) as keeper:
        executor: Any = workers.executor
        outcome, answers = executor.outcome, list[int]()

        def interrupted(future: Any) -> Any:
            answers.append(len(answers))
            if len(answers) == 22:
                raise KeyboardInterrupt
            return outcome(future)

        monkeypatch.setattr(executor, "outcome", interrupted)
        options = {"checkpoint": kept, "callback": lambda state: shown.append(len(state.trace.lines))}
        design(slices, recipe, keeper, **options)
    assert len(load_state(kept).trace.lines) == shown[-1] > 5
    with Workers(None, 2) as workers, keeper_of(workers, 3) as keeper:
        assert_same(design(slices, recipe, keeper, checkpoint=kept), here)


def test_a_state_is_looked_at_before_the_design_goes_on(
    slices: list[SliceModel], recipe: Recipe, two: Workers[Any]
) -> None:
    states: list[DesignState] = []
    with keeper_of(two, 3) as keeper:
        design(slices, recipe, keeper, callback=states.append)
        assert len(states[0].warm) == 3 and states[0].trace.n_lines == 24
        with pytest.raises(MriDesignError):
            _ = states[0].warm[0]


@pytest.mark.thorough
class TestDask:
    def test_the_design_is_that_of_this_process(self, slices: list[SliceModel], recipe: Recipe, address: str) -> None:
        with Workers(None, 1, address) as workers, keeper_of(workers, 3) as keeper:
            assert isinstance(keeper, ResidentSlices)
            assert_same(design(slices, recipe, keeper), design(slices, recipe))
        assert not resident._kept  # the cluster's workers are threads of this process here

    @pytest.mark.slow
    def test_the_slices_of_a_lost_worker_are_inferred_again(self, slices: list[SliceModel], recipe: Recipe) -> None:
        pytest.importorskip("distributed")
        with Workers(None, 2, "dask") as workers, keeper_of(workers, 3) as keeper:

            def kill(state: DesignState) -> None:
                if len(state.trace.lines) == 7:
                    executor: Any = workers.executor
                    executor._client.restart_workers([executor._addresses[0]], raise_for_error=False)

            assert_same(design(slices, recipe, keeper, callback=kill), design(slices, recipe))
