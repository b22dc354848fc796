"""A batch of vectors a few at a time, so that what is made of them on the way need not be held for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def chunks(count: int, at_once: int | None) -> Iterator[slice]:
    """The numbers from 0 to ``count``, ``at_once`` at a time; all of them where it is None."""
    step = max(count, 1) if at_once is None else at_once
    return (slice(first, min(first + step, count)) for first in range(0, count, step))


def in_chunks(function: Callable[[Array], Array], batch: Array, at_once: int | None) -> Array:
    """``function(batch)``, for a function that takes the vectors of a batch one by one anyway.

    Parameters
    ----------
    function : callable
        Array (some, ...) -> array (some, ...), whose shape and type behind the first axis are always the same.
    batch : array, shape (count, ...)
        Vectors along the first axis.
    at_once : int or None
        How many of them ``function`` gets at a time; None is all.
    """
    if at_once is None or at_once >= len(batch):
        return function(batch)
    out: Array | None = None
    for some in chunks(len(batch), at_once):
        part = function(batch[some])
        if out is None:
            out = np.empty((len(batch), *part.shape[1:]), dtype=part.dtype)
        out[some] = part
    assert out is not None  # a batch of none has no chunk and is left to ``function``
    return out
