"""Letters and curves can be told from light and from dark paper."""

import pytest

from mri_design.evaluation.pictures import COLOURS, PALETTE, THEMED

PAPER = COLOURS["paper"]


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2."""
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("role", ["ink", "faint", "alert", "link"])
def test_text_has_the_contrast_that_wcag_asks_for(role: str) -> None:
    colour = COLOURS[role]
    for paper in ("paper", "band"):
        assert contrast(colour.light, COLOURS[paper].light) >= 4.5
        assert contrast(colour.dark, COLOURS[paper].dark) >= 4.5


def test_curves_stand_out_on_both_papers() -> None:
    assert PALETTE[-1] in THEMED  # black follows the page
    for colour in PALETTE[:-1]:
        assert contrast(colour, PAPER.light) >= 3 and contrast(colour, PAPER.dark) >= 3


def test_no_two_roles_share_a_light_colour() -> None:
    assert len(THEMED) == len(COLOURS) + 1
