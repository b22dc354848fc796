"""How processes of this machine begin, in a file that loads nothing, so that they load the program beside this one."""

from __future__ import annotations

import sys
from multiprocessing import forkserver, get_context
from multiprocessing.context import BaseContext

LOCAL = "local"
"""The executor that computes in processes of this machine."""
PRELOADED = "mri_design.runs.warm_process"
"""Module that the process loads which others are copied from."""


def way_to_begin() -> BaseContext | None:
    """How loky begins processes: as copies of one that has loaded the program; its own way where that is not safe.

    A process that loads the program by itself takes some 4 s until its first inference. Copies of this process would
    inherit the thread that draws progress.
    """
    if sys.platform != "linux":  # elsewhere libraries of linear algebra do not survive being copied
        return None
    context = get_context("forkserver")
    context.set_forkserver_preload([PRELOADED])
    return context


def load_ahead(jobs: int, executor: str = LOCAL) -> None:
    """Begin to load the program for processes of this machine while this process is still loading it."""
    if executor == LOCAL and jobs > 1 and way_to_begin() is not None:
        forkserver.ensure_running()
