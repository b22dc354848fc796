import pytest

from mri_design.whole_numbers import number_ranges, whole_number

NO_NUMBERS = ["0-3", "1_0", " 3", "3 ", "+3", "3.0", "٣", "３", "1e3", "", "-", "--3", "0x3", "9" * 19]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_only_a_library_takes_for_a_number_is_none(text: str) -> None:
    assert whole_number(text) is None


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("12", 12), ("-3", -3), ("08", 8)])
def test_digits_are_a_number(text: str, number: int) -> None:
    assert whole_number(text) == number


def test_lists_hold_numbers_and_ranges() -> None:
    assert number_ranges("0,3-5, 7") == [(0, 0), (3, 5), (7, 7)]
    assert number_ranges("5-3") == [(5, 3)]
    for text in ("", "0,", "1_0", "٣", "-3", "3-", "3--5", "0:5", "1,a"):
        assert number_ranges(text) is None
