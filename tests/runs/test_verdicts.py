"""The sentence that a report begins with says what is known, and that something is not."""

from __future__ import annotations

import json

import pytest

from mri_design.evaluation.tables import percent
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
    what_follows,
)

LINES = "32 of 128 lines"


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("value", "digits", "said"),
    [
        (0.0593, 2, "5.9 %"),
        (0.1234, 2, "12 %"),
        (1.2, 2, "120 %"),
        (0.0004, 2, "0.04 %"),
        (0.0, 2, "0 %"),
        (0.06, 2, "6.0 %"),
        (0.0999, 2, "10 %"),
        (0.0593, 3, "5.93 %"),
        (0.12345, 3, "12.3 %"),
        (0.09998, 3, "10.0 %"),
        (0.0, 3, "0 %"),
    ],
)
def test_fractions_have_two_digits_or_as_many_as_are_asked_for(value: float, digits: int, said: str) -> None:
    assert plain(percent(value, digits)) == said


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RelativeError(0.063, 0.061), "error 6.3 % predicted, 6.1 % found"),
        (RelativeError(None, 0.1), "error 10 % found"),
        (RelativeError(0.12, 0.1, against="r.npy"), "error 12 % predicted, 10 % found (modulus against r.npy)"),
        (RelativeError(0.12), "error 12 % predicted (there is no full scan to check it by)"),
        (RelativeError(0.12, unknown="it is all"), "error 12 % predicted (it is all)"),
        (
            RelativeError(),
            "its error is not known: there is no full scan to check it by, and the method has no error bars",
        ),
    ],
)
def test_an_image_is_judged_as_far_as_it_can_be(error: RelativeError, said: str) -> None:
    assert plain(image_verdict(LINES, "mean", error)) == f"32 of 128 lines, posterior mean: {said}."


def test_errors_of_several_images_are_averaged_over_those_of_which_both_are_known() -> None:
    pair, alone = {"predicted_error": 0.2, "found_error": 0.1}, {"predicted_error": 0.9, "found_error": None}
    assert RelativeError().over([pair, {"predicted_error": 0.4, "found_error": 0.2}, alone]).columns == {
        "predicted_error": pytest.approx(0.3),
        "found_error": pytest.approx(0.15),
    }
    assert RelativeError().over([alone]) == RelativeError(0.9) and RelativeError(0.3).over([]) == RelativeError(0.3)
    assert RelativeError(against="r.npy").over([pair]) == RelativeError(0.2, 0.1, against="r.npy")
    assert RelativeError().settings == {} and RelativeError.from_settings({}) is None
    for error in (
        RelativeError(0.9),
        RelativeError(0.2, 0.1, against="r.npy"),
        RelativeError(0.1, unknown="all of it"),
    ):
        assert RelativeError.from_settings(json.loads(json.dumps(error.settings))) == error


JUDGED = RelativeError(0.12, 0.1)


def test_of_several_slices_the_mean_the_worst_and_the_one_shown_are_told() -> None:
    of_three, mean = "3 slices of 64 of 256 lines, posterior mean", RelativeError(0.13, 0.14)
    errors = {"slice 0": 0.2, "slice 1": 0.1, "slice 2": 0.12}
    known = plain(volume_verdict(of_three, "slice 1", JUDGED, mean, errors))
    assert known == (
        "3 slices of 64 of 256 lines, posterior mean: mean error 13 % predicted, 14 % found, the largest found 20 % "
        "(slice 0); slice 1, below, error 12 % predicted, 10 % found."
    )
    unknown = plain(volume_verdict(of_three, "slice 1", RelativeError(0.12), RelativeError(0.13), {}))
    assert unknown.endswith("mean: slice 1, error 12 % predicted (there is no full scan to check it by).")


SAID = "32 of 128 lines: error 12 % predicted, 10 % found."


def test_a_design_says_whether_it_reached_its_target() -> None:
    assert plain(design_verdict(LINES, JUDGED)) == SAID
    ended = "not stopped early: all 32 lines measured, predicted error 12 % > 5 %"
    missed = plain(design_verdict(LINES, JUDGED, target="missed", ended=ended))
    assert missed == f"The target was not reached. {SAID} It was {ended}."
    ended = "stopped after 32 of at most 64 lines: predicted error 12 % <= 15 %"
    met = plain(design_verdict(LINES, JUDGED, target="met", ended=ended))
    assert met == f"{SAID} The target was met: it {ended}."
    at_once = plain(design_verdict(LINES, JUDGED, target="met at the start", ended=ended))
    assert at_once == f"{SAID} The target was met without any line chosen: those at the start were enough."


def test_a_design_says_that_it_saw_the_truth_or_hardly_chose() -> None:
    assert plain(design_verdict(LINES, JUDGED, oracle=True)) == (
        f"An oracle, no design: it chose with the true image before it. {SAID}"
    )
    mostly = plain(design_verdict(LINES, JUDGED, remark="24 of 32 lines are measured for the coil maps"))
    assert mostly == f"{SAID} 24 of 32 lines are measured for the coil maps."
    none = plain(design_verdict(LINES, JUDGED, remark="nothing was chosen: all 32 lines are those of the start"))
    assert none == f"{SAID} Nothing was chosen: all 32 lines are those of the start."


