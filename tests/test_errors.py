"""The checks that refuse arguments: what they let through, and what they say."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import mri_design.errors as errors
from mri_design import InputError
from mri_design.errors import line_numbers, number_array, number_ranges, option, probability, share_of, whole_number
from mri_design.registry import Shipped
from tests.refusals import refused


def test_a_choice_is_one_of_the_words_and_the_nearest_one_is_named() -> None:
    errors.require_choice(("none", "estimate"), criterion="none", other="estimate")
    for wrong, cure in (("estimat", "Did you mean estimate?"), (3, "")):
        with pytest.raises(InputError) as refused:
            errors.require_choice(("none", "estimate"), criterion=wrong)
        assert (refused.value.field, refused.value.cure) == ("criterion", cure)


@pytest.mark.parametrize(
    ("asked", "value"),
    [
        ({"shape": (None, 2)}, np.zeros((3, 4))),
        ({"shape": (None, 2)}, np.zeros(2)),
        ({"kind": "real"}, [1j]),
        ({"kind": "finite"}, [1.0, np.nan]),
        ({"kind": "positive"}, [1.0, 0.0]),
        ({"kind": "positive"}, [np.inf]),
        ({"kind": "positive"}, [1 + 0j]),
    ],
)
def test_an_array_is_as_asked_or_refused(asked: dict, value: object) -> None:
    with refused("k"):
        number_array("k", value, **asked)
    array = np.ones((3, 2))
    assert number_array("k", array, shape=(None, 2), kind="positive") is array


def test_an_error_survives_the_way_from_a_worker_process() -> None:
    sent = InputError("lines", "got", "wanted", "Cure.", ("design.start",)).about("start lines")
    error = pickle.loads(pickle.dumps(sent))
    assert vars(error) == vars(sent) and error.field == "start lines"


def test_an_error_is_about_the_setting_or_argument_that_was_given() -> None:
    error = InputError("start lines", "9", "8", behind=("design.start", "lines"))
    assert errors.argument_behind(error, ["lines", "start"]) == "start"
    assert errors.argument_behind(error, ["lines"]) == "lines"
    assert errors.argument_behind(InputError("recipe: design.until_error", "9", "1"), ["until_error"]) == "until_error"
    assert errors.argument_behind(InputError("recipe mine.toml: design.start", "9", "8"), ["start"]) is None


def test_messages_name_options_on_the_command_line_and_arguments_in_python() -> None:
    named = {"maps": "FILE", "noise": 0.1, "with": "slices", "overwrite": "", "lines": "", "input.contrast": "all"}
    assert [option(name, value) for name, value in named.items()] == [
        "coil_maps=FILE",
        "noise=0.1",
        "companions=['slices']",
        "overwrite=True",
        "lines",
        "recipe={'input': {'contrast': 'all'}}",
    ]
    assert option("input.centre", "LINE,SAMPLE") == "recipe={'input': {'centre': [LINE, SAMPLE]}}"
    assert option("matrix", "16,12") == "matrix=[16, 12]"
    with errors.naming_options():
        assert option("maps", "FILE") == "--maps FILE" and option("overwrite") == "--overwrite"
        with errors.naming_options():
            pass
        assert option("noise", 0.1) == "--noise 0.1" and option("design.start", 4) == "--start 4"
        assert option("dims", "ky,kx") == "-s input.dims=ky,kx" and option("input.centre") == "-s input.centre"
    assert option("maps") == "coil_maps"


def test_an_unknown_name_has_the_nearest_as_its_cure_wherever_it_was_raised() -> None:
    sent = errors.UnknownNameError("strategy", "traned:order.npz", ["random", "trained:FILE"])
    error = pickle.loads(pickle.dumps(sent))
    assert (error.what, error.known) == ("strategy", ("random", "trained:FILE")) and "trained?" in error.cure
    assert not errors.UnknownNameError("rule", "xyz", ["lbcs"]).cure


NO_NUMBERS = ["0-3", "1_0", " 3", "3 ", "+3", "3.0", "٣", "３", "1e3", "", "-", "--3", "0x3", "9" * 19]


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("12", 12), ("-3", -3), ("08", 8), *((text, None) for text in NO_NUMBERS)]
)
def test_digits_are_a_number_and_what_only_a_library_takes_for_one_is_none(text: str, number: int | None) -> None:
    assert whole_number(text) == number


def test_lists_hold_numbers_and_ranges() -> None:
    assert number_ranges("0,3-5, 7") == [(0, 0), (3, 5), (7, 7)]
    assert number_ranges("5-3") == [(5, 3)]
    for text in ("", "0,", "1_0", "٣", "-3", "3-", "3--5", "0:5", "1,a"):
        assert number_ranges(text) is None


@pytest.mark.parametrize(
    ("text", "lines"),
    [("", ()), ("  ", ()), ("3", (3,)), ("0-3,250", (0, 1, 2, 3, 250)), (" 7 , 5-6,6 ", (5, 6, 7)), ("4-4", (4,))],
)
def test_lists_of_numbers_and_ranges(text: str, lines: tuple[int, ...]) -> None:
    assert line_numbers(text) == lines


@pytest.mark.parametrize("text", ["a", "1-", "-1", "1,,2", "1;2", "1.5", "3-1", "0-999999999", "9999999999", "٣a"])
def test_what_is_no_list_is_refused_by_its_name(text: str) -> None:
    with refused("forbidden lines"):
        line_numbers(text, "forbidden lines")


def test_an_entry_of_a_table_whose_class_is_not_there_is_named() -> None:
    for module, name in (("sites.prior", "Laplace"), ("sites.priors", "Laplac")):
        with pytest.raises(ImportError, match=rf"{module}\.{name}"):
            Shipped(module, name)(1.0)


def test_a_share_is_typed_in_per_cent_or_as_a_number() -> None:
    assert [share_of(text) for text in ("10%", ".1", "0.1", " 10 % ", "0.7%", "5e-2")] == [
        0.1,
        0.1,
        0.1,
        0.1,
        0.007,
        0.05,
    ]
    for text in ("", "%", "ten", "10%%", "10% 2", "1,5"):
        with pytest.raises(ValueError):
            share_of(text)


def test_a_probability_may_be_in_per_cent() -> None:
    assert [probability(value) for value in (0.95, 95, "95%", "95", np.float32(0.5))] == [0.95] * 4 + [0.5]
    for wrong in (0, 1, 1.2, 49, 100, -0.1, float("nan"), True, None, "often", "100%"):
        with refused("level"):
            probability(wrong)
    for low in (0.4, 99.5):
        with refused("level"):
            probability(low, least=0.5, most=0.99)
