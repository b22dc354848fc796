"""Designs on disk, in npz archives without pickle: states of designs that go on (checkpoints), and trained orders.

What is stored of a trace and of its decisions is read off their dataclasses: every field becomes an array named by its
path (``steps__choice__forecast__expected``), so that a new field is stored and read back without a change here. A
trained order has a checksum.
"""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import reduce
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from mri_design.design.engine import DesignState
from mri_design.design.trace import DesignStep, DesignTrace
from mri_design.design.training import TrainedDesign
from mri_design.errors import InputError, MriDesignError, UsageError
from mri_design.inference.base import WarmStart
from mri_design.scan.io.atomic import write_npz
from mri_design.scan.io.numpy_files import opened_npz, read_npz_members
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits, check_file

FORMAT = "mri-design checkpoint 6"
"""Another number for every change that an older program could not read, or read wrongly."""

EVERY = 3.0
"""Seconds between two writings of a design that can measure its lines again."""

_IN = "__"
"""Between the names of a path."""

_DTYPES: dict[Any, type[np.generic]] = {
    int: np.int64,
    float: np.float64,
    bool: np.bool_,
    str: np.str_,
    tuple[int, ...]: np.int64,
    tuple[float, ...]: np.float64,
    NDArray[np.float64] | None: np.float64,
}
"""Types of fields that are arrays in the file, and how they are stored."""


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


def save_state(checkpoint: Checkpoint, state: DesignState) -> None:
    """Write the state; an older file at the path is replaced in one step or not at all."""
    trace = state.trace
    arrays: dict[str, Any] = {"format": np.array(FORMAT), "identity": np.array(checkpoint.identity)}
    arrays |= _plain_arrays(state, "state") | _plain_arrays(trace, "trace")
    for path, kind in _leaves(DesignStep):
        arrays |= _column(f"steps{_IN}{path}", [reduce(getattr, path.split(_IN), step) for step in trace.steps], kind)
    arrays["n_steps"] = np.array(len(trace.steps))
    arrays["blocks"] = np.array([len(w.z) for w in state.warm], dtype=np.int64)
    for i, warm in enumerate(state.warm):
        arrays |= {f"mean_{i}": warm.mean} | {f"z_{i}_{j}": z for j, z in enumerate(warm.z)}
        arrays |= {} if warm.samples is None else {f"samples_{i}": warm.samples}
    write_npz(checkpoint.path, arrays)


def _plain_arrays(record: DesignState | DesignTrace, name: str) -> dict[str, Any]:
    """The fields whose types are stored as they are; steps and warm starts are stored apart."""
    kinds = _plain_fields(type(record))
    return {f"{name}{_IN}{field}": np.array(getattr(record, field), _DTYPES[kind]) for field, kind in kinds.items()}


def _plain_fields(record: type) -> dict[str, Any]:
    hints = get_type_hints(record)
    return {each.name: hints[each.name] for each in fields(record) if hints[each.name] in _DTYPES}


def _leaves(record: type) -> Iterator[tuple[str, Any]]:
    """Path and type of every field, those of fields that are dataclasses themselves in their place."""
    hints = get_type_hints(record)
    for each in fields(record):
        kind = hints[each.name]
        if is_dataclass(kind):
            yield from ((f"{each.name}{_IN}{path}", inner) for path, inner in _leaves(kind))  # type: ignore[arg-type]
        else:
            yield each.name, kind


def _column(name: str, values: Sequence[Any], kind: Any) -> dict[str, Any]:
    """One field of all steps: those that have it padded to one shape, with the shapes of all beside; -1 is None."""
    each = [None if value is None else np.asarray(value, _DTYPES[kind]) for value in values]
    if all(array is not None and array.ndim == 0 for array in each):
        return {name: np.array(each, _DTYPES[kind])}
    n_axes = max((array.ndim for array in each if array is not None), default=1)
    shapes = np.array([[-1] * n_axes if array is None else array.shape for array in each], dtype=np.int64)
    there = [array for array in each if array is not None]
    padded = np.zeros((len(there), *np.maximum(shapes.max(axis=0), 0)), _DTYPES[kind])
    for place, array in zip(padded, there, strict=True):
        place[tuple(slice(length) for length in array.shape)] = array
    return {name: padded, f"{name}{_IN}shape": shapes}


