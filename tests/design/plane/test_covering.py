"""Samples chosen by all that they tell of others, and masks that begin with a Poisson disc."""

from collections.abc import Callable

import numpy as np
import pytest

from mri_design import DesignEngine, DesignState, DoubleLoop
from mri_design.design.blocks import REACH, covering
from mri_design.design.constraints import PlaneConstraints
from mri_design.design.strategies.calibrated import CalibratedSamples
from mri_design.readouts import PlaneReadouts
from mri_design.variances.control_variate import ControlVariate
from tests.design.plane.conftest import plane_slice

PLANE = PlaneReadouts((16, 16))


def told(squared: np.ndarray, plane: PlaneReadouts) -> np.ndarray:
    """K(j - i) of every pair of samples (i, j), 0 beyond the reach."""
    apart = plane.frequencies[None] - plane.frequencies[:, None]
    near = (np.abs(apart) <= [min(REACH, (side - 1) // 2) for side in plane.grid]).all(axis=-1)
    place = np.clip(apart + np.array(plane.grid) // 2, 0, np.array(plane.grid) - 1)
    return np.where(near, squared[place[..., 0], place[..., 1]], 0.0)


@pytest.mark.parametrize("grid", [(8, 6), (20, 17), (3, 40), (1, 9)])
def test_covering_is_what_it_says_one_sample_after_another(grid: tuple[int, int]) -> None:
    plane, rng = PlaneReadouts(grid), np.random.default_rng(0)
    energies = rng.exponential(size=plane.size) * (rng.random(plane.size) < 0.7)
    squared = rng.random(grid) * np.exp(-np.sum(plane.frequencies**2, axis=1) / 9).reshape(grid)
    free = rng.random(plane.size) < 0.8
    shares, left, open_to, expected = told(squared, plane), energies.copy(), free.copy(), list[int]()
    for _ in range(count := min(25, int(free.sum()))):
        best = int(np.argmax(np.where(open_to, shares @ left, -np.inf)))
        left, open_to[best] = left * (1 - shares[best]), False
        expected.append(best)
    chosen, gains = covering(energies, squared, plane, free, count)
    assert chosen == expected
    np.testing.assert_allclose(gains, shares @ energies, atol=1e-12)


def engine(strategy: CalibratedSamples, **rules: object) -> DesignEngine:
    inference = DoubleLoop(ControlVariate(4, 0.03), outer_iterations=3, tolerance=0.03)
    return DesignEngine(strategy, inference, block=9, constraints=PlaneConstraints(PLANE, **rules))  # type: ignore[arg-type]


def designed(
    made: DesignEngine, coils: int = 4, callback: Callable[[DesignState], None] | None = None, **more: object
) -> DesignState:
    slices = [plane_slice(coils), plane_slice(coils, seed=1)]
    begun = made.begin(slices, made.constraints.start(slices[0].measured, 16))
    return made.run(slices, begun, 80, callback, **more)  # type: ignore[arg-type]


def test_the_disc_comes_first_and_without_inference() -> None:
    states: list[DesignState] = []
    trace = designed(engine(CalibratedSamples(disc_share=0.7)), callback=states.append).trace
    disc, blocks = trace.steps[: 56 - 16], trace.steps[56 - 16 :]
    assert [step.choice.pending for step in disc] == list(range(40))
    assert all(not step.cost.matvecs and step.forecast.expected is None for step in disc)
    assert [len(state.trace.lines) for state in states] == [56, 65, 74, 80]
    assert sum(step.cost.matvecs > 0 for step in blocks) == 3 and all(step.found for step in blocks)
    apart = PLANE.frequencies[[step.line for step in disc]]
    nearest = np.hypot(*(apart[:, None] - apart[None]).transpose(2, 0, 1)) + 99 * np.eye(40)
    assert nearest.min() > 1  # neighbours would be next to each other by chance


def test_a_design_that_goes_on_after_the_disc_is_the_same_design() -> None:
    made, states = engine(CalibratedSamples(), shutter=True, calibration=4), list[DesignState]()
    whole = designed(made, callback=states.append).trace
    slices = [plane_slice(4), plane_slice(4, seed=1)]
    for state in states[:2]:
        assert made.run(slices, state, 80).trace.lines == whole.lines
    assert np.all(PLANE.radius[list(whole.lines)] <= 1) and PLANE.mask(whole.lines)[6:10, 6:10].all()


def test_one_coil_and_designs_that_may_end_early_look_before_every_block() -> None:
    for state in (
        designed(engine(CalibratedSamples()), coils=1),
        designed(engine(CalibratedSamples()), stop=lambda step: False),
    ):
        assert [step.choice.pending for step in state.trace.steps[:10]] == [*range(9), 0]
        assert state.trace.steps[0].forecast.expected is not None
