"""The folder of one run: who may write to it, its files and its manifest, and how far the run is.

Every file is complete or absent. A run keeps a lock, a ledger of the names that it wrote, and its progress in hidden
files; a finished one has a manifest: command, versions, seed, inputs, settings, status, lines.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import math
import os
import platform
import re
import shlex
import socket
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass
from enum import Enum
from importlib import metadata, resources
from itertools import chain
from pathlib import Path, PurePath, PureWindowsPath
from types import TracebackType
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError, UsageError, option
from mri_design.evaluation.plots.pictures import Drawing, placed, png_bytes, svg_text
from mri_design.evaluation.tables import Row, csv_text
from mri_design.experiment.inputs import names_file
from mri_design.experiment.strategies import reads_file, strategy_label
from mri_design.scan.io import atomic
from mri_design.scan.io.safe import ReadLimits, check_file, read_json_table

MANIFEST, LEDGER_NAME, LOCK_NAME, PROGRESS_NAME = "manifest.json", ".mri-design.json", ".lock", ".progress.json"
STATE = "state.npz"
"""What a finished design leaves, so that one of more lines can go on from it."""
CHECKPOINT = "checkpoint.npz"
"""File of an unfinished design."""
FRAMES = "frames.npz"
"""Images of a design along its way."""
AMOUNT = "amount.json"
"""How many lines are wanted of an unfinished design, where whoever watched it changed that."""
PROGRESS = "progress.json"
"""File of an unfinished comparison."""
EVERY = 1.0
"""Seconds between two writings, at least; beginnings and ends of stages are written at once."""
_TEXTS = ReadLimits(max_text_bytes=64 * 2**20)
_ATTEMPTS, _PAUSE = 3, 0.05
OUTPUTS: Mapping[str, str] = tomllib.loads(
    resources.files("mri_design.evaluation").joinpath("outputs.toml").read_text("utf-8")
)
"""Every file that a verb may write into its folder, except figures; with a description if people open it."""


def read_manifest(folder: Path, **kinds: type) -> dict[str, Any]:
    """The manifest of a run, whose entries of these names are of these kinds.

    Raises
    ------
    InputError
        Where it is damaged, or that of another kind of run.
    """
    field, wanted = f"{folder.name}/{MANIFEST}", "the manifest of a run"
    try:
        manifest = read_json_table(folder / MANIFEST, _TEXTS)
    except InputError as error:
        raise InputError(field, error.got, wanted, error.cure) from error
    for name, kind in kinds.items():
        if not isinstance(manifest.get(name), kind):
            raise InputError(f"{field}: {name}" if name in manifest else field, "another type", wanted)
    return manifest


def _json_table(path: Path) -> dict[str, Any]:
    """The table in a JSON file of a run; empty if the file cannot be read or is a link."""
    with suppress(InputError, OSError):
        return {} if path.is_symlink() else read_json_table(path, _TEXTS)
    return {}


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
        for pause in (0.0, *[_PAUSE] * (_ATTEMPTS - 1)):  # another process may just have released it, or be checking it
            time.sleep(pause)
            if (held := self._taken()) is not None:
                break
        else:
            got = f"a folder in use by {lock_holder(self._path) or 'another process'}"
            cure = "Wait for that run to end or choose another output folder."
            raise InputError(str(folder), got, "a folder no other run is writing to", cure)
        os.ftruncate(held, 0)
        os.pwrite(held, f"process {os.getpid()} on host {socket.gethostname()}".encode(), 0)
        self._descriptor: int | None = held

    def _taken(self) -> int | None:
        """Descriptor of the locked lock file; None if another process holds the lock, or removed the file meanwhile."""
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


@dataclass
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


class RunProgress:
    """How far a run is, in a file that is replaced in one step now and then.

    Parameters
    ----------
    path : Path
        Nothing is written before the first call of `show`.
    command : sequence of str
        The arguments of the run, as they were typed.

    Attributes
    ----------
    stages : list of Stage
        In the order in which they were announced.
    about : str
        What of its input the run is about ("slice 0 of 4"), for what is written next; empty where it is about all.
    waiting : bool
        While it is set nothing is written: another run's progress may stand there, and this one may be refused.

    Notes
    -----
    A progress file is no result: where the disk does not take it, the run goes on without.
    """

    def __init__(self, path: Path, command: Sequence[str] = ()) -> None:
        self.path, self.command = path, command
        self.stages, self.about = list[Stage](), ""
        self.waiting, self._written = False, 0.0

    @classmethod
    def read(cls, path: Path) -> RunProgress | None:
        """The progress in a file; None if the file is missing or cannot be read."""
        stored = _json_table(path)
        try:
            found = cls(path, [str(word) for word in stored["command"]])
            found.stages, found.about = [Stage(**stage) for stage in stored["stages"]], str(stored["about"])
            numbers = [number for stage in found.stages for number in astuple(stage)[1:]]
        except (KeyError, TypeError):
            return None
        return found if all(isinstance(number, int | float) for number in numbers) else None

    def show(self, name: str, done: int, total: int) -> None:
        """Note that ``done`` of ``total`` pieces of the work called ``name`` are done; 0 announces or begins it.

        Work of which fewer pieces are done than before begins anew.
        """
        now, begun = time.time(), [stage for stage in self.stages if stage.name == name]
        stage = begun[0] if begun else Stage(name, done, total, done, now, now)
        if not begun:
            self.stages.append(stage)
        if done < stage.done or done == stage.done == stage.already:
            stage.already, stage.began = done, now
        stage.done, stage.total, stage.updated = done, total, now
        if done in (0, total) or now - self._written >= EVERY:
            self._written = now
            self.write()

    def note(self, about: str) -> None:
        """Note what of its input the run is about."""
        self.about = about

    def write(self) -> None:
        """Write what was shown so far, where anything was."""
        if self.stages and not self.waiting:
            content = {"command": list(self.command), "about": self.about, "stages": list(map(asdict, self.stages))}
            with suppress(OSError):
                atomic.write_json(self.path, content)

    def remove(self) -> None:
        """Remove the file, if it is there."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


