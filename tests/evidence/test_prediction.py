"""The posterior without the lines held back: what it has seen, and what it says of them."""

import numpy as np

from mri_design import MRSlice, load_input, load_recipe, prepare
from mri_design.evidence.held_back import hold_back

RECIPE = load_recipe("local").replacing("simulation", matrix=48)
LINES = sorted({*range(19, 29), *range(1, 48, 4)})


def brain() -> MRSlice:
    return prepare(load_input("phantom:brain", RECIPE), RECIPE).slice_model(0, RECIPE)


def test_the_posterior_has_seen_the_other_lines_at_the_signal_level_of_all() -> None:
    one, engine = brain(), RECIPE.inference.engine()
    without = hold_back(one, LINES, engine, 3)
    assert without is not None
    assert sorted([*without.known, *without.held]) == LINES and set(without.held).isdisjoint(range(19, 29))
    assert without.signal == one.signal_level(LINES)
    expected = engine.cut_short(2).infer(one.model(without.known, without.signal), np.random.default_rng(3))
    np.testing.assert_array_equal(without.posterior.mean, expected.mean)


def test_lines_held_back_are_predicted_better_than_by_nothing() -> None:
    without = hold_back(brain(), LINES, RECIPE.inference.engine(), 0)
    assert without is not None
    left = [without.data(line) - without.predicted(without.posterior.mean, line) for line in without.held]
    everything = [without.data(line) for line in without.held]
    assert np.linalg.norm(left) < np.linalg.norm(everything)


def test_a_centre_alone_holds_nothing_back() -> None:
    assert hold_back(brain(), range(14, 34), RECIPE.inference.engine(), 0) is None
