"""Messages between a scanner and a design: what they say, their form as JSON lines, and the journal of a run's."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, positive_number, require_counts
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.safe import ReadLimits, check_declared_shape
from mri_design.scan.source_image import SourceImage

STREAM_LIMITS = ReadLimits(max_bytes=2**30, max_coils=256, max_side=8192, max_readouts=1_000_000, max_text_bytes=2**20)
"""The bounds that a stream is held to: of the whole grid, and of its texts."""
_MESSAGE_BYTES = 64 * 2**20


@dataclass(frozen=True)
class ScanHeader:
    """Lines to be measured next.

    Parameters
    ----------
    shape : tuple of int
        Grid (ky, kx) of the image.
    coils : int, optional
        Receive coils; None where the header does not say.
    noise_variance : float, optional
        Per real component; None where the header does not say.
    noise_bandwidth : float, optional
        See `MrdHeader`.
    source : SourceImage, optional
        Identifiers of the patient, the study and the sequence; None where the header does not say.
    calibration_mode : str
        How calibration is acquired, see `MrdEncoding`; empty where the header does not say.
    place : tuple of int
        Number of the slice that is taken, from 0, and of how many.
    """

    shape: tuple[int, int]
    coils: int | None = None
    noise_variance: float | None = None
    noise_bandwidth: float | None = None
    source: SourceImage | None = None
    calibration_mode: str = ""
    place: tuple[int, int] = (0, 1)


@dataclass(frozen=True)
class LineReadout:
    """One phase-encode line with all its samples.

    Parameters
    ----------
    line : int
        Row ky of the grid, from 0.
    samples : complex64 array, shape (coil, kx)
        As on the grid: reversed readouts are turned, oversampling is removed.
    dwell : float
        Microseconds from sample to sample; 0 where the stream does not say.
    geometry : SliceGeometry, optional
        Where the slice lies, where the stream says so.
    calibration : bool
        True for a readout of calibration alone, which may be from a scan of its own.
    """

    line: int
    samples: NDArray[np.complex64]
    dwell: float = 0.0
    geometry: SliceGeometry | None = None
    calibration: bool = False


@dataclass(frozen=True)
class NoiseReadout:
    """Samples without a signal: complex64 (coil, sample), and their dwell time in microseconds (0: unknown)."""

    samples: NDArray[np.complex64]
    dwell: float = 0.0


@dataclass(frozen=True)
class LeftOut:
    """A message that brings nothing to the image; ``why`` is empty where nobody has to know."""

    why: str = ""


@dataclass(frozen=True)
class CutShort(LeftOut):
    """The stream ended within a message, of which nothing is used; ``why`` says how much of it had come."""


@dataclass(frozen=True)
class Closed:
    """The scanner is done and says so."""


Message = ScanHeader | LineReadout | NoiseReadout | LeftOut | Closed


class StreamProtocol(Protocol):
    """How messages are written as bytes. It may remember the header, which later messages are placed by."""

    def read(self, stream: BinaryIO) -> tuple[bytes, Message] | None:
        """The next message and its bytes; None where the stream ends.

        Where it ends within a message, that message is `CutShort`, and its bytes are none: it counts for nothing.

        Raises
        ------
        InputError
            Where the bytes are no message, or one over the bounds: what follows cannot be found any more.
        """
        ...

    def text(self, content: Mapping[str, object]) -> bytes:
        """A message to the scanner."""
        ...

    def closing(self) -> bytes:
        """The message that nothing more will come."""
        ...

    def address(self, lines: Sequence[int]) -> Mapping[str, object]:
        """The scanner's own names of these lines, where they are not their numbers."""
        ...


def json_line(content: Mapping[str, object]) -> bytes:
    """The content as one line of JSON."""
    return json.dumps(content, allow_nan=False).encode() + b"\n"


def require_message_bytes(field: str, count: int, most: int = _MESSAGE_BYTES) -> int:
    """The declared size of a message, refused over ``most`` bytes (64 MiB) before anything is allocated.

    Raises
    ------
    InputError
        Naming the field.
    """
    if count > most:
        raise InputError(field=field, got=f"{count} bytes", wanted=f"at most {most}")
    return count


_LINE_BYTES = 16 * 2**20
_SHOWN = 40
"""Bytes of a line that was cut short that a message shows."""


