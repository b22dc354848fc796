from collections.abc import Callable, Sequence

import numpy as np
import pytest

from mri_design import DesignView, GaussianPosterior, LineCandidates, MRSlice, OracleResidual, zero_filled
from mri_design.design import OracleGreedy, OracleHole, expected_energies
from mri_design.operators import Array
from tests.refusals import refused

ACQUIRED = (8, 7, 9, 6, 3)


def view_of(posteriors: Sequence[GaussianPosterior] = (), measurable: Array | None = None) -> DesignView:
    every = np.ones(16, dtype=bool) if measurable is None else measurable
    return DesignView(LineCandidates(every, ACQUIRED, 9, 5), posteriors)


def nothing(index: int, lines: Sequence[int]) -> Array:
    raise AssertionError("this oracle needs no reconstruction")


@pytest.mark.parametrize("coils", [1, 3])
def test_residual_oracle_takes_the_line_where_the_mean_is_most_wrong(
    coils: int,
    make_posterior: Callable[..., GaussianPosterior],
    make_slice: Callable[..., MRSlice],
    rng: np.random.Generator,
) -> None:
    one, posterior = make_slice(coils), make_posterior(coils)
    truth = one.encoding().adjoint(one.kspace)
    choice = OracleResidual().knowing([truth, truth], nothing).choose(view_of([posterior, posterior]), rng)
    wrong = one.encoding()(posterior.mean - truth)
    energy = 2 * np.sum(np.abs(wrong) ** 2, axis=(0, 2))
    left = np.setdiff1d(np.arange(16), ACQUIRED)
    assert choice.line == left[np.argmax(energy[left])]
    assert choice.scores is not None
    np.testing.assert_allclose(choice.scores[left], energy[left], rtol=1e-5)


def test_leave_one_out_oracle_corrects_a_line_by_the_actual_errors_of_the_others(
    make_posterior: Callable[..., GaussianPosterior], make_slice: Callable[..., MRSlice], rng: np.random.Generator
) -> None:
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
    assert choice.scores is not None
    np.testing.assert_allclose(choice.scores[left], [scores[line] for line in left], rtol=1e-4)
    assert choice.line == max(scores, key=lambda line: scores[line])
    louder = truth + one.encoding([choice.line]).adjoint(1000 * np.ones((1, 1, 16), dtype=np.complex64))
    again = OracleHole().knowing([louder], nothing).choose(view_of([posterior]), np.random.default_rng(3))
    assert again.scores is not None
    np.testing.assert_allclose(again.scores[choice.line], choice.scores[choice.line], rtol=1e-3)  # its own luck


def test_greedy_oracle_takes_the_line_that_leaves_the_least_error(
    make_slice: Callable[..., MRSlice], rng: np.random.Generator
) -> None:
    slices = [make_slice(seed=0), make_slice(seed=1, name="shepp-logan")]
    truths = [one.encoding().adjoint(one.kspace) for one in slices]

    def image(index: int, lines: Sequence[int]) -> Array:
        return zero_filled(slices[index].model(lines))

    choice = OracleGreedy().knowing(truths, image).choose(view_of(), rng)
    errors = {}
    for line in np.setdiff1d(np.arange(16), ACQUIRED):
        each = [
            np.linalg.norm(np.abs(image(i, [*ACQUIRED, line])) - np.abs(t)) / np.linalg.norm(t)
            for i, t in enumerate(truths)
        ]
        errors[line] = np.mean(each)
    assert choice.line == min(errors, key=lambda line: errors[line])


@pytest.mark.parametrize("rule", [OracleResidual(), OracleHole(), OracleGreedy()])
def test_without_the_truth_there_is_no_choice(
    rule: OracleResidual | OracleHole | OracleGreedy,
    make_posterior: Callable[..., GaussianPosterior],
    rng: np.random.Generator,
) -> None:
    posterior = make_posterior()
    with refused(rule.name):
        rule.choose(view_of([posterior]), rng)
    if rule.needs_posterior:  # of one of two slices
        with refused(rule.name):
            rule.knowing([posterior.mean], nothing).choose(view_of([posterior, posterior]), rng)


def test_an_oracle_of_errors_needs_a_reconstruction() -> None:
    with refused("oracle-greedy"):
        OracleGreedy(truths=(np.ones((4, 4)),)).choose(view_of(), np.random.default_rng(0))
