"""Errors of images, averaged, stored and held against each other."""

from __future__ import annotations

import json

import pytest

from mri_design.evaluation import RelativeError, alike
from mri_design.runs.error_tables import Duel, best_other


def test_errors_of_several_images_are_averaged_over_those_of_which_both_are_known() -> None:
    pair, alone = {"predicted_error": 0.2, "found_error": 0.1}, {"predicted_error": 0.9, "found_error": None}
    assert RelativeError().over([pair, {"predicted_error": 0.4, "found_error": 0.2}, alone]).columns == {
        "predicted_error": pytest.approx(0.3),
        "found_error": pytest.approx(0.15),
    }
    assert RelativeError().over([alone]) == RelativeError(0.9) and RelativeError(0.3).over([]) == RelativeError(0.3)
    assert RelativeError(against="r.npy").over([pair]) == RelativeError(0.2, 0.1, against="r.npy")
    assert RelativeError().settings == {} and RelativeError.from_settings({}) is None
    for error in (RelativeError(0.12, 0.1, against="r.npy"), RelativeError(0.12, unknown="it is all")):
        assert RelativeError.from_settings(json.loads(json.dumps(error.settings))) == error


def test_errors_that_are_compared_are_better_or_worse_as_their_three_digits_are() -> None:
    assert alike(0.058341, 0.058349) and not alike(0.05834, 0.05839)
    assert Duel(24, 0.058341, 0.058349, 0.0).outcome == "as good" and Duel(24, 0.0583, 0.0584, 0.0).outcome == "better"
    duels = (Duel(24, 0.08, 0.1, 0.01), Duel(32, 0.0805, 0.08, 0.001), Duel(48, 0.05, 0.04, 0.001))
    assert [duel.outcome for duel in duels] == ["better", "as good", "worse"]
    rows = [{"strategy": name, "relative_l2": error} for name, error in (("protocol", 0.1), ("a", 0.3), ("b", 0.2))]
    assert best_other(rows, "protocol") == ("b", 0.2) and best_other(rows[:1], "protocol") is None
