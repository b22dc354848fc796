"""Every message as it came, on the disk before anybody decides anything from it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from mri_design.errors import InputError
from mri_design.scan.streaming.messages import STREAM_LIMITS, CutShort, Message, StreamProtocol


class Journal:
    """A file that messages are added to, each synced to the disk before `add` returns.

    A process that dies while it writes leaves a file that ends within a message. `recorded` reads what is whole, and
    the next journal at that path begins behind it, so that a message is there entirely or not at all.

    Parameters
    ----------
    path : Path
        Made where it does not exist.
    keep : int
        Bytes of it that are whole messages; what comes after them is cut off.

    Raises
    ------
    OSError
        Where the disk does not take it; so does `add`.
    """

    def __init__(self, path: Path, keep: int = 0) -> None:
        # No buffer: what is written has left the process.
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 (closed by `close`)
        self._file.truncate(keep)
        self._readouts = 0

    def add(self, message: bytes) -> None:
        """Write a message and wait until it is on the disk.

        Raises
        ------
        InputError
            Where more messages came than the bounds allow: a stream without end would fill the disk.
        """
        self._readouts += 1
        if self._readouts > STREAM_LIMITS.max_readouts:
            wanted = f"at most {STREAM_LIMITS.max_readouts}"
            raise InputError(field="stream", got=f"{self._readouts} messages", wanted=wanted)
        left = memoryview(message)
        while left:
            left = left[self._file.write(left) :]
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._file.close()


def recorded(path: Path, protocol: StreamProtocol) -> Iterator[tuple[int, Message]]:
    """The messages of a journal, and where each ends in the file; none where there is no file.

    A last message that is cut short was being written when the process died. It is passed over in silence, because
    nothing was decided from it and its line will be asked for again.

    Raises
    ------
    InputError
        Where the file holds something else.
    """
    if not path.exists():
        return
    position = 0
    with path.open("rb") as stream:
        while (read := protocol.read(stream)) is not None and not isinstance(read[1], CutShort):
            position += len(read[0])
            yield position, read[1]
