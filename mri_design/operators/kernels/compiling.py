"""Compilation to machine code: kept on disk where a folder for it can be written, done anew where not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
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
        loop = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder for the cache can be written
        return numba.njit(**options)(function)
    # Loops hold what they call from other files: the cache is stale as soon as any file here changes, not just one.
    loop._cache._cache_file._source_stamp = _stamp()
    return loop


@cache
def _stamp() -> tuple[tuple[str, int, int], ...]:
    """Names, times and sizes of all files of compiled loops."""
    folder = Path(__file__).parent
    files = sorted(folder.rglob("*.py"))
    return tuple((str(file.relative_to(folder)), file.stat().st_mtime_ns, file.stat().st_size) for file in files)
