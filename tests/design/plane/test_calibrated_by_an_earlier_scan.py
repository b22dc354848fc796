"""What an earlier scan says of the samples of a plane, how far it is believed, and what becomes of a wrong one."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from mri_design import ControlVariate, DesignEngine, DesignState, DoubleLoop, SliceModel, load_phantom
from mri_design.design import Calibrated, EarlierScan, OracleResidual, Strategy, feature_weights, sample_features
from mri_design.design.error_models import EARLIER_MEAN, SAMPLE_FEATURES
from mri_design.readouts import LineReadouts, PlaneConstraints, PlaneReadouts
from tests.refusals import refused

SIZE, START, TARGET = 32, 40, 240
INFERENCE = DoubleLoop(ControlVariate(4, 0.03), outer_iterations=3, tolerance=0.03)


def scene(name: str = "brain", seed: int = 0) -> tuple[SliceModel, np.ndarray]:
    """A scan of a plane with the noise of a seed, and its true image, which is the same for all seeds."""
    data = load_phantom(name, shape=(SIZE, SIZE), rng=np.random.default_rng(0))
    assert data.reference is not None
    one, truth = data.encoded("plane").slice_model(), data.reference[0]
    every = one.encoding()(truth).reshape(one.kspace.shape)
    parts = np.random.default_rng(seed).standard_normal((2, *every.shape)) * np.sqrt(one.noise_variance)
    return replace(one, kspace=(every + parts[0] + 1j * parts[1]).astype(np.complex64)), truth


def earlier(name: str = "brain", seed: int = 9) -> EarlierScan:
    scan, truth = scene(name, seed)
    return EarlierScan(scan=scan, image=truth, unknown=np.zeros(SIZE**2), inference=INFERENCE, seed=5)


def designed(rule: Strategy, slices: Sequence[SliceModel], target: int = TARGET, seed: int = 0) -> DesignState:
    engine = made(rule, seed)
    return engine.run(slices, engine.begin(slices, engine.constraints.start(slices[0].measured, START)), target)


def made(rule: Strategy, seed: int = 0) -> DesignEngine:
    return DesignEngine(rule, INFERENCE, seed=seed, block=40, constraints=PlaneConstraints(PlaneReadouts((SIZE, SIZE))))


def test_the_feature_is_the_logarithm_of_what_is_said_and_all_is_believed_at_first() -> None:
    plane = PlaneReadouts((4, 4))
    measured = np.zeros(16, dtype=bool)
    measured[[9, 10]] = True
    expected, said = np.linspace(1, 2, 16), np.geomspace(0.01, 100, 16)
    alone = sample_features(plane, measured, expected)
    informed = sample_features(plane, measured, expected, said)
    np.testing.assert_array_equal(informed[:, :-1], alone)
    np.testing.assert_allclose(np.exp(informed[:, -1]) * np.mean(expected[~measured]), said, rtol=1e-12)
    mean, sd = feature_weights(True)
    assert alone.shape[1] == len(SAMPLE_FEATURES) == len(feature_weights(False)[0])
    assert len(mean) == len(sd) == len(SAMPLE_FEATURES) + 1
    # Where both agree, they are believed as one: twice the energies, twice the belief.
    assert mean[-1] + mean[SAMPLE_FEATURES.index("log expected")] == pytest.approx(1)


def test_the_first_block_follows_the_earlier_scan_and_nothing_is_promised_yet() -> None:
    one, before = scene(seed=1)[0], earlier()
    informed = designed(Calibrated(side_information=(before,)), [one], START + 40).trace.steps[0]
    alone = designed(Calibrated(), [one], START + 40).trace.steps[0]
    assert np.isnan(informed.forecast.side_information_weight) and np.isnan(alone.forecast.side_information_weight)
    np.testing.assert_array_equal(informed.forecast.expected, alone.forecast.expected)
    np.testing.assert_array_equal(informed.forecast.corrected, alone.forecast.corrected)
    assert np.isnan(informed.predicted_error)
    assert informed.choice.scores is not None and alone.choice.scores is not None
    said = before.residuals([tuple(PlaneReadouts((SIZE, SIZE)).outwards[:START].tolist())])[0]
    left = np.isfinite(informed.choice.scores)
    ranks = [np.corrcoef(np.log(said[left]), np.log(s.choice.scores[left]))[0, 1] for s in (informed, alone)]
    assert ranks[0] > 0.95 > ranks[1]


@pytest.mark.parametrize("count", [1, 2])
def test_an_interrupted_design_goes_on_to_the_same_samples(count: int) -> None:
    slices, scans = [scene(seed=s)[0] for s in (1, 2)[:count]], tuple(earlier(seed=s) for s in (7, 8)[:count])
    whole = designed(Calibrated(side_information=scans), slices, 160).trace
    half = designed(Calibrated(side_information=tuple(earlier(seed=s) for s in (7, 8)[:count])), slices, 120)
    again = made(Calibrated(side_information=tuple(earlier(seed=s) for s in (7, 8)[:count])))
    resumed = again.run(slices, half, 160).trace
    assert resumed.lines == whole.lines
    assert resumed.steps[-40].forecast.side_information_weight == whole.steps[-40].forecast.side_information_weight


@pytest.mark.slow
def test_the_same_object_is_believed_and_another_one_does_no_harm() -> None:
    """Three draws of the noise: weights, and samples in common with the design that knows the image."""
    weights: dict[str, list[float]] = {"brain": [], "shepp-logan": []}
    agreed: dict[str, list[int]] = {"brain": [], "shepp-logan": [], "none": []}
    for seed in (1, 2, 3):
        one, truth = scene(seed=seed)
        best = set(designed(OracleResidual(truths=(truth,)), [one]).trace.lines)
        agreed["none"].append(len(best & set(designed(Calibrated(), [one]).trace.lines)))
        for name, found in weights.items():
            trace = designed(Calibrated(side_information=(earlier(name),)), [one]).trace
            found.append(trace.steps[-40].forecast.side_information_weight)
            agreed[name].append(len(best & set(trace.lines)))
    assert min(weights["brain"]) > 0.9 and max(weights["shepp-logan"]) < 0.25
    assert min(agreed["brain"]) > 1.5 * max(agreed["none"]) and np.mean(agreed["shepp-logan"]) > 0.9 * np.mean(
        agreed["none"]
    )


def test_other_things_are_refused() -> None:
    before, one = earlier(), scene(seed=1)[0]
    with refused("earlier scan"):
        Calibrated(side_information=(before,)).default_start(LineReadouts((256, 256)), 100)
    with refused("earlier scans"):
        designed(Calibrated(side_information=(before,)), [one, scene(seed=2)[0]], 120)


def test_what_is_explained_is_not_drawn() -> None:
    """The first block: scores with and without draws, whose logarithms scatter by the share that is not known."""
    one = scene(seed=1)[0]
    for scans, share in (((), 1.0), ((earlier(),), 1 - EARLIER_MEAN)):
        drawn, believed = (
            designed(Calibrated(side_information=scans, drawn=drawn), [one], START + 40).trace.steps[0].choice.scores
            for drawn in (True, False)
        )
        assert drawn is not None and believed is not None
        left = np.isfinite(believed)
        scatter = np.log(drawn[left] / believed[left])
        assert np.std(scatter) == pytest.approx(share * np.pi / np.sqrt(6), rel=0.1)  # of an exponential's logarithm
