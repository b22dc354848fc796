"""The colours of reports and their figures, on light and on dark paper."""

from __future__ import annotations

from typing import NamedTuple


class Colour(NamedTuple):
    """One role's colour on light and on dark paper, as ``#rrggbb``."""

    light: str
    dark: str


COLOURS = {
    "paper": Colour("#ffffff", "#17181b"),
    "ink": Colour("#1c1c1e", "#e8e8ea"),
    "faint": Colour("#5d6066", "#a4a7ad"),
    "rule": Colour("#d9dbdf", "#3a3c42"),
    "band": Colour("#f4f5f7", "#212328"),
    "shade": Colour("#b4b8bf", "#000000"),
    "alert": Colour("#a33b00", "#ff9b66"),
    "link": Colour("#005a8c", "#6cb6ec"),
    # of figures
    "grid": Colour("#e6e6e6", "#303238"),
    "unmeasured": Colour("#ececec", "#2b2d33"),
    "start": Colour("#b0b0b0", "#6d7078"),
    "connector": Colour("#c8c8c8", "#4a4d55"),
    "dot": Colour("#8c8c8c", "#8d9097"),
    "right": Colour("#dcebf5", "#1d3345"),
    "near": Colour("#fbe6d8", "#45301f"),
}
"""Role to colour. A report's page names them ``--role``; figures are drawn in the light ones."""

# The first four of Okabe and Ito 2008; their light blue and orange are too faint on white. All but ink have a contrast
# of 3 or more with both papers, and no two come closer under protanopia, deuteranopia or tritanopia than theirs do.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8B3FE0", "#945D41", "#000000")
"""Colours of curves, in this order."""

THEMED = {colour.light: f"var(--{role})" for role, colour in COLOURS.items()} | {"#000000": "var(--ink)"}
"""What takes the place of a figure's colour inside a page; black is how the plotting library writes ink."""
