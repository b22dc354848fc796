"""A design as an ISMRMRD (MRD) file without measured samples: the header, and every readout with its labels."""

from __future__ import annotations

import io
from collections.abc import Sequence

import h5py
import numpy as np
from ismrmrd.hdf5 import acquisition_dtype, acquisition_header_dtype

from mri_design.errors import InputError
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.mrd.header import parse_mrd_header
from mri_design.scan.io.mrd.readouts import plan_readouts
from mri_design.scan.io.safe import DEFAULT_LIMITS

__all__ = ["mrd_skeleton_bytes"]

_FIRST_IN_SLICE, _LAST_IN_SLICE, _LAST_IN_MEASUREMENT = 7, 8, 25
_GROUP = "dataset"
_MOST = 65535  # the labels have 16 bits
_HEADER = """<?xml version="1.0" encoding="UTF-8"?>
<ismrmrdHeader xmlns="http://www.ismrm.org/ISMRMRD">
 <experimentalConditions><H1resonanceFrequency_Hz>0</H1resonanceFrequency_Hz></experimentalConditions>
 <encoding>
  <encodedSpace>{space}</encodedSpace>
  <reconSpace>{space}</reconSpace>
  <encodingLimits>
   <kspace_encoding_step_0>{along_x}</kspace_encoding_step_0>
   <kspace_encoding_step_1>{along_y}</kspace_encoding_step_1>
   <segment>{shots}</segment>
  </encodingLimits>
  <trajectory>cartesian</trajectory>
  <echoTrainLength>{echoes}</echoTrainLength>
 </encoding>
</ismrmrdHeader>
"""
_SPACE = (
    "<matrixSize><x>{}</x><y>{}</y><z>1</z></matrixSize>"
    "<fieldOfView_mm><x>{:.9g}</x><y>{:.9g}</y><z>{:.9g}</z></fieldOfView_mm>"
)
_LIMIT = "<minimum>0</minimum><maximum>{}</maximum><center>{}</center>"


def mrd_skeleton_bytes(trains: Sequence[Sequence[int]], shape: tuple[int, int], geometry: SliceGeometry) -> bytes:
    """An MRD file with one readout of zeros for every line, in the order of measurement.

    ``kspace_encode_step_1`` is the line, ``segment`` the echo train, and the header has the matrix, the field of view
    and the centre of k-space. What a design does not know is zero: the resonance frequency, the dwell time and, without
    a place, position and directions. The labels are read back by the reader of this package before the file is given.

    Parameters
    ----------
    trains : sequence of sequences of int
        Lines of every echo train, numbered from 0.
    shape : tuple of int
        Grid (ky, kx).
    geometry : SliceGeometry
        Pixel size, and place where it is known.

    Raises
    ------
    InputError
        For a grid or a number of trains that the labels cannot hold, and where the labels are not those of the design.
    """
    lines = [line for train in trains for line in train]
    if max(*shape, len(trains)) > _MOST:
        raise InputError(field="grid", got=f"{shape}, {len(trains)} trains", wanted=f"at most {_MOST} along each")
    heads = np.zeros(len(lines), dtype=acquisition_header_dtype)
    heads["version"], heads["scan_counter"] = 1, np.arange(len(lines))
    heads["number_of_samples"], heads["center_sample"] = shape[1], shape[1] // 2
    heads["available_channels"] = heads["active_channels"] = 1
    heads["channel_mask"][:, 0] = 1
    heads["idx"]["kspace_encode_step_1"] = lines
    heads["idx"]["segment"] = [shot for shot, train in enumerate(trains) for _ in train]
    heads["flags"][0] |= _flag(_FIRST_IN_SLICE)
    heads["flags"][-1] |= _flag(_LAST_IN_SLICE) | _flag(_LAST_IN_MEASUREMENT)
    if geometry.placed:
        heads["position"], heads["phase_dir"], heads["read_dir"], heads["slice_dir"] = geometry.vectors
    extents = (shape[1] * geometry.pixel[1], shape[0] * geometry.pixel[0], geometry.thickness)
    header = _HEADER.format(
        space=_SPACE.format(shape[1], shape[0], *extents),
        along_x=_LIMIT.format(shape[1] - 1, shape[1] // 2),
        along_y=_LIMIT.format(shape[0] - 1, shape[0] // 2),
        shots=_LIMIT.format(len(trains) - 1, 0),
        echoes=max(map(len, trains)),
    )
    _check(header, heads, lines)
    readouts = np.empty(len(lines), dtype=acquisition_dtype)
    readouts["head"] = heads
    for readout in readouts:
        readout["traj"], readout["data"] = np.zeros(0, np.float32), np.zeros(2 * shape[1], np.float32)
    written = io.BytesIO()
    with h5py.File(written, "w") as file:
        file.create_dataset(f"{_GROUP}/data", data=readouts, maxshape=(None,), chunks=(min(len(lines), 64),))
        file.create_dataset(f"{_GROUP}/xml", data=np.array([header.encode()], dtype=h5py.special_dtype(vlen=bytes)))
    return written.getvalue()


def _flag(number: int) -> np.uint64:
    return np.uint64(1 << (number - 1))


def _check(header: str, heads: np.ndarray, lines: Sequence[int]) -> None:
    """Refuse what this package's own reader would place elsewhere."""
    parsed = parse_mrd_header("MRD header", header, DEFAULT_LIMITS)
    plan = plan_readouts("MRD readouts", heads, parsed, DEFAULT_LIMITS, repeats_allowed=False)
    found = [readout.line for readout in plan.readouts]
    if found != list(lines):
        at = next(i for i, (a, b) in enumerate(zip(found, lines, strict=True)) if a != b)
        raise InputError(field=f"MRD readouts[{at}]", got=f"line {found[at]}", wanted=f"line {lines[at]}")
