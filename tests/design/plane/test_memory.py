"""Designs that memory cannot hold are refused before they begin; what a design is said to take covers what it takes."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from mri_design import ControlVariate, DesignEngine, DoubleLoop, InputError
from mri_design.design.constraints import PlaneConstraints
from mri_design.design.strategies.calibrated import CalibratedSamples
from mri_design.experiment import design as memory
from mri_design.experiment.design import available_memory, needed_memory, require_memory
from mri_design.readouts import PlaneReadouts
from tests.design.plane.conftest import plane_slice

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


def test_it_grows_with_candidates_coils_draws_blocks_and_slices() -> None:
    least = needed_memory(PLANE, 2, 8, 10)
    assert needed_memory(PlaneReadouts((128, 64)), 2, 8, 10) == 2 * least
    for more in ((PLANE, 4, 8, 10), (PLANE, 2, 16, 10), (PLANE, 2, 8, 20), (PLANE, 2, 8, 10, 2)):
        assert needed_memory(*more) > least


def test_what_memory_cannot_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = needed_memory(PLANE, 8, 8, 200)
    monkeypatch.setattr(memory, "available_memory", lambda: needed)
    require_memory(PLANE, 8, 8, 200)
    monkeypatch.setattr(memory, "available_memory", lambda: needed - 1)
    with pytest.raises(InputError, match=r"candidates: got 4096 samples of a plane with 8 coils.*the memory"):
        require_memory(PLANE, 8, 8, 200)
    monkeypatch.setattr(memory, "available_memory", lambda: needed)
    with pytest.raises(InputError, match=r"in 2 processes.*jobs"):
        require_memory(PLANE, 8, 8, 200, processes=2)


def test_the_limit_of_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit: Callable[[str], int] = (tmp_path / "memory.max").write_text
    monkeypatch.setattr(memory, "CGROUP_LIMIT", tmp_path / "memory.max")
    installed = available_memory()  # there is no such file yet
    limit("max")
    assert available_memory() == installed > 2**20
    limit("1048576")
    assert available_memory() == 2**20
