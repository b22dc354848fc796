"""The numbers behind the sentence that a report begins with; the sentence itself is read by people."""

from __future__ import annotations

import json

import pytest

from mri_design.runs.verdicts import (
    Duel,
    RelativeError,
    alike,
    best_other,
    comparison_verdict,
    design_verdict,
    duel_verdict,
    image_verdict,
    protocol_verdict,
    volume_verdict,
)

LINES = "32 of 128 lines"
ERRORS = (
    RelativeError(0.063, 0.061),
    RelativeError(None, 0.1),
    RelativeError(0.12, 0.1, against="r.npy"),
    RelativeError(0.12),
    RelativeError(0.12, unknown="it is all"),
    RelativeError(),
)
ROW = {"best": "calibrated", "relative_l2": 0.08, "second": "vd@tuned", "lead": -0.02, "sd_lead": 0.05}
GAINS = {"strategy": "calibrated", "relative_l2": 0.0588, "usual_mask": "regular", "usual_centre": 24}
GAINS |= {"usual_error": 0.101, "few_mask": "fastmri-equispaced", "few_centre": 8, "few_error": 0.0581}
BETTER, ALIKE, WORSE = Duel(24, 0.08, 0.1, 0.01), Duel(32, 0.0805, 0.08, 0.001), Duel(48, 0.05, 0.04, 0.001)


def test_errors_of_several_images_are_averaged_over_those_of_which_both_are_known() -> None:
    pair, alone = {"predicted_error": 0.2, "found_error": 0.1}, {"predicted_error": 0.9, "found_error": None}
    assert RelativeError().over([pair, {"predicted_error": 0.4, "found_error": 0.2}, alone]).columns == {
        "predicted_error": pytest.approx(0.3),
        "found_error": pytest.approx(0.15),
    }
    assert RelativeError().over([alone]) == RelativeError(0.9) and RelativeError(0.3).over([]) == RelativeError(0.3)
    assert RelativeError(against="r.npy").over([pair]) == RelativeError(0.2, 0.1, against="r.npy")
    assert RelativeError().settings == {} and RelativeError.from_settings({}) is None
    for error in ERRORS[:-1]:
        assert RelativeError.from_settings(json.loads(json.dumps(error.settings))) == error


def test_errors_that_are_compared_are_better_or_worse_as_their_three_digits_are() -> None:
    assert alike(0.058341, 0.058349) and not alike(0.05834, 0.05839)
    assert Duel(24, 0.058341, 0.058349, 0.0).outcome == "as good" and Duel(24, 0.0583, 0.0584, 0.0).outcome == "better"
    assert [duel.outcome for duel in (BETTER, ALIKE, WORSE)] == ["better", "as good", "worse"]
    rows = [{"strategy": name, "relative_l2": error} for name, error in (("protocol", 0.1), ("a", 0.3), ("b", 0.2))]
    assert best_other(rows, "protocol") == ("b", 0.2) and best_other(rows[:1], "protocol") is None


def test_every_verdict_is_a_sentence_with_its_numbers() -> None:
    said = [image_verdict(LINES, "mean", error) for error in ERRORS]
    said += [design_verdict(LINES, ERRORS[0], target=t, ended="over") for t in ("met", "met at the start", "missed")]
    said += [design_verdict(LINES, ERRORS[0], oracle=True), design_verdict(LINES, ERRORS[0], remark="nothing chosen")]
    said += [volume_verdict(LINES, "slice 1", ERRORS[0], ERRORS[1], errors) for errors in ({}, {"slice 0": 0.2})]
    changes = ({}, {"sd_lead": None}, {"second": None, "lead": None}, {"best_centre": 8}, {"lead": 0.0})
    rows = [{**ROW, **change} for change in changes]
    said += [comparison_verdict(LINES, row, others={"regular": 0.14}, wins=(2, 3), gains=[GAINS]) for row in rows]
    said += [protocol_verdict(LINES, 3, *more) for more in ((), (0.09,), (0.09, ("a", 0.1)), (0.1, ("a", 0.1)))]
    assert all(LINES in sentence and sentence.endswith(".") for sentence in said)
    duels = ([BETTER], [WORSE, ALIKE, BETTER], [ALIKE, WORSE])
    assert all(duel_verdict(fought, BETTER, 128, 5).startswith("24 of 128 lines") for fought in duels)
