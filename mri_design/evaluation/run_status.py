"""Who works in a run folder, how far the work is, and how it ended: lock, progress file, status."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from mri_design.errors import InputError
from mri_design.scan.io.atomic import write_text

LOCK_NAME = ".lock"
STATE = "state.npz"
"""What a finished design leaves, so that one of more lines can go on from it."""
CHECKPOINT = "checkpoint.npz"
"""File of an unfinished design."""
PROGRESS = "progress.json"
"""File of an unfinished comparison."""
PROGRESS_NAME = ".progress.json"
EVERY = 1.0
"""Seconds between two writings, at least; beginnings and ends of stages are written at once."""

_MOST_BYTES = 1 << 20
_ATTEMPTS, _PAUSE = 3, 0.05


class FolderLock:
    """The right to write into a folder, which one process has at a time.

    The lock is the kernel's (``flock``) and ends with the process that took it: the file that a killed run leaves locks
    nothing. Hosts share it as far as their file system does.

    Parameters
    ----------
    folder : Path
        An existing folder.
    name : str
        Of the lock file.

    Raises
    ------
    InputError
        Where another process, or another `FolderLock` of this process, holds the folder, or no lock can be had there.
    """

    def __init__(self, folder: Path, name: str = LOCK_NAME) -> None:
        self._path = folder / name
        holder, held = "another process", self._taken()
        for _ in range(_ATTEMPTS - 1):  # it may just have been released, or looked at by `lock_holder`
            if held is None:
                holder = lock_holder(self._path) or holder
                time.sleep(_PAUSE)
                held = self._taken()
        if held is None:
            raise InputError(
                field=str(folder),
                got=f"a folder in use by {holder}",
                wanted="a folder no other run is writing to",
                cure="Wait for that run to end or choose another output folder.",
            )
        os.ftruncate(held, 0)
        os.pwrite(held, f"process {os.getpid()} on host {socket.gethostname()}".encode(), 0)
        self._descriptor: int | None = held

    def _taken(self) -> int | None:
        """Descriptor of the lock file, locked; None where somebody has the lock, or removed the file on the way."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            with suppress(BlockingIOError, FileNotFoundError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(descriptor), os.stat(self._path, follow_symlinks=False)):
                    return descriptor
            os.close(descriptor)
        except OSError as error:
            got = error.strerror or str(error)
            raise InputError(field=str(self._path), got=got, wanted="a file that can be written and locked") from error
        return None

    def release(self) -> None:
        """Release the folder; a second call does nothing."""
        if self._descriptor is not None:
            self._path.unlink(missing_ok=True)  # before the lock goes, so that none locks a file about to vanish
            os.close(self._descriptor)
            self._descriptor = None


