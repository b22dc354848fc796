"""Compilation to machine code: kept on disk where a folder for it can be written, done anew where not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

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
    kept = loop._cache
    # Loops hold what they call from other files: the cache is stale as soon as any file here changes, not just one.
    kept._cache_file = _KeyedFile(kept._cache_path, kept._impl.filename_base, _stamp())
    return loop


class _KeyedFile(caching.IndexDataCacheFile):
    """The cache of a loop, whose files say what they hold.

    numba names them by counting. Two processes that compile a loop for different numbers at a time can choose one name
    for both; whoever reads the index of one is then given the code of the other, which was made for other arrays.
    """

    def load(self, key: object) -> object:
        held = super().load(key)
        return held[1] if isinstance(held, tuple) and len(held) == 2 and held[0] == key else None

    def save(self, key: object, data: object) -> None:
        super().save(key, (key, data))


@cache
def _stamp() -> tuple[tuple[str, int, int], ...]:
    """Names, times and sizes of all files of compiled loops."""
    folder = Path(__file__).parent
    files = sorted(folder.rglob("*.py"))
    return tuple((str(file.relative_to(folder)), file.stat().st_mtime_ns, file.stat().st_size) for file in files)