_FIGURES = "figures"
# a letter or digit first keeps out "..", hidden files (the lock) and names that look like options
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}")
_LISTED = re.compile(rf"(?:{_FIGURES}/)?{_PLAIN_NAME.pattern}")


class RunFolder:
    """Create or reopen the folder of a run, alone.

    Every file is written under a temporary name and renamed, so that no reader sees half a file.
    What an interrupted write left behind is removed when the folder is opened.

    Parameters
    ----------
    path : str or Path
        Created where it does not exist; the folder that it is in has to exist.
    overwrite : bool
        Whether other people's files may be replaced, and another run's.
    command : sequence of str
        The arguments of the run, for those who look into the folder while it lasts.
    reported : bool
        Whether figures and the report belong to the run; where they do not, arrays, tables and the manifest are all.
    png : bool
        Whether every figure is written as PNG, too.

    Attributes
    ----------
    progress : RunProgress
        Where the run's progress is kept while it lasts, and after it was interrupted.

    Raises
    ------
    UsageError
        Where the path is a symbolic link or holds one; unless ``overwrite``, where it holds files and no run of this
        program. The writing methods raise it for a file that no run of this program wrote.
    InputError
        Where the path is no folder, cannot be created, or another run is using it.
    OSError
        From the writing methods, with the file's path, where the disk does not take the file; what stood
        there before is intact.

    Notes
    -----
    Files of an earlier run stay until they are written again: resuming needs them.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        overwrite: bool = False,
        command: Sequence[str] = (),
        reported: bool = True,
        png: bool = False,
    ) -> None:
        self.path = Path(path)
        self.reported, self.png = reported, png
        self.progress = RunProgress(self.path / PROGRESS_NAME, command)
        self.overwrite = overwrite
        self._new = _make_folder(self.path)
        self._lock = FolderLock(self.path)
        try:
            self._names = _names_of_runs(self.path, overwrite=overwrite)
            self.progress.waiting = not self._empty  # until it is known that this run goes on here
            self._save_ledger()
            atomic.remove_stale_temporaries(self.path)
            if (self.path / _FIGURES).exists():
                atomic.remove_stale_temporaries(self._figures())
        except BaseException:
            self._lock.release()
            self._remove_what_is_empty()
            raise

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or self._empty:
            self.progress.remove()
        else:
            self.progress.write()
        if error is not None and self._empty:  # nothing was written: the folder is not marked
            with suppress(OSError):
                (self.path / LEDGER_NAME).unlink(missing_ok=True)
        self.close()
        if error is not None:
            self._remove_what_is_empty()

    def _remove_what_is_empty(self) -> None:
        for made in (self.path / _FIGURES, *([self.path] if self._new else [])):
            with suppress(OSError):  # not there, or not empty: something was written before the error
                made.rmdir()

    @property
    def _empty(self) -> bool:
        """True where no file of a run is in the folder."""
        return not any((self.path / name).exists() for name in self._names)

    def _owns(self, path: Path) -> bool:
        """Whether a run of this program wrote ``path``."""
        return path.relative_to(self.path).as_posix() in self._names

    def _claim(self, path: Path) -> Path:
        """Note that ``path`` is written by this run; refuse to overwrite a file that no run wrote."""
        if not self._owns(path):
            if path.exists() and not self.overwrite:
                raise _not_ours(path)
            self._names.add(path.relative_to(self.path).as_posix())
            self._save_ledger()
        return path

    def _save_ledger(self) -> None:
        atomic.write_json(self.path / LEDGER_NAME, {"written_by": "mri-design", "files": sorted(self._names)})

    def close(self) -> None:
        """Release the folder to the next run; a second call does nothing."""
        self._lock.release()

    def output_path(self, name: str) -> Path:
        """Path at which this run writes a file called ``name``, after checking that it stays in this folder.

        Parameters
        ----------
        name : str
            A plain file name: letters, digits, ``. _ + -``, beginning with a letter or digit.

        Raises
        ------
        InputError
            Where the name holds a folder, or a symbolic link or folder stands there.
        UsageError
            Where a file of that name is there which no run of this program wrote.
        """
        return self._claim(_checked(self.path, name))

    def existing(self, name: str) -> Path | None:
        """A file called ``name`` that a run of this program left here, or None."""
        path = _checked(self.path, name)
        return path if path.exists() and self._owns(path) else None

    def remove(self, name: str) -> None:
        """Remove what an earlier run left under ``name``; other people's files stay."""
        path = self.existing(name)
        if path is not None:
            path.unlink()

    def rename(self, name: str, new: str) -> None:
        """Rename a file that a run left, if it is there."""
        path = self.existing(name)
        if path is not None:
            path.replace(self.output_path(new))

    def remove_report(self) -> None:
        """Remove the report and the figures that an earlier run left here; other people's files stay."""
        figures = self.path / _FIGURES
        for path in (self.path / "report.html", *(figures.iterdir() if figures.is_dir() else ())):
            if self._owns(path):
                path.unlink(missing_ok=True)
        with suppress(OSError):  # not there, or not empty
            figures.rmdir()

    def ended(self, identity: str, *, own: str = "", beginning: str = "", resume: bool = False) -> bool:
        """Whether the same run ended here before. Another run is refused.

        Nothing is written, and a folder that may be overwritten holds nothing.

        Parameters
        ----------
        identity : str
            Fingerprint of everything that makes the run what it is; a finished one has it in its manifest's settings.
        own : str
            Name of the file, if any, that a run of this kind goes on from.
        beginning : str
            Fingerprint of the same without the number of lines, by which ``resume`` may go on from a finished run.

        Raises
        ------
        UsageError
            Where the folder holds a finished run that is not the same, or the beginning of a run of another kind.
        """
        if self.overwrite:
            return False
        another = f"give another {option('out')}, or add {option('overwrite')}"
        if (self.path / MANIFEST).exists():
            cure, stored = "", _json_table(self.path / MANIFEST)
            settings = stored.get("settings")
            if isinstance(settings, dict) and settings.get("identity") == identity:
                return True
            if isinstance(settings, dict) and beginning and settings.get("beginning") == beginning:
                if resume:
                    return False
                cure = "add --resume to go on from it to more lines, "
            raise UsageError(f"{self.path.name} holds a finished run; {cure}{another}")
        unfinished = [name for name in (CHECKPOINT, PROGRESS) if name != own and (self.path / name).exists()]
        if unfinished:
            raise UsageError(f"{self.path.name} holds an unfinished run ({unfinished[0]}); {another}")
        return False

    def begin(self) -> None:
        """Say that the run begins now: where it may overwrite, what earlier runs left here is removed."""
        if self.overwrite:
            for name in sorted(self._names):
                (self.path / name).unlink(missing_ok=True)
            self._names.clear()
            self._save_ledger()
        if self.progress.waiting:
            self.progress.waiting = False
            self.progress.write()

    def write_text(self, name: str, text: str) -> None:
        """Write a text called ``name`` in UTF-8."""
        atomic.write_text(self.output_path(name), text)

    def write_table(self, name: str, rows: Sequence[Row], formats: Mapping[str, str] | None = None) -> None:
        """Write a CSV table called ``name``; columns in order of first appearance."""
        self.write_text(name, csv_text(rows, formats=formats))

    def write_array(self, name: str, values: NDArray[np.generic]) -> None:
        """Write pixels as complex64 or float32 npy, and flags as they are; refused where a value is not finite."""
        of_real: type[np.generic] = np.bool_ if values.dtype == bool else np.float32
        kind = np.complex64 if np.iscomplexobj(values) else of_real
        atomic.write_npy(self.output_path(name), _finite(name, values, kind))

    def write_stack(self, name: str, parts: Iterable[NDArray[Any]], *counts: int) -> Path:
        """Write arrays of one shape, which come one by one, as one npy array along a first axis or several.

        Parameters
        ----------
        name : str
            For example ``recon.npy``.
        parts : iterable of arrays
            Of complex64 or float32.
        counts : ints
            How many come along each of these axes, the last one fastest.

        Raises
        ------
        InputError
            Where a value is not finite.
        """
        path, coming = self.output_path(name), iter(parts)
        first = next(coming)
        checked = (_finite(name, part, first.dtype.type) for part in chain([first], coming))
        atomic.write_npy_parts(path, (*counts, *first.shape), first.dtype, checked, axes=len(counts))
        return path

    def write_archive(self, name: str, arrays: Mapping[str, ArrayLike]) -> None:
        """Write arrays by name as one .npz archive called ``name``."""
        atomic.write_npz(self.output_path(name), arrays)

    def write_figure(self, name: str, figure: Drawing) -> Path:
        """Write figures/NAME.svg, and NAME.png where PNG is wanted; return the path of the first.

        Without PNG, one that an earlier run left under this name is removed.

        Parameters
        ----------
        name : str
            Without folder and ending.
        figure : Drawing
            For example what a function of `plots` returned.
        """
        path = _checked(self._figures(), f"{name}.svg")
        pixels = _checked(self._figures(), f"{name}.png")
        for file in (path, *([pixels] if self.png else [])):
            self._claim(file)
        with placed(figure):
            atomic.write_text(path, svg_text(figure))
            if self.png:
                atomic.write_bytes(pixels, png_bytes(figure))
        if not self.png and self._owns(pixels):
            pixels.unlink(missing_ok=True)
        return path

    def _figures(self) -> Path:
        folder = self.path / _FIGURES
        _make_folder(folder)
        return folder


