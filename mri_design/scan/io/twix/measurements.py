"""Where the measurements of a Siemens raw-data file lie, and their readouts, found without trusting a declared size.

The layouts of the binary headers are those of the package twixtools.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, optional_package
from mri_design.scan.io.safe import ReadLimits

_MOST_MEASUREMENTS, _ENTRY = 64, struct.Struct("<IIQQ64s64s")
"""Entries of the list of measurements at the start of a VD or VE file: number, file, place, length and two names."""
_SMALLEST_VB_HEADER = 10_000
_FIRST_TEXT = re.compile(rb"\w{4,40}\x00")
_LENGTH_BITS = 2**25 - 1
_COPY_AGAIN = "The file is cut short: copy or download it again."


@dataclass(frozen=True)
class Measurement:
    """One measurement of a file.

    Parameters
    ----------
    field : str
        File and measurement, for messages.
    start, end : int
        Its bytes in the file.
    text : str
        Its header: the protocol as the scanner wrote it.
    data : int
        Where its first readout begins.
    several_headers : bool
        Whether every channel of a readout has the whole header before it (VB), or a short one of its own (VD, VE).
    """

    field: str
    start: int
    end: int
    text: str
    data: int
    several_headers: bool


@dataclass(frozen=True)
class Readouts:
    """The readouts of a measurement.

    Parameters
    ----------
    places : int array, shape (readout,)
        Where each begins in the file, its header included.
    heads : structured array, shape (readout,)
        Their headers, with the names that twixtools gives.
    first, between : int
        Bytes before the header of the first channel, and of the header of each channel.
    """

    places: NDArray[np.int64]
    heads: NDArray[Any]
    first: int
    between: int


def is_twix(path: Path) -> bool:
    """Whether a file begins as Siemens raw data of the software lines VB, VD and VE do."""
    with path.open("rb") as stream:
        start = _first_header(stream.read(8 + _ENTRY.size))
        if start is None:
            return False
        try:
            stream.seek(start)
        except (OSError, OverflowError):
            return False
        head = stream.read(64)
    return _FIRST_TEXT.match(head[8:]) is not None


def _first_header(head: bytes) -> int | None:
    """Where the header of the first measurement should be; None where this is no such file."""
    if len(head) < 8 + _ENTRY.size:
        return None
    first, count = struct.unpack_from("<II", head)
    if first >= _SMALLEST_VB_HEADER:
        return 0
    place = int(_ENTRY.unpack_from(head, 8)[2])
    return place if 1 <= count <= _MOST_MEASUREMENTS and place < 2**62 else None


def find_measurements(path: Path, stream: IO[bytes], limits: ReadLimits) -> list[Measurement]:
    """The measurements of a file, in its order; the last one is that which was asked for at the scanner.

    Parameters
    ----------
    path : Path
        Of the file, for messages.
    stream : binary stream
        The file, which `is_twix` recognised.
    limits : ReadLimits
        Bound on the length of a header.

    Raises
    ------
    InputError
        Where a measurement or its header leads out of the file, or a header is too long.
    """
    size = stream.seek(0, 2)
    stream.seek(0)
    head = stream.read(8 + _MOST_MEASUREMENTS * _ENTRY.size)
    first, count = struct.unpack_from("<II", head)
    if first >= _SMALLEST_VB_HEADER:
        return [_measurement(f"{path}: measurement 1", stream, (0, size), limits, several_headers=True)]
    found = []
    for number in range(count):
        field = f"{path}: measurement {number + 1}"
        if 8 + (number + 1) * _ENTRY.size > len(head):
            raise InputError(field=field, got=f"{size} bytes", wanted="its place in the file", cure=_COPY_AGAIN)
        start, length = _ENTRY.unpack_from(head, 8 + number * _ENTRY.size)[2:4]
        end = start + length if length or count > 1 else size
        if end > size:
            raise InputError(field=field, got=f"{size} bytes of file", wanted=f"{end}, as declared", cure=_COPY_AGAIN)
        found.append(_measurement(field, stream, (start, end), limits, several_headers=False))
    return found


def _measurement(
    field: str, stream: IO[bytes], span: tuple[int, int], limits: ReadLimits, *, several_headers: bool
) -> Measurement:
    start, end = span
    if end - start < 8:
        raise InputError(field=field, got=f"{end - start} bytes", wanted="a header and readouts", cure=_COPY_AGAIN)
    stream.seek(start)
    length, _ = struct.unpack("<II", stream.read(8))
    if not 8 < length <= limits.max_text_bytes:
        wanted = f"9 to {limits.max_text_bytes} bytes"
        raise InputError(field=f"{field}: header", got=f"{length} bytes declared", wanted=wanted)
    if start + length > end:
        got = f"{length} bytes declared, {end - start} there"
        raise InputError(field=f"{field}: header", got=got, wanted="a whole header", cure=_COPY_AGAIN)
    text = stream.read(length - 8).decode("latin-1")
    return Measurement(field, start, end, text, start + length, several_headers)


def flag_of(name: str) -> int:
    """The number of a readout's flag (from 0) by the name that twixtools gives."""
    return int(optional_package("twixtools.mdh_def", "twix").mask_dict[name])


