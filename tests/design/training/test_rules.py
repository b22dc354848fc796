from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from mri_design import MRSlice, centre_lines, zero_filled
from mri_design.design import (
    LBCS,
    Evaluate,
    OrderTraining,
    Outcome,
    ReferenceSlice,
    ResidualGreedy,
    TrainedDesign,
    TrainingRule,
    Trial,
    begin_training,
    train,
)
from mri_design.operators import Array
from tests.design_steps import replayed
from tests.refusals import refused

SliceMaker = Callable[..., MRSlice]
START = centre_lines(np.ones(16, dtype=bool), 3)


def plain(one: MRSlice, lines: Sequence[int]) -> Array:
    return zero_filled(one.model(lines))


@pytest.fixture
def scans(make_slice: SliceMaker) -> list[ReferenceSlice]:
    names = [("brain", 0), ("shepp-logan", 1), ("brain", 2)]
    slices = [make_slice(name=name, seed=seed) for name, seed in names]
    truths = [one.encoding().adjoint(one.kspace) for one in slices]
    return [ReferenceSlice(f"{i}", one, truth) for i, (one, truth) in enumerate(zip(slices, truths, strict=True))]


def training(
    scans: Sequence[ReferenceSlice],
    rule: TrainingRule,
    target: int = 8,
    evaluate: Evaluate | None = None,
    seed: int = 0,
) -> OrderTraining:
    return OrderTraining(scans, rule, target, evaluate or replayed(plain, scans), seed=seed)


def learnt(scans: Sequence[ReferenceSlice], rule: TrainingRule, target: int = 8, seed: int = 0) -> TrainedDesign:
    return train(training(scans, rule, target, seed=seed), begun(scans, rule, target))


def begun(scans: Sequence[ReferenceSlice], rule: TrainingRule, target: int = 8) -> TrainedDesign:
    return begin_training(training(scans, rule, target), START)


def error(scan: ReferenceSlice, lines: Sequence[int]) -> float:
    """Straight from the definition."""
    image = plain(scan.slice_model, lines)
    return float(np.linalg.norm(np.abs(image) - np.abs(scan.reference)) / np.linalg.norm(scan.reference))


def test_lbcs_picks_as_brute_force_does(scans: list[ReferenceSlice]) -> None:
    lines = list(START)
    for picked in learnt(scans, LBCS(), 6).lines[3:]:
        left = [line for line in range(16) if line not in lines]
        means = [np.mean([error(scan, [*lines, line]) for scan in scans]) for line in left]
        assert picked == left[int(np.argmin(means))]
        lines.append(picked)


def test_residual_greedy_picks_where_the_images_are_most_wrong(scans: list[ReferenceSlice]) -> None:
    """The residual is that of the definition: |F(u_hat - u)|^2 over the image's energy."""
    state = learnt(scans, ResidualGreedy())
    for step, picked in enumerate(state.lines[3:]):
        lines = state.lines[: 3 + step]
        total = np.zeros(16)
        for scan in scans:
            wrong = np.fft.fftshift(
                np.fft.fft2(np.fft.ifftshift(plain(scan.slice_model, lines) - scan.reference), norm="ortho")
            )
            total += np.sum(np.abs(wrong) ** 2, axis=1) / np.sum(np.abs(scan.reference) ** 2)
        np.testing.assert_allclose(state.profile[step], total / len(scans), rtol=1e-4, atol=1e-9)
        total[list(lines)] = 0
        around = np.convolve(total, [0.25, 1, 0.25], mode="same")
        around[list(lines)] = -1
        assert picked == int(np.argmax(around))


def test_residuals_of_several_coils_add_up_to_the_image_s_error(make_slice: SliceMaker) -> None:
    one = make_slice(n_coils=3)
    truth = one.encoding().adjoint(one.kspace)
    scan = ReferenceSlice("", one, truth)
    image = plain(one, START)
    outcome = scan.outcome(image)
    relative = np.sum(np.abs(image - truth) ** 2) / np.sum(np.abs(truth) ** 2)
    assert outcome.residual.sum() == pytest.approx(relative, rel=1e-4)


def test_stochastic_lbcs_tries_some_lines_on_some_scans(scans: list[ReferenceSlice]) -> None:
    tried: list[list[Trial]] = []

    def watched(trials: Sequence[Trial]) -> Iterable[Outcome]:
        tried.append(list(trials))
        return replayed(plain, scans)(trials)

    rule = LBCS(candidates=4, scans=2)
    train(training(scans, rule, 7, watched, seed=1), begun(scans, rule))
    for attempt in tried[::2]:
        assert len({lines[-1] for _, lines in attempt}) == 4
        assert len({scan for scan, _ in attempt}) == 2
        assert len(attempt) == 8
    assert learnt(scans, rule, seed=1).lines == learnt(scans, rule, seed=1).lines
    assert len({learnt(scans, rule, seed=seed).lines for seed in range(4)}) > 1


@pytest.mark.parametrize(
    ("rule", "count"),
    [
        (ResidualGreedy(), 3 * 6),
        (LBCS(), 3 * 6 + 3 * (13 + 12 + 11 + 10 + 9)),
        (LBCS(candidates=4, scans=1), 3 * 6 + 5 * 4),
    ],
)
def test_reconstructions_are_counted(scans: list[ReferenceSlice], rule: TrainingRule, count: int) -> None:
    made = 0

    def counted(trials: Sequence[Trial]) -> Iterable[Outcome]:
        nonlocal made
        made += len(trials)
        found = replayed(plain, scans)(trials)
        return [replace(outcome, converged=i != 1) for (i, _), outcome in zip(trials, found, strict=True)]

    watched = training(scans, rule, 8, counted)
    state = train(watched, begin_training(watched, START))
    assert state.reconstructions == made == count
    assert state.unconverged > 0 and (state.unconverged == 6 or count != 18)
    for row, value in enumerate(state.errors):
        assert value == pytest.approx(np.mean([error(scan, state.lines[: 3 + row]) for scan in scans]), rel=1e-5)


@pytest.mark.parametrize("rule", [ResidualGreedy(), LBCS(candidates=5, scans=2)])
def test_an_interrupted_training_goes_on_to_the_same_order(scans: list[ReferenceSlice], rule: TrainingRule) -> None:
    seen: list[TrainedDesign] = []
    whole = train(training(scans, rule, seed=3), begun(scans, rule), seen.append)
    rest = train(training(scans, rule, seed=3), seen[2])
    assert (rest.lines, rest.reconstructions) == (whole.lines, whole.reconstructions)
    np.testing.assert_array_equal(rest.errors, whole.errors)
    np.testing.assert_array_equal(rest.profile, whole.profile)


def test_what_cannot_be_trained_on_is_refused(make_slice: SliceMaker, scans: list[ReferenceSlice]) -> None:
    with refused("training scans"):
        begun([], LBCS())
    other = make_slice(shape=(12, 12))
    small = ReferenceSlice("small", other, other.encoding().adjoint(other.kspace))
    with refused("training scans"):
        begun([*scans, small], LBCS())
    with refused("number of lines"):
        begun(scans, LBCS(), 17)
    with refused("reference empty"):
        ReferenceSlice("empty", scans[0].slice_model, np.zeros((16, 16), dtype=complex))
    with refused("candidates"):
        LBCS(candidates=0)