def require_place(path: Path, *, overwrite: bool) -> None:
    """Refuse a path that `RunFolder` does not take, and make nothing there.

    Raises
    ------
    UsageError, InputError
        As `RunFolder`, but for a folder that another run is using.
    """
    if not _is_new(path):
        _names_of_runs(path, overwrite=overwrite)


def _is_new(path: Path) -> bool:
    """Whether nothing is there yet; refuses links, files, and what lies in no folder."""
    if path.is_symlink():
        raise UsageError(f"{path} is a symbolic link, and nothing is written through links; give the folder itself")
    atomic.require_folder_of(path)
    if path.exists() and not path.is_dir():
        raise _no_folder(path, "a file")
    return not path.exists()


def _make_folder(path: Path) -> bool:
    """Make the folder; return whether it is new."""
    new = _is_new(path)
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise _no_folder(path, error.strerror or str(error), ", or make the folder writable") from error
    return new


def _no_folder(path: Path, got: str, more: str = "") -> InputError:
    wanted = "a folder that exists or can be created"
    return InputError(field=str(path), got=got, wanted=wanted, cure=f"Give another {option('out')}{more}.")


def _names_of_runs(path: Path, *, overwrite: bool) -> set[str]:
    """Names of the files that runs of this program left in a folder, from its ledger; errors as for `RunFolder`."""
    entries = [entry for entry in sorted(path.iterdir()) if not entry.name.startswith(".")]
    links = [entry.name for entry in entries if entry.is_symlink()]
    if links:
        raise UsageError(
            f"{path.name} holds the link {links[0]}, and nothing is written through links; give another {option('out')}"
        )
    listed = _json_table(path / LEDGER_NAME).get("files")
    known = isinstance(listed, list) and all(isinstance(name, str) and _LISTED.fullmatch(name) for name in listed)
    names = set(listed or ()) if known else set()
    if overwrite:
        return names
    if not known and entries:
        raise UsageError(
            f"{path.name} holds {entries[0].name}, and no run of this program; give another "
            f"{option('out')}, or add {option('overwrite')} to overwrite files of the same names"
        )
    for name in sorted(OUTPUTS.keys() & {entry.name for entry in entries} - names):
        raise _not_ours(path / name)
    return names