_DAMAGE = (OSError, KeyError, ValueError, TypeError, IndexError, EOFError, RuntimeError, MemoryError)
"""Errors that NumPy and zipfile raise on damaged files."""


def load_state(checkpoint: Checkpoint) -> DesignState:
    """Read a state back.

    Raises
    ------
    InputError
        Where the file is damaged, or another version of the program wrote it.
    UsageError
        Where it belongs to another input, recipe, seed or command.
    """
    path = checkpoint.path
    if checkpoint.identity is None:  # in a folder that anybody may have written
        check_file(path)
        with opened_npz(path, DEFAULT_LIMITS):  # members, their sizes and what they expand to
            pass
    try:
        # Opened here: NumPy leaves the file open where it is no archive.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            _require_own(path, stored, checkpoint.identity)
            steps = _steps(stored)
            warm = tuple(_warm_start(stored, i, blocks) for i, blocks in enumerate(stored["blocks"]))
            trace = DesignTrace(**_plain_values(DesignTrace, stored, "trace"), steps=steps)
            return DesignState(**_plain_values(DesignState, stored, "state"), trace=trace, warm=warm)
    except (*_DAMAGE, zipfile.BadZipFile) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            field=path.name, got=f"an unreadable checkpoint ({error})", wanted="a complete one", cure="Delete it."
        ) from error


def has_identity(checkpoint: Checkpoint) -> bool:
    """Whether the file holds a state of this program and of that identity."""
    try:
        with checkpoint.path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            return (str(stored["format"]), str(stored["identity"])) == (FORMAT, checkpoint.identity)
    except (*_DAMAGE, zipfile.BadZipFile):
        return False


def _require_own(path: Path, stored: Any, identity: str | None) -> None:
    version = str(stored["format"]) if "format" in stored.files else "without a format, as version 0.1.0 wrote it"
    if version != FORMAT:
        raise InputError(
            field=path.name,
            got=f"an unreadable checkpoint ({version})",
            wanted=f"one of this version of the program ({FORMAT})",
            cure="Finish the design with the version that began it, or begin anew with --overwrite.",
        )
    if identity is not None and str(stored["identity"]) != identity:
        raise UsageError(
            f"{path.name} is the checkpoint of a design with another input, recipe, seed, start, number of lines, "
            "samples or shots, another earlier scan, or other images (--with); give the same options as before, "
            "another --out, or --overwrite in place of --resume"
        )


def _plain_values(record: type, stored: Any, name: str) -> dict[str, Any]:
    return {field: _read(stored[f"{name}{_IN}{field}"], kind) for field, kind in _plain_fields(record).items()}


def _steps(stored: Any) -> tuple[DesignStep, ...]:
    n_steps = int(stored["n_steps"])
    read = {path: _column_values(stored, f"steps{_IN}{path}", kind, n_steps) for path, kind in _leaves(DesignStep)}
    return tuple(_built(DesignStep, {path: each[i] for path, each in read.items()}) for i in range(n_steps))


def _column_values(stored: Any, name: str, kind: Any, n_steps: int) -> list[Any]:
    padded, shape_name = stored[name], f"{name}{_IN}shape"
    shapes = stored[shape_name].tolist() if shape_name in stored.files else None
    count = len(padded if shapes is None else shapes)
    if count != n_steps:
        raise ValueError(f"{name} of {count} steps, not {n_steps}")
    if shapes is None:
        return [_read(value, kind) for value in padded]
    there = iter(padded)
    return [
        None if min(shape) < 0 else _read(next(there)[tuple(slice(length) for length in shape)], kind)
        for shape in shapes
    ]


def _read(array: Any, kind: Any) -> Any:
    """A stored array as the value of a field of that type."""
    values = np.asarray(array, _DTYPES[kind])
    if values.ndim == 0:
        return values.item()
    return tuple(values.tolist()) if str(kind).startswith("tuple") else values


