"""The rule that one mask for many scans goes by."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from mri_design import DesignView, GaussianPosterior, LineCandidates, MRSlice, zero_filled
from mri_design.design import ReferenceSlice, TrainingResidual
from mri_design.operators import Array
from tests.refusals import refused

ACQUIRED = (8, 7, 9, 6, 3)
CANDIDATES = LineCandidates(np.ones(16, dtype=bool), ACQUIRED, 9, 5)
SliceMaker = Callable[..., MRSlice]
PosteriorMaker = Callable[..., GaussianPosterior]


def training_scans(one: MRSlice) -> list[ReferenceSlice]:
    """One slice twice, with two truths of different brightness."""
    truth = one.encoding().adjoint(one.kspace)
    return [ReferenceSlice(str(i), one, image) for i, image in enumerate((truth, 10 * truth[::-1]))]


@pytest.mark.parametrize("coils", [1, 3])
@pytest.mark.parametrize("weight", [0.0, 0.25])
@pytest.mark.parametrize("of_the_mean", [True, False])
def test_lines_are_scored_by_the_relative_error_on_and_around_them(
    of_the_mean: bool,
    weight: float,
    coils: int,
    make_posterior: PosteriorMaker,
    make_slice: SliceMaker,
    rng: np.random.Generator,
) -> None:
    one, posterior = make_slice(coils), make_posterior(coils)
    scans = training_scans(one)

    def filled(index: int, lines: Sequence[int]) -> Array:
        assert tuple(lines) == ACQUIRED
        return zero_filled(scans[index].slice_model.model(lines))

    rule = TrainingResidual(neighbours=(weight,)).knowing(scans, None if of_the_mean else filled)
    assert rule.needs_posterior == of_the_mean
    choice = rule.choose(DesignView(CANDIDATES, [posterior, posterior] if of_the_mean else ()), rng)
    total = np.zeros(16)
    for index, scan in enumerate(scans):
        image = posterior.mean if of_the_mean else filled(index, ACQUIRED)
        wrong = np.sum(np.abs(one.encoding()(image - scan.reference)) ** 2, axis=(0, 2))
        total += wrong / np.sum(np.abs(scan.reference) ** 2) / 2
    total[list(ACQUIRED)] = 0
    expected = np.convolve(total, [weight, 1, weight], mode="same")
    left = np.setdiff1d(np.arange(16), ACQUIRED)
    assert choice.scores is not None
    np.testing.assert_allclose(choice.scores[left], expected[left], rtol=1e-4)
    assert choice.line == left[np.argmax(expected[left])]


def test_it_asks_for_the_training_scan_of_every_slice(
    make_posterior: PosteriorMaker, make_slice: SliceMaker, rng: np.random.Generator
) -> None:
    view = DesignView(CANDIDATES, [make_posterior()])
    with refused("residual-greedy"):
        TrainingResidual().choose(view, rng)
    with refused("residual-greedy"):
        TrainingResidual().knowing(training_scans(make_slice())).choose(view, rng)
