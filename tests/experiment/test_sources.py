"""``INPUT#SLICES``."""

import pytest

from mri_design.errors import InputError, UsageError
from mri_design.experiment import SliceChoice, split_source


def test_slices_after_the_hash_belong_to_the_input() -> None:
    path, choice = split_source("a folder/scan.h5#0,3-5,4", "middle")
    assert path == "a folder/scan.h5"
    assert choice.indices(6) == [0, 3, 4, 5]


@pytest.mark.parametrize(("default", "expected"), [("middle", [3]), ("all", [0, 1, 2, 3, 4, 5]), ("2", [2])])
def test_without_a_hash_the_default_holds(default: str, expected: list[int]) -> None:
    path, choice = split_source("scan.h5", default)
    assert path == "scan.h5"
    assert choice.indices(6) == expected


@pytest.mark.parametrize("text", ["", "a", "1,,2", "-1", "3-", "1:4", "2-0", "0,9-7"])
def test_other_words_are_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError, match="slices"):
        SliceChoice(text)


@pytest.mark.parametrize("text", ["6", "2-6", "7-9"])
def test_slices_that_do_not_exist_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="0 to 5"):
        SliceChoice(text).indices(6)
