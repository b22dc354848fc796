"""Designs on disk: states of designs that go on (checkpoints), and trained orders."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mri_design.design.engine import DesignState
from mri_design.design.training import TrainedDesign
from mri_design.errors import InputError, MriDesignError, UsageError
from mri_design.scan.io.records import LIMITS, read_record, write_record
from mri_design.scan.io.safe import ReadLimits

FORMAT = "mri-design checkpoint 8"
"""Another number for every change that an older program could not read, or read wrongly."""

EVERY = 3.0
"""Seconds between two writings of a design that can measure its lines again."""

_OWN_LIMITS = ReadLimits(max_bytes=2**40, max_text_bytes=2**32)
"""Of a state that this program wrote: what does not fit in memory was not held there either."""


@dataclass(frozen=True)
class Checkpoint:
    """File in which a design keeps its state, and the identity of the design.

    Parameters
    ----------
    path : Path
        The file; see `saving_states` for when it is written.
    identity : str or None
        `fingerprint` of everything that must be equal for a resumed design to be the same design; None reads any.
    """

    path: Path
    identity: str | None = ""


def fingerprint(settings: Mapping[str, Any]) -> str:
    """Checksum of everything that must be equal for a resumed design to be the same design."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()


@contextmanager
def saving_states(checkpoint: Checkpoint, *, every: float | None = None) -> Iterator[Callable[[DesignState], None]]:
    """A function that saves each state it is given, as long as this context lasts.

    The first state is written at once, a later one where the last writing is ``every`` seconds ago, and the last one
    when the context ends, however that happens: an interruption loses nothing. A process that is killed loses what it
    did since the last writing, and does the same again when it is resumed.

    Parameters
    ----------
    checkpoint : Checkpoint
        Where to.
    every : float, optional
        Seconds, by default `EVERY`; 0 for states that cannot be made again, as of a scan that is being measured.
    """
    seconds = EVERY if every is None else every
    waiting: DesignState | None = None
    written = -float("inf")

    def save(state: DesignState) -> None:
        nonlocal waiting, written
        waiting = state
        if time.monotonic() - written >= seconds:
            save_state(checkpoint, state)
            waiting, written = None, time.monotonic()

    try:
        yield save
    except BaseException:
        with suppress(MriDesignError):  # of slices in processes that are lost what was written before stays
            if waiting is not None:
                save_state(checkpoint, waiting)
        raise
    if waiting is not None:
        save_state(checkpoint, waiting)


@dataclass(frozen=True)
class _StoredState:
    """Content of a checkpoint file."""

    format: str
    identity: str | None
    state: DesignState


def save_state(checkpoint: Checkpoint, state: DesignState) -> None:
    """Write the state; an older file at the path is replaced in one step or not at all.

    What was predicted where a design ended is left out: a longer one predicts anew.
    """
    trace = replace(state.trace, declined=None, closing=None)
    warm = [replace(one, z=tuple(map(np.asarray, one.z))) for one in state.warm]  # a pooled z is a number
    state = replace(state, trace=trace, warm=warm)
    write_record(checkpoint.path, _StoredState(FORMAT, checkpoint.identity, state))


def load_state(checkpoint: Checkpoint) -> DesignState:
    """Read a state back.

    Raises
    ------
    InputError
        Where the file is damaged, or another version of the program wrote it.
    UsageError
        Where it belongs to another input, recipe, seed or command.
    """
    path, identity = checkpoint.path, checkpoint.identity
    limits = LIMITS if identity is None else _OWN_LIMITS  # without one it is in a folder that anybody may have written
    try:
        found = read_record(path, {_StoredState.__name__: _StoredState}, limits=limits)
        if found.format != FORMAT:
            raise InputError(path.name, found.format, FORMAT)
    except InputError as error:
        raise InputError(
            field=path.name,
            got=f"an unreadable checkpoint ({error.got})",
            wanted=f"a complete one of this version of the program ({FORMAT})",
            cure="Finish the design with the version that began it, or begin anew with --overwrite.",
        ) from error
    if identity is not None and found.identity != identity:
        raise UsageError(
            f"{path.name} is the checkpoint of a design with another input, recipe, seed, start, number of lines, "
            "samples or shots, another earlier scan, or other images (--with); give the same options as before, "
            "another --out, or --overwrite instead of --resume"
        )
    return found.state


def has_identity(checkpoint: Checkpoint) -> bool:
    """Whether the file holds a state of this program and of that identity."""
    try:
        load_state(checkpoint)
    except (InputError, UsageError):
        return False
    return True


_KIND = {TrainedDesign.__name__: TrainedDesign}
_LIMITS = ReadLimits(max_bytes=2**28)


def save_trained(path: Path, design: TrainedDesign) -> None:
    """Write a design; an older file at ``path`` is replaced in one step or not at all."""
    write_record(path, design)


def load_trained(path: Path) -> TrainedDesign:
    """Read a design back.

    Raises
    ------
    InputError
        Where the file cannot be read, is none that training wrote, or was damaged since.
    """
    try:
        return read_record(path, _KIND, limits=_LIMITS)
    except InputError as error:
        raise InputError(
            field=f"trained design {path.name}",
            got=error.got,
            wanted="a file as mri-design protocol --rule wrote it",
            cure="Train again, or copy the file again.",
        ) from error
