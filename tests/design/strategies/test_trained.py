from dataclasses import replace

import numpy as np
import pytest

from mri_design import Calibrated, DesignView, LineCandidates
from mri_design.design import TrainedDesign, TrainedOrder
from mri_design.readouts import LineReadouts
from tests.refusals import refused

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
        values = learnt.residual(acquired)
        left = [line for line in range(16) if line not in ORDER[:acquired]]
        np.testing.assert_array_equal(values[left], learnt.profile[row, left])
        assert values.max() == values[left].max()
        for before, line in enumerate(ORDER[3:acquired]):
            assert values[line] == min(values[left].max(), learnt.profile[before, line])
    np.testing.assert_array_equal(learnt.residual(1), learnt.residual(3))
    np.testing.assert_array_equal(learnt.residual(99), learnt.residual(7))


def test_another_grid_is_refused(learnt: TrainedDesign) -> None:
    with refused("trained design"):
        TrainedOrder(design=learnt).default_start(LineReadouts((24, 24)), 8)
    view = DesignView(LineCandidates(np.ones(24, dtype=bool), (12,), 8, 1))
    with refused("trained design"):
        TrainedOrder(design=learnt).choose(view, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("lines", {"lines": (8, 7, 9, 3, 12, 6, 6)}),
        ("lines", {"lines": (8, 7, 9, 3, 12, 6, 16)}),
        ("start lines", {"n_start": 0}),
        ("start lines", {"n_start": 8}),
        ("profile", {"n_start": 4}),
        ("profile", {"grid": (17, 16)}),
        ("profile", {"profile": np.full((5, 16), np.nan)}),
        ("profile", {"profile": np.full((5, 16), -1.0)}),
        ("errors", {"errors": np.full(5, np.inf)}),
    ],
)
def test_parts_that_disagree_are_refused(learnt: TrainedDesign, field: str, changes: dict[str, object]) -> None:
    with refused(f"trained design: {field}"):
        replace(learnt, **changes)  # type: ignore[arg-type]


def test_training_scans_say_what_training_missed_when_as_many_lines_were_measured(learnt: TrainedDesign) -> None:
    first, later = learnt.residuals([ORDER[:3], (*ORDER[:3], 14, 15)])
    np.testing.assert_array_equal(first, learnt.residual(3))
    np.testing.assert_array_equal(later, learnt.residual(5))
    with refused("trained design"):
        Calibrated(side_information=learnt).default_start(LineReadouts((64, 64)), 24)
