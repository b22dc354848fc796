"""Whole designs over a plane: deterministic, resumed to the same samples, better than chance, taught by innovations."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from mri_design import (
    ControlVariate,
    DesignEngine,
    DesignState,
    DoubleLoop,
    InformationGain,
    MRSlice,
    UntilError,
    UntilGain,
    load_phantom,
)
from mri_design.design import (
    CalibratedSamples,
    ExpectedError,
    Forecast,
    PlaneConstraints,
    Strategy,
    infer_slice,
    innovation,
)
from mri_design.readouts import PlaneReadouts
from tests.design.plane.conftest import plane_slice
from tests.refusals import refused

INFERENCE = DoubleLoop(ControlVariate(4, 0.03), outer_iterations=3, tolerance=0.03)
STRATEGIES = [CalibratedSamples(), CalibratedSamples(drawn=False), ExpectedError(), InformationGain()]


def engine(strategy: Strategy, seed: int = 0, block: int = 9, **rules: object) -> DesignEngine:
    constraints = PlaneConstraints(PlaneReadouts((16, 16)), **rules)  # type: ignore[arg-type]
    return DesignEngine(strategy, INFERENCE, seed=seed, block=block, constraints=constraints)


def designed(
    slices: list[MRSlice], made: DesignEngine, target: int = 60, callback: Callable[[DesignState], None] | None = None
) -> DesignState:
    start = made.constraints.start(slices[0].measured, 20)
    return made.run(slices, made.begin(slices, start), target, callback)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=["calibrated", "largest first", "expected error", "gain"])
def test_a_design_that_goes_on_is_the_same_design(strategy: Strategy) -> None:
    slices, made, states = [plane_slice()], engine(strategy), list[DesignState]()
    whole = designed(slices, made, callback=states.append)
    assert len(set(whole.trace.lines)) == 60 and [s.choice.pending for s in whole.trace.steps[:10]] == [*range(9), 0]
    again = made.run(slices, states[1], 60)
    assert again.trace.lines == whole.trace.lines == designed(slices, engine(strategy)).trace.lines


def test_blocks_keep_what_was_predicted_and_found() -> None:
    slices = [plane_slice(2)]
    state = designed(slices, engine(CalibratedSamples(disc_share=0.0)), target=38)
    steps = state.trace.steps
    assert all(step.found and step.outcome.actual_energy > 0 for step in steps)
    assert all(np.isnan(step.outcome.predicted_energy) for step in steps[:9])  # nothing was found to learn from
    assert all(step.outcome.predicted_energy > 0 for step in steps[9:])
    begun = [step.forecast for step in steps[9:] if not step.choice.pending]
    assert all(forecast.information > 0 and forecast.predicted_error > 0 for forecast in begun)
    assert all(step.forecast.expected is None for step in steps if step.choice.pending)
    assert sum(step.cost.matvecs > 0 for step in steps) == 2
    start = state.trace.start
    inference = replace(INFERENCE, outer_iterations=3)
    posterior, _ = infer_slice(slices[0], start, state.signals[0], inference, (0, 0))
    for step in steps[:9]:
        assert step.outcome.actual_energy == pytest.approx(innovation(slices[0], posterior.mean, step.line), rel=1e-3)


def test_nothing_is_believed_and_no_design_ends_before_the_first_innovations() -> None:
    slices, made = [plane_slice()], engine(CalibratedSamples())
    begun = made.begin(slices, made.constraints.start(slices[0].measured, 20))
    asked: list[float] = []

    def rule(forecast: Forecast) -> bool:
        asked.append(forecast.predicted_error)
        return UntilError(0.9)(forecast)

    end = made.run(slices, begun, 29, closing=True).trace.closing
    assert end is not None and 0 < end.predicted_error < 1
    trace = made.run(slices, begun, 60, stop=rule).trace
    assert len(trace.lines) == 29 and np.isnan(asked[0]) and 0 < asked[1] <= 0.9 and len(asked) == 2
    expected, corrected = trace.steps[0].forecast.expected, trace.steps[0].forecast.corrected
    assert expected is not None and corrected is not None
    assert np.array_equal(np.isnan(corrected), ~plane_mask(begun.trace.lines)) and np.all(expected > 0)
    assert np.isnan(trace.steps[0].forecast.information) and not UntilGain(1e9)(trace.steps[0].forecast)


def plane_mask(samples: Sequence[int]) -> np.ndarray:
    mask = np.zeros(256, dtype=bool)
    mask[list(samples)] = True
    return mask


def test_a_posterior_that_is_wrong_on_one_side_is_corrected() -> None:
    """Energies believed of samples are nearer to the actual ones than those that the posterior expects."""
    mr_slice = plane_slice(n=32)
    plane = mr_slice.candidates
    made = DesignEngine(CalibratedSamples(), INFERENCE, block=20, constraints=PlaneConstraints(PlaneReadouts((32, 32))))
    start = made.constraints.start(mr_slice.measured, 40)
    states: list[DesignState] = []
    trace = made.run([mr_slice], made.begin([mr_slice], start), 240, states.append).trace
    last = [s for s in trace.steps if s.choice.pending == 0][-1]
    data = load_phantom("brain", shape=(32, 32), rng=np.random.default_rng(0))
    assert data.reference is not None
    mean = states[-1].warm[0].mean
    actual = np.abs(plane.values(np.asarray(data.reference[0] - mean)[None])[0, 0, :, 0]) ** 2
    left = np.isfinite(last.choice.scores)
    expected, corrected = last.forecast.expected, last.forecast.corrected
    assert expected is not None and corrected is not None

    def off(energies: np.ndarray) -> float:  # deviance of exponential energies
        return float(np.mean(np.log(energies[left]) + actual[left] / energies[left]))

    assert off(corrected) < off(expected)


def test_lines_and_samples_do_not_share_a_design() -> None:
    data = load_phantom("brain", shape=(16, 16), rng=np.random.default_rng(0))
    with refused("slices"):
        engine(CalibratedSamples()).begin([plane_slice(), data.slice_model()], (136,))


@pytest.mark.parametrize("n_coils", [1, 4])
def test_energies_are_drawn_around_what_is_believed_with_the_shape_of_the_regression(n_coils: int) -> None:
    """One coil: an exponential distribution. Coils overlap, so that four count as two independent values."""
    slices = [plane_slice(n_coils, 32)]
    found = {}
    for drawn in (True, False, *((None,) if n_coils == 1 else ())):
        made = DesignEngine(
            CalibratedSamples(drawn=drawn), INFERENCE, block=40, constraints=PlaneConstraints(PlaneReadouts((32, 32)))
        )
        scores = designed(slices, made, 60).trace.steps[0].choice.scores
        assert scores is not None
        found[drawn] = scores[np.isfinite(scores)]
    factors = found[True] / found[False]
    assert np.mean(factors) == pytest.approx(1, abs=0.1)
    assert np.var(factors) == pytest.approx(1 / np.sqrt(n_coils), rel=0.25)
    if n_coils == 1:
        np.testing.assert_array_equal(found[None], found[True])
