"""Small scans and recipes, as the tests of judging and showing have them."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from tests.evaluation.conftest import make_image, phased_slice, tiny
from tests.read_here import read_here
from tests.undrawn import undrawn

__all__ = ["make_image", "phased_slice", "read_here", "tiny"]


@pytest.fixture(autouse=True)
def leave_figures_empty(request: pytest.FixtureRequest) -> Iterator[None]:
    """Drawing is what the tests of figures are for, and those marked ``drawn``."""
    with nullcontext() if "drawn" in request.keywords else undrawn():
        yield
