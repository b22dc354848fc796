"""What training scans say of the error on every line, and that the scan overrules them where they are wrong."""

from collections.abc import Callable

import numpy as np
import pytest

from mri_design import (
    Calibrated,
    ControlVariate,
    DesignEngine,
    DoubleLoop,
    InputError,
    MRSlice,
    OracleResidual,
    load_phantom,
)
from mri_design.design.strategies.trained import TrainingScans
from mri_design.design.trace import DesignTrace
from mri_design.design.training import TrainedDesign
from mri_design.readouts import LineReadouts

SliceMaker = Callable[..., MRSlice]
START = (16, 15, 17, 14, 18, 13, 19, 12)
TARGET = 24


def truth() -> np.ndarray:
    reference = load_phantom("brain", shape=(32, 32), rng=np.random.default_rng(0)).reference
    assert reference is not None
    return reference[0]


def learnt(energies: np.ndarray) -> TrainingScans:
    """Training scans that missed these shares of their energy, whatever was measured."""
    rows = TARGET - len(START) + 1
    order = (*START, *(line for line in range(32) if line not in START))[:TARGET]
    design = TrainedDesign(
        grid=(32, 32), lines=order, n_start=len(START), profile=np.tile(energies, (rows, 1)), errors=np.ones(rows),
        rule="residual-greedy",
    )  # fmt: skip
    return TrainingScans(design=design)


@pytest.fixture
def spectrum() -> np.ndarray:
    """The share of the object's energy that is on each line: what is missed where nothing of it is known."""
    kspace = np.fft.fftshift(np.fft.fft(np.fft.ifftshift(truth(), axes=0), axis=0), axes=0)
    energies = np.sum(np.abs(kspace) ** 2, axis=1)
    return np.asarray(energies / energies.sum())


def design(one: MRSlice, rule: Calibrated | OracleResidual) -> DesignTrace:
    engine = DesignEngine(rule, DoubleLoop(ControlVariate(4)))
    return engine.run([one], engine.begin([one], START), TARGET).trace


def test_they_say_what_training_missed_when_as_many_lines_were_measured() -> None:
    profile = np.arange(17.0)[:, None] + np.zeros(32)
    order = (*START, *(line for line in range(32) if line not in START))[:TARGET]
    trained = TrainedDesign(
        grid=(32, 32), lines=order, n_start=8, profile=profile, errors=np.ones(17), rule="residual-greedy"
    )
    scans = TrainingScans(design=trained)
    first, later = scans.residuals([START, (*START, 30, 31)])
    assert first[31] == 0.0 and later[31] == 2.0


def test_other_things_and_other_grids_are_refused(spectrum: np.ndarray) -> None:
    with pytest.raises(InputError, match="a TrainedDesign"):
        TrainingScans(design="order.npz")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a grid of 32 for a scan with 64"):
        Calibrated(side_information=learnt(spectrum)).default_start(LineReadouts((64, 64)), 24)


@pytest.mark.slow
@pytest.mark.thorough
def test_right_ones_help_and_wrong_ones_are_overruled(make_slice: SliceMaker, spectrum: np.ndarray) -> None:
    """Three draws of the noise; the wrong ones take the outermost lines for the strongest."""
    weights: dict[str, list[float]] = {"right": [], "wrong": []}
    agreed = {"right": 0, "wrong": 0, "none": 0}
    predictions = {"right": learnt(spectrum), "wrong": learnt(np.roll(spectrum, 16))}
    for seed in (1, 2, 3):
        one = make_slice(shape=(32, 32), seed=seed)
        best = set(design(one, OracleResidual(truths=(truth(),))).lines)
        agreed["none"] += len(best & set(design(one, Calibrated()).lines))
        for name, side_information in predictions.items():
            trace = design(one, Calibrated(side_information=side_information))
            weights[name].append(trace.steps[-1].forecast.side_information_weight)
            agreed[name] += len(best & set(trace.lines))
    assert max(weights["wrong"]) < 0.1 < min(weights["right"])
    assert agreed["right"] >= agreed["none"] and agreed["wrong"] >= agreed["none"] - 3
