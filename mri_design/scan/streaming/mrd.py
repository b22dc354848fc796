"""The ISMRMRD streaming protocol: messages between a scanner and a design, and the journal of received messages.

A message is the number of its kind, then its content; little-endian throughout.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from ismrmrd.hdf5 import acquisition_header_dtype
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import slice_number
from mri_design.scan.geometry import SliceGeometry, SourceImage
from mri_design.scan.io import raw_data
from mri_design.scan.io.mrd_cartesian import geometry_of, images_kspace, kind_of, plan_readouts, upright
from mri_design.scan.io.raw_data import Acquisitions, MrdEncoding, MrdHeader, Purposes
from mri_design.scan.io.safe import ReadLimits
from mri_design.scan.io.source import COUNTERS, ENCODING, ReadOptions

STREAM_LIMITS = ReadLimits(max_bytes=2**30, max_coils=256, max_side=8192, max_readouts=1_000_000, max_text_bytes=2**20)
"""Bounds for a stream: on its grid and its texts."""
_MESSAGE_BYTES = 64 * 2**20

CONFIG_FILE, CONFIG_TEXT, HEADER, CLOSE, TEXT, ACQUISITION, IMAGE, WAVEFORM = 1, 2, 3, 4, 5, 1008, 1022, 1026
_CONFIG_FILE_BYTES = 1024
_NUL = b"\0"

ACQUISITION_HEADER: np.dtype[np.void] = acquisition_header_dtype
"""The 340 bytes before a readout's samples."""
_WAVEFORM_HEADER = struct.Struct("<H6xQIIIHHfH2x")


@dataclass(frozen=True)
class ScanHeader:
    """The header of a scan, as far as a stream of lines needs it.

    Parameters
    ----------
    shape : tuple of int
        Grid (ky, kx) of the image.
    coils : int, optional
        Receive coils, if the header gives their number.
    noise_bandwidth : float, optional
        See `MrdHeader`.
    source : SourceImage, optional
        Identifiers of the patient, the study and the sequence.
    calibration_mode : str
        How calibration is acquired, see `MrdEncoding`; may be empty.
    place : tuple of int
        Number of the slice that is read, from 0, and number of slices.
    """

    shape: tuple[int, int]
    coils: int | None = None
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
        On the grid: reversed readouts are turned, oversampling is removed.
    dwell : float
        Microseconds from sample to sample; 0 if unknown.
    geometry : SliceGeometry, optional
        Size and place of the slice, if known.
    calibration : bool
        Whether the readout is calibration alone, perhaps of a separate scan.
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
class StreamedImage:
    """An image that goes back to the scanner.

    Parameters
    ----------
    pixels : float array, shape (ky, kx)
        Not negative.
    series : int
        Number of its series, from 0.
    role, comment : str
        As MRD's attributes have them: "Image" or "Quantitative", and what is shown.
    """

    pixels: NDArray[np.floating]
    series: int
    role: str
    comment: str


@dataclass(frozen=True)
class Gone:
    """The connection has ended; with ``for_good`` no other will follow."""

    why: str
    for_good: bool = False


CLOSED = Gone("the scanner closed the stream", for_good=True)
"""The message that ends a stream."""
Message = ScanHeader | LineReadout | NoiseReadout | Gone | str
"""A text is the reason why a message does not serve the image; it is empty for messages without interest."""


