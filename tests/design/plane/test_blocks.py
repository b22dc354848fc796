"""Blocks of samples of a plane: thinned, covering, and by residuals of training scans."""

from collections.abc import Callable

import numpy as np
import pytest

from mri_design import DoubleLoop, MriDesignError
from mri_design.design import (
    Calibrated,
    DesignEngine,
    DesignState,
    DesignView,
    LineCandidates,
    ReferenceSlice,
    TrainingResidual,
    block_by_scores,
    covering,
    line_residual,
    plane_of,
    squared_correlation,
    thinned,
)
from mri_design.design.greedy import REACH
from mri_design.readouts import LineReadouts, PlaneConstraints, PlaneReadouts
from mri_design.variances import ControlVariate
from tests.design.plane.conftest import make_view, measured_ids, plane_posterior, plane_slice
from tests.refusals import refused

SMALL = PlaneReadouts((8, 6))


def near(width: float) -> np.ndarray:
    """|rho|^2 that falls with the distance."""
    return np.exp(-np.sum(SMALL.frequencies**2, axis=1) / width**2).reshape(SMALL.grid)


def brute_force(scores: np.ndarray, squared: np.ndarray, count: int) -> list[int]:
    scores, chosen = scores.copy(), []
    for _ in range(count):
        best = int(np.nanargmax(scores))
        chosen.append(best)
        for other in range(SMALL.size):
            distance = (np.array(divmod(other, 6)) - divmod(best, 6)) % SMALL.grid
            place = tuple((distance + np.array(SMALL.grid) // 2) % SMALL.grid)
            scores[other] *= 1 - squared[place]
        scores[best] = np.nan
    return chosen


def test_thinning_is_what_it_says_one_sample_after_another() -> None:
    scores = np.random.default_rng(0).exponential(size=SMALL.size)
    assert thinned(scores, near(1.5), SMALL, 12) == brute_force(scores, near(1.5), 12)


def test_a_block_is_new_and_its_first_choice_speaks_for_all() -> None:
    acquired = measured_ids(16)
    view = make_view((plane_posterior(),), acquired)
    block = block_by_scores(np.random.default_rng(2).exponential(size=256), view, 20)
    lines = [choice.line for choice in block]
    assert len(set(lines)) == 20 and not set(lines) & set(acquired)
    assert block[0].scores is not None and all(choice.scores is None for choice in block[1:])
    assert lines[0] == int(np.nanargmax(block[0].scores))


def test_scores_that_are_all_nan_and_views_of_lines_are_refused() -> None:
    view = make_view((plane_posterior(),), measured_ids(16))
    with pytest.raises(MriDesignError):
        block_by_scores(np.full(256, np.nan), view, 3)
    lines = DesignView(LineCandidates(np.ones(16, dtype=bool), (8,), 4))
    with refused("candidates"):
        plane_of(lines.readouts)


def test_lines_are_taken_by_their_scores_alone() -> None:
    scores = np.arange(16.0)
    scores[15], scores[3] = np.nan, 14.0
    lines = DesignView(LineCandidates(np.ones(16, dtype=bool), (8,), 5))
    assert [choice.line for choice in block_by_scores(scores, lines, 4)] == [3, 14, 13, 12]


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


def engine(strategy: Calibrated, **rules: object) -> DesignEngine:
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
    trace = designed(engine(Calibrated(disc_share=0.7)), callback=states.append).trace
    disc, blocks = trace.steps[: 56 - 16], trace.steps[56 - 16 :]
    assert [step.choice.pending for step in disc] == list(range(40))
    assert all(not step.matvecs and step.forecast.expected is None for step in disc)
    assert [len(state.trace.lines) for state in states] == [56, 65, 74, 80]
    assert sum(step.matvecs > 0 for step in blocks) == 3 and all(step.found for step in blocks)
    apart = PLANE.frequencies[[step.line for step in disc]]
    nearest = np.hypot(*(apart[:, None] - apart[None]).transpose(2, 0, 1)) + 99 * np.eye(40)
    assert nearest.min() > 1  # neighbours would be next to each other by chance


def test_one_coil_and_designs_that_may_end_early_look_before_every_block() -> None:
    for more in ({"coils": 1}, {"stop": lambda step: False}):
        state = designed(engine(Calibrated()), **more)
        assert [step.choice.pending for step in state.trace.steps[:10]] == [*range(9), 0]


def training(coils: int, n: int = 16) -> list[ReferenceSlice]:
    """One slice twice, with two truths of different brightness."""
    mr_slice = plane_slice(coils, n)
    truth = mr_slice.plain_image(range(mr_slice.candidates.size))
    return [ReferenceSlice(str(i), mr_slice, image) for i, image in enumerate((truth, 10 * truth[::-1]))]


@pytest.mark.parametrize("coils", [1, 3])
def test_samples_are_scored_by_the_relative_error_on_them(coils: int, rng) -> None:
    scans, posterior, ids = training(coils), plane_posterior(coils), measured_ids(16)
    rule = TrainingResidual(reach=0.0).knowing(scans)
    view = make_view((posterior, posterior), ids)
    plane, total = PlaneReadouts((16, 16)), np.zeros(256)
    for scan in scans:
        wrong = plane.values((posterior.mean - scan.reference)[None], scan.slice_model.maps)
        total += np.sum(np.abs(wrong) ** 2, axis=(0, 1, 3)) / np.sum(np.abs(scan.reference) ** 2) / 2
    left = np.setdiff1d(np.arange(256), ids)
    np.testing.assert_allclose(rule.scored(view, np.random.default_rng(0))[0][left], total[left], rtol=1e-4)
    np.testing.assert_array_equal(rule.scored(view, np.random.default_rng(0))[0][list(ids)], 0)
    block = [choice.line for choice in rule.choose_block(view, rng, 5)]
    gains = total
    if coils > 1:
        gains = told(squared_correlation(view.posteriors), plane) @ np.where(view.candidates.mask, 0, total)
    assert block[0] == left[np.argmax(gains[left])] and len(set(block)) == 5 and not set(block) & set(ids)
    wide = TrainingResidual(reach=3.0).knowing(scans).scored(view, np.random.default_rng(0))[0]
    assert np.std(np.log(wide[left])) < 0.7 * np.std(np.log(total[left]))


def test_a_window_leaves_measured_samples_out() -> None:
    """A sample in the midst of measured ones is scored by itself, however little is wrong around it."""
    n, ids = 16, tuple(sample for sample in range(256) if sample != 100)
    scans, posterior = training(1)[:1], plane_posterior(1)
    residual = line_residual(scans[0].slice_model, posterior.mean, scans[0].reference)
    view = make_view((posterior,), ids, target=256, n=n)
    scored, _ = TrainingResidual().knowing(scans).scored(view, np.random.default_rng(0))
    assert scored[100] == pytest.approx(residual[100])


def test_with_several_coils_a_mask_of_a_plane_begins_with_a_disc() -> None:
    rule = TrainingResidual().knowing(training(3))
    assert rule.unseen(PLANE, 100, 3) == 70
    assert rule.unseen(PLANE, 100, 1) == rule.unseen(LineReadouts((16, 16)), 100, 3) == 0
    made = DesignEngine(rule, DoubleLoop(ControlVariate(4, 0.03)), block=10, constraints=PlaneConstraints(PLANE))
    slices = [scan.slice_model for scan in rule.scans]
    trace = made.run(slices, made.begin(slices, made.constraints.start(slices[0].measured, 16)), 60).trace
    assert [step.choice.pending for step in trace.steps[:27]] == [*range(42 - 16), 0]
    assert [step.matvecs > 0 for step in trace.steps if not step.choice.pending] == [False, True, True]
