"""One run at a time in one folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from mri_design.errors import InputError

__all__ = ["LOCK_NAME", "FolderLock"]

LOCK_NAME = ".lock"


class FolderLock:
    """Take the folder's lock, or refuse and name the process that has it.

    The lock is the kernel's (``flock``) and ends with the process that took it: a lock file left behind by a
    killed run does not hold anybody up, even where its process id was given to another process since.

    Parameters
    ----------
    folder : Path
        An existing folder.

    Raises
    ------
    InputError
        Where another process, or another `FolderLock` of this process, holds the folder.

    Notes
    -----
    POSIX only. A forked child shares the lock until it ends.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK_NAME
        descriptor = self._take(folder)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor: int | None = descriptor

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
                    return descriptor
            except BlockingIOError:
                holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
                os.close(descriptor)
                raise InputError(
                    field=str(folder),
                    got=f"a folder in use by process {holder}",
                    wanted="a folder no other run is writing to",
                    cure="Wait for that run to end or choose another output folder.",
                ) from None
            except BaseException:
                os.close(descriptor)
                raise
            # its holder removed the file between our opening and our locking it: what we hold locks nothing
            os.close(descriptor)

    def release(self) -> None:
        """Release the folder; a second call does nothing."""
        if self._descriptor is None:
            return
        self._path.unlink(missing_ok=True)  # before the lock goes, so that nobody locks a file about to vanish
        os.close(self._descriptor)
        self._descriptor = None


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
