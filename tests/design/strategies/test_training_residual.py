"""The rule that one mask for many scans goes by."""

from collections.abc import Callable

import numpy as np
import pytest

from mri_design.design.candidate import LineCandidates
from mri_design.design.strategies.training_residual import TrainingResidual
from mri_design.design.strategy import DesignView
from mri_design.errors import InputError
from mri_design.model.mr_image import MRSlice
from mri_design.model.posterior import GaussianPosterior

ACQUIRED = (8, 7, 9, 6, 3)
VIEW = LineCandidates(np.ones(16, dtype=bool), ACQUIRED, 9, 5)


@pytest.mark.parametrize("coils", [1, 3])
@pytest.mark.parametrize("weight", [0.0, 0.25])
def test_lines_are_scored_by_the_relative_error_on_and_around_them(
    coils: int,
    weight: float,
    make_posterior: Callable[..., GaussianPosterior],
    make_slice: Callable[..., MRSlice],
    rng: np.random.Generator,
) -> None:
    one, posterior = make_slice(coils), make_posterior(coils)
    truth = one.encoding().adjoint(one.kspace)
    truths = [truth, 10 * truth[::-1]]
    rule = TrainingResidual(neighbours=(weight,)).knowing(truths)
    choice = rule.choose(DesignView(VIEW, [posterior, posterior]), rng)
    total = np.zeros(16)
    for image in truths:
        wrong = np.sum(np.abs(one.encoding()(posterior.mean - image)) ** 2, axis=(0, 2))
        total += wrong / np.sum(np.abs(image) ** 2) / 2
    total[list(ACQUIRED)] = 0
    expected = np.convolve(total, [weight, 1, weight], mode="same")
    left = np.setdiff1d(np.arange(16), ACQUIRED)
    assert choice.scores is not None
    np.testing.assert_allclose(choice.scores[left], expected[left], rtol=1e-4)
    assert choice.line == left[np.argmax(expected[left])]


def test_it_asks_for_the_truth_of_every_training_slice(
    make_posterior: Callable[..., GaussianPosterior], rng: np.random.Generator
) -> None:
    view = DesignView(VIEW, [make_posterior()])
    with pytest.raises(InputError, match=r"0 true images for 1 slices.*knowing"):
        TrainingResidual().choose(view, rng)
    with pytest.raises(InputError, match=r"truths\[0\].*nothing but zeros"):
        TrainingResidual(truths=(np.zeros((16, 16)),))
    with pytest.raises(InputError, match="neighbours"):
        TrainingResidual(neighbours=(2.0,))
