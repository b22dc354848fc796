import numpy as np
import pytest

from mri_design.runs.image_sections import mask_sentence


def mask(n: int, *lines: int) -> np.ndarray:
    flags = np.zeros(n, bool)
    flags[list(lines)] = True
    return flags


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "0 of 12 lines are measured."),
        (
            [4, 5, 6, 7],
            "4 of 12 lines are measured. Around the centre 4 are measured without a gap, ky = -2 to 1; no other line "
            "is measured.",
        ),
        (
            [0, 5, 6, 8, 9],
            "5 of 12 lines are measured. Around the centre 2 are measured without a gap, ky = -1 to 0; of the other 3, "
            "1 have negative and 2 positive ky. The largest gap between neighbours misses 4 in a row.",
        ),
        (
            [6, 11],
            "2 of 12 lines are measured. Around the centre one line is measured without a gap, ky = 0 to 0; of the "
            "other 1, 0 have negative and 1 positive ky. The largest gap between neighbours misses 4 in a row.",
        ),
        (
            [1],
            "1 of 12 lines are measured. The line through the centre (DC) is not among them; of the other 1, 1 have "
            "negative and 0 positive ky.",
        ),
    ],
)
def test_it_says_what_the_mask_is(lines: list[int], said: str) -> None:
    assert mask_sentence(mask(12, *lines)) == said
