"""Notices on stderr, each once, of something that changes no result."""

from __future__ import annotations

import sys
from functools import cache
from multiprocessing import parent_process


@cache
def say_once(text: str) -> None:
    """Say a line on stderr the first time that it is asked for; processes that work for another say nothing."""
    begun_by_python = any("from multiprocessing" in word for word in sys.orig_argv)
    if parent_process() is None and not begun_by_python and sys.stderr is not None:
        print(f"mri-design: {text}", file=sys.stderr)
