"""A repeat of a scan is what it is expected to show, but where its own data contradict that; other images are none."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from mri_design.evidence import companions
from mri_design.evidence.companions import CompanionChoice, CompanionPrior, choose_companions, expected_image, matched
from mri_design.evidence.held_back import hold_back
from mri_design.evidence.registration import RigidMotion
from mri_design.experiment.recipe import load_recipe
from mri_design.experiment.reconstruction import reconstruct
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.companion import Companion, ExpectedImage
from mri_design.model.mr_image import MRSlice
from mri_design.model.sparsity import SparsityBlock
from mri_design.operators.sparsity import FiniteDifferences
from mri_design.variances.exact import Exact
from tests.two_contrasts import FIRST, OTHER, head, slice_of, some_lines

TRUTH, T1 = head(FIRST), head(OTHER)
LINES, SD = some_lines(24), 0.007
RECIPE = load_recipe("local").replacing("phase", model="modulus").replacing("reconstruction", band_factors=False)
ENGINE = RECIPE.inference.engine()
MODERATE = CompanionPrior("moderate")


def phased(image: np.ndarray) -> np.ndarray:
    """With a phase that turns once over the image."""
    return image * np.exp(2j * np.pi * np.arange(len(image)) / len(image))[:, None]


def marked(image: np.ndarray) -> np.ndarray:
    """With a lesion in the middle."""
    y, x = np.mgrid[: image.shape[0], : image.shape[1]]
    return image + 0.3 * (np.hypot(y - 30, x - 30) < 2.5)


def chosen(one: MRSlice, other: np.ndarray) -> CompanionChoice:
    """What its lines say of another image, which is not registered."""
    beside = replace(one, companions=(Companion("other", other, in_place=True),))
    return choose_companions(beside, LINES, hold_back(one, LINES, ENGINE, 0), MODERATE, ENGINE, TRUTH)


def test_a_repeat_is_taken_for_one_and_lowers_the_error():
    one = slice_of(TRUTH, SD)
    choice = chosen(one, 5 * TRUTH)
    assert "other is used as a repeat" in str(choice)
    repeat, plain = (
        ENGINE.cut_short(2).infer(each.model(LINES), np.random.default_rng(0)).mean
        for each in (choice.applied(one, MODERATE), one)
    )
    assert np.linalg.norm(repeat - TRUTH) < 0.7 * np.linalg.norm(plain - TRUTH)


@pytest.mark.parametrize("wrong", (T1, TRUTH[:, ::-1], np.roll(TRUTH, 2, axis=0)), ids=("contrast", "mirror", "shift"))
def test_other_images_are_not(wrong):
    assert chosen(slice_of(TRUTH, SD), wrong).expected is None


def test_one_that_moved_is_registered_once_more_to_the_image_it_has_helped_to_make():
    lines, motion = some_lines(16, seed=1), RigidMotion((-2.5, 1.3), -1.4)
    one = replace(slice_of(TRUTH, SD, 1), companions=(Companion("earlier", motion.applied(TRUTH)),))
    strong = RECIPE.replacing("companion", companion_strength="strong")
    made = reconstruct(one, lines, "mean", strong, np.random.default_rng(0), with_std=False)
    with patch.object(companions, "REPEAT_ANEW", np.inf):
        first = reconstruct(one, lines, "mean", strong, np.random.default_rng(0), with_std=False)
    turned = [abs(result.companions.offered[0].registration.motion.angle - 1.4) for result in (made, first)]
    assert turned[0] < 0.3 < turned[1]
    assert np.linalg.norm(made.image - TRUTH) < 0.95 * np.linalg.norm(first.image - TRUTH)
    assert made.companions.gain > first.companions.gain
    assert made.convergence.matvecs < 2 * first.convergence.matvecs
    assert "once more" in made.account()["companions"] and "once more" not in first.account()["companions"]


def test_careful_takes_none_nor_does_moderate_where_few_lines_are_measured():
    assert CompanionPrior().doubt(0.5) is None
    assert MODERATE.doubt(0.19) is None
    assert MODERATE.doubt(0.2) is not None
    assert CompanionPrior("strong").doubt(0.1) is not None


def test_brightness_and_smooth_phase_are_those_of_the_scan():
    one = slice_of(phased(TRUTH), SD)
    found = matched(one, LINES, 40 * TRUTH, one.central_image(LINES))
    assert np.linalg.norm(found - phased(TRUTH)) < 0.1 * np.linalg.norm(TRUTH)


def test_it_is_not_trusted_where_the_data_contradict_it():
    one = slice_of(TRUTH, SD)
    so_far = ENGINE.cut_short(2).infer(one.model(LINES), np.random.default_rng(0))
    found = expected_image(one, LINES, marked(TRUTH), 0.02, so_far, ENGINE, 0)
    inside = TRUTH > 0.1
    assert found.trust[30, 30] < 0.1 < 0.3 < np.median(found.trust[inside])
    assert found.trust.max() <= 1


def test_the_block_expects_the_differences_of_the_image_as_far_as_it_is_trusted():
    rng = np.random.default_rng(0)
    image = (rng.standard_normal((6, 5)) + 1j * rng.standard_normal((6, 5))).astype(np.complex64)
    trust = rng.uniform(0.1, 1, (6, 5))
    block = SparsityBlock("repeat", 30.0, tau_limit=0.3).sites((6, 5), 1.0, 0.02, expected=ExpectedImage(image, trust))
    np.testing.assert_allclose(block.offset, FiniteDifferences((6, 5))(image))
    np.testing.assert_allclose(block.potential.scale, np.broadcast_to(0.3 * trust, (2, 6, 5)), rtol=1e-6)
    assert not block.is_likelihood
    np.testing.assert_allclose(block.coefficients(image), 0, atol=1e-6)


def test_an_image_about_a_repeat_is_that_of_the_data_beyond_it():
    """With all blocks centred on c, inference of y and c is c and the inference of y - X c about zero."""
    rng = np.random.default_rng(1)
    kspace = (rng.standard_normal((1, 6, 5)) + 1j * rng.standard_normal((1, 6, 5))).astype(np.complex64)
    c = (rng.standard_normal((6, 5)) + 1j * rng.standard_normal((6, 5))).astype(np.complex64)
    block = SparsityBlock("repeat", 5.0, tau_limit=0.3)
    lines = [0, 2, 3, 4]
    about = MRSlice(kspace, np.ones(6, bool), 0.01, prior=(block,), expected=ExpectedImage(c, np.ones((6, 5))))
    beyond = replace(about.model(lines, 1.0), data=about.model(lines, 1.0).data - about.measurement(lines)(c))
    zero = replace(about, expected=ExpectedImage(0 * c, np.ones((6, 5)))).model(lines, 1.0)
    engine = DoubleLoop(Exact(), outer_iterations=4)
    found = engine.infer(about.model(lines, 1.0), np.random.default_rng(0)).mean
    rest = engine.infer(replace(zero, data=beyond.data), np.random.default_rng(0)).mean
    np.testing.assert_allclose(found, c + rest, atol=2e-2 * np.abs(found).max())