class JsonLines:
    """A header ``{"lines": 128, "samples": 128}``, then readouts ``{"line": 64, "real": [[...]], "imag": [[...]]}``.

    The header may have ``coils`` and ``noise_variance`` (per real component). Samples are lists (coil, kx), or one list
    for one coil, DC in the middle of an orthonormal k-space. ``{"noise": true, "real": ..., "imag": ...}`` is a readout
    without a signal, ``{"close": true}`` the end. What cannot be read is left out; only a line that is too long ends
    the stream. A line counts once the newline at its end is there: a last line without one is cut short.

    Parameters
    ----------
    limits : ReadLimits
        Bounds of the grid.
    """

    def __init__(self, limits: ReadLimits = STREAM_LIMITS) -> None:
        self._limits = limits
        self._header: ScanHeader | None = None

    def read(self, stream: BinaryIO) -> tuple[bytes, Message] | None:
        """See `StreamProtocol`."""
        line = stream.readline(_LINE_BYTES + 1)
        require_message_bytes("line of JSON", len(line), _LINE_BYTES)
        if not line:
            return None
        if not line.endswith(b"\n"):
            begins = line[:_SHOWN].decode("utf-8", "replace")
            lost = f"{len(line)} bytes without the newline that ends a line, which begins with {begins!r}"
            return b"", CutShort(f"the stream ended within a line of JSON: {lost}")
        try:
            content = json.loads(line)
        except (ValueError, RecursionError) as error:
            return line, LeftOut(f"a line that is no JSON ({error})")
        if not isinstance(content, dict):
            return line, LeftOut("a line that is no JSON object")
        try:
            return line, self._message(content)
        except InputError as error:
            return line, LeftOut(str(error))

    def _message(self, content: Mapping[str, Any]) -> Message:
        if content.get("close") is True:
            return Closed()
        if "lines" in content:
            return self._read_header(content)
        if content.get("noise") is True:
            return NoiseReadout(_samples(content))
        if self._header is None:
            return LeftOut("a readout before the header")
        line, samples = content.get("line"), _samples(content)
        require_counts(least=0, most=self._header.shape[0] - 1, line=line)
        if samples.shape[1] != self._header.shape[1]:
            raise InputError(field="readout", got=f"{samples.shape[1]} samples", wanted=str(self._header.shape[1]))
        return LineReadout(int(line), samples)  # type: ignore[arg-type]

    def _read_header(self, content: Mapping[str, Any]) -> Message:
        lines, samples, coils = content["lines"], content.get("samples"), content.get("coils")
        require_counts(least=4, most=self._limits.max_side, lines=lines, samples=samples)
        if coils is not None:
            require_counts(least=1, most=self._limits.max_coils, coils=coils)
        check_declared_shape("header", (coils or 1, lines, samples), 8, self._limits)  # type: ignore[arg-type]
        noise = content.get("noise_variance")
        variance = None if noise is None else positive_number("noise_variance", noise)
        header = ScanHeader((int(lines), int(samples)), coils, variance)  # type: ignore[arg-type]
        if self._header is not None and header != self._header:
            raise InputError(field="header", got="another one than before", wanted="the same scan")
        known, self._header = self._header, header
        return header if known is None else LeftOut()

    def text(self, content: Mapping[str, object]) -> bytes:
        """The content as one line."""
        return json_line(content)

    def closing(self) -> bytes:
        """Send nothing: the last message says that it is the last."""
        return b""

    def address(self, lines: Sequence[int]) -> Mapping[str, object]:
        """Say nothing: lines have the numbers of the grid."""
        return {}


def _samples(content: Mapping[str, Any]) -> NDArray[np.complex64]:
    """Complex (coil, sample) from a readout's two lists.

    Raises
    ------
    InputError
        Where they are none, or differ in shape.
    """
    try:
        parts = [np.atleast_2d(np.asarray(content.get(name), dtype=np.float64)) for name in ("real", "imag")]
    except (ValueError, TypeError) as error:
        raise InputError(field="readout", got=str(error), wanted="lists of numbers (coil, sample)") from error
    if parts[0].ndim != 2 or parts[0].shape != parts[1].shape:
        raise InputError(
            field="readout",
            got=f"real {parts[0].shape}, imag {parts[1].shape}",
            wanted="two lists of one shape (coil, sample)",
        )
    with np.errstate(over="ignore", invalid="ignore"):  # what single precision cannot hold is refused as not finite
        return np.asarray(parts[0] + 1j * parts[1], dtype=np.complex64)


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
