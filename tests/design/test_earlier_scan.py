"""What an earlier scan says of the error on lines and samples, how far it is believed, what becomes of a wrong one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from mri_design import DoubleLoop, SliceModel
from mri_design import load_phantom as phantom
from mri_design.design import (
    Calibrated,
    DesignEngine,
    DesignState,
    EarlierScan,
    OracleResidual,
    Strategy,
    feature_weights,
    sample_features,
    weight_of_side_information,
)
from mri_design.design.calibrated import EARLIER_MEAN, SAMPLE_FEATURES
from mri_design.readouts import LineReadouts, PlaneReadouts
from mri_design.variances import ControlVariate
from tests.refusals import refused

SIZE = 32
GRID = (SIZE, SIZE)
INFERENCE = DoubleLoop(ControlVariate(4, 0.03), outer_iterations=3, tolerance=0.03)


class Kind(NamedTuple):
    """Lines or samples of a plane, and how many a design begins with, chooses at once, and has in the end."""

    encoding: str
    start: tuple[int, ...]
    block: int
    target: int


LINES = Kind("lines", (16, 15, 17, 14, 18, 13, 19, 12), 1, 24)
BLOCKS = LINES._replace(block=3)
PLANE = Kind("plane", tuple(PlaneReadouts(GRID).outwards[:40].tolist()), 40, 240)


def scene(kind: Kind, seed: int = 0, name: str = "brain") -> tuple[SliceModel, np.ndarray]:
    """A scan with the noise of a seed, and its true image, which is the same for all seeds."""
    data = phantom(name, shape=GRID, rng=np.random.default_rng(0))
    one, truth = data.encoded(kind.encoding).slice_model(), data.reference[0]
    every = one.encoding()(truth).reshape(one.kspace.shape)
    parts = np.random.default_rng(seed).standard_normal((2, *every.shape)) * np.sqrt(one.noise_variance)
    return replace(one, kspace=(every + parts[0] + 1j * parts[1]).astype(np.complex64)), truth


def earlier(kind: Kind, seed: int = 9, name: str = "brain") -> EarlierScan:
    scan, truth = scene(kind, seed, name)
    return EarlierScan(scan=scan, image=truth, unknown=np.zeros(scan.candidates.size), inference=INFERENCE, seed=5)


def engine(kind: Kind, rule: Strategy) -> DesignEngine:
    constraints = PlaneReadouts(GRID).constraints() if kind is PLANE else LineReadouts(GRID).constraints()
    return DesignEngine(rule, INFERENCE, block=kind.block, constraints=constraints)


def designed(kind: Kind, rule: Strategy, slices: Sequence[SliceModel], target: int | None = None) -> DesignState:
    made = engine(kind, rule)
    return made.run(slices, made.begin(slices, kind.start), target or kind.target)


def test_of_lines_the_score_is_the_weighted_geometric_mean() -> None:
    one, before = scene(LINES, 1)[0], earlier(LINES)
    alone, together = (
        designed(LINES, Calibrated(side_information=given), [one], 9).trace.steps[0] for given in ((), (before,))
    )
    weight = weight_of_side_information(NO_LINES, NO_LINES, NO_LINES)
    assert np.isnan(alone.forecast.side_information_weight) and together.forecast.side_information_weight == weight
    seen = before.residuals([LINES.start])[0] * together.forecast.image_energy
    left = np.isfinite(alone.choice.scores)
    expected = seen**weight * np.maximum(alone.choice.scores, 0) ** (1 - weight)
    np.testing.assert_allclose(together.choice.scores[left], expected[left], rtol=1e-5)
    np.testing.assert_array_equal(alone.forecast.corrected, together.forecast.corrected)


def test_of_samples_it_is_a_feature_that_is_believed_at_first() -> None:
    plane = PlaneReadouts((4, 4))
    measured = np.zeros(16, dtype=bool)
    measured[[9, 10]] = True
    expected, said = np.linspace(1, 2, 16), np.geomspace(0.01, 100, 16)
    alone = sample_features(plane, measured, expected)
    informed = sample_features(plane, measured, expected, said)
    np.testing.assert_array_equal(informed[:, :-1], alone)
    np.testing.assert_allclose(np.exp(informed[:, -1]) * np.mean(expected[~measured]), said, rtol=1e-12)
    mean, sd = feature_weights(True)
    assert alone.shape[1] == len(SAMPLE_FEATURES) == len(feature_weights(False)[0]) == len(mean) - 1 == len(sd) - 1
    # Where both agree, they are believed as one: twice the energies, twice the belief.
    assert mean[-1] + mean[SAMPLE_FEATURES.index("log expected")] == pytest.approx(1)


def test_the_first_block_of_samples_follows_the_earlier_scan_and_nothing_is_promised_yet() -> None:
    one, before = scene(PLANE, 1)[0], earlier(PLANE)
    informed, alone = (
        designed(PLANE, Calibrated(side_information=given), [one], 80).trace.steps[0] for given in ((before,), ())
    )
    assert np.isnan([step.forecast.side_information_weight for step in (informed, alone)]).all()
    np.testing.assert_array_equal(informed.forecast.expected, alone.forecast.expected)
    np.testing.assert_array_equal(informed.forecast.corrected, alone.forecast.corrected)
    assert np.isnan(informed.predicted_error)
    said, left = before.residuals([PLANE.start])[0], np.isfinite(informed.choice.scores)
    ranks = [np.corrcoef(np.log(said[left]), np.log(s.choice.scores[left]))[0, 1] for s in (informed, alone)]
    assert ranks[0] > 0.95 > ranks[1]


def test_what_is_explained_of_samples_is_not_drawn() -> None:
    """The first block: scores with and without draws, whose logarithms scatter by the share that is not known."""
    one = scene(PLANE, 1)[0]
    for scans, share in (((), 1.0), ((earlier(PLANE),), 1 - EARLIER_MEAN)):
        drawn, believed = (
            designed(PLANE, Calibrated(side_information=scans, drawn=drawn), [one], 80).trace.steps[0].choice.scores
            for drawn in (True, False)
        )
        scatter = np.log(drawn / believed)[np.isfinite(believed)]
        assert np.std(scatter) == pytest.approx(share * np.pi / np.sqrt(6), rel=0.1)  # of an exponential's logarithm


def test_residuals_of_the_same_scan_are_what_its_oracle_sees() -> None:
    """The image measured along the mask of a design that looks at it: the same posteriors, the same errors."""
    same = earlier(LINES)
    made = replace(engine(LINES, OracleResidual(truths=(same.image,))), seed=5)
    trace = made.run([same.scan], made.begin([same.scan], LINES.start), 14).trace
    energy = np.sum(np.abs(same.image) ** 2)
    moments = [trace.lines[:count] for count in range(8, 14)]
    for step, residuals in zip(trace.steps, same.residuals(moments), strict=True):
        left = np.isfinite(step.choice.scores)
        np.testing.assert_allclose(residuals[left] * energy, step.choice.scores[left], rtol=1e-4)


def test_what_an_earlier_scan_says_does_not_depend_on_when_it_is_asked() -> None:
    moments = [(*LINES.start, *(20, 10, 22)[:count]) for count in range(4)]
    one_by_one, at_once = earlier(LINES), earlier(LINES)
    found = [one_by_one.residuals(moments[: count + 1])[-1] for count in range(4)]
    np.testing.assert_array_equal(found, at_once.residuals(moments))
    other_way = [(*LINES.start, *(9, 23)[:count]) for count in range(3)]
    np.testing.assert_array_equal(at_once.residuals(other_way), earlier(LINES).residuals(other_way))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "trusted"), [pytest.param(LINES, 0.5, marks=pytest.mark.thorough), (PLANE, 0.9)], ids=["lines", "plane"]
)
def test_the_same_object_is_believed_and_another_one_does_no_harm(kind: Kind, trusted: float) -> None:
    """Three draws of the noise: weights, and candidates in common with the design that knows the image."""
    weights: dict[str, list[float]] = {"brain": [], "shepp-logan": []}
    agreed: dict[str, list[int]] = {"brain": [], "shepp-logan": [], "none": []}
    for seed in (1, 2, 3):
        one, truth = scene(kind, seed)
        best = set(designed(kind, OracleResidual(truths=(truth,)), [one]).trace.lines)
        agreed["none"].append(len(best & set(designed(kind, Calibrated(), [one]).trace.lines)))
        for name, found in weights.items():
            trace = designed(kind, Calibrated(side_information=(earlier(kind, name=name),)), [one]).trace
            found.append(trace.block_start(len(trace.steps) - 1).forecast.side_information_weight)
            agreed[name].append(len(best & set(trace.lines)))
    assert min(weights["brain"]) > trusted and max(weights["shepp-logan"]) < 0.25
    brain, other, none = (np.mean(agreed[name]) for name in ("brain", "shepp-logan", "none"))
    assert brain > none and (brain > other if kind is LINES else other > 0.9 * none)
    assert kind is LINES or min(agreed["brain"]) > 1.5 * max(agreed["none"])


@pytest.mark.parametrize("kind", [LINES, PLANE], ids=["lines", "plane"])
def test_other_grids_and_numbers_of_slices_are_refused(kind: Kind) -> None:
    rule = Calibrated(side_information=(earlier(kind),))
    with refused("earlier scan"):  # before anything is chosen
        rule.default_start(LineReadouts((64, 64)), 16)
    if kind is PLANE:
        with refused("earlier scans"):
            designed(kind, rule, [scene(kind, 1)[0], scene(kind, 2)[0]], 120)


NO_LINES = np.empty(0)


def test_the_better_record_counts_more_and_the_more_so_the_longer_and_the_clearer_it_is() -> None:
    wrong = np.tile([0.6, -0.9, 0.4], 200)
    assert weight_of_side_information(wrong, wrong, np.zeros(600)) == pytest.approx(0.5, abs=0.02)
    good, bad = np.full(20, 0.05), np.full(20, -0.8)
    weights = [weight_of_side_information(bad[:n], good[:n], np.zeros(n)) for n in (0, 1, 5, 20)]
    assert weights[0] > 0.9 and all(np.diff(weights) < 0) and weights[-1] < 0.02
    assert weight_of_side_information(good, bad, np.zeros(20)) > 0.99
    clear, noisy = (weight_of_side_information(np.full(5, 2.0), np.zeros(5), np.full(5, sd)) for sd in (0.0, 10.0))
    assert clear < 0.05 and 0.5 < noisy < weights[0]  # lines that hold little but noise say little
