"""Loads all that pieces of work need, in the process that others are copied from (`workers`).

A small inference is made, since a compiled loop is read from its file when it is first called.
"""

from __future__ import annotations

import signal
from contextlib import suppress
from threading import current_thread, main_thread


def _warm_up(side: int = 32) -> None:
    import numpy as np

    import mri_design.runs.study  # noqa: F401
    from mri_design.experiment.design import run_design
    from mri_design.model.slice import SliceModel

    rng = np.random.default_rng(0)
    noise = rng.standard_normal((2, 1, side, side))
    one = SliceModel((noise[0] + 1j * noise[1]).astype(np.complex64), np.ones(side, dtype=bool), 0.5)
    run_design([one], "information-gain", 9, start=8)


# The command itself answers Ctrl-C, and a piece of work reports what is wrong here.
before = signal.signal(signal.SIGINT, signal.SIG_IGN) if current_thread() is main_thread() else None
with suppress(Exception):
    _warm_up()
if before is not None:
    signal.signal(signal.SIGINT, before)