class MrdStream:
    """Messages of one slice of a Cartesian 2-D scan, as an MRD client sends them.

    Parameters
    ----------
    index : int
        The slice counter of the readouts to read; a negative one counts from the last slice of the header.
    counters : mapping of str to int, optional
        Which "contrast", "phase", "repetition", "set" and "encoding" to read, by the scanner's own numbers; by default
        the first that comes.
    limits : ReadLimits
        Bounds on declared sizes, which are checked before anything is allocated.

    Raises
    ------
    InputError
        For another counter, and for numbers that are negative or not whole.

    Notes
    -----
    Configurations, texts and waveforms are ignored. Strings end with NUL, which their length counts; a client that
    leaves it out gets answers without it. Readouts of other slices and counters than requested are ignored; readouts of
    another encoding, contrast, phase, repetition or set than the image's first readout are left out, and so are
    navigators and partial echoes.

    ISMRMRD, MR Data streaming protocol, doc/mrd_streaming_protocol.md of its repository.
    """

    def __init__(
        self, index: int = 0, counters: Mapping[str, int] | None = None, limits: ReadLimits = STREAM_LIMITS
    ) -> None:
        self._wanted = {**ReadOptions(counters=counters or {}).counters, "slice": index}
        self._limits = limits
        self._header: MrdHeader | None = None
        self._text, self._end = b"", _NUL
        self._first: tuple[int, ...] | None = None
        self._kind: tuple[int, ...] | None = None

    def read(self, stream: BinaryIO) -> tuple[bytes, Message] | None:
        """The next message and its bytes; None at the end of the stream.

        A message that is cut short by the end of the stream is left out and has no bytes.

        Raises
        ------
        InputError
            If the bytes are no message, or one over the bounds: the next message cannot be found then.
        """
        content = bytearray()

        def take(count: int, field: str = "message", most: int = _MESSAGE_BYTES) -> bytes:
            """The next bytes; more than ``most`` (64 MiB) are refused before anything is allocated."""
            if count > most:
                raise InputError(field, f"{count} bytes", f"at most {most}")
            part = stream.read(count) if count else b""
            content.extend(part)
            if len(part) < count:
                raise EOFError
            return part

        try:
            (number,) = struct.unpack("<H", take(2))
            message = self._message(number, take)
        except EOFError:
            if not content:
                return None
            return b"", f"the stream ended within a message, of which {len(content)} bytes had come"
        return bytes(content), message

    def _message(self, number: int, take: Callable[..., bytes]) -> Message:
        if number == CLOSE:
            return CLOSED
        if number == ACQUISITION:
            return self._acquisition(take)
        if number == CONFIG_FILE:
            take(_CONFIG_FILE_BYTES)
        elif number == WAVEFORM:
            *_, samples, channels, _, _ = _WAVEFORM_HEADER.unpack(take(_WAVEFORM_HEADER.size))
            take(4 * samples * channels, "waveform")
        elif number in (CONFIG_TEXT, HEADER, TEXT):
            (length,) = struct.unpack("<I", take(4))
            text = take(length, f"text of message {number}", self._limits.max_text_bytes)
            self._end = text[-1:] if text.endswith(_NUL) else b""
            return self._read_header(text.rstrip(_NUL)) if number == HEADER else ""
        else:
            raise InputError("message", f"number {number}", "1 to 5, 1008 or 1026, as in the MRD protocol")
        return ""

    def _read_header(self, text: bytes) -> Message:
        if self._header is not None:
            if text != self._text:
                raise InputError("header", "another one than before", "the same scan")
            return ""
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError("header", "bytes that are no UTF-8", "an ISMRMRD header") from error
        header = raw_data.parse_mrd_header("header", decoded, self._limits)
        encoding = header.encoding("header", self._wanted.get(ENCODING, 0))
        if encoding.trajectory not in ("cartesian", ""):
            raise InputError("header: trajectory", encoding.trajectory[:40], "cartesian")
        partitions = encoding.encoded.matrix[2]
        if partitions != 1:
            raise InputError("header: encodedSpace.matrixSize.z", str(partitions), "1: 2-D slices")
        if self._wanted["slice"] < 0:
            self._wanted["slice"] = slice_number(self._wanted["slice"], encoding.slices)
        self._header, self._text = header, text
        return ScanHeader(
            shape=_shape(encoding),
            coils=header.channels,
            noise_bandwidth=header.noise_bandwidth,
            source=header.source_of(self._wanted.get("contrast", 0)),
            calibration_mode=encoding.calibration_mode,
            place=(self._wanted["slice"], encoding.slices),
        )

    def _acquisition(self, take: Callable[..., bytes]) -> Message:
        heads = np.frombuffer(take(ACQUISITION_HEADER.itemsize), ACQUISITION_HEADER)
        samples, channels, dimensions = (
            int(heads[name][0]) for name in ("number_of_samples", "active_channels", "trajectory_dimensions")
        )
        trajectory, named = 4 * samples * dimensions, f"readout of {samples} samples in {channels} channels"
        held = take(trajectory + 8 * samples * channels, named)
        data = np.frombuffer(held, "<c8", offset=trajectory).reshape(channels, samples)
        if self._header is None:
            return "a readout before the header"
        noise, calibration, imaging = (bool(flags[0]) for flags in raw_data.by_flags(heads))
        if noise:
            return NoiseReadout(raw_data.kept_samples(heads[0], data), float(heads["sample_time_us"][0]))
        if not (calibration or imaging):
            return "no imaging readout: navigation, correction or a dummy"
        try:
            return self._placed(heads, data, self._header, calibration=calibration)
        except InputError as error:
            return str(error)

    def _placed(
        self, heads: NDArray[Any], data: NDArray[np.complex64], header: MrdHeader, *, calibration: bool
    ) -> Message:
        if any(int(raw_data.numbers_of(heads, name)[0]) != number for name, number in self._wanted.items()):
            return ""
        encoding = header.encoding("readout", int(heads["encoding_space_ref"][0]))
        if _shape(encoding) != _shape(self._encoding_of(header)):
            return "a readout of another matrix than that of the image"
        only, none = np.zeros(1, np.intp), np.zeros(0, np.intp)
        purposes = Purposes(only, none, none, encoding)
        raw = Acquisitions(Path(), "readout", header, heads, "MRD stream", lambda *_: iter(()), none)
        plan = plan_readouts(raw, purposes, self._limits, repeats_allowed=True)
        own = tuple(int(raw_data.numbers_of(heads, name)[0]) for name in (ENCODING, *COUNTERS))
        if self._first is None and not calibration:
            self._first, self._kind = own, kind_of(heads, 0)
        if self._first is not None and own != self._first:
            return "a readout of another contrast, phase, repetition, set or encoding than the first"
        if calibration and self._kind not in (None, kind_of(heads, 0)):
            return "a calibration readout with other samples than those of the image"
        readout, nx = plan.readouts[0], plan.shape[-1]
        if readout.count != nx:
            return f"a partial echo in line {readout.line}: lines are measured whole"
        line, row = int(readout.line), upright(readout, data[:, readout.first : readout.first + nx])
        places = geometry_of(encoding, heads, plan.readouts, header)
        plan.readouts["line"] = 0
        cropped = images_kspace(encoding, row[np.newaxis, :, np.newaxis, np.newaxis], plan.readouts)
        dwell = float(heads["sample_time_us"][0])
        return LineReadout(line, cropped[0, :, 0], dwell, None if places is None else places[0], calibration)

    def _encoding_of(self, header: MrdHeader) -> MrdEncoding:
        """The encoding whose readouts are read."""
        return header.encodings[self._wanted.get(ENCODING, 0)]

    def text(self, content: Mapping[str, object]) -> bytes:
        """A text message that holds ``content`` as JSON."""
        text = json.dumps(content, allow_nan=False).encode() + self._end
        return struct.pack("<HI", TEXT, len(text)) + text

    def image(self, image: StreamedImage, geometry: SliceGeometry | None) -> bytes:
        """An image message (1022): float pixels whose rows are ky, and where they lie, if that is known."""
        from ismrmrd import IMTYPE_MAGNITUDE, Image, Meta  # here: the import takes longer than the others

        known = {"image_type": IMTYPE_MAGNITUDE, "image_index": 1, "image_series_index": image.series}
        known["slice"] = self._wanted["slice"]
        if geometry is not None:
            rows, columns = image.pixels.shape
            (down, along), names = geometry.pixel, ("position", "phase_dir", "read_dir", "slice_dir")
            known["field_of_view"] = (columns * along, rows * down, geometry.thickness or 0.0)
            if geometry.placed:  # else they stay zero, and nobody takes the image for one that lies somewhere
                known |= {name: tuple(map(float, vector)) for name, vector in zip(names, geometry.vectors, strict=True)}
        made = Image.from_array(np.ascontiguousarray(image.pixels, dtype=np.float32), **known)
        about = {"DataRole": image.role, "ImageComment": image.comment, "SeriesDescription": image.comment}
        made.attribute_string = Meta({**about, "ImageProcessingHistory": ["mri-design"]}).serialize()
        parts = [struct.pack("<H", IMAGE)]
        made.serialize_into(lambda part: parts.append(bytes(part)))
        return b"".join(parts)

    def closing(self) -> bytes:
        """The message number of the end."""
        return struct.pack("<H", CLOSE)

    def address(self, lines: Sequence[int]) -> Mapping[str, object]:
        """The phase-encode counters of ``lines``."""
        if self._header is None:
            return {}
        encoding = self._encoding_of(self._header)
        by = encoding.centre(1) - encoding.encoded.matrix[1] // 2
        return {"kspace_encode_step_1": [line + by for line in lines]}


def _shape(encoding: MrdEncoding) -> tuple[int, int]:
    """Grid (ky, kx) of an encoding, without readout oversampling."""
    return encoding.encoded.matrix[1], encoding.columns.stop - encoding.columns.start


def append(journal: FileIO, message: bytes) -> None:
    """Add a message to a journal, an unbuffered file, and sync it to the disk.

    A process that dies while it writes leaves an incomplete last message, which `recorded` leaves out.

    Raises
    ------
    OSError
        If the disk is full.
    """
    left = memoryview(message)
    while left:
        left = left[journal.write(left) :]
    os.fsync(journal.fileno())


def recorded(path: Path, protocol: MrdStream) -> Iterator[tuple[int, Message]]:
    """The complete messages of a journal, and where each ends in the file; none without a file.

    No decision used an incomplete last message, and its line will be requested again.

    Raises
    ------
    InputError
        If the file is no journal.
    """
    if not path.exists():
        return
    position = 0
    with path.open("rb") as stream:
        while (read := protocol.read(stream)) is not None and read[0]:
            position += len(read[0])
            yield position, read[1]
