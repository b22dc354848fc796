"""Small files of Siemens raw data, written header by header in the layouts of VB and of VD (of VE and XA, too)."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

_BITS = dict(end=0, feedback=1, sync=5, correction=21, calibration=22, both=23, reverse=24, noise=25)
_TEXT = """### ASCCONV BEGIN ###
tProtocolName = ""{name}""
sRXSPEC.alDwellTime[0] = {dwell}
sKSpace.lBaseResolution = {base}
sKSpace.lPhaseEncodingLines = {lines}
sKSpace.lPartitions = {partitions}
sKSpace.ucDimension = {dimension}
sKSpace.ucTrajectory = 0x1
sSliceArray.asSlice[0].dThickness = {thickness}
sSliceArray.asSlice[0].dPhaseFOV = {phase_extent}
sSliceArray.asSlice[0].dReadoutFOV = {read_extent}
{more}
### ASCCONV END ###"""


@dataclass
class Readout:
    """A readout to be written: samples (coil, sample), counters by name, and what the header says beside them."""

    samples: np.ndarray
    counters: dict[str, int]
    flags: int
    centre: tuple[int, int, int]  # column, line, partition
    cut: tuple[int, int] = (0, 0)
    quaternion: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)
    position: tuple[float, ...] = (0.0, 0.0, 0.0)


@dataclass
class Measurement:
    """A measurement to be written; every field can be made wrong on purpose."""

    base: int = 8
    lines: int = 12
    partitions: int = 1
    dimension: str = "0x2"
    oversampling: str = "2.0"
    dwell: int = 10000
    name: str = "gre"
    thickness: float = 5.0
    phase_extent: float = 180.0
    read_extent: float = 200.0
    more: str = ""
    software: str = ""
    ends: bool = True
    readouts: list[Readout] = field(default_factory=list)

    def add(self, samples: np.ndarray, *marks: str, centre: tuple[int, int, int] | None = None, **said: object) -> None:
        """Append a readout (coil, sample); ``said`` are counters (Lin, Sli, ...) and fields of `Readout`."""
        places = (samples.shape[1] // 2, self.lines // 2, self.partitions // 2) if centre is None else centre
        flags = sum(1 << _BITS[mark] for mark in marks)
        counters = {name: value for name, value in said.items() if name[0].isupper()}
        others = {name: value for name, value in said.items() if not name[0].isupper()}
        self.readouts.append(Readout(samples, counters, flags, places, **others))

    def add_scan(self, kspace: np.ndarray, **said: object) -> Measurement:
        """Append every line of (slice, coil, ky, kx)."""
        for index, lines in enumerate(kspace):
            for line in range(kspace.shape[2]):
                self.add(lines[:, line], **{"Sli": index, "Lin": line, **said})
        return self

    @property
    def protocol(self) -> bytes:
        """The header: texts by name."""
        texts = {
            "Dicom": f'<ParamString."SoftwareVersions">  {{ "{self.software}"  }}',
            "MeasYaps": _TEXT.format(**vars(self)),
            "Meas": f'<ParamDouble."flReadoutOSFactor">  {{ <Precision> 6  {self.oversampling}  }}',
        }
        body = b"".join(
            name.encode() + b"\0" + struct.pack("<I", len(text)) + text.encode() for name, text in texts.items()
        )
        body += b" " * (10240 - 8 - len(body))  # headers of VB files are longer than that
        return struct.pack("<II", 8 + len(body), len(texts)) + body


def _head(readout: Readout, vb: bool, length: int, channel: int) -> bytes:
    names = ("Lin", "Ave", "Sli", "Par", "Eco", "Phs", "Rep", "Set", "Seg")
    counters = [readout.counters.get(name, 0) for name in names] + [0] * 5
    coils, samples = readout.samples.shape
    first = struct.pack("<IiIII", length, 1, 1, 0, 0)
    system = b"" if vb else struct.pack("<HHiiii", 0, 0, 0, 0, 0, 0)
    counts = struct.pack("<QHH14H", readout.flags, samples, coils, *counters)
    column, line, partition = readout.centre
    echo = struct.pack("<4HfIHH", *readout.cut, column, 0, 0.0, 0, line, partition)
    place = struct.pack("<7f", *readout.position, *readout.quaternion)
    if vb:
        return first + system + counts + echo + bytes(16) + place + struct.pack("<HH", channel, 0)
    return first + system + counts + echo + place + bytes(64)


def _block(readout: Readout, vb: bool) -> bytes:
    samples = np.ascontiguousarray(readout.samples, "<c8")
    if readout.flags & (1 << _BITS["sync"]):
        content = samples.tobytes()
        length = (128 if vb else 192) + len(content)
        return _head(readout, vb, length, 0) + content
    if vb:
        return b"".join(
            _head(readout, True, 128 + 8 * samples.shape[1], number) + row.tobytes()
            for number, row in enumerate(samples)
        )
    channels = b"".join(
        struct.pack("<IiIiIIHHI", 0, 1, 1, 0, 0, 0, n, 0, 0) + row.tobytes() for n, row in enumerate(samples)
    )
    return _head(readout, False, 192 + len(channels), 0) + channels


def _content(measurement: Measurement, vb: bool) -> bytes:
    blocks = [_block(readout, vb) for readout in measurement.readouts]
    if measurement.ends:
        end = Readout(np.zeros((1, 0), np.complex64), {}, 1 << _BITS["end"], (0, 0, 0))
        blocks.append(_head(end, vb, 512, 0) + bytes(160))
    return measurement.protocol + b"".join(blocks)


def write_twix(path: Path, *measurements: Measurement, vb: bool = False) -> Path:
    """Write a file: of one measurement in the layout of VB, or of several in that of VD."""
    if vb:
        (only,) = measurements
        path.write_bytes(_content(only, vb))
        return path
    contents = [_content(measurement, vb) for measurement in measurements]
    listed, place = struct.pack("<II", 0, len(contents)), 10240
    for number, content in enumerate(contents):
        listed += struct.pack("<IIQQ64s64s", number, number, place, len(content), b"", b"gre")
        place += len(content)
    path.write_bytes(listed.ljust(10240, b"\0") + b"".join(contents))
    return path