def _built(record: Any, values: Mapping[str, Any]) -> Any:
    """A dataclass from the values of its leaves by path."""
    hints = get_type_hints(record)
    parts: dict[str, Any] = {}
    for each in fields(record):
        kind, start = hints[each.name], f"{each.name}{_IN}"
        inner = {path.removeprefix(start): value for path, value in values.items() if path.startswith(start)}
        parts[each.name] = _built(kind, inner) if is_dataclass(kind) else values[each.name]
    return record(**parts)


def _warm_start(stored: Any, number: int, blocks: int) -> WarmStart:
    z = tuple(stored[f"z_{number}_{j}"] for j in range(blocks))
    samples = f"samples_{number}"
    return WarmStart(stored[f"mean_{number}"], z, stored[samples] if samples in stored.files else None)


TRAINED_FORMAT = "mri-design trained design 1"
_LIMITS = ReadLimits(max_bytes=2**28)
_NUMBERS = {
    "grid": (np.dtype(np.int64), 1),
    "lines": (np.dtype(np.int64), 1),
    "n_start": (np.dtype(np.int64), 0),
    "reconstructions": (np.dtype(np.int64), 0),
    "unconverged": (np.dtype(np.int64), 0),
    "profile": (np.dtype(np.float64), 2),
    "errors": (np.dtype(np.float64), 1),
}
"""Fields of a `TrainedDesign` that are arrays in the file: dtype and number of axes."""
_COUNTS = {"counts": (np.dtype(np.int64), 1)}
"""A further one where samples of a plane were chosen."""
_MEMBERS = _NUMBERS | {"text": (np.dtype(np.uint8), 1)}
"""All others are in ``text``, which is JSON in UTF-8."""


def save_trained(path: Path, design: TrainedDesign) -> None:
    """Write a design; an older file at ``path`` is replaced in one step or not at all."""
    text = {
        "format": TRAINED_FORMAT,
        "rule": design.rule,
        "training": list(design.training),
        "settings": dict(design.settings),
    }
    kept = _NUMBERS | (_COUNTS if design.counts else {})
    arrays = {name: np.array(getattr(design, name), dtype, order="C") for name, (dtype, _) in kept.items()}
    arrays["text"] = np.frombuffer(json.dumps(text, sort_keys=True).encode(), dtype=np.uint8)
    write_npz(path, arrays | {"checksum": np.frombuffer(_checksum(arrays), dtype=np.uint8)})


def load_trained(path: Path) -> TrainedDesign:
    """Read a design back.

    Raises
    ------
    InputError
        Where the file cannot be read, is none that training wrote, or was changed since.
    """
    try:
        check_file(path)
        arrays, present = read_npz_members(path, {*_MEMBERS, *_COUNTS, "checksum"}, _LIMITS)
    except OSError as error:
        raise InputError(
            field=f"trained design {path.name}",
            got=error.strerror or str(error),
            wanted="a file that mri-design train wrote",
        ) from error
    checksum = arrays.pop("checksum", None)
    kinds = {name: (array.dtype, array.ndim) for name, array in arrays.items()}
    wanted = _MEMBERS | (_COUNTS if "counts" in arrays else {})
    if checksum is None or kinds != wanted or len(present) != len(wanted) + 1 or len(arrays["grid"]) != 2:
        raise _damaged(path, "other arrays")
    if checksum.tobytes() != _checksum(arrays):
        raise _damaged(path, "a file that was changed after it was written")
    try:
        text = json.loads(arrays.pop("text").tobytes())
        if text["format"] != TRAINED_FORMAT:
            raise ValueError(f"format {text['format']!r}")
        training = tuple(str(name) for name in text["training"])
        rule, settings = str(text["rule"]), dict(text["settings"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(path, f"an unreadable text ({error})") from error
    fields: dict[str, Any] = {
        name: array.item() if array.ndim == 0 else tuple(array.tolist()) if array.dtype == np.int64 else array
        for name, array in arrays.items()
    }
    return TrainedDesign(**fields, rule=rule, training=training, settings=settings)


def _checksum(arrays: Mapping[str, Any]) -> bytes:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()


def _damaged(path: Path, got: str) -> InputError:
    return InputError(
        field=f"trained design {path.name}",
        got=got,
        wanted="a file as mri-design train wrote it",
        cure="Train again, or copy the file again.",
    )
