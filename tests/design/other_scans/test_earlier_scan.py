"""What an earlier scan says of the error on every line, how far it is believed, and what becomes of a wrong one."""

from collections.abc import Callable

import numpy as np
import pytest

from mri_design import (
    Calibrated,
    ControlVariate,
    DesignEngine,
    DesignState,
    DoubleLoop,
    OracleResidual,
    SliceModel,
    load_phantom,
)
from mri_design.design import EarlierScan, weight_of_side_information
from mri_design.readouts import LineReadouts
from tests.refusals import refused

SliceMaker = Callable[..., SliceModel]
START = (16, 15, 17, 14, 18, 13, 19, 12)
TARGET = 24


def design(one: SliceModel, rule: Calibrated | OracleResidual, target: int = TARGET, block: int = 1) -> DesignState:
    engine = DesignEngine(rule, DoubleLoop(ControlVariate(4)), block=block)
    return engine.run([one], engine.begin([one], START), target)


def truth_of(name: str) -> np.ndarray:
    reference = load_phantom(name, shape=(32, 32), rng=np.random.default_rng(0)).reference
    assert reference is not None
    return reference[0]


def earlier(make_slice: SliceMaker, name: str = "brain") -> EarlierScan:
    scan = make_slice(shape=(32, 32), seed=9, name=name)
    return EarlierScan(
        scan=scan, image=truth_of(name), unknown=np.zeros(32), inference=DoubleLoop(ControlVariate(4)), seed=5
    )


def test_other_things_are_refused(make_slice: SliceMaker) -> None:
    with refused("earlier scan"):  # before the first line
        Calibrated(side_information=(earlier(make_slice),)).default_start(LineReadouts((64, 64)), 16)


def test_the_score_is_the_weighted_geometric_mean(make_slice: SliceMaker) -> None:
    one, before = make_slice(shape=(32, 32)), earlier(make_slice)
    alone = design(one, Calibrated(), 9).trace.steps[0]
    together = design(one, Calibrated(side_information=(before,)), 9).trace.steps[0]
    assert alone.choice.scores is not None and together.choice.scores is not None
    weight = weight_of_side_information(np.empty(0), np.empty(0), np.empty(0))
    assert np.isnan(alone.forecast.side_information_weight) and together.forecast.side_information_weight == weight
    seen = before.residuals([START])[0] * together.forecast.image_energy
    left = np.isfinite(alone.choice.scores)
    expected = seen**weight * np.maximum(alone.choice.scores, 0) ** (1 - weight)
    np.testing.assert_allclose(together.choice.scores[left], expected[left], rtol=1e-5)
    np.testing.assert_array_equal(alone.forecast.corrected, together.forecast.corrected)


def test_residuals_of_the_same_scan_are_what_its_oracle_sees(make_slice: SliceMaker) -> None:
    """The image measured along the mask of a design that looks at it: the same posteriors, the same errors."""
    same = earlier(make_slice)
    engine = DesignEngine(OracleResidual(truths=(same.image,)), DoubleLoop(ControlVariate(4)), seed=5)
    trace = engine.run([same.scan], engine.begin([same.scan], START), 14).trace
    energy = np.sum(np.abs(same.image) ** 2)
    moments = [trace.lines[:count] for count in range(8, 14)]
    for step, residuals in zip(trace.steps, same.residuals(moments), strict=True):
        assert step.choice.scores is not None
        left = np.isfinite(step.choice.scores)
        np.testing.assert_allclose(residuals[left] * energy, step.choice.scores[left], rtol=1e-4)


def test_what_an_earlier_scan_says_does_not_depend_on_when_it_is_asked(make_slice: SliceMaker) -> None:
    moments = [(*START, *(20, 10, 22)[:count]) for count in range(4)]
    one_by_one, at_once = earlier(make_slice), earlier(make_slice)
    found = [one_by_one.residuals(moments[: count + 1])[-1] for count in range(4)]
    np.testing.assert_array_equal(found, at_once.residuals(moments))
    other_way = [(*START, *(9, 23)[:count]) for count in range(3)]
    np.testing.assert_array_equal(at_once.residuals(other_way), earlier(make_slice).residuals(other_way))


@pytest.mark.parametrize("block", [1, 3])
def test_an_interrupted_design_goes_on_to_the_same_lines(make_slice: SliceMaker, block: int) -> None:
    one = make_slice(shape=(32, 32))
    whole = design(one, Calibrated(side_information=(earlier(make_slice),)), 20, block).trace
    half = design(one, Calibrated(side_information=(earlier(make_slice),)), 14, block)
    engine = DesignEngine(
        Calibrated(side_information=(earlier(make_slice),)), DoubleLoop(ControlVariate(4)), block=block
    )
    resumed = engine.run([one], half, 20).trace
    assert resumed.lines == whole.lines
    assert resumed.steps[-1].forecast.side_information_weight == whole.steps[-1].forecast.side_information_weight


@pytest.mark.slow
@pytest.mark.thorough
def test_a_scan_of_the_same_object_takes_over_and_one_of_another_is_overruled(make_slice: SliceMaker) -> None:
    """Three draws of the noise; lines in common with the design that knows the image."""
    weights: dict[str, list[float]] = {"brain": [], "shepp-logan": []}
    agreed: dict[str, list[int]] = {"brain": [], "shepp-logan": [], "none": []}
    for seed in (1, 2, 3):
        one = make_slice(shape=(32, 32), seed=seed)
        best = set(design(one, OracleResidual(truths=(truth_of("brain"),))).trace.lines)
        agreed["none"].append(len(best & set(design(one, Calibrated()).trace.lines)))
        for name, found in weights.items():
            trace = design(one, Calibrated(side_information=(earlier(make_slice, name),))).trace
            found.append(trace.steps[-1].forecast.side_information_weight)
            agreed[name].append(len(best & set(trace.lines)))
    assert min(weights["brain"]) > 0.5 and max(weights["shepp-logan"]) < 0.25
    assert sum(agreed["brain"]) > sum(agreed["none"]) and sum(agreed["brain"]) > sum(agreed["shepp-logan"])


NO_LINES = np.empty(0)


def test_side_information_is_trusted_first_and_equal_records_count_alike() -> None:
    wrong = np.tile([0.6, -0.9, 0.4], 200)
    assert weight_of_side_information(NO_LINES, NO_LINES, NO_LINES) > 0.9
    assert weight_of_side_information(wrong, wrong, np.zeros(600)) == pytest.approx(0.5, abs=0.02)


def test_the_better_record_counts_more_and_the_more_so_the_longer_it_is() -> None:
    good, bad = np.full(20, 0.05), np.full(20, -0.8)
    weights = [weight_of_side_information(bad[:n], good[:n], np.zeros(n)) for n in (0, 1, 5, 20)]
    assert weights[0] > 0.9 and all(np.diff(weights) < 0) and weights[-1] < 0.02
    assert weight_of_side_information(good, bad, np.zeros(20)) > 0.99


def test_lines_that_hold_little_but_noise_say_little() -> None:
    wrong, right = np.full(5, 2.0), np.zeros(5)
    clear, noisy = (weight_of_side_information(wrong, right, np.full(5, noise)) for noise in (0.0, 10.0))
    nothing = weight_of_side_information(NO_LINES, NO_LINES, NO_LINES)
    assert clear < 0.05 and 0.5 < noisy < nothing
