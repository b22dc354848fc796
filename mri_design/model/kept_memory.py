"""Memory that is freed stays with the process, for the arrays that come next."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

MIB = 1 << 20
AT_THE_TOP, MAPPED = -1, -3
"""glibc's names for the two limits: M_TRIM_THRESHOLD, M_MMAP_THRESHOLD (malloc.h)."""
KEPT = 64 * MIB
"""Free memory at the end of the heap that is kept rather than given back."""
LARGEST_KEPT = 32 * MIB
"""Arrays from this size on have memory of their own, which is given back; glibc takes no larger number."""


@cache
def keep_freed_memory() -> None:
    """Let the C library keep up to 64 MiB of freed memory, once for the process; nothing where it is not glibc.

    A step makes and frees hundreds of arrays of an image or a few. Given back and asked for again each time, their
    memory is cleared by the operating system page by page, which took a seventh of a step at 256 x 256. Limits set in
    the environment (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_) are left as they are.
    """
    if not sys.platform.startswith("linux") or any(name.startswith("MALLOC_") for name in os.environ):
        return
    set_limit = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_limit is not None:
        set_limit(AT_THE_TOP, KEPT)
        set_limit(MAPPED, LARGEST_KEPT)
