from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from mri_design.design import DesignState
from mri_design.estimation import Automatic
from mri_design.experiment import Checkpoint, DesignOptions, design_inference, load_state
from mri_design.experiment import stored_designs as checkpoint
from mri_design.experiment.design import NO_OPTIONS
from mri_design.kinds import KINDS
from mri_design.variances import ControlVariate


def design(
    one: md.SliceModel, recipe: md.Recipe, name: str = "information-gain", options: DesignOptions = NO_OPTIONS
) -> DesignState:
    return md.run_design([one], md.make_strategy(name), 10, recipe, seed=0, start=4, options=options)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of lines in the states that were written, on a clock that stands still."""
    numbers, save = list[int](), checkpoint.save_state

    def saved(kept: Checkpoint, state: DesignState) -> None:
        save(kept, state)
        numbers.append(len(state.trace.lines))

    monkeypatch.setattr(checkpoint, "save_state", saved)
    monkeypatch.setattr(checkpoint, "EVERY", float("inf"))
    return numbers


@pytest.mark.parametrize("name", ["calibrated", "random"])
def test_a_design_killed_between_two_checkpoints_ends_as_the_uninterrupted_one(
    tmp_path: Path, one: md.SliceModel, small: md.Recipe, name: str, written: list[int]
) -> None:
    path, cut = tmp_path / "c.npz", tmp_path / "cut.npz"
    kept = Checkpoint(path, "me")

    def look(state: DesignState) -> None:
        if len(state.trace.lines) == 8:  # what a process that is killed here leaves
            cut.write_bytes(path.read_bytes())

    whole = design(one, small, name, DesignOptions(checkpoint=kept, callback=look))
    assert written == [5, 10]
    left = Checkpoint(cut, "me")
    assert len(load_state(left).trace.lines) == 5 and load_state(kept).trace.lines == whole.trace.lines
    again = design(one, small, name, DesignOptions(checkpoint=left))
    assert again.trace.lines == whole.trace.lines
    for a, b in zip(again.warm, whole.warm, strict=True):
        np.testing.assert_array_equal(a.mean, b.mean)


def test_what_a_scanner_measured_is_written_line_by_line(
    tmp_path: Path, one: md.SliceModel, small: md.Recipe, written: list[int]
) -> None:
    live = DesignOptions(checkpoint=Checkpoint(tmp_path / "c.npz", "me"), measure=lambda steps: None)
    design(one, small, "random", live)
    assert written == [5, 6, 7, 8, 9, 10]


@pytest.mark.parametrize(
    ("name", "encoding", "inference", "expected"),
    [
        ("calibrated", "lines", {}, (4, 0.1, 3e-4)),
        (
            "calibrated",
            "lines",
            {"samples": 2, "variances": "control-variate:0.3", "solver": "automatic:1e-2"},
            (2, 0.3, 1e-2),
        ),
        ("information-gain", "lines", {}, (8, 0.03, 1e-4)),
        ("calibrated", "plane", {}, (8, 0.03, 1e-4)),
    ],
)
def test_only_a_strategy_that_corrects_posteriors_gets_rough_ones(
    name: str, encoding: str, inference: dict[str, object], expected: tuple[int, float, float]
) -> None:
    recipe = md.Recipe().replacing("inference", **inference).replacing("design", encoding=encoding)
    engine = design_inference(md.make_strategy(name, encoding), recipe, KINDS[encoding])
    assert isinstance(engine.variances, ControlVariate) and isinstance(engine.inner, Automatic)
    assert (engine.variances.samples, engine.variances.tolerance, engine.inner.tolerance) == expected
    images = md.Recipe().inference.engine().variances
    assert not engine.variances.extrapolated and isinstance(images, ControlVariate) and images.extrapolated
