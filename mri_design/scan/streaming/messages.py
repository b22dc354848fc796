"""What a scanner says, whatever the protocol it says it in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.safe import ReadLimits
from mri_design.scan.source_image import SourceImage

STREAM_LIMITS = ReadLimits(max_bytes=2**30, max_coils=256, max_side=8192, max_readouts=1_000_000, max_text_bytes=2**20)
"""The bounds that a stream is held to: of the whole grid, and of its texts."""
_MESSAGE_BYTES = 64 * 2**20


@dataclass(frozen=True)
class ScanHeader:
    """What is to be measured.

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
        Whom and what the scan shows; None where the header does not say.
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
        """What the scanner calls these lines, where that is something else than their number."""
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
