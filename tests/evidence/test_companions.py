"""Companions are chosen by what the scan has measured; a repeat is expected where its data do not contradict it."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

from mri_design.evidence import (
    CompanionChoice,
    RigidMotion,
    choose_companions,
    companion_limit,
    companions,
    expected_image,
    hold_back,
    matched,
    renew_companions,
    repeat_doubt,
    with_block_of,
)
from mri_design.experiment import Recipe, load_recipe, reconstruct, shot_slice
from mri_design.inference import DoubleLoop
from mri_design.model import Companion, ExpectedImage, ImageFacts, SliceModel, SparsityBlock
from mri_design.operators import FiniteDifferences, radial_spokes
from mri_design.readouts import PlaneReadouts, ShotReadouts
from mri_design.variances import Exact
from tests.two_contrasts import FIRST, OTHER, PRIOR, head, scanned, slice_of, some_lines

TRUTH, T1 = head(FIRST), head(OTHER)
LINES, SD = some_lines(32), 0.007
RECIPE = load_recipe("local").replacing("phase", model="modulus").replacing("reconstruction", band_factors=False)
ENGINE = RECIPE.inference.engine()
FEWER = some_lines(24)


def limit(share: float) -> float:
    return companion_limit("careful", share)


def choice(one: SliceModel, *companions: Companion, lines: list[int] = LINES, trusted: bool = False) -> CompanionChoice:
    one = replace(one, companions=companions)
    without = hold_back(one, lines, ENGINE, 0)
    return choose_companions(one, lines, without, one.central_image(lines), trusted=trusted)


def made_with(
    one: SliceModel, *companions: Companion, lines: list[int] = LINES, recipe: Recipe = RECIPE, **how: object
):
    return reconstruct(replace(one, companions=companions), lines, "mean", recipe, np.random.default_rng(0), **how)


def test_another_contrast_lowers_the_error_and_one_of_another_object_is_left_out():
    one = slice_of(TRUTH, SD)
    plain, made, unlike = (
        made_with(one, *given) for given in ((), [Companion("T1", T1)], [Companion("u", unrelated(0))])
    )
    assert made.companions.used == ("T1",) and made.companions.gain > 0
    assert made.companions.held_back == len(hold_back(one, LINES, ENGINE, 0).held)
    errors = [np.linalg.norm(result.image - TRUTH) for result in (made, plain)]
    assert errors[0] < 0.99 * errors[1]
    assert made.alone is not None and plain.alone is None
    assert np.linalg.norm(made.alone - plain.image) < 0.2 * errors[1]
    assert unlike.companions.used == ()
    np.testing.assert_array_equal(unlike.image, plain.image)


def test_a_companion_that_moved_is_found_and_said():
    moved = Companion("moved", RigidMotion((2.0, -3.0), 4.0).applied(T1))
    found = choice(slice_of(TRUTH, SD), moved)
    (offered,) = found.offered
    assert found.used == ("moved",)
    assert offered.motion.angle == pytest.approx(-4.0 - 2.7, abs=1.0)  # T1 itself is turned by 2.7
    still = choice(slice_of(TRUTH, SD), replace(moved, in_place=True))
    assert still.offered[0].motion is None


def one_pixel_off(found: CompanionChoice, given: Companion, gain: float) -> CompanionChoice:
    """The choice as it were, had the first registration been wrong."""
    (offered,) = found.offered
    down, right = offered.motion.shift
    motion = replace(offered.motion, shift=(down + 1, right))
    laid = replace(offered.companion, image=motion.applied(given.image))
    return replace(found, offered=(replace(offered, companion=laid, motion=motion),), gain=gain)


def test_one_that_was_registered_wrongly_is_laid_anew_over_a_better_image_if_the_lines_agree():
    one, engine = slice_of(TRUTH, SD), RECIPE.inference.engine()
    moved = Companion("moved", RigidMotion((2.0, -3.0), 4.0).applied(T1))
    found, without = choice(one, moved), hold_back(one, LINES, engine, 0)

    def renewed(first: CompanionChoice, image: np.ndarray = TRUTH) -> CompanionChoice | None:
        beside = replace(one, companions=(moved,))
        return renew_companions(first, beside, LINES, without, image)

    assert renewed(found) is renewed(found.using([])) is None  # where it lies already, or is not used
    assert renewed(found, 0 * TRUTH) is None  # nothing to lie over
    again = renewed(one_pixel_off(found, moved, gain=0.5 * found.gain))
    assert again.used == ("moved",) and again.offered[0].renewed == pytest.approx(1, abs=0.4)
    assert again.offered[0].motion.apart(found.offered[0].motion, T1.shape) < 0.5
    assert again.gain == again.offered[0].gain == pytest.approx(found.gain, rel=0.2)
    assert renewed(one_pixel_off(found, moved, gain=2 * found.gain)) is None  # the lines have the first one


def unrelated(seed: int) -> np.ndarray:
    """Blocks that lie anywhere."""
    rng, image = np.random.default_rng(seed), np.zeros((64, 64))
    for _ in range(14):
        y, x = rng.integers(2, 50, 2)
        image[y : y + rng.integers(4, 12), x : x + rng.integers(4, 12)] += rng.uniform(0.2, 0.8)
    return image


def test_of_two_the_right_one_is_taken_and_one_that_is_trusted_whatever_the_lines_say():
    one, other = slice_of(TRUTH, SD), Companion("other", unrelated(4))
    found = choice(one, other, Companion("T1", T1))
    assert found.used == ("T1",) and found.offered[1].gain > found.offered[0].gain
    trusted = choice(one, other, trusted=True)
    assert trusted.used == ("other",) and trusted.trusted


@pytest.mark.parametrize(
    ("outer", "held"), [((5, 12, 50, 57), 4), ((5, 57), 0), ((), 0)], ids=["narrow centre", "too few", "a centre alone"]
)
def test_a_wide_centre_leaves_lines_to_judge_by_where_some_lie_outside(outer, held):
    lines = sorted([*range(26, 38), *outer])
    made = made_with(slice_of(TRUTH, SD), Companion("T1", T1), lines=lines, with_std=False).companions
    assert made.held_back == held
    assert not made.used or held


def test_with_too_few_lines_to_hold_back_only_trusted_ones_are_used():
    one, t1, lines = slice_of(TRUTH, SD), Companion("T1", T1), list(range(26, 38))
    found, trusted = (choice(one, t1, lines=lines, trusted=wanted) for wanted in (False, True))
    assert (found.used, found.held_back, trusted.used) == ((), 0, ("T1",))


@pytest.mark.parametrize(
    "companion",
    [
        Companion("noise", np.random.default_rng(0).random((64, 64))),
        Companion("constant", np.ones((64, 64))),
        Companion("T1", T1, refused="it is the scan itself"),
    ],
    ids=lambda companion: companion.name,
)
def test_what_shows_nothing_or_is_refused_beforehand_is_left_out_even_where_companions_are_trusted(companion):
    found = choice(slice_of(TRUTH, SD), companion, trusted=True)
    assert found.used == () and found.offered[0].refused


def test_few_lines_judge_as_a_quarter_of_them_would_and_ask_for_less():
    one, few = slice_of(TRUTH, SD), [18, 24, 27, 29, 32, 34, 36, 39, 45, 51]
    found = choice(one, Companion("T1", T1), lines=few)
    assert found.used == ("T1",)
    assert found.gain > 0.1  # 0.03 at their own limit, which is a third
    assert found.applied(one, "careful").prior[-1].tau_limit == limit(10 / 64) < 0.5 * limit(0.25)


def plane() -> tuple[SliceModel, list[int]]:
    """A third of the samples of a plane."""
    rng, readouts = np.random.default_rng(3), PlaneReadouts((64, 64))
    y, x = np.mgrid[-32:32, -32:32]
    chosen = (np.hypot(y, x) < 8) | (rng.random((64, 64)) < 0.25 / (1 + np.hypot(y, x) / 20))
    one = SliceModel(scanned(TRUTH)[None], np.ones(64 * 64, bool), 0.02**2, prior=PRIOR, readouts=readouts)
    return one, np.flatnonzero(chosen).tolist()


def coils() -> tuple[SliceModel, list[int]]:
    """Two coils with known maps, a fifth of the lines."""
    side = np.linspace(0, 1, 64)[None, :] * np.ones((64, 1))
    maps = np.stack([np.sqrt(side), np.sqrt(1 - side)]).astype(np.complex64)
    kspace = np.stack([scanned(coil * TRUTH, 0.01, seed) for seed, coil in enumerate(maps)])
    return SliceModel(kspace, np.ones(64, bool), 0.01**2, maps, prior=PRIOR), some_lines(14)


def spokes() -> tuple[SliceModel, list[int]]:
    """Sixteen spokes."""
    shots = ShotReadouts((64, 64), radial_spokes(64, np.arange(16) * np.pi / 16))
    every = SliceModel(scanned(TRUTH)[None], np.ones(64, bool), 0.01**2, prior=PRIOR)
    return shot_slice(every, shots, np.random.default_rng(0), truth=TRUTH.astype(complex)), list(range(shots.size))


@pytest.mark.parametrize("case", (plane, coils, spokes), ids=lambda case: case.__name__)
def test_planes_coils_and_spokes_have_companions(case):
    one, lines = case()
    strong = RECIPE.replacing("companion", strength="strong", trust=True)
    how = {"lines": lines, "recipe": strong, "with_std": False}
    made, plain = made_with(one, Companion("T1", T1), **how), made_with(one, **how)
    assert made.companions.used == ("T1",)
    assert made.companions.unit == one.candidates.unit
    assert np.linalg.norm(made.image - TRUTH) < np.linalg.norm(plain.image - TRUTH)


def phased(image: np.ndarray) -> np.ndarray:
    """With a phase that turns once over the image."""
    return image * np.exp(2j * np.pi * np.arange(len(image)) / len(image))[:, None]


def chosen(one: SliceModel, other: np.ndarray) -> CompanionChoice:
    """What its lines say of another image, which is not registered."""
    beside = replace(one, companions=(Companion("other", other, in_place=True),))
    return choose_companions(beside, FEWER, hold_back(one, FEWER, ENGINE, 0), TRUTH, "moderate")


def test_a_repeat_is_taken_for_one_and_lowers_the_error():
    one = slice_of(TRUTH, SD)
    choice = chosen(one, 5 * TRUTH)
    assert choice.used == ("other",) and choice.expected is not None
    repeat, plain = (
        ENGINE.cut_short(2).infer(each.model(FEWER), np.random.default_rng(0)).mean
        for each in (choice.applied(one, "moderate"), one)
    )
    assert np.linalg.norm(repeat - TRUTH) < 0.7 * np.linalg.norm(plain - TRUTH)


@pytest.mark.parametrize("wrong", (T1, TRUTH[:, ::-1], np.roll(TRUTH, 2, axis=0)), ids=("contrast", "mirror", "shift"))
def test_other_images_are_not(wrong):
    assert chosen(slice_of(TRUTH, SD), wrong).expected is None


def test_one_that_moved_is_registered_once_more_to_the_image_it_has_helped_to_make():
    lines, motion = some_lines(16, seed=1), RigidMotion((-2.5, 1.3), -1.4)
    one, earlier = slice_of(TRUTH, SD, 1), Companion("earlier", motion.applied(TRUTH))
    how = {"lines": lines, "recipe": RECIPE.replacing("companion", strength="strong"), "with_std": False}
    made = made_with(one, earlier, **how)
    with patch.object(companions, "REPEAT_ANEW", np.inf):
        first = made_with(one, earlier, **how)
    turned = [abs(result.companions.offered[0].motion.angle - 1.4) for result in (made, first)]
    assert turned[0] < 0.3 < turned[1]
    assert np.linalg.norm(made.image - TRUTH) < 0.95 * np.linalg.norm(first.image - TRUTH)
    assert made.companions.gain > first.companions.gain
    assert made.convergence.matvecs < 2 * first.convergence.matvecs
    assert made.companions.offered[0].renewed > 0 == first.companions.offered[0].renewed


def test_fewer_lines_ask_less_of_other_images_and_careful_takes_no_repeats():
    assert limit(0.125) == pytest.approx(limit(0.25) / 4) and limit(0.25) == pytest.approx(limit(0.5) / 2)
    assert Recipe().companion.strength == "careful" and limit(1) < companion_limit("strong", 1)
    assert repeat_doubt("careful", 0.5) is repeat_doubt("moderate", 0.19) is None
    assert repeat_doubt("moderate", 0.2) == 0.02 and repeat_doubt("strong", 0.1) == 0.05


def test_brightness_and_smooth_phase_are_those_of_the_scan():
    one = slice_of(phased(TRUTH), SD)
    found = matched(one, FEWER, 40 * TRUTH, one.central_image(FEWER))
    assert np.linalg.norm(found - phased(TRUTH)) < 0.1 * np.linalg.norm(TRUTH)


def test_it_is_not_trusted_where_the_data_contradict_it():
    one = slice_of(TRUTH, SD)
    y, x = np.mgrid[:64, :64]
    lesion = TRUTH + 0.3 * (np.hypot(y - 30, x - 30) < 2.5)
    found = expected_image(one, FEWER, lesion, 0.02, hold_back(one, FEWER, ENGINE, 0))
    inside = TRUTH > 0.1
    assert found.trust[30, 30] < 0.1 < 0.3 < np.median(found.trust[inside])
    assert found.trust.max() <= 1


def test_the_block_expects_the_differences_of_the_image_as_far_as_it_is_trusted():
    rng = np.random.default_rng(0)
    image = (rng.standard_normal((6, 5)) + 1j * rng.standard_normal((6, 5))).astype(np.complex64)
    trust = rng.uniform(0.1, 1, (6, 5))
    block = SparsityBlock("repeat", 30.0, tau_limit=0.3).sites(
        ImageFacts((6, 5), 1.0, expected=ExpectedImage(image, trust)), 0.02
    )
    np.testing.assert_allclose(block.offset, FiniteDifferences((6, 5))(image))
    np.testing.assert_allclose(block.potential.rate, np.broadcast_to(0.3 * trust, (2, 6, 5)), rtol=1e-6)
    assert not block.is_likelihood
    np.testing.assert_allclose(block.coefficients(image), 0, atol=1e-6)


def test_an_image_about_a_repeat_is_that_of_the_data_beyond_it():
    """With all blocks centred on c, inference of y and c is c and the inference of y - X c about zero."""
    rng = np.random.default_rng(1)
    kspace = (rng.standard_normal((1, 6, 5)) + 1j * rng.standard_normal((1, 6, 5))).astype(np.complex64)
    c = (rng.standard_normal((6, 5)) + 1j * rng.standard_normal((6, 5))).astype(np.complex64)
    block = SparsityBlock("repeat", 5.0, tau_limit=0.3)
    lines = [0, 2, 3, 4]
    about = SliceModel(kspace, np.ones(6, bool), 0.01, prior=(block,), expected=ExpectedImage(c, np.ones((6, 5))))
    beyond = replace(about.model(lines, 1.0), data=about.model(lines, 1.0).data - about.measurement(lines)(c))
    zero = replace(about, expected=ExpectedImage(0 * c, np.ones((6, 5)))).model(lines, 1.0)
    engine = DoubleLoop(Exact(), outer_iterations=4)
    found = engine.infer(about.model(lines, 1.0), np.random.default_rng(0)).mean
    rest = engine.infer(replace(zero, data=beyond.data), np.random.default_rng(0)).mean
    np.testing.assert_allclose(found, c + rest, atol=2e-2 * np.abs(found).max())


def test_blocks_of_other_images_that_a_prior_has_stay() -> None:
    own = (SparsityBlock("companion", 2.0), SparsityBlock("repeat", 3.0))
    assert with_block_of("companion", own, "careful", 0.3) == own == with_block_of("repeat", own, "careful", 0.3)
    added = with_block_of("repeat", with_block_of("companion", PRIOR, "careful", 0.3), "careful", 0.3)
    assert [block.kind for block in added[len(PRIOR) :]] == ["companion", "repeat"]
