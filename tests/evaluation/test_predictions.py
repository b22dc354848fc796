"""Predictions of the error beside the error itself: numbers by hand, and means that are the design's own."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import rankdata

from mri_design import DoubleLoop, InputError, Recipe, SliceModel
from mri_design.design import CentredLines, DesignEngine, DesignTrace, InformationGain, ReferenceSlice, truth_or_none
from mri_design.estimation import IRLS
from mri_design.evaluation import (
    WINDOW,
    DesignAccount,
    PredictionCheck,
    actual_energies,
    check_counts,
    check_predictions,
    how_often_right,
    innovations,
)
from mri_design.evaluation.predictions import INNER, _ranks
from mri_design.model import PhasePrior, phase_refined
from mri_design.readouts import LineReadouts
from mri_design.variances import ControlVariate
from tests.design_steps import changed, design_step
from tests.short_trace import SHARE, TRACE, step
from tests.slow_cases import slow_case

MakeImage = Callable[..., ReferenceSlice]


def check(count: int = 3, predicted: float = 1.0, actual: float = 1.0) -> PredictionCheck:
    """Equal energies on 12 lines of which ``count`` around the centre are measured; relative to 100."""
    acquired = np.zeros(12, bool)
    acquired[6 : 6 + count] = True
    energies, inner = (np.full(12, predicted), np.full(12, actual)), LineReadouts((12, 1)).radius < INNER
    return PredictionCheck(count, *energies, acquired, predicted_level=100.0, actual_level=100.0, inner=inner)


def test_errors_are_relative_to_their_own_image_and_of_unmeasured_lines_without_the_truth() -> None:
    own = replace(check(predicted=3.0, actual=1.0), predicted_level=144.0, actual_level=48.0)
    assert own.compared == pytest.approx((0.5, 0.5)) and own.ratio == pytest.approx(1.0)
    one = check(predicted=4.0)
    found = replace(one, actual=np.where(one.acquired, np.nan, 1.0))
    assert found.predicted_error == one.predicted_error == pytest.approx(np.sqrt(4 * 12 / 100))
    assert found.compared == pytest.approx((np.sqrt(4 * 9 / 100), np.sqrt(9 / 100)))
    assert found.ratio == pytest.approx(2.0)
    assert one.compared == (one.predicted_error, pytest.approx(np.sqrt(12 / 100)))
    row = found.as_row()
    assert row["actual_error"] is None and row["predicted_error"] == found.predicted_error
    assert (row["unmeasured_predicted_error"], row["unmeasured_actual_error"]) == pytest.approx((0.6, 0.3))
    # where every line is measured and the truth unknown nothing is compared
    done = replace(check(), acquired=np.ones(12, bool), actual=np.full(12, np.nan))
    assert np.isnan(done.ratio) and done.as_row()["ratio"] is None
    assert done.as_row()["predicted_error"] == pytest.approx(np.sqrt(12 / 100))
    assert check(actual=-1.0).compared[1] == 0 and check(actual=-1.0).ratio == np.inf


def test_lines_by_hand() -> None:
    assert np.flatnonzero(check(2).judged).tolist() == [3, 4, 5, 8, 9]  # |k| < 4 of 12, not 6 and 7
    actual = np.full(12, 7.0)
    actual[[3, 4, 5, 8, 9]] = 1.0, 2.0, 4.0, -1.0, 5.0
    predicted = np.full(12, 7.0)
    predicted[[3, 4, 5, 8, 9]] = 0.5, 3.0, 4.0, 1.0, 2.5
    one = replace(check(2), predicted=predicted, actual=actual)
    assert one.line_ratio == pytest.approx(1.0)  # median of .5, 1.5, 1, infinite, .5
    # ranks 1 4 5 2 3 against 2 3 4 1 5: 1 - 6 * sum d^2 / (5 * 24)
    assert one.rank_correlation == pytest.approx(1 - 6 * (1 + 1 + 1 + 1 + 4) / 120)
    assert np.isnan(check(3).line_ratio) and np.isnan(check(3).rank_correlation)  # four lines left
    assert np.isnan(check(2).rank_correlation) and check(2).line_ratio == 1  # all equal
    values = np.array([2.0, 1.0, 2.0, 5.0, 2.0])
    assert _ranks(values).tolist() == rankdata(values).tolist() == [3.0, 1.0, 3.0, 5.0, 3.0]


def test_counts_spread_over_the_run_and_skip_what_was_not_predicted() -> None:
    known = design_step(0, expected=np.ones(64), image_energy=1.0)
    steps = [changed(known, line=i) for i in range(4, 34)]
    trace = DesignTrace("x", 64, (0, 1, 2, 3), tuple(steps))
    counts = check_counts(trace)
    assert len(counts) == 8
    assert (counts[0], counts[-1]) == (4, 33)
    assert set(np.diff(counts)) <= {4, 5}
    blocks = replace(trace, steps=tuple(changed(s, pending=i % 3) for i, s in enumerate(steps)))
    assert all((count - 4) % 3 == 0 for count in check_counts(blocks))
    assert check_counts(replace(trace, steps=tuple(steps[:3]))) == [4, 5, 6]
    assert check_counts(replace(trace, steps=(design_step(9),))) == []


def test_the_truth_is_what_explains_the_data_within_their_noise(make_image: MakeImage) -> None:
    found = make_image("t2w", n=24)
    one, truth = found.slice_model, found.reference
    assert truth_or_none(one, truth) is truth
    own = one.encoding().adjoint(one.kspace)
    for wrong in (None, np.abs(truth).astype(complex), 1.1 * truth, own):
        assert truth_or_none(one, wrong) is None


def test_energies_of_the_error_with_and_without_the_truth(make_image: MakeImage) -> None:
    found = make_image("t2w", n=24)
    one, truth = found.slice_model, found.reference
    acquired = np.arange(24) < 6
    wrong = truth + 0.2 * np.exp(1j * np.arange(16)) * np.hanning(24)[:, None]
    energies, level = actual_energies(one, wrong, truth, acquired)
    assert energies.sum() == pytest.approx(np.sum(np.abs(wrong - truth) ** 2), rel=1e-5)  # Parseval
    assert level == pytest.approx(np.sum(np.abs(truth) ** 2), rel=1e-5)
    replayed, own_level = actual_energies(one, wrong, None, acquired)
    assert np.isnan(replayed).tolist() == acquired.tolist()
    assert own_level == pytest.approx(level, rel=0.02)
    # |n|^2 of 16 complex values scatters by 2 sigma^2 sqrt(16), and beside an error e by 2 sigma sqrt(e)
    scatter = np.sqrt(16 * (2 * one.noise_variance) ** 2 + 4 * one.noise_variance * energies)
    off = ((replayed - energies) / scatter)[~acquired]
    assert np.abs(off).max() < 4
    assert abs(off.mean()) < 4 / np.sqrt(len(off))
    measured = one.measured.copy()
    measured[3] = False  # a line without data is not known
    energies, _ = actual_energies(replace(one, measured=measured), np.zeros((24, 16)), None, np.arange(24) > 20)
    assert np.flatnonzero(np.isnan(energies)).tolist() == [3, 21, 22, 23]


@pytest.mark.parametrize("block", [slow_case(1), 3])
def test_the_means_are_those_of_the_design(make_image: MakeImage, tiny: Recipe, block: int) -> None:
    """At every count: what the design found on its next lines is what the check finds there."""
    slices = [make_image("t2w", n=24, seed=seed).slice_model for seed in (0, 1)]
    engine = DesignEngine(InformationGain(draws=4), tiny.inference.engine(), seed=5, block=block)
    state = engine.run(slices, engine.begin(slices, [12, 11, 13, 10]), 10)
    trace = state.trace
    counts = check_counts(trace, 99)
    assert counts == list(range(4 + block, 10, block))  # of the start nothing is predicted
    told = list[tuple[int, ...]]()
    more = {"signals": state.signals, "counts": counts, "callback": lambda *n: told.append(n)}
    checks = check_predictions(slices, trace, engine, **more)
    assert told[0] == (0, len(counts)) and told[-1] == (len(counts), len(counts))
    noise = 2 * 2 * 16 * slices[0].noise_variance
    for found in checks:
        index = found.n_measured - 4
        for made in trace.steps[index : index + block]:
            assert found.actual[made.line] + noise == pytest.approx(made.actual_energy, rel=1e-4)
        assert np.array_equal(found.predicted, trace.steps[index].forecast.predicted)
        assert found.predicted_level == trace.steps[index].forecast.predicted_level
        assert np.array_equal(found.acquired, trace.mask(found.n_measured))


@pytest.mark.slow
def test_the_means_follow_the_phase_as_the_design_did(phased_slice: SliceModel) -> None:
    """At every count the very means of the design; at some of them means that tell the same."""
    one = replace(phased_slice, phase=PhasePrior(None, 3.0))
    loop = DoubleLoop(ControlVariate(4, 0.05), IRLS(tolerance=1e-4))
    engine = DesignEngine(InformationGain(draws=4), loop, seed=5, refined=phase_refined)
    state = engine.run([one], engine.begin([one], [12, 11, 13, 10, 14, 9, 15, 8]), 13)
    counts = check_counts(state.trace, 99)
    noise = 2 * 16 * one.noise_variance
    for chosen, tolerance in ((counts, 0.02), (counts[::3], 0.1)):
        checks = check_predictions([one], state.trace, engine, signals=state.signals, counts=chosen)
        for found in checks:
            made = state.trace.steps[found.n_measured - 8]
            assert found.actual[made.line] + noise == pytest.approx(made.actual_energy, rel=tolerance)


def test_a_rule_without_predictions_has_no_checks(make_image: MakeImage, tiny: Recipe) -> None:
    one = make_image("t2w", n=24).slice_model
    engine = DesignEngine(CentredLines(centre_fraction=0.2), tiny.inference.engine())
    state = engine.run([one], engine.begin([one], [12, 11]), 6)
    assert check_predictions([one], state.trace, engine, signals=state.signals) == []
    for count in (1, 3, 6):
        with pytest.raises(InputError):
            check_predictions([one], state.trace, engine, signals=state.signals, counts=[count])


def test_innovations_and_their_running_ratio() -> None:
    found = innovations(TRACE)
    assert found.predicted.tolist() == [30, 15]
    assert found.measured.tolist() == [30, 60]
    assert found.noise == pytest.approx([SHARE, SHARE])
    assert found.running_ratio == pytest.approx([1, 0.5])
    steps = (step(0, 20.0), *(step(0, 5.0) for _ in range(WINDOW)))
    long = innovations(replace(TRACE, steps=steps))
    assert long is not None and long.running_ratio[-1] == pytest.approx(0.5)  # the first one is forgotten

    assert DesignAccount(TRACE).gains.tolist() == [2.0, 1.5]
    blind = DesignTrace("random", 8, (4,), (design_step(6), design_step(0)))
    assert np.isnan(DesignAccount(blind).gains).all()
    assert innovations(blind) is None and innovations(replace(blind, steps=())) is None
    assert found.known.all() and found.ratio == pytest.approx(0.5)  # (30/30 * 15/60)^(1/2)
    exchanged = replace(TRACE, steps=(*TRACE.steps, design_step(1)))
    found = innovations(exchanged)
    assert found.running_ratio == pytest.approx([1, 0.5, np.nan], nan_ok=True)
    assert found.measured == pytest.approx([30, 60, np.nan], nan_ok=True)


def test_what_the_strategy_believes_is_what_counts() -> None:
    believing = changed(TRACE.steps[0], corrected=np.full(8, 50.0), predicted_energy=50.0 + SHARE)
    found = innovations(replace(TRACE, steps=(believing,)))
    assert found is not None and found.predicted.tolist() == [60] and found.noise.tolist() == [SHARE]
    not_yet = changed(TRACE.steps[0], corrected=np.full(8, np.nan), predicted_energy=float("nan"))
    assert not_yet.found and innovations(replace(TRACE, steps=(not_yet,))) is None


def test_in_a_block_the_prediction_is_that_of_its_start() -> None:
    """Later steps of a block expect less; what they are held against is a mean from before the block."""
    second = changed(step(6, 5.0, pending=1), predicted_energy=20.0 + SHARE)
    trace = replace(TRACE, steps=(step(5, 20.0), second))
    found = innovations(trace)
    assert found.noise == pytest.approx([SHARE, SHARE])
    believing = (
        changed(trace.steps[0], corrected=np.full(8, 40.0), predicted_energy=40.0 + SHARE),
        changed(second, corrected=np.full(8, 7.0), predicted_energy=40.0 + SHARE),
    )
    corrected = innovations(replace(trace, steps=believing))
    assert corrected is not None and corrected.noise == pytest.approx([SHARE, SHARE])


def test_how_often_right_by_hand() -> None:
    ratios = (0.4, 0.5, 0.7, 0.9, 1.2, 2.5)
    cases = [check(2 + i % 2, predicted=ratio**2) for i, ratio in enumerate(ratios)]
    row = how_often_right([case.as_row() for case in cases])
    assert row["cases"] == 6
    assert row["within_factor_2"] == pytest.approx(4 / 6)
    assert row["within_factor_1.25"] == pytest.approx(2 / 6)
    assert row["median_ratio"] == pytest.approx(0.8)
    assert (row["least"], row["largest"]) == pytest.approx((0.4, 2.5))
    assert row["median_line_ratio"] == pytest.approx(0.49)  # of the three with enough lines: .16, .49, 1.44
    assert row["median_rank_correlation"] is None


def test_tables_of_a_plane_count_samples() -> None:
    cases = [replace(check(2 + i % 2, predicted=ratio**2), unit="sample") for i, ratio in enumerate((0.5, 0.7, 0.9))]
    (row,) = DesignAccount(TRACE, cases).fractions
    assert row["samples"] == "all" and not any("line" in name for name in (*row, *cases[0].as_row()))
    assert row["median_sample_ratio"] == pytest.approx((0.25 + 0.81) / 2)  # of the two with enough samples
    assert not DesignAccount(TRACE).fractions
