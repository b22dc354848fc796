"""Which arrays compiled loops may work on, and how these see them; asked before anything is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def compilable(u: NDArray[Any], total: NDArray[Any]) -> bool:
    """Whether compiled loops may read ``u`` and write ``total``: contiguous, of one precision, single or double."""
    same = u.dtype == total.dtype and u.dtype.char in "fdFD"
    return same and u.flags.carray and total.flags.carray


def flat_numbers(*arrays: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Contiguous arrays seen as flat real ones, complex numbers as (real, imaginary) interleaved.

    What is written to them is written to ``arrays``.
    """
    return tuple(array.reshape(-1).view(array.real.dtype) for array in arrays)


def laid_out(weights: Any, shape: tuple[int, ...], like: NDArray[Any]) -> NDArray[Any]:
    """Weights spread to ``shape``, contiguous, in the precision of ``like``.

    Writable too, though nothing writes: loops would be compiled once more for arrays that are not.
    """
    spread = np.asarray(weights, dtype=like.real.dtype)
    if spread.shape != shape:
        spread = np.broadcast_to(spread, shape)
    return np.require(spread, requirements=["C", "W"])
