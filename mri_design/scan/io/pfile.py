"""P-files of GE scanners (``P12345.7``), read-only: slices of Cartesian lines, of the one revision that was checked.

The header is a record of the scanner's software, which changes from revision to revision. In revision 26.002, places in
the bytes follow from two things: GEDeIdentify (MATLAB, by M. Mikkelsen) has those of the sizes of readouts, the echoes,
the channels and the samples; and all fields from the mark of the maker to the sizes lie 76 bytes behind where they were
before revision 26, in the same order. A file of a scanner confirms them (`results/interoperation`). Files of other
revisions are refused, and so is all that is measured in another way.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.io.layouts import BARE
from mri_design.scan.io.safe import check_declared_shape, check_file
from mri_design.scan.io.source import GE_CURE, ReadOptions, Source
from mri_design.scan.io.stored_arrays import ArrayHeader, StoredArray, source_of

REVISION = 26.002
"""Revision of the header (``rdb_hdr_rdbm_rev``) that is read."""
_LOGO, _INVALID = b"GE_MED_NMR", b"INVALIDNMR"
"""Mark of headers, at byte 34 and from revision 26 on at 110; the second while the scanner still writes the file."""
_HEAD = 268
_OFFSET = struct.Struct("<fi")
"""Revision, and where the samples begin."""
_FIELDS = dict(dacq_ctrl=124, data_collect_type=132, npasses=140, nslices=144, nechoes=146, nframes=150, hnover=154)
_FIELDS |= dict(frame_size=156, point_size=158, da_xres=178, da_yres=180, dab_start_rcv=264, dab_stop_rcv=266)
"""Places of whole numbers of 16 bits, by the names that the scanner's software has for them after ``rdb_hdr_``."""
_NOT_ALTERNATED, _GRADIENT_ECHO, _FLIPPED = 1, 8, 6
"""Bits of ``data_collect_type``: the sign of lines does not alternate; and gradient echoes. Bits of ``dacq_ctrl``:
readouts are turned, as in echo-planar imaging."""


def recognises(path: Path) -> bool:
    """Whether a file begins as a P-file of any revision does."""
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    return _LOGO in head or _INVALID in head


def opened(path: Path, options: ReadOptions) -> Source:
    """The slices of one P-file, in the order of their measurement.

    The first frame of each slice and channel, which the scanner leaves empty as a baseline, is left out, and where the
    scanner alternates the sign of lines, which shifts the image by half a field of view, that is undone. The file's
    sizes of pixels and places of slices are not read.

    Raises
    ------
    InputError
        For another revision, another kind of measurement, and a file that is shorter or longer than its header says.
    """
    size, limits = check_file(path), options.limits
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    if len(head) < _HEAD:
        raise InputError("header", f"{len(head)} bytes", f"{_HEAD} at least")
    # First, the revision: it says where everything else is.
    revision, start = _OFFSET.unpack_from(head)
    if not 1 <= revision < 1000:  # of scanners whose computers had the other order of bytes
        (revision,) = struct.unpack_from(">f", head)
    if _INVALID in head:
        raise InputError(str(path), "a P-file marked as not valid", "a complete one", "Copy it again after the scan.")
    if not math.isclose(revision, REVISION, rel_tol=1e-6):
        raise InputError("rdb_hdr_rdbm_rev", f"revision {revision:g}", f"{REVISION:g}", GE_CURE)
    # Second, that it was measured line by line, slice by slice, with one echo and in one pass.
    said = {name: struct.unpack_from("<H", head, at)[0] for name, at in _FIELDS.items()}
    slices, lines, samples = said["nslices"], said["nframes"], said["frame_size"]
    kind, channels = said["data_collect_type"], said["dab_stop_rcv"] - said["dab_start_rcv"] + 1
    fixed = {"npasses": 1, "nechoes": 1, "hnover": 0, "da_xres": samples, "da_yres": lines + 1}
    bounds = {"nslices": limits.max_slices, "nframes": limits.max_side, "frame_size": limits.max_side}
    whole = kind & ~(_NOT_ALTERNATED | _GRADIENT_ECHO) == 0
    for name, right, wanted in (
        ("data_collect_type", whole, "whole lines of slices (bits 1 and 8 alone)"),
        ("dacq_ctrl", not said["dacq_ctrl"] & _FLIPPED, "readouts in one direction"),
        *((name, said[name] == number, str(number)) for name, number in fixed.items()),
        ("point_size", said["point_size"] in (2, 4), "2 or 4 bytes"),
        *((name, 1 <= said[name] <= most, f"1 to {most}") for name, most in bounds.items()),
        ("dab_stop_rcv", 1 <= channels <= limits.max_coils, "1 channel or more"),
    ):
        if not right:
            raise InputError(f"rdb_hdr_{name}", str(said[name]), wanted, GE_CURE)
    # Finally, that the samples fill the rest of the file.
    word, stored = np.dtype(f"<i{said['point_size']}"), (channels, slices, lines + 1, samples, 2)
    check_declared_shape("samples", stored[:-1], 8, limits)
    needed = start + math.prod(stored) * word.itemsize
    if start < _HEAD or size != needed:
        wanted = f"{needed}, of which samples begin at {start}"
        raise InputError("samples", f"{size} bytes", wanted, "Copy or download the file again.")
    file = np.memmap(path, word, "r", start, stored)
    alternated = not kind & _NOT_ALTERNATED

    def read(number: int | None) -> NDArray[np.complex64]:
        part = file[:, :, 1:] if number is None else file[:, number : number + 1, 1:]
        kspace = np.empty((part.shape[1], channels, lines, samples), np.complex64)
        kspace.real, kspace.imag = (np.moveaxis(part[..., at], 1, 0) for at in (0, 1))
        if alternated:
            kspace[:, :, 1::2] *= -1
        return kspace

    array = StoredArray((slices, channels, lines, samples), np.dtype(np.complex64), read, sliced=True)
    text = {"format": f"GE P-file, revision {REVISION:g}"}
    if alternated:
        text["alternating_sign"] = "every second line was measured with the other sign, which was undone"
    header = ArrayHeader(dims=BARE[4], of_coils=True, text=text)
    return source_of(path, "kspace", {"kspace": array}, header, limits)