def lock_holder(path: Path) -> str:
    """Process and host that hold the lock file at ``path``; empty where it is free or absent. Nothing is written."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.pread(descriptor, 512, 0).decode(errors="replace") or "another process"
    finally:
        os.close(descriptor)
    return ""


@dataclass(frozen=True)
class Stage:
    """One kind of work of a run, a number of equal pieces.

    Parameters
    ----------
    name : str
        What is being done ("designing").
    done, total : int
        Pieces; the total is what is expected where that is known only in the end.
    already : int
        Pieces that were done when the work began, or went on.
    began, updated : float
        When it began, or went on, and when the last piece was done: seconds since 1970.
    """

    name: str
    done: int
    total: int
    already: int
    began: float
    updated: float

    @property
    def seconds_a_piece(self) -> float | None:
        """Mean over the pieces done since the work began; None before the first."""
        made = self.done - self.already
        return (self.updated - self.began) / made if made > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """Time for the pieces left at the mean pace so far, as of the last update; None before the first piece."""
        each = self.seconds_a_piece
        return 0.0 if self.done >= self.total else None if each is None else each * (self.total - self.done)

    def after(self, done: int, total: int, now: float) -> Stage:
        """The stage with so many pieces done; one that has fewer than before begins anew."""
        if done < self.done or self.done == self.already == done:
            return Stage(self.name, done, total, done, now, now)
        return replace(self, done=done, total=total, updated=now)


@dataclass(frozen=True)
class RunProgress:
    """Content of a progress file.

    Parameters
    ----------
    command : sequence of str
        The arguments of the run, as they were typed.
    stages : sequence of Stage
        In the order in which they were announced.
    about : str
        What of its input the run is about ("slice 0 of 4"); empty where it is about all.
    """

    command: Sequence[str]
    stages: Sequence[Stage]
    about: str = ""

    @classmethod
    def read(cls, path: Path) -> RunProgress | None:
        """The progress in a file; None where there is none that can be read."""
        try:
            if path.is_symlink() or path.stat().st_size > _MOST_BYTES:
                return None
            stored = json.loads(path.read_text(encoding="utf-8"))
            stages = [Stage(**stage) for stage in stored["stages"]]
            return cls([str(word) for word in stored["command"]], stages, str(stored["about"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None


class ProgressFile:
    """Keep the progress of a run in a file, replaced in one step now and then.

    Parameters
    ----------
    path : Path
        Nothing is written before the first call of `show`.
    command : sequence of str
        The arguments of the run.

    Attributes
    ----------
    waiting : bool
        While it is set nothing is written: another run's progress may stand there, and this one may be refused.

    Notes
    -----
    A progress file is no result: where the disk does not take it, the run goes on without.
    """

    def __init__(self, path: Path, command: Sequence[str] = ()) -> None:
        self.path, self.command = path, command
        self.waiting = False
        self._stages: dict[str, Stage] = {}
        self._about, self._written = "", 0.0

    def show(self, name: str, done: int, total: int) -> None:
        """Note that ``done`` of ``total`` pieces of the work called ``name`` are done; 0 announces or begins it."""
        now = time.time()
        before = self._stages.get(name)
        begun = Stage(name, done, total, done, now, now)
        self._stages[name] = begun if before is None else before.after(done, total, now)
        if done in (0, total) or now - self._written >= EVERY:
            self._written = now
            self.write()

    def note(self, about: str) -> None:
        """Note what of its input the run is about; it is written with what is shown next."""
        self._about = about

    def write(self) -> None:
        """Write what was shown so far, where anything was."""
        if self._stages and not self.waiting:
            stages = [asdict(stage) for stage in self._stages.values()]
            content = {"command": list(self.command), "about": self._about, "stages": stages}
            with suppress(OSError):
                write_text(self.path, json.dumps(content, indent=1) + "\n")

    def remove(self) -> None:
        """Remove the file, if it is there."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


DEEPEST = 4
"""Folders inside folders that are looked into."""


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """State of one run.

    Parameters
    ----------
    path : Path
        Its folder; of a training, the file of the order.
    state : {"running", "stopped", "finished"}
        A stopped run is not finished, and no process works on it.
    holder : str
        The process that runs, and its host; empty where none does.
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
    state: Literal["running", "stopped", "finished"]
    holder: str = ""
    progress: RunProgress | None = None
    ended: str = ""
    seconds: float | None = None
    kept: Sequence[str] = ()
    about: str = ""


def run_statuses(folder: Path) -> list[RunStatus]:
    """The runs of a folder and of the folders inside it, in the order of their names; nothing is written.

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
        elif deeper and path.is_dir() and not path.name.startswith(".") and path.name != "figures":
            yield from _runs_in(path, deeper - 1)


def _status(path: Path, folder: Path) -> RunStatus | None:
    """Status of the run that makes a folder, or a file of a folder; None where there is none."""
    before = "" if path == folder else f".{path.name}"
    progress = RunProgress.read(folder / f"{before}{PROGRESS_NAME}")
    about = "" if progress is None else progress.about
    holder = lock_holder(folder / f"{before}{LOCK_NAME}")
    if holder:
        return RunStatus(path=path, state="running", holder=holder, progress=progress, about=about)
    if not before and progress is None:
        with suppress(OSError, ValueError, KeyError, TypeError):  # no manifest, or another program's
            stored = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
            status, seconds, settings = str(stored["status"]), float(stored["wall_seconds"]), stored["settings"]
            if "identity" in settings:
                about = str(settings.get("part_of_scan", ""))
                return RunStatus(path=path, state="finished", ended=status, seconds=seconds, about=about)
    names = (f"{path.name}.unfinished",) if before else (CHECKPOINT, PROGRESS)
    kept = [name for name in names if (folder / name).is_file()]
    if not kept and progress is None:
        return None
    return RunStatus(path=path, state="stopped", progress=progress, kept=kept, about=about)
