"""Compilation to machine code: kept on disk where a folder for it can be written, done anew where not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

from mri_design.notices import say_once


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """``numba.njit`` without the interpreter's lock, with fused multiply-add, cached on disk; where not, that is said.

    Nothing else of IEEE arithmetic is relaxed, and no loop runs in several threads: the same input gives the same
    bits in every process on a machine.
    """
    loop = numba.njit(nogil=True, fastmath={"contract"}, error_model="numpy")(function)
    try:
        loop._cache = _Kept(function)  # type: ignore[attr-defined]
    except RuntimeError:  # no folder for the cache can be written
        say_not_kept()
    return loop


def say_not_kept() -> None:
    """Say in one line on stderr, once, that loops are compiled anew."""
    say_once(
        "compiled loops cannot be kept, as no folder for them can be written: every run compiles them anew, which "
        "takes up to a minute. Set NUMBA_CACHE_DIR to a folder that can be written."
    )


class _Kept(caching.FunctionCache):
    """A loop's machine code on disk. Where it cannot be read or written after all, it is compiled all the same."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        # Loops hold what they call from other files: the cache is stale as soon as any file here changes, not just one.
        self._cache_file = _KeyedFile(self._cache_path, self._impl.filename_base, _stamp())

    def load_overload(self, sig: object, target_context: object) -> object:
        try:
            return super().load_overload(sig, target_context)
        except OSError:
            return None  # `save_overload` follows, and says so

    def save_overload(self, sig: object, data: object) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:
            say_not_kept()


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