def find_readouts(stream: IO[bytes], measurement: Measurement, limits: ReadLimits) -> Readouts:
    """The readouts of a measurement, up to its end mark; records that hold no samples are passed over.

    Parameters
    ----------
    stream : binary stream
        The file.
    measurement : Measurement
        One of `find_measurements`.
    limits : ReadLimits
        Bound on the number of readouts.

    Raises
    ------
    InputError
        Naming the readout where the file ends before the end mark, one holds nothing, or there are too many.
    """
    layouts = optional_package("twixtools.mdh_def", "twix")
    whole, short = np.dtype(layouts.VB17_header), np.dtype(layouts.Channel_header)
    if not measurement.several_headers:
        whole = np.dtype(layouts.Scan_header)
    first, between = (0, whole.itemsize) if measurement.several_headers else (whole.itemsize, short.itemsize)
    at_flags, at_samples = int(whole.fields["EvalInfoMask"][1]), int(whole.fields["SamplesInScan"][1])
    end_mark, no_samples = flag_of("ACQEND"), flag_of("SYNCDATA")
    places, heads, place = list[int](), list[bytes](), measurement.data
    while True:
        field = f"{measurement.field}: readouts[{len(heads)}]"
        stream.seek(place)
        head = stream.read(whole.itemsize) if place + whole.itemsize <= measurement.end else b""
        if len(head) < whole.itemsize:
            raise InputError(field=field, got="no end mark", wanted="a measurement with its end", cure=_COPY_AGAIN)
        flags = struct.unpack_from("<Q", head, at_flags)[0]
        if flags >> end_mark & 1:
            break
        samples, channels = struct.unpack_from("<HH", head, at_samples)
        if flags >> no_samples & 1:
            length = struct.unpack_from("<I", head)[0] & _LENGTH_BITS
        else:
            length = first + channels * (between + 8 * samples) if samples and channels else 0
            places.append(place)
            heads.append(head)
        if length < whole.itemsize:
            got = f"{channels} channels of {samples} samples, {length} bytes"
            raise InputError(field=field, got=got, wanted="a readout", cure="Copy or download the file again.")
        if place + length > measurement.end:
            got = f"{measurement.end - place} of its {length} bytes"
            raise InputError(field=field, got=got, wanted="a whole readout", cure=_COPY_AGAIN)
        if len(heads) > limits.max_readouts:
            raise InputError(field=field, got="more readouts", wanted=f"at most {limits.max_readouts}")
        place += length
    return Readouts(np.array(places, np.int64), np.frombuffer(b"".join(heads), whole), first, between)