def _not_ours(path: Path) -> UsageError:
    return UsageError(
        f"{path.parent.name} holds a file {path.name} that no run of this program wrote; move it, give "
        f"another {option('out')}, or add {option('overwrite')}"
    )


def _checked(folder: Path, name: str) -> Path:
    path = folder / name
    if not _PLAIN_NAME.fullmatch(name):
        raise InputError(
            field="output name",
            got=ascii(name),
            wanted="letters, digits, dots, underscores, plus and minus signs, a letter or digit first",
        )
    if path.is_symlink() or path.is_dir():
        raise InputError(
            field=str(path),
            got="a symbolic link" if path.is_symlink() else "a folder",
            wanted="a regular file or nothing",
            cure="Remove it or choose another output folder.",
        )
    return path


def _finite(name: str, values: NDArray[np.generic], dtype: type[np.generic]) -> NDArray[np.generic]:
    with np.errstate(over="ignore"):  # what no longer fits is refused below, not warned about
        narrow = values.astype(dtype)
    if not np.isfinite(narrow).all():
        raise InputError(field=name, got="NaN or infinite values", wanted=f"values finite as {dtype.__name__}")
    return narrow


def require_same_run(path: Path, stored: object, identity: object, left: str) -> None:
    """Refuse a file whose identity is another one; ``left`` describes it, for example "the progress of another run".

    Raises
    ------
    UsageError
        Naming the file.
    """
    if stored != identity:
        raise UsageError(
            f"{path.name} is {left}, with other inputs or options; give the same as before, another "
            f"{option('out')}, or add {option('overwrite')}"
        )


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


