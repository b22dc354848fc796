"""The rule that one mask of a plane for many scans goes by: what it scores, and that it pays."""

import numpy as np
import pytest

from mri_design import ControlVariate, DesignEngine, DoubleLoop, load_phantom
from mri_design.design import (
    ExpectedError,
    PlaneConstraints,
    ReferenceSlice,
    Strategy,
    TrainingResidual,
    line_residual,
    squared_correlation,
)
from mri_design.readouts import LineReadouts, PlaneReadouts
from tests.design.plane.conftest import measured_ids, plane_posterior, plane_slice
from tests.design.plane.test_blocks import told

PLANE = PlaneReadouts((16, 16))


def training(coils: int, n: int = 16) -> list[ReferenceSlice]:
    """One slice twice, with two truths of different brightness."""
    mr_slice = plane_slice(coils, n)
    truth = mr_slice.plain_image(range(mr_slice.candidates.size))
    return [ReferenceSlice(str(i), mr_slice, image) for i, image in enumerate((truth, 10 * truth[::-1]))]


@pytest.mark.parametrize("coils", [1, 3])
def test_samples_are_scored_by_the_relative_error_on_them(coils: int, make_view, rng) -> None:
    scans, posterior, ids = training(coils), plane_posterior(coils), measured_ids(16)
    rule = TrainingResidual(reach=0.0).knowing(scans)
    view = make_view((posterior, posterior), ids)
    plane, total = PlaneReadouts((16, 16)), np.zeros(256)
    for scan in scans:
        wrong = plane.values((posterior.mean - scan.reference)[None], scan.slice_model.maps)
        total += np.sum(np.abs(wrong) ** 2, axis=(0, 1, 3)) / np.sum(np.abs(scan.reference) ** 2) / 2
    left = np.setdiff1d(np.arange(256), ids)
    np.testing.assert_allclose(rule.scored(view, np.random.default_rng(0)).values[left], total[left], rtol=1e-4)
    np.testing.assert_array_equal(rule.scored(view, np.random.default_rng(0)).values[list(ids)], 0)
    block = [choice.line for choice in rule.choose_block(view, rng, 5)]
    gains = (
        total
        if coils == 1
        else told(squared_correlation(view.posteriors), plane) @ np.where(view.candidates.mask, 0, total)
    )
    assert block[0] == left[np.argmax(gains[left])] and len(set(block)) == 5 and not set(block) & set(ids)
    wide = TrainingResidual(reach=3.0).knowing(scans).scored(view, np.random.default_rng(0)).values
    assert np.std(np.log(wide[left])) < 0.7 * np.std(np.log(total[left]))


def test_a_window_leaves_measured_samples_out(make_view) -> None:
    """A sample in the midst of measured ones is scored by itself, however little is wrong around it."""
    n, ids = 16, tuple(sample for sample in range(256) if sample != 100)
    scans, posterior = training(1)[:1], plane_posterior(1)
    residual = line_residual(scans[0].slice_model, posterior.mean, scans[0].reference)
    view = make_view((posterior,), ids, target=256, n=n)
    assert TrainingResidual().knowing(scans).scored(view, np.random.default_rng(0)).values[100] == pytest.approx(
        residual[100]
    )


def test_with_several_coils_a_mask_of_a_plane_begins_with_a_disc() -> None:
    rule = TrainingResidual().knowing(training(3))
    assert rule.unseen(PLANE, 100, 3) == 70
    assert rule.unseen(PLANE, 100, 1) == rule.unseen(LineReadouts((16, 16)), 100, 3) == 0
    made = DesignEngine(rule, DoubleLoop(ControlVariate(4, 0.03)), block=10, constraints=PlaneConstraints(PLANE))
    slices = [scan.slice_model for scan in rule.scans]
    trace = made.run(slices, made.begin(slices, made.constraints.start(slices[0].measured, 16)), 60).trace
    assert [step.choice.pending for step in trace.steps[:27]] == [*range(42 - 16), 0]
    assert [step.cost.matvecs > 0 for step in trace.steps if not step.choice.pending] == [False, True, True]


@pytest.mark.slow
def test_on_its_training_scan_it_is_better_than_what_the_posterior_expects() -> None:
    data = load_phantom("brain", shape=(32, 32), rng=np.random.default_rng(0))
    mr_slice = data.encoded("plane").slice_model()
    assert data.reference is not None
    truth = data.reference[0]
    engine = DoubleLoop(ControlVariate(4, 0.03), outer_iterations=3)

    def error(rule: Strategy) -> float:
        made = DesignEngine(rule, engine, block=12, constraints=PlaneConstraints(PlaneReadouts((32, 32))))
        start = made.constraints.start(mr_slice.measured, 24)
        lines = made.run([mr_slice], made.begin([mr_slice], start), 160).trace.lines
        image = engine.infer(mr_slice.model(lines), np.random.default_rng(0)).mean
        return float(np.linalg.norm(image - truth) / np.linalg.norm(truth))

    known = TrainingResidual().knowing([ReferenceSlice("brain", mr_slice, truth)])
    assert error(known) < 0.95 * error(ExpectedError())
