"""A small file of Siemens raw data, one measurement in the layout of the software line VD."""

from __future__ import annotations

import struct

import numpy as np

_START = 10240  # where the first measurement of such a file begins
_PROTOCOL = """### ASCCONV BEGIN ###
sRXSPEC.alDwellTime[0] = 10000
sKSpace.lBaseResolution = {columns}
sKSpace.lPhaseEncodingLines = {lines}
sKSpace.ucDimension = 0x2
sKSpace.ucTrajectory = 0x1
sSliceArray.asSlice[0].dThickness = 5.0
sSliceArray.asSlice[0].dPhaseFOV = 200.0
sSliceArray.asSlice[0].dReadoutFOV = 200.0
### ASCCONV END ###
<ParamDouble."flReadoutOSFactor"> {{ <Precision> 6 1.0 }}"""
_NOISE, _END = 1 << 25, 1


def siemens_bytes(kspace: np.ndarray, noise: np.ndarray) -> bytes:
    """K-space (coil, ky, kx) behind readouts (readout, coil, sample) of noise alone."""
    lines = kspace.shape[1]
    blocks = [_readout(samples, _NOISE, 0, 0) for samples in noise]
    blocks += [_readout(kspace[:, line], 0, line, lines // 2) for line in range(lines)]
    blocks.append(_header(_END, (0, 0), 0, 0, 352) + bytes(160))
    text = _PROTOCOL.format(columns=kspace.shape[2], lines=lines).encode()
    text = b"MeasYaps\0" + struct.pack("<I", len(text)) + text
    content = struct.pack("<II", 8 + len(text), 1) + text + b"".join(blocks)
    listed = struct.pack("<II", 0, 1) + struct.pack("<IIQQ64s64s", 1, 1, _START, len(content), b"", b"")
    return listed.ljust(_START, b"\0") + content


def _readout(samples: np.ndarray, flags: int, line: int, centre: int) -> bytes:
    rows = np.ascontiguousarray(samples, "<c8")
    stored = b"".join(
        struct.pack("<IiIiIIHHI", 0, 1, 1, 0, 0, 0, n, 0, 0) + row.tobytes() for n, row in enumerate(rows)
    )
    return _header(flags, rows.shape, line, centre, 192 + len(stored)) + stored


def _header(flags: int, shape: tuple[int, ...], line: int, centre: int, length: int) -> bytes:
    coils, samples = shape
    head = struct.pack("<IiIIIHHiiii", length, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0)
    head += struct.pack("<QHH14H", flags, samples, coils, line, *[0] * 13)
    head += struct.pack("<4HfIHH", 0, 0, samples // 2, 0, 0.0, 0, centre, 0)
    return (head + struct.pack("<7f", 0, 0, 0, 1, 0, 0, 0)).ljust(192, b"\0")
