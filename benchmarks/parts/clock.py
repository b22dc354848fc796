"""Seconds of a call: one run to warm up, then the median of several."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import TypeVar

Result = TypeVar("Result")


def median_seconds(call: Callable[[], Result], runs: int) -> tuple[float, Result]:
    """Median wall time of ``runs`` calls after one that does not count, and what the last one returned."""
    result = call()
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - began)
    return median(seconds), result
