from dataclasses import replace

import numpy as np
import pytest

from mri_design import DesignView, InputError, LineCandidates
from mri_design.design.strategies.trained import TrainedOrder
from mri_design.design.training import TrainedDesign
from mri_design.readouts import LineReadouts

ORDER = (8, 7, 9, 3, 12, 6, 1)


@pytest.fixture
def learnt() -> TrainedDesign:
    rng = np.random.default_rng(0)
    profile = rng.uniform(1, 2, (5, 16)) * 0.5 ** np.arange(5)[:, None]
    for row in range(5):
        profile[row, list(ORDER[: 3 + row])] = 1e-6
    return TrainedDesign(
        grid=(16, 16), lines=ORDER, n_start=3, profile=profile, errors=np.linspace(0.5, 0.1, 5), rule="residual-greedy"
    )


def test_the_order_is_followed(learnt: TrainedDesign, rng: np.random.Generator) -> None:
    candidates = LineCandidates(np.ones(16, dtype=bool), ORDER[:3], 7, 3)
    rule = TrainedOrder(design=learnt)
    assert rule.default_start(LineReadouts((16, 16)), 7) == 3
    for line in ORDER[3:]:
        assert rule.choose(DesignView(candidates), rng).line == line
        candidates = candidates.after(line)


def test_lines_without_data_are_passed_over_and_the_last_residual_goes_on(
    learnt: TrainedDesign, rng: np.random.Generator
) -> None:
    measurable = np.ones(16, dtype=bool)
    measurable[3] = False
    candidates = LineCandidates(measurable, ORDER[:3], 15, 3)
    rule = TrainedOrder(design=learnt)
    while len(candidates.acquired) < 15:
        candidates = candidates.after(rule.choose(DesignView(candidates), rng).line)
    assert candidates.acquired[3:6] == ORDER[4:]
    rest = candidates.acquired[6:]
    assert list(rest) == sorted(rest, key=lambda line: -learnt.profile[-1, line])


def test_a_line_that_training_took_stays_as_important_as_the_most_important_one_left(learnt: TrainedDesign) -> None:
    for acquired in range(3, 8):
        row = acquired - 3
        values = learnt.residuals(acquired)
        left = [line for line in range(16) if line not in ORDER[:acquired]]
        np.testing.assert_array_equal(values[left], learnt.profile[row, left])
        assert values.max() == values[left].max()
        for before, line in enumerate(ORDER[3:acquired]):
            assert values[line] == min(values[left].max(), learnt.profile[before, line])
    np.testing.assert_array_equal(learnt.residuals(1), learnt.residuals(3))
    np.testing.assert_array_equal(learnt.residuals(99), learnt.residuals(7))


def test_another_grid_is_refused(learnt: TrainedDesign) -> None:
    with pytest.raises(InputError, match="Train on scans of the same matrix size"):
        TrainedOrder(design=learnt).default_start(LineReadouts((24, 24)), 8)
    view = DesignView(LineCandidates(np.ones(24, dtype=bool), (12,), 8, 1))
    with pytest.raises(InputError, match="16 for a scan with 24"):
        TrainedOrder(design=learnt).choose(view, np.random.default_rng(0))


@pytest.mark.parametrize(
    "changes",
    [
        {"lines": (8, 7, 9, 3, 12, 6, 6)},
        {"lines": (8, 7, 9, 3, 12, 6, 16)},
        {"n_start": 0},
        {"n_start": 8},
        {"n_start": 4},
        {"grid": (17, 16)},
        {"profile": np.full((5, 16), np.nan)},
        {"profile": np.full((5, 16), -1.0)},
        {"errors": np.full(5, np.inf)},
    ],
)
def test_parts_that_disagree_are_refused(learnt: TrainedDesign, changes: dict[str, object]) -> None:
    with pytest.raises(InputError, match="trained design"):
        replace(learnt, **changes)  # type: ignore[arg-type]
