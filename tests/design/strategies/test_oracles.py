"""Rules that look at the truth, of the scan itself or of training scans, and orders that were learnt."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import mri_design as md
from mri_design.design import (
    Calibrated,
    DesignView,
    LineCandidates,
    OracleGreedy,
    OracleHole,
    OracleResidual,
    ReferenceSlice,
    TrainedDesign,
    TrainedOrder,
    TrainingResidual,
    expected_energies,
)
from mri_design.model import GaussianPosterior
from mri_design.operators import Array
from mri_design.readouts import LineReadouts
from tests.design.conftest import make_posterior, make_slice
from tests.refusals import refused

ACQUIRED = (8, 7, 9, 6, 3)


def view_of(posteriors: Sequence[GaussianPosterior] = ()) -> DesignView:
    return DesignView(LineCandidates(np.ones(16, dtype=bool), ACQUIRED, 9, 5), posteriors)


def nothing(index: int, lines: Sequence[int]) -> Array:
    raise AssertionError("this oracle needs no reconstruction")


@pytest.mark.parametrize("coils", [1, 3])
def test_residual_oracle_takes_the_line_where_the_mean_is_most_wrong(coils: int, rng: np.random.Generator) -> None:
    one, posterior = make_slice(coils), make_posterior(coils)
    truth = one.encoding().adjoint(one.kspace)
    choice = OracleResidual().knowing([truth, truth], nothing).choose(view_of([posterior, posterior]), rng)
    wrong = one.encoding()(posterior.mean - truth)
    energy = 2 * np.sum(np.abs(wrong) ** 2, axis=(0, 2))
    left = np.setdiff1d(np.arange(16), ACQUIRED)
    assert choice.line == left[np.argmax(energy[left])]
    np.testing.assert_allclose(choice.scores[left], energy[left], rtol=1e-5)


def test_leave_one_out_oracle_corrects_a_line_by_the_actual_errors_of_the_others() -> None:
    one, posterior = make_slice(), make_posterior()
    truth = one.encoding().adjoint(one.kspace)
    actual = np.sum(np.abs(one.encoding()(posterior.mean - truth)) ** 2, axis=(0, 2))
    expected = expected_energies([posterior], one.candidates, np.random.default_rng(3), 12)
    choice = OracleHole().knowing([truth], nothing).choose(view_of([posterior]), np.random.default_rng(3))
    left = np.setdiff1d(np.arange(16), ACQUIRED)
    scores = {}
    for line in left:
        others = left[left != line]
        weights = np.exp(-((others - line) ** 2) / 18)
        scores[line] = expected[line] * np.exp(np.average(np.log(actual / expected)[others], weights=weights))
    np.testing.assert_allclose(choice.scores[left], [scores[line] for line in left], rtol=1e-4)
    assert choice.line == max(scores, key=lambda line: scores[line])
    louder = truth + one.encoding([choice.line]).adjoint(1000 * np.ones((1, 1, 16), dtype=np.complex64))
    again = OracleHole().knowing([louder], nothing).choose(view_of([posterior]), np.random.default_rng(3))
    np.testing.assert_allclose(again.scores[choice.line], choice.scores[choice.line], rtol=1e-3)  # its own luck


def test_greedy_oracle_takes_the_line_that_leaves_the_least_error(rng: np.random.Generator) -> None:
    slices = [make_slice(seed=0), make_slice(seed=1, name="shepp-logan")]
    truths = [one.encoding().adjoint(one.kspace) for one in slices]

    def image(index: int, lines: Sequence[int]) -> Array:
        return md.estimation.zero_filled(slices[index].model(lines))

    choice = OracleGreedy().knowing(truths, image).choose(view_of(), rng)

    def error(line: int) -> float:
        pairs = [(np.abs(image(i, [*ACQUIRED, line])), np.abs(truth)) for i, truth in enumerate(truths)]
        return float(np.mean([np.linalg.norm(found - truth) / np.linalg.norm(truth) for found, truth in pairs]))

    assert choice.line == min(np.setdiff1d(np.arange(16), ACQUIRED), key=error)


@pytest.mark.parametrize("rule", [OracleResidual(), OracleHole(), OracleGreedy()])
def test_without_the_truth_there_is_no_choice(
    rule: OracleResidual | OracleHole | OracleGreedy, rng: np.random.Generator
) -> None:
    posterior = make_posterior()
    with refused(rule.name):
        rule.choose(view_of([posterior]), rng)
    if rule.needs_posterior:  # of one of two slices
        with refused(rule.name):
            rule.knowing([posterior.mean], nothing).choose(view_of([posterior, posterior]), rng)

    with refused("oracle-greedy"):  # which needs a reconstruction, too
        OracleGreedy(truths=(np.ones((4, 4)),)).choose(view_of(), rng)


def training_scans(one: md.SliceModel) -> list[ReferenceSlice]:
    """One slice twice, with two truths of different brightness."""
    truth = one.encoding().adjoint(one.kspace)
    return [ReferenceSlice(str(i), one, image) for i, image in enumerate((truth, 10 * truth[::-1]))]


@pytest.mark.parametrize("coils", [1, 3])
@pytest.mark.parametrize("weight", [0.0, 0.25])
@pytest.mark.parametrize("of_the_mean", [True, False])
def test_lines_are_scored_by_the_relative_error_on_and_around_them(
    of_the_mean: bool, weight: float, coils: int
) -> None:
    one, posterior = make_slice(coils), make_posterior(coils)
    scans = training_scans(one)

    def filled(index: int, lines: Sequence[int]) -> Array:
        assert tuple(lines) == ACQUIRED
        return md.estimation.zero_filled(scans[index].slice_model.model(lines))

    rule = TrainingResidual(neighbours=(weight,)).knowing(scans, None if of_the_mean else filled)
    assert rule.needs_posterior == of_the_mean
    choice = rule.choose(view_of([posterior, posterior] if of_the_mean else ()), np.random.default_rng(0))
    total = np.zeros(16)
    for index, scan in enumerate(scans):
        image = posterior.mean if of_the_mean else filled(index, ACQUIRED)
        wrong = np.sum(np.abs(one.encoding()(image - scan.reference)) ** 2, axis=(0, 2))
        total += wrong / np.sum(np.abs(scan.reference) ** 2) / 2
    total[list(ACQUIRED)] = 0
    expected = np.convolve(total, [weight, 1, weight], mode="same")
    left = np.setdiff1d(np.arange(16), ACQUIRED)
    np.testing.assert_allclose(choice.scores[left], expected[left], rtol=1e-4)
    assert choice.line == left[np.argmax(expected[left])]


def test_it_asks_for_the_training_scan_of_every_slice(rng: np.random.Generator) -> None:
    for scans in ([], training_scans(make_slice())):
        with refused("residual-greedy"):
            TrainingResidual().knowing(scans).choose(view_of([make_posterior()]), rng)


ORDER = (8, 7, 9, 3, 12, 6, 1)


@pytest.fixture
def learnt() -> TrainedDesign:
    rng = np.random.default_rng(0)
    profile = rng.uniform(1, 2, (5, 16)) * 0.5 ** np.arange(5)[:, None]
    for row in range(5):
        profile[row, list(ORDER[: 3 + row])] = 1e-6
    errors = np.linspace(0.5, 0.1, 5)
    return TrainedDesign(grid=(16, 16), lines=ORDER, n_start=3, profile=profile, errors=errors, rule="residual-greedy")


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
        Calibrated(side_information=(learnt,)).default_start(LineReadouts((64, 64)), 24)


def test_the_order_is_followed_past_lines_without_data_and_the_last_residual_goes_on(
    learnt: TrainedDesign, rng: np.random.Generator
) -> None:
    measurable, rule = np.ones(16, dtype=bool), TrainedOrder(design=learnt)
    measurable[3] = False
    assert rule.default_start(LineReadouts((16, 16)), 7) == 3
    candidates = LineCandidates(measurable, ORDER[:3], 15, 3)
    while len(candidates.acquired) < 15:
        candidates = candidates.after(rule.choose(DesignView(candidates), rng).line)
    assert candidates.acquired[3:6] == ORDER[4:]
    rest = candidates.acquired[6:]
    assert list(rest) == sorted(rest, key=lambda line: -learnt.profile[-1, line])
