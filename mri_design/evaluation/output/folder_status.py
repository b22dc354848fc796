"""What runs, what is finished and what was stopped in a folder and those inside it, read without touching them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mri_design.errors import InputError
from mri_design.evaluation.output.folder_lock import LOCK_NAME, SILENCE, Holder
from mri_design.evaluation.output.identity import CHECKPOINT, PROGRESS
from mri_design.evaluation.output.progress_file import PROGRESS_NAME, RunProgress

State = Literal["running", "silent", "stopped", "finished"]
DEEPEST = 4
"""Folders inside folders that are looked into."""
_FIGURES = "figures"


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """How far one run is.

    Parameters
    ----------
    path : Path
        Its folder; of a training, the file of the order.
    state : {"running", "silent", "stopped", "finished"}
        A silent run has a process that gave no sign of life for a while; a stopped one has none, and is not finished.
    holder : Holder or None
        The process that runs, or ran when it was last heard of.
    progress : RunProgress or None
        Stages and command, unless nothing was kept.
    ended : str
        How a finished run ended, in the words of its manifest.
    seconds : float or None
        What a finished run took.
    kept : sequence of str
        Names of the files that a stopped run goes on from.
    about : str
        What of its input it is about ("slice 0 of 4"); empty where it is about all.
    """

    path: Path
    state: State
    holder: Holder | None = None
    progress: RunProgress | None = None
    ended: str = ""
    seconds: float | None = None
    kept: Sequence[str] = ()
    about: str = ""


def run_statuses(folder: Path) -> list[RunStatus]:
    """The runs of a folder and of the folders inside it, in the order of their names; nothing is written or locked.

    Raises
    ------
    InputError
        Where there is no such folder, or it cannot be read.
    """
    if not folder.is_dir():
        raise InputError(field=str(folder), got="no folder", wanted="a run folder, or a folder of run folders")
    try:
        return list(_runs_in(folder, DEEPEST))
    except OSError as error:
        raise InputError(field=str(folder), got=error.strerror or str(error), wanted="a folder to look into") from error


def _runs_in(folder: Path, deeper: int) -> Iterator[RunStatus]:
    own = _status(folder, folder)
    if own is not None:
        yield own
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            continue
        if path.name.endswith(PROGRESS_NAME) and path.name != PROGRESS_NAME:  # of a file that is being made
            made = _status(folder / path.name.removesuffix(PROGRESS_NAME).removeprefix("."), folder)
            if made is not None:
                yield made
        elif deeper and path.is_dir() and not path.name.startswith(".") and path.name != _FIGURES:
            yield from _runs_in(path, deeper - 1)


def _status(path: Path, folder: Path) -> RunStatus | None:
    """Status of the run that makes a folder, or a file of a folder; None where there is none."""
    before = "" if path == folder else f".{path.name}"
    holder = Holder.of(folder / f"{before}{LOCK_NAME}")
    kept_progress = folder / f"{before}{PROGRESS_NAME}"
    progress = RunProgress.read(kept_progress)
    about = "" if progress is None else progress.about
    if holder is not None and holder.alive:
        return RunStatus(
            path=path,
            state="running" if holder.silent < SILENCE else "silent",
            holder=holder,
            progress=progress,
            about=about,
        )
    names = (f"{path.name}.unfinished",) if before else (CHECKPOINT, PROGRESS)
    kept = [name for name in names if (folder / name).is_file()]
    manifest = folder / "manifest.json"
    if not before and _is_newer(manifest, kept_progress):
        ended = _ending(manifest)
        if ended is not None:
            status, seconds, of = ended
            return RunStatus(path=path, state="finished", ended=status, seconds=seconds, about=of)
    known = kept or progress is not None or holder is not None
    if not known:
        return None
    return RunStatus(path=path, state="stopped", holder=holder, progress=progress, kept=kept, about=about)


def _is_newer(manifest: Path, progress: Path) -> bool:
    if not manifest.is_file():
        return False
    return not progress.is_file() or manifest.stat().st_mtime >= progress.stat().st_mtime


def _ending(manifest: Path) -> tuple[str, float, str] | None:
    """How a run of this program ended, what it took, and what of its input it is about."""
    try:
        stored = json.loads(manifest.read_text(encoding="utf-8"))
        settings = stored["settings"]
        about = str(settings.get("part_of_scan", ""))
        return (str(stored["status"]), float(stored["wall_seconds"]), about) if "identity" in settings else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
