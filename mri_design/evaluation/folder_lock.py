"""One run at a time in one folder, whichever of several hosts it is on."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from mri_design.errors import InputError

LOCK_NAME = ".lock"
HEARTBEAT = 20.0
"""Seconds between two signs of life of whoever holds a lock."""
SILENCE = 300.0
"""Seconds without a sign of life after which another host's process counts as dead."""

_MOST_BYTES = 512


@dataclass(frozen=True)
class Holder:
    """The process that wrote a lock file, and the time of its last sign of life.

    Parameters
    ----------
    process : str
        Its number on its host.
    host : str
        Name of the host.
    heard : float
        Time of the last sign of life, seconds since 1970 on the clock of the file system.
    """

    process: str
    host: str
    heard: float

    @classmethod
    def of(cls, path: Path) -> Holder | None:
        """The process that holds, or held, the lock file at ``path``; None without one. Nothing is written."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            return cls._of(descriptor)
        finally:
            os.close(descriptor)

    @classmethod
    def _of(cls, descriptor: int) -> Holder | None:
        words = os.pread(descriptor, _MOST_BYTES, 0).decode(errors="replace").split()
        if not words:
            return None
        # before it named hosts, this program wrote the number of the process alone
        return cls(words[0], words[1] if len(words) > 1 else socket.gethostname(), os.fstat(descriptor).st_mtime)

    @property
    def is_here(self) -> bool:
        """True for a process of this host."""
        return self.host == socket.gethostname()

    @property
    def silent(self) -> float:
        """Seconds since the last sign of life."""
        return max(0.0, time.time() - self.heard)

    @property
    def alive(self) -> bool:
        """Whether the process is there (this host), or was heard of a while ago at most (another host)."""
        return _runs(self.process) if self.is_here else self.silent < SILENCE

    def __str__(self) -> str:
        return f"process {self.process} on host {self.host}"


class FolderLock:
    """Take the folder's lock, or refuse and name the process and the host that have it.

    The lock is the kernel's (``flock``) and ends with the process that took it: a lock file left behind by a
    killed run does not hold anybody up, even where its process id was given to another process since. On file systems
    whose locks do not reach other hosts, and where a host died, the time of the file decides: its holder renews it, and
    a lock of another host that was not renewed for `SILENCE` seconds is taken over.

    Parameters
    ----------
    folder : Path
        An existing folder.
    name : str
        Of the lock file.

    Attributes
    ----------
    taken_over : str
        A sentence that names the silent process on another host whose lock this was; empty where there was none.

    Raises
    ------
    InputError
        Where another process, or another `FolderLock` of this process, holds the folder.

    Notes
    -----
    POSIX only. A forked child shares the lock until it ends. Hosts are told apart by name, and their clocks must agree
    to a minute. Where locks do not reach other hosts, two hosts that take a folder within the same moment are not kept
    apart.
    """

    def __init__(self, folder: Path, name: str = LOCK_NAME) -> None:
        self._path = folder / name
        self.taken_over = ""
        descriptor = self._take(folder)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {socket.gethostname()}\n".encode(), 0)
        self._descriptor: int | None = descriptor
        self._released = Event()
        Thread(target=_give_signs_of_life, args=(self._path, self._released), daemon=True).start()

    def _take(self, folder: Path) -> int:
        while True:
            try:
                descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            except OSError as error:
                raise InputError(
                    field=str(self._path),
                    got=error.strerror or str(error),
                    wanted="a lock file that can be written",
                ) from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_same_file(descriptor, self._path):
                    self._refuse_or_replace(folder, Holder._of(descriptor))
                    return descriptor
            except BlockingIOError:
                holder = Holder._of(descriptor)
                os.close(descriptor)
                raise _in_use(folder, "an unknown process" if holder is None else str(holder)) from None
            except BaseException:
                os.close(descriptor)
                raise
            # its holder removed the file between our opening and our locking it: what we hold locks nothing
            os.close(descriptor)

    def _refuse_or_replace(self, folder: Path, before: Holder | None) -> None:
        """Decide about who left the file, where the kernel has no lock on it."""
        if before is None or before.is_here:
            return  # nobody, or a process of this host, whose lock would be known
        if before.alive:
            raise _in_use(
                folder,
                f"{before}, heard of {before.silent:.0f} s ago",
                f" If that host is dead, the folder is free {SILENCE:.0f} s after its last sign of life.",
            )
        self.taken_over = f"{folder.name} was held by {before}, silent for {before.silent / 60:.0f} min: taken over"

    def release(self) -> None:
        """Release the folder; a second call does nothing."""
        if self._descriptor is None:
            return
        self._released.set()
        self._path.unlink(missing_ok=True)  # before the lock goes, so that nobody locks a file about to vanish
        os.close(self._descriptor)
        self._descriptor = None


def _in_use(folder: Path, holder: str, more: str = "") -> InputError:
    return InputError(
        field=str(folder),
        got=f"a folder in use by {holder}",
        wanted="a folder no other run is writing to",
        cure=f"Wait for that run to end or choose another output folder.{more}",
    )


def _give_signs_of_life(path: Path, released: Event) -> None:
    while not released.wait(HEARTBEAT):
        with suppress(OSError):
            os.utime(path, follow_symlinks=False)


def _runs(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        pass  # somebody else's, but there
    return True


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
