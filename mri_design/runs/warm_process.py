"""Loaded by the process that others are copied from: all that pieces of work need is there, compiled loops included.

A small inference is made once, since a compiled loop is read from its file when it is called for the first time.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import current_thread, main_thread

_SIDE, _START, _LINES = 32, 8, 9


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """An interruption is told of by the command, not by this process as well."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _warm_up() -> None:
    import numpy as np

    import mri_design.runs.resident
    import mri_design.runs.study  # noqa: F401
    from mri_design.experiment.design import run_design
    from mri_design.experiment.recipe import Recipe
    from mri_design.experiment.strategies import make_strategy
    from mri_design.model.mr_image import MRSlice

    rng = np.random.default_rng(0)
    noise = rng.standard_normal((2, 1, _SIDE, _SIDE))
    one = MRSlice((noise[0] + 1j * noise[1]).astype(np.complex64), np.ones(_SIDE, dtype=bool), 0.5)
    run_design([one], make_strategy("information-gain"), _LINES, Recipe(), seed=0, start=_START)


with _uninterrupted(), suppress(Exception):  # what is wrong will be told of where it is asked for
    _warm_up()
