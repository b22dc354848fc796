"""Frames of a design: what they show at each decision, and which of them are kept."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.design import Calibrated, DesignEngine, DesignTrace, Frame, Strategy
from mri_design.design.frames import MOST, arrays_of, frames_of, is_kept, scaled_to, with_frame
from mri_design.variances import Exact, MonteCarlo
from tests.design.conftest import make_slice
from tests.refusals import refused


def frames_along(strategy: Strategy, inference: md.DoubleLoop, **settings: int) -> tuple[list[Frame], DesignTrace]:
    """The frame of every moment of a design of nine lines, and its trace."""
    seen, one = list[Frame | None](), make_slice()
    engine = DesignEngine(strategy, inference, watch=lambda moment: seen.append(moment.frame()), **settings)
    state = engine.run([one], engine.begin([one], (7, 8, 9)), 9, closing=True)
    assert None not in seen
    return seen, state.trace  # type: ignore[return-value]


EXACT = md.DoubleLoop(Exact(), outer_iterations=3)


@pytest.mark.parametrize("block", [1, 4])
def test_a_frame_has_the_lines_so_far_and_those_that_come_next(block: int) -> None:
    frames, trace = frames_along(Calibrated(), EXACT, block=block)
    counts = [3, 7, 9] if block == 4 else [*range(3, 10)]
    assert [frame.lines for frame in frames] == [trace.lines[:count] for count in counts]
    assert [frame.lines + frame.following for frame in frames] == [trace.lines[:n] for n in [*counts[1:], 9]]
    assert [frame.number for frame in frames] == [*range(len(counts))]


def test_its_error_bars_have_the_energy_of_the_predicted_error_once_there_is_one() -> None:
    frames, trace = frames_along(Calibrated(), EXACT)
    assert frames[0].deviation is None and np.isnan(frames[0].predicted_error)
    for frame, step in zip(frames[1:-1], trace.steps[1:], strict=True):
        wrong, image = (float(np.sum(np.square(part))) for part in (frame.deviation, frame.magnitude))
        assert np.sqrt(wrong / (wrong + image)) == pytest.approx(step.predicted_error, rel=1e-4)
    end = trace.closing
    assert end is not None and frames[-1].predicted_error == end.predicted_error


def test_deviations_of_few_draws_are_those_of_the_exact_posterior_but_for_scatter() -> None:
    """Before they are scaled; averaged over pixels they scatter less than the draws do."""
    one, found = make_slice(), list[np.ndarray]()
    for inference in (EXACT, md.DoubleLoop(MonteCarlo(8, 1e-3), outer_iterations=3)):
        slices = DesignEngine(Calibrated(), inference).inference_of(one, one.signal_level((7, 8, 9)))
        slices.update((6, 7, 8, 9, 12))
        image, deviation = slices.picture()
        np.testing.assert_allclose(image, slices.posterior.mean * one.image_unit, rtol=1e-5)
        found.append(deviation)
    assert np.abs(found[1] / found[0] - 1).mean() < 0.2


def test_deviations_stay_as_they_are_where_no_error_is_predicted() -> None:
    ones = np.ones((2, 2), np.float32)
    assert scaled_to(float("nan"), ones, 3 * ones) is not None
    np.testing.assert_array_equal(scaled_to(float("nan"), ones, 3 * ones), 3 * ones)
    np.testing.assert_allclose(scaled_to(0.6, ones, 3 * ones), 0.75 * ones)


def frame(number: int, known: bool = True) -> Frame:
    image = np.linspace(0, 1e6, 12, dtype=np.float32).reshape(3, 4)
    lines = tuple(range(5 + number))
    return Frame(
        number, lines, (40, 41), (0.6 - 0.8j) * image, image / 7 if known else None, 0.5 if known else float("nan")
    )


def kept_along(numbers: Sequence[int], frames: tuple[Frame, ...] = ()) -> tuple[Frame, ...]:
    for number in numbers:
        frames = with_frame(frames, frame(number)) if is_kept(number) else frames
    return frames


@pytest.mark.parametrize("decisions", [3, 12, 13, 40, 200])
def test_frames_are_kept_evenly_over_the_whole_design(decisions: int) -> None:
    kept = [one.number for one in with_frame(kept_along(range(decisions)), frame(decisions))]
    assert kept[0] == 0 and kept[-1] == decisions and min(decisions + 1, MOST // 2) <= len(kept) <= MOST + 1
    assert len(set(np.diff(kept[:-1]))) <= 1


def test_a_design_that_was_cut_off_or_is_made_longer_keeps_the_same() -> None:
    whole = kept_along(range(30))
    cut = with_frame(kept_along(range(17)), frame(17))  # ended there, or was killed with frames that come again
    assert [one.number for one in kept_along(range(15, 30), cut)] == [one.number for one in whole]


def test_whole_images_are_kept_all() -> None:
    frames = ()
    for number in range(41):
        whole = number in (1, 3, 39)
        frames = with_frame(frames, replace(frame(number), whole=whole)) if whole or is_kept(number) else frames
    assert [one.number for one in frames if one.whole] == [1, 3, 39]
    assert [one.number for one in with_frame(frames[:2], frame(1))] == [0, 1]  # one that is made again takes its place


def test_frames_come_back_from_arrays() -> None:
    some = [frame(0, known=False), replace(frame(2), whole=True), frame(4)]
    for one, again in zip(frames := some, frames_of(arrays_of(frames)), strict=True):
        assert (again.number, again.lines, again.following) == (one.number, one.lines, one.following)
        assert again.whole == one.whole
        np.testing.assert_allclose(again.image, one.image, atol=1e-3 * one.magnitude.max())
        assert (again.deviation is None) == (one.deviation is None)
    np.testing.assert_allclose(again.deviation, one.deviation, atol=1e-3 * one.deviation.max())
    twice = arrays_of(frames_of(kept := arrays_of(frames)))
    assert all(
        np.array_equal(twice[name], kept[name], equal_nan=True) for name in kept
    )  # as a resumed design writes them


@pytest.mark.parametrize("name", ["numbers", "tops", "deviation", "following", "counts", "whole"])
def test_arrays_that_do_not_belong_together_are_refused(name: str) -> None:
    arrays = arrays_of([frame(0), frame(4)])
    with refused("frames"):
        frames_of({other: values for other, values in arrays.items() if other != name})
    if name != "following":
        with refused("frames"):
            frames_of(arrays | {name: arrays[name][:1]})