DEEPEST = 4
"""Depth of nested folders that are searched."""


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
    """Status of the run that writes a folder, or a file in a folder; None if there is no run."""
    before = "" if path == folder else f".{path.name}"
    progress = RunProgress.read(folder / f"{before}{PROGRESS_NAME}")
    about = "" if progress is None else progress.about
    holder = lock_holder(folder / f"{before}{LOCK_NAME}")
    if holder:
        return RunStatus(path=path, state="running", holder=holder, progress=progress, about=about)
    if not before and progress is None:
        with suppress(OSError, ValueError, KeyError, TypeError):  # no manifest, or another program's
            stored = read_json_table(folder / MANIFEST, _TEXTS)
            status, seconds, settings = str(stored["status"]), float(stored["wall_seconds"]), stored["settings"]
            if "identity" in settings:
                about = str(settings.get("part_of_scan", ""))
                return RunStatus(path=path, state="finished", ended=status, seconds=seconds, about=about)
    names = (f"{path.name}.unfinished",) if before else (CHECKPOINT, PROGRESS)
    kept = [name for name in names if (folder / name).is_file()]
    if not kept and progress is None:
        return None
    return RunStatus(path=path, state="stopped", progress=progress, kept=kept, about=about)


_PACKAGES = (
    "mri-design",
    "numpy",
    "scipy",
    "PyWavelets",
    "scikit-image",
    "matplotlib",
    "h5py",
    "ismrmrd",
    "jinja2",
    "cyclopts",
    "numba",
)
PERSONAL = ("source_image", "source_images")
"""Settings that name a patient."""
_ABSOLUTE = re.compile(r"(?:^|[=:,])(?:/|~|[A-Za-z]:[\\/]|\\\\)")
"""Somewhere in an argument an absolute path begins."""


