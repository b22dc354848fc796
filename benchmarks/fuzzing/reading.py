"""Reads files one after another and prints what became of each: run as a child, because a reader may crash.

    python benchmarks/fuzzing/reading.py MEMORY SECONDS < JOBS

JOBS has a line "KIND PATH" for each file, which may take so many seconds, or the clock ends the child. Each answer is a
line of JSON: outcome, message, seconds, checksum of values.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mri_design.errors import InputError, UsageError
from mri_design.experiment.recipe import Recipe, load_recipe
from mri_design.experiment.stored_designs import Checkpoint, load_state, load_trained
from mri_design.runs.info import describe_input
from mri_design.runs.stored_run import read_run
from mri_design.scan.data import KSpaceData
from mri_design.scan.io.formats import read, read_mask, summary, with_maps
from mri_design.scan.streaming.mrd import Message, MrdStream
from mri_design.sequences.scanner import load_scanner

LINES, SAMPLES, COILS = 12, 16, 2
_OF_PLACES = ("name", "file", "holds", "next")
"""Words by which `info` says where a file is."""


def value_of(kind: str, path: Path, *, isolated: bool = False) -> Any:
    """Contents of a file of some kind, by the reader of that kind."""
    if kind == "maps_file":
        scan = KSpaceData(np.ones((1, COILS, LINES, SAMPLES), np.complex64), np.ones(LINES, bool))
        return with_maps(scan, path).coil_maps
    if kind == "mask":
        return read_mask(path, np.ones(LINES, bool))
    if kind == "recipe":
        return load_recipe(path).as_settings()
    if kind == "trained":
        return load_trained(path)
    if kind == "checkpoint":
        return load_state(Checkpoint(path, "fuzzing"))
    if kind in ("run_folder", "sequence"):
        told = describe_input(str(path.parent if kind == "run_folder" else path), Recipe()).text
        return {label: text for label, text in told.items() if label not in _OF_PLACES}
    if kind == "stored_run":
        run = read_run(path.parent)
        return run.trains(), dataclasses.replace(run, folder=path.parent)
    if kind == "scanner":
        return load_scanner(str(path))
    if kind == "mrd_stream":
        return list(_messages(path, MrdStream()))
    if kind == "mrd_skeleton" or kind.endswith("_outline"):
        return summary(path, isolated=isolated)
    return read(path.with_suffix(".npy") if kind == "header" else path, isolated=isolated)


def _messages(path: Path, protocol: MrdStream) -> Iterator[Message]:
    """Contents of a stream; one that leaves something out, and says why, is refused."""
    with path.open("rb") as stream:
        while (taken := protocol.read(stream)) is not None:
            _, message = taken
            if isinstance(message, str) and message:
                raise InputError(field="message", got=message, wanted="a readout")
            yield message


def checksum(value: Any) -> str:
    """Checksum of every number and every word inside, file names and notes apart."""
    digest = hashlib.sha256()
    _add(digest, value)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype} {value.shape} ".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if field.name != "header":
                digest.update(field.name.encode())
                _add(digest, getattr(value, field.name))
    elif isinstance(value, dict):
        for name, part in value.items():
            digest.update(str(name).encode())
            _add(digest, part)
    elif isinstance(value, list | tuple):
        digest.update(f"{len(value)} ".encode())
        for part in value:
            _add(digest, part)
    else:
        digest.update(repr(value).encode())


def outcome(kind: str, path: Path, *, isolated: bool = False) -> tuple[str, str, float, str]:
    """Outcome of one file: "read", "refused" or the name of another error; message, seconds, checksum."""
    start = time.perf_counter()
    try:
        found, message = checksum(value_of(kind, path, isolated=isolated)), ""
        what = "read"
    except (InputError, UsageError) as error:
        what, message, found = "refused", str(error), ""
    except Exception as error:
        what, message, found = type(error).__name__, str(error)[:200], ""
    return what, message, time.perf_counter() - start, found


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
    for line in sys.stdin:
        asked, _, place = line.rstrip("\n").partition(" ")
        signal.alarm(int(sys.argv[2]))  # ends the process, even where a library never comes back
        answer = outcome(asked, Path(place))
        signal.alarm(0)
        print(json.dumps(answer), flush=True)
