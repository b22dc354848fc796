"""Which candidate model a design goes by: evidence, when rivals are inferred, resuming, blocks, several slices."""

from dataclasses import replace

import numpy as np
import pytest

from mri_design import (
    ControlVariate,
    DesignEngine,
    DesignState,
    DoubleLoop,
    InformationGain,
    InputError,
    MonteCarlo,
    MRSlice,
    WarmStart,
)
from mri_design.design.decision import DesignStep
from mri_design.design.model_choice import best_model, model_in_use, paired_energies, plan_models, rivals_due
from mri_design.design.strategies.line_masks import RandomLines
from mri_design.design.trace import DesignTrace
from mri_design.model.mr_image import phase_variants
from mri_design.model.phase import PhaseMap, PhasePrior
from mri_design.operators.base import Array
from mri_design.operators.cartesian import CentredFFT
from tests.design_steps import design_step

N = (32, 20)
START = (16, 15, 17, 14, 18, 13, 19, 12)
NAN = float("nan")
LOOP = DoubleLoop(ControlVariate(4), tolerance=0.03)


def textured(phase: Array, level: float = 1.0, seed: int = 0) -> MRSlice:
    """An object without structure to predict it by, so that only a phase tells of its mirrored lines."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: N[0], : N[1]] / np.array(N)[:, None, None] - 0.5
    image = level * (y**2 + x**2 < 0.2) * (0.2 + 0.8 * rng.uniform(size=N)) * np.exp(1j * phase)
    noise = 0.005 * (rng.standard_normal(N) + 1j * rng.standard_normal(N))
    kspace = CentredFFT(N)(image) + noise
    return MRSlice(kspace[None].astype(np.complex64), np.ones(N[0], bool), 0.005**2)


def smooth() -> Array:
    y, x = np.mgrid[: N[0], : N[1]] / np.array(N)[:, None, None] - 0.5
    return np.asarray(1.5 * y + 3 * x**2)


def rough() -> Array:
    return np.random.default_rng(2).uniform(-np.pi, np.pi, N)


def variants(one: MRSlice, image: Array) -> list[MRSlice]:
    return phase_variants(one, image, imaginary_ratios=(3.0,))


def engine(**settings: object) -> DesignEngine:
    choice = {"strategy": InformationGain(draws=6), "models": variants, **settings}
    return DesignEngine(inference=LOOP, **choice)  # type: ignore[arg-type]


def designed(slices: list[MRSlice], target: int = 26, **settings: object) -> DesignState:
    one = engine(**settings)
    return one.run(slices, one.begin(slices, START), target)


def steps(*rows: list[float], pending: int = 0) -> list[DesignStep]:
    return [design_step(i, models=(0,), model_energies=np.array([row]), pending=pending) for i, row in enumerate(rows)]


def test_only_lines_that_all_models_predicted_count() -> None:
    known = steps([4.0, 1.0], [NAN, 1.0], [4.0], [4.0, 2.0], [0.0, 1.0])
    np.testing.assert_array_equal(paired_energies(known, 0), [[4, 1], [4, 2]])
    assert paired_energies([design_step(0)], 0).shape == (0, 1)
    alone = steps(*[[4.0, 1.0]] * 3, *[[NAN, 1.0]] * 9)
    assert model_in_use(alone, 0, 2) == 0  # three pairs are too few, whatever came after
    assert model_in_use(steps(*[[4.0, 1.0]] * 4), 0, 2) == 1
    assert model_in_use(steps(*[[4.0, 1.0]] * 4), 0, 1) == 0  # the image shows no phase just now


def test_rivals_rest_once_the_evidence_is_clear_and_come_back_every_fourth_time() -> None:
    clear = [[4.0 + 0.1 * i, 1.0] for i in range(8)]
    assert rivals_due(steps(*clear[:7]), 0, 4)
    due = []
    rows = list(clear)
    for _ in range(8):
        due.append(rivals_due(steps(*rows), 0, 4))
        rows.append([4.0, 1.0] if due[-1] else [NAN, 1.0])
    assert due == [False, False, False, True, False, False, False, True]
    assert rivals_due(steps(*clear), 0, 1)
    unclear = [[1.0, 1.5 if i % 2 else 0.7] for i in range(12)]
    assert rivals_due(steps(*unclear), 0, 4)
    lost = [[1.0, 1.5 + 0.1 * i] for i in range(12)]
    assert not rivals_due(steps(*lost), 0, 4)


def test_lines_of_one_block_are_one_inference() -> None:
    clear = steps(*[[4.0 + 0.1 * i, 1.0] for i in range(8)])
    block = steps([NAN, 1.0]) + steps([NAN, 1.0], [NAN, 1.0], pending=1)
    assert not rivals_due([*clear, *block], 0, 4)
    assert not rivals_due([*clear, *block, *block], 0, 4)
    assert rivals_due([*clear, *block, *block, *block], 0, 4)


@pytest.mark.slow
def test_a_smooth_phase_is_used_and_a_rough_one_is_not() -> None:
    found = designed([textured(smooth())]).trace.steps
    used = [step.forecast.models[0] for step in found]
    assert used[:4] == [0, 0, 0, 0]  # nothing is staked on a phase that has predicted nothing
    assert np.mean(used[6:]) == 1
    paired = paired_energies(found, 0)
    gains = np.log(paired[:, 0] / paired[:, 1])
    assert gains.mean() > 0.25 and gains.mean() > 2 * gains.std(ddof=1) / np.sqrt(len(gains))
    assert not any(step.forecast.models[0] for step in designed([textured(rough())]).trace.steps)


def test_noise_alone_is_refused() -> None:
    with pytest.raises(InputError, match="noise only"):
        designed([textured(smooth(), level=0.0)], 14)


def test_a_faint_image_keeps_the_modulus_and_its_design() -> None:
    dark = textured(smooth(), level=0.007)
    found, plain = designed([dark], 14), designed([dark], 14, models=None)
    assert found.trace.lines == plain.trace.lines
    assert all(step.forecast.models == (0,) and step.outcome.model_energies is None for step in found.trace.steps)
    assert [s.cost.matvecs for s in found.trace.steps] == [s.cost.matvecs for s in plain.trace.steps]


@pytest.mark.slow
def test_the_slice_alone_costs_nothing_more() -> None:
    state = designed([textured(smooth())], 12, models=None)
    assert all(step.forecast.models == () and step.outcome.model_energies is None for step in state.trace.steps)
    assert state.rivals == ()
    both = designed([textured(smooth())], 12)
    assert sum(s.cost.matvecs for s in both.trace.steps) > 1.5 * sum(s.cost.matvecs for s in state.trace.steps)


@pytest.mark.slow
def test_energies_are_those_of_both_models_on_the_line_and_products_those_of_both() -> None:
    one = textured(smooth())
    loop = engine()
    begin = loop.begin([one], START)
    step = loop.run([one], begin, 9).trace.steps[0]
    energies, products = [], 0
    for variant in variants(one, one.central_image(START)):
        inference = replace(LOOP, outer_iterations=3)
        found = inference.infer(variant.model(START, begin.signals[0]), np.random.default_rng((0, 0)))
        missed = one.acquire([step.line])[:, 0] - CentredFFT(N)(found.mean)[step.line]
        energies.append(np.sum(np.abs(missed) ** 2))
        products += found.convergence.matvecs
    assert step.outcome.model_energies is not None
    np.testing.assert_allclose(step.outcome.model_energies[0], energies, rtol=1e-3)
    assert step.cost.matvecs == products
    assert step.outcome.actual_energy == pytest.approx(energies[0], rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 3])
def test_a_design_that_stops_and_goes_on_chooses_the_same_models(block: int) -> None:
    slices = [textured(smooth()), textured(rough(), seed=1)]
    loop = engine(block=block)
    states: list[DesignState] = []
    whole = loop.run(slices, loop.begin(slices, START), 26, states.append)
    assert {step.forecast.models for step in whole.trace.steps} == {(0, 0), (1, 0)}
    rested = [
        s.outcome.model_energies is not None and np.isnan(s.outcome.model_energies[0]).any() for s in whole.trace.steps
    ]
    assert any(rested) and not all(rested)
    for state in (states[3], states[-5]):
        again = loop.run(slices, state, 26)
        assert again.trace.lines == whole.trace.lines
        assert [s.forecast.models for s in again.trace.steps] == [s.forecast.models for s in whole.trace.steps]
        np.testing.assert_array_equal(again.warm[0].mean, whole.warm[0].mean)


@pytest.mark.slow
def test_rivals_that_rested_are_judged_as_if_they_had_not() -> None:
    """One loop more when they come back: what they miss is what they would have missed."""
    assert not plan_models([], 0, 4).another_loop(1) and not plan_models(steps([1.0, 2.0]), 0, 4).another_loop(1)
    assert plan_models(steps([NAN, 2.0]), 0, 4).another_loop(0) and plan_models(steps([2.0]), 0, 4).another_loop(1)
    settled = {"step_loops": 2}  # with a single loop a step even those that never rested have not settled
    always, sometimes = (designed([textured(smooth())], 30, rivals_every=every, **settled).trace for every in (1, 4))
    assert always.lines == sometimes.lines
    returned = 0
    for before, one, other in zip(sometimes.steps, always.steps[1:], sometimes.steps[1:], strict=False):
        assert one.outcome.model_energies is not None and other.outcome.model_energies is not None
        if plan_models([before], 0, 4).another_loop(0) and np.isfinite(other.outcome.model_energies).all():
            np.testing.assert_allclose(other.outcome.model_energies, one.outcome.model_energies, rtol=0.02)
            returned += 1
    assert returned > 0
    assert sum(s.cost.matvecs for s in sometimes.steps) < sum(s.cost.matvecs for s in always.steps)


def test_every_model_starts_where_it_stood() -> None:
    first, second, third = (WarmStart(np.full((2, 2), value), ()) for value in (1.0, 2.0, 3.0))
    trace = DesignTrace("rule", 9, (4,), (design_step(3, models=(1, 0)),))
    state = DesignState(trace, (1.0, 1.0), (first, second), ((third, None), (None, None)))
    assert state.warm_start(0, 1) is first and state.warm_start(0, 0) is third
    assert state.warm_start(1, 0) is second and state.warm_start(1, 1) is None
    assert DesignState(trace, (1.0, 1.0), (first, second)).warm_start(0, 0) is None
    assert DesignState(DesignTrace("rule", 9, (4,)), (1.0,)).warm_start(0, 1) is None


def test_rules_without_a_posterior_choose_nothing() -> None:
    state = designed([textured(smooth())], 12, strategy=RandomLines())
    assert all(s.forecast.models == () and s.cost.matvecs == 0 for s in state.trace.steps)


def test_rivals_at_no_inference_are_refused() -> None:
    with pytest.raises(InputError, match="rivals_every"):
        engine(rivals_every=0)


SMALL = (24, 20)


def half_sampled_slice(seed: int) -> tuple[MRSlice, np.ndarray]:
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: SMALL[0], : SMALL[1]] / np.array(SMALL)[:, None, None] - 0.5
    angle = 1.5 * y + 3 * x**2
    image = (y**2 + x**2 < 0.2) * (0.2 + 0.8 * rng.uniform(size=SMALL)) * np.exp(1j * angle)
    noise = 0.005 * (rng.standard_normal(SMALL) + 1j * rng.standard_normal(SMALL))
    return MRSlice((CentredFFT(SMALL)(image) + noise)[None], np.ones(SMALL[0], bool), 0.005**2), angle


@pytest.mark.slow
def test_lines_choose_the_phase_where_it_is_right_and_not_where_it_is_wrong():
    for offset, better in ((0.0, True), (np.pi / 2, False)):
        energies = []
        one, angle = half_sampled_slice(0)
        phase = PhasePrior(PhaseMap.known(angle + offset), 3.0)
        for line in (4, 5, 6, 7):
            lines = [*range(9, 24), *(other for other in (4, 5, 6, 7) if other < line)]
            pair = []
            for candidate in (one, replace(one, phase=phase)):
                loop = DoubleLoop(MonteCarlo(8), outer_iterations=2)
                posterior = loop.infer(candidate.model(lines, 1.0), np.random.default_rng(0))
                missed = candidate.acquire([line]) - candidate.encoding([line])(posterior.mean)
                pair.append(float(np.sum(np.abs(missed) ** 2)))
            energies.append(pair)
        assert best_model(energies) == int(better)


def test_the_first_model_is_kept_without_evidence():
    rng = np.random.default_rng(0)
    even = np.exp(rng.standard_normal((20, 1))) * np.exp(0.01 * rng.standard_normal((20, 3)))
    assert best_model(even, margin=3.0) == 0
    better = even * [1.0, 0.8, 0.5]
    assert best_model(better) == 2
    assert best_model(better * [1.0, 1.0, 10.0]) == 1
    assert best_model(better[:3]) == 0  # too few
    assert best_model(np.zeros((0, 2))) == 0


@pytest.mark.parametrize("energies", [[1.0, 2.0], [[1.0, 0.0]], [[1.0, np.nan]], np.ones((3, 0))])
def test_energies_that_are_no_table_of_positive_numbers_are_refused(energies):
    with pytest.raises(InputError, match="energies"):
        best_model(energies)
