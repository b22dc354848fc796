"""Cases of a parametrised test that `make test-fast` leaves to the whole suite, where a few cases show the idea."""

from typing import Any

import pytest


def slow_case(*values: object) -> Any:
    """One case with its values, marked as slow."""
    return pytest.param(*values, marks=pytest.mark.slow)


def slow_cases(*values: object) -> list[Any]:
    """Cases of one value each, marked as slow."""
    return [slow_case(value) for value in values]
