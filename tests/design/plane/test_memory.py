"""Designs that memory cannot hold are refused before they begin; what a design is said to take covers what it takes."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from mri_design import ControlVariate, DesignEngine, DoubleLoop, Recipe
from mri_design.design import CalibratedSamples, PlaneConstraints
from mri_design.experiment import available_memory, needed_memory, require_room
from mri_design.experiment import design as memory
from mri_design.readouts import PlaneReadouts
from tests.design.plane.conftest import plane_slice
from tests.refusals import refused

PLANE = PlaneReadouts((64, 64))


@pytest.mark.parametrize(("n_coils", "draws"), [(1, 8), pytest.param(8, 4, marks=pytest.mark.slow)])
def test_the_estimate_covers_the_peak_of_a_design_and_is_not_far_above(n_coils: int, draws: int) -> None:
    mr_slice, n, block = plane_slice(n_coils, 48), 48, 48
    made = DesignEngine(
        CalibratedSamples(draws=draws),
        DoubleLoop(ControlVariate(draws, 0.03), outer_iterations=2),
        block=block,
        constraints=PlaneConstraints(PlaneReadouts((n, n))),
    )
    begun = made.begin([mr_slice], made.constraints.start(mr_slice.measured, 256))
    made.run([mr_slice], begun, 256 + block)  # loads what is loaded once
    tracemalloc.start()
    try:
        made.run([mr_slice], begun, 256 + 3 * block)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 1 < needed_memory(PlaneReadouts((n, n)), n_coils, draws, 3) / peak < 4


def test_what_memory_cannot_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe().replacing("design", encoding="plane", block=20)
    needed = needed_memory(PLANE, 8, 8, 200)
    monkeypatch.setattr(memory, "available_memory", lambda: needed)
    require_room(PLANE, 8, 4000, recipe)
    with refused("candidates"):
        require_room(PLANE, 8, 4000, recipe, processes=2)
    monkeypatch.setattr(memory, "available_memory", lambda: needed - 1)
    with refused("candidates"):
        require_room(PLANE, 8, 4000, recipe)


def test_the_limit_of_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit: Callable[[str], int] = (tmp_path / "memory.max").write_text
    monkeypatch.setattr(memory, "CGROUP_LIMIT", tmp_path / "memory.max")
    installed = available_memory()  # there is no such file yet
    limit("max")
    assert available_memory() == installed > 2**20
    limit("1048576")
    assert available_memory() == 2**20
