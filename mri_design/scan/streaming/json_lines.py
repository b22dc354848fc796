"""One JSON object a line, for scanners and programs that do not speak MRD."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, positive_number, require_counts
from mri_design.scan.io.safe import ReadLimits, check_declared_shape
from mri_design.scan.streaming.messages import (
    STREAM_LIMITS,
    Closed,
    CutShort,
    LeftOut,
    LineReadout,
    Message,
    NoiseReadout,
    ScanHeader,
    json_line,
    require_message_bytes,
)

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
        """Nothing: the last message says that it is the last."""
        return b""

    def address(self, lines: Sequence[int]) -> Mapping[str, object]:
        """Nothing: lines have the numbers of the grid."""
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
