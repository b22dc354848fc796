"""State of an interrupted run, read back from the JSON file that it keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from mri_design.errors import InputError
from mri_design.evaluation.run_folder import require_same_run

State = TypeVar("State")


def read_kept(path: Path, identity: str, what: str, other: str, parse: Callable[[dict[str, Any]], State]) -> State:
    """Read the state that an interrupted run kept in a JSON file.

    Parameters
    ----------
    path, identity : Path, str
        The file, and the checksum of the run that goes on, which has to be that of the run that wrote it.
    what, other : str
        Names of the right file and of a wrong one, for messages.
    parse : callable
        Makes a state of the file's content.

    Raises
    ------
    InputError
        For a damaged file.
    UsageError
        For the file of another run.
    """
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        own, state = stored["identity"], parse(stored)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            field=path.name, got=f"an unreadable file ({error})", wanted=what, cure="Delete it."
        ) from error
    require_same_run(path, own, identity, other)
    return state
