"""Compilation to machine code: kept on disk where a folder for it can be written, done anew where not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

__all__ = ["compiled"]


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """``numba.njit`` without the interpreter's lock, with fused multiply-add, cached on disk if possible.

    Nothing else of IEEE arithmetic is relaxed, and no loop runs in several threads: the same input gives the same
    bits in every process on a machine.
    """
    options: dict[str, Any] = {"nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder for the cache can be written
        return numba.njit(**options)(function)