ROW = {"best": "calibrated", "relative_l2": 0.08, "second": "vd@tuned", "lead": -0.02, "sd_lead": 0.05}


def test_a_comparison_says_who_is_best_by_how_much_and_whether_that_may_be_chance() -> None:
    within = plain(comparison_verdict(LINES, ROW, repeats="5 draws"))
    assert within == (
        "With 32 of 128 lines calibrated has the least error, 8.00 %: 2.0 % less than the second, vd@tuned (± 5.0 % "
        "over 5 draws: no more than their spread)."
    )
    beyond = plain(comparison_verdict(LINES, {**ROW, "sd_lead": 0.01}, repeats="12 images", wins=(2, 3)))
    assert beyond.endswith("(± 1.0 % over 12 images). It is best at 2 of the 3 numbers compared.")
    once = plain(comparison_verdict(LINES, {**ROW, "sd_lead": None}, others={"regular": 0.14, "calibrated": 0.08}))
    assert once.endswith("2.0 % less than the second, vd@tuned (one image, so without a spread); regular has 14.0 %.")
    alone = {"best": "low-pass", "relative_l2": 0.1, "second": None, "lead": None}
    assert plain(comparison_verdict(LINES, alone)).endswith("least error, 10.0 %; nothing else was compared.")


def test_a_protocol_says_how_it_does_on_other_scans() -> None:
    unknown = plain(protocol_verdict(LINES, 1))
    assert unknown == "One mask of 32 of 128 lines for 1 scan; how good it is on others is not known (--test tries it)."
    better = plain(protocol_verdict(LINES, 3, 0.09, ("low-pass", 0.1)))
    assert better.endswith(
        "for 3 scans: error 9.00 % on scans that it has not seen, 10 % less than the best of the others, low-pass "
        "(10.0 %)."
    )
    worse = plain(protocol_verdict(LINES, 3, 0.11, ("low-pass", 0.1)))
    assert "10 % more than the best of the others, low-pass (10.0 %)." in worse
    assert plain(protocol_verdict(LINES, 3, 0.11)).endswith("error 11.0 % on scans that it has not seen.")
    rows = [{"strategy": name, "relative_l2": error} for name, error in (("protocol", 0.1), ("a", 0.3), ("b", 0.2))]
    assert best_other(rows, "protocol") == ("b", 0.2)
    assert best_other(rows[:1], "protocol") is None


def test_errors_that_are_compared_are_better_or_worse_as_their_three_digits_are() -> None:
    """What is printed alike is alike."""
    assert plain(percent(0.05934, 3)) == "5.93 %" and plain(percent(0.09996, 3)) == "10.0 %"
    assert alike(0.058341, 0.058349) and not alike(0.05834, 0.05839)
    assert Duel(24, 0.058341, 0.058349, 0.0).outcome == "as good" and Duel(24, 0.0583, 0.0584, 0.0).outcome == "better"
    same = comparison_verdict(LINES, {**ROW, "relative_l2": 0.058341, "lead": 0.058341 / 0.058349 - 1})
    assert "less" not in same and "less" in comparison_verdict(LINES, ROW)


GAINS = {"strategy": "calibrated", "relative_l2": 0.0588, "usual_mask": "regular", "usual_centre": 24}
GAINS |= {"usual_error": 0.101, "few_mask": "fastmri-equispaced", "few_centre": 8, "few_error": 0.0581}


def test_a_comparison_says_what_maps_gain_and_what_lines_gain() -> None:
    row = {**ROW, "best_centre": 8, "second_centre": 24}
    said = plain(comparison_verdict(LINES, row, gains=[{**GAINS, "relative_l2": 0.07}, GAINS]))
    assert all(part in said for part in ("calibrated (8 ", "vd@tuned (24 ", "gains 42 %", "loses 1.2 %", "5.88 %"))
    assert "gains nothing" in comparison_verdict(LINES, row, gains=[{**GAINS, "few_error": 0.05881}])


BETTER, ALIKE, WORSE = Duel(24, 0.08, 0.1, 0.01), Duel(32, 0.0805, 0.08, 0.001), Duel(48, 0.05, 0.04, 0.001)


def test_advice_follows_from_where_designed_lines_win_and_lose() -> None:
    assert what_follows([BETTER]) == "Designed lines are better at 24 lines: design."
    assert what_follows([WORSE, ALIKE, BETTER]) == (
        "Designed lines are better at 24 lines, as good at 32 lines, worse at 48 lines: design at 24; at 32 and 48 "
        "take the density, which is cheaper."
    )
    none = what_follows([ALIKE, WORSE, Duel(64, 0.05, 0.05, 0.0)])
    assert none == (
        "Designed lines are as good at 32 and 64 lines, worse at 48 lines: take the density where there is another "
        "scan to tune it on, since it needs no posterior; design where there is none."
    )


def test_the_strong_competitor_stands_in_the_first_sentence_with_its_spread() -> None:
    assert plain(duel_verdict([BETTER], BETTER, 128, 5)) == (
        "24 of 128 lines: error 8.00 % designed, 10.0 % drawn from a density that was tuned on another scan "
        "(± 1.0 % over 5 draws). Designed lines are better at 24 lines: design."
    )
