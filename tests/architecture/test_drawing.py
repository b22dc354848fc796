"""CONTRIBUTING draws the layers as they are.

Words and layers are those that the script writes. Sizes may be a fifth off, so that not every change of the code
changes the drawing.
"""

import math
import re

from tests.architecture.draw_layers import INDENT, PAGE, drawing, page_with
from tests.architecture.test_layers import PACKAGE

SIZES = re.compile(rf"(?m)^(?=.{{{INDENT}}})(.{{26}}) +(\d+) +([\d,]+) ")
APART = "run `make picture`: CONTRIBUTING does not draw the layers as they are"


def test_contributing_has_the_drawing_of_the_code() -> None:
    there = PAGE.read_text(encoding="utf-8")
    made = page_with(there, drawing(PACKAGE))
    assert SIZES.sub(r"\1", there) == SIZES.sub(r"\1", made), APART
    assert len(SIZES.findall(made)) == len(list(PACKAGE.rglob("*/__init__.py")))
    for old, new in zip(SIZES.findall(there), SIZES.findall(made), strict=True):
        (was, lines), (files, counted) = ((int(one[1]), int(one[2].replace(",", ""))) for one in (old, new))
        near = math.isclose(was, files, rel_tol=0.2, abs_tol=2) and math.isclose(lines, counted, rel_tol=0.2)
        assert near, f"{APART}: {old}, {new}"
