import pytest

from mri_design.errors import line_numbers, number_ranges, whole_number
from tests.refusals import refused

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