@dataclass(frozen=True)
class InputFile:
    """An input named by what it is, not by where it lay.

    Parameters
    ----------
    name : str
        File name without folders.
    sha256 : str
        Checksum of the bytes, hexadecimal.
    """

    name: str
    sha256: str

    @classmethod
    def of(cls, path: str | Path) -> InputFile:
        """Read the file once and keep its name and checksum.

        Raises
        ------
        InputError
            Where the file cannot be read.
        """
        check_file(Path(path))
        with open(path, "rb") as source:
            return cls(Path(path).name, hashlib.file_digest(source, "sha256").hexdigest())

    @classmethod
    def of_all(cls, sources: Sequence[str]) -> list[InputFile]:
        """The files among ``sources``; embedded phantoms (``phantom:NAME``) and scans of arrays are none.

        Raises
        ------
        InputError
            Where a file cannot be read.
        """
        return [cls.of(source) for source in sources if names_file(source)]


def installed_versions(packages: Sequence[str] = _PACKAGES) -> dict[str, str]:
    """Version of Python and of each package, "not installed" where it is absent."""
    versions = {"python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def manifest_text(
    command: Sequence[str], wall_seconds: float, versions: Mapping[str, str] | None = None, **known: object
) -> str:
    """The manifest as JSON with sorted keys, so that two runs can be compared as text.

    No folder of the machine is kept: a path in ``command`` or ``settings`` is cut to its last name.

    Parameters
    ----------
    command : sequence of str
        The arguments as typed, without the interpreter.
    wall_seconds : float
        Duration of the run.
    versions : mapping of str to str, optional
        Package versions; those installed here by default.
    **known
        Everything else that is needed to repeat it and to tell whether another run is the same: ``seed``, None where
        nothing was random; ``inputs``, see `InputFile`; ``settings``, every one that was in force, defaults included;
        ``status``, how the computation ended, in words (`mri_design.status.Status` values); ``lines``, those chosen
        (index into ky) in acquisition order.

    Notes
    -----
    Arrays become lists, numbers that JSON lacks ("nan", "inf") become text, absolute paths lose their
    folders.
    """
    known |= {"command": [_without_folders(argument) for argument in command], "wall_seconds": round(wall_seconds, 3)}
    known["versions"] = installed_versions() if versions is None else versions
    return json.dumps(_portable(known), indent=2, sort_keys=True, allow_nan=False) + "\n"


def command_line(command: Sequence[str]) -> str:
    """The command as it was typed, for a shell; absolute paths lose their folders. Empty for calls from Python."""
    typed = [_without_folders(argument) if _ABSOLUTE.search(argument) else argument for argument in command]
    return shlex.join(["mri-design", *typed]) if typed else ""


def _without_folders(argument: str) -> str:
    """``--out=a/b/c`` to ``--out=c``; a slash that is no path loses its left side too, to be safe."""
    flag, equals, value = argument.partition("=") if argument.startswith("-") else ("", "", argument)
    names = value.split(",")
    if any(reads_file(name) for name in names):
        return flag + equals + ",".join(strategy_label(name) for name in names)
    return flag + equals + (PureWindowsPath(value).name or value if "/" in value or "\\" in value else value)


def _portable(value: object) -> object:
    """The value in what JSON knows, without machine paths."""
    match value:
        case str():
            machine = value.startswith(("/", "~/")) or PureWindowsPath(value).is_absolute()
            return PureWindowsPath(value).name if machine else value
        case PurePath():
            return value.name
        case float():
            return value if math.isfinite(value) else str(value)
        case np.ndarray() | np.generic():
            return _portable(value.tolist())
        case Mapping():
            return {str(key): _portable(entry) for key, entry in value.items()}
        case Enum():
            return _portable(value.value)
        case list() | tuple():
            return [_portable(entry) for entry in value]
    if dataclasses.is_dataclass(value):
        return {entry.name: _portable(getattr(value, entry.name)) for entry in dataclasses.fields(value)}
    return value
