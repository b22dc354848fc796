import pytest

from mri_design import InputError
from mri_design.experiment.line_lists import line_numbers


@pytest.mark.parametrize(
    ("text", "lines"),
    [("", ()), ("  ", ()), ("3", (3,)), ("0-3,250", (0, 1, 2, 3, 250)), (" 7 , 5-6,6 ", (5, 6, 7)), ("4-4", (4,))],
)
def test_lists_of_numbers_and_ranges(text: str, lines: tuple[int, ...]) -> None:
    assert line_numbers(text) == lines


@pytest.mark.parametrize("text", ["a", "1-", "-1", "1,,2", "1;2", "1.5", "3-1", "0-999999999", "9999999999", "٣a"])
def test_what_is_no_list_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(InputError) as caught:
        line_numbers(text, "forbidden lines")
    assert caught.value.field == "forbidden lines"
