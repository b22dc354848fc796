"""The rule that one mask of a plane for many scans goes by: what it scores, what it asks for, and that it pays."""

import numpy as np
import pytest

from mri_design import ControlVariate, DesignEngine, DesignView, DoubleLoop, InputError, MRSlice, Recipe, load_phantom
from mri_design.design.constraints import PlaneConstraints
from mri_design.design.strategies.expected_error import ExpectedError
from mri_design.design.strategies.trained import TrainingResidual
from mri_design.design.strategy import Strategy
from mri_design.design.trials import ReferenceSlice, line_residual
from mri_design.operators.readouts import PlaneReadouts
from mri_design.runs.scans import knowing_rule
from tests.design.plane.conftest import measured_ids, plane_posterior, plane_slice


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
    assert block[0] == left[np.argmax(total[left])] and len(set(block)) == 5 and not set(block) & set(ids)
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


def test_it_asks_for_the_training_scan_of_every_slice(make_view, rng) -> None:
    view: DesignView = make_view((plane_posterior(1),), measured_ids(16))
    with pytest.raises(InputError, match=r"0 training scans for 1 slices.*knowing"):
        TrainingResidual().choose(view, rng)
    with pytest.raises(InputError, match="2 training scans for 1 slices"):
        TrainingResidual().knowing(training(1)).choose(view, rng)
    with pytest.raises(InputError, match="reach"):
        TrainingResidual(reach=-1.0)
    with pytest.raises(InputError, match="scans"):
        TrainingResidual(scans=(np.ones((16, 16)),))  # type: ignore[arg-type]


def test_runs_give_it_the_training_scans_and_the_posterior_mean() -> None:
    recipe = Recipe().replacing("design", encoding="plane").replacing("reconstruction", method="map")
    rule = knowing_rule("residual-greedy", training(1), recipe, 0)
    assert isinstance(rule, TrainingResidual) and len(rule.scans) == 2 and rule.needs_posterior


@pytest.mark.slow
def test_on_its_training_scan_it_is_better_than_what_the_posterior_expects() -> None:
    data = load_phantom("brain", shape=(32, 32), rng=np.random.default_rng(0))
    mr_slice = MRSlice.from_data(data.encoded("plane"))
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
