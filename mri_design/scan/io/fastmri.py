"""fastMRI HDF5 files: k-space of one volume, phase encode along the last axis."""

from __future__ import annotations

import math
import os
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import KSpaceData
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.hdf5 import has_object, open_read_only, read_array, read_text
from mri_design.scan.io.mrd.header import EncodedSpace, parse_mrd_header
from mri_design.scan.io.safe import DEFAULT_LIMITS, ReadLimits, check_file, errors_named
from mri_design.scan.io.samples import measured_lines, to_complex64

__all__ = ["read"]

_ATTRIBUTES = ("acquisition", "max", "norm")  # the patient's identifier is left where it is


def read(path: str | os.PathLike[str], *, limits: ReadLimits = DEFAULT_LIMITS) -> KSpaceData:
    """Read one fastMRI volume.

    ``kspace`` is (slice, coil, row, column) or (slice, row, column), the phase encode along the columns. It
    becomes (slice, coil, ky, kx) as stored: readout oversampling is kept, and the size of the reconstructed
    image, where the file's header tells it, goes to the card as ``reconstruction_matrix``. Lines that the
    ``mask`` omits, and lines without any sample, are known to be not measured.

    Parameters
    ----------
    path : path
        The HDF5 file; it is opened read-only.
    limits : ReadLimits
        Bounds that the file is held to before anything is allocated.

    Raises
    ------
    InputError
        On anything else than such a file, naming the file and the field.
    """
    path = Path(path)
    check_file(path)
    with errors_named(path), open_read_only(path) as file:
        stored = read_array(file, "kspace", limits)
        if stored.ndim not in (3, 4):
            raise InputError(
                field="kspace",
                got=f"shape {stored.shape}",
                wanted="(slice, coil, row, column) or (slice, row, column)",
            )
        if stored.ndim == 3:
            stored = stored[:, np.newaxis]
        _check_sides(stored.shape, limits)
        n_lines = stored.shape[-1]
        declared = _mask(read_array(file, "mask", limits), n_lines) if has_object(file, "mask") else None
        card, encoded = _card(file, path, limits)
    with errors_named(path):
        kspace = to_complex64("kspace", stored.swapaxes(-1, -2))
        if np.shares_memory(kspace, stored):
            kspace = kspace.copy()
        return KSpaceData(
            kspace=kspace,
            measured=measured_lines("mask", kspace, declared),
            name=path.stem,
            orientation="ky-columns",
            card=card,
            geometry=_geometry(encoded, kspace.shape),
        )


def _geometry(encoded: EncodedSpace | None, shape: tuple[int, ...]) -> tuple[SliceGeometry, ...] | None:
    """Sizes of pixels, where the header gives the field of view; these files do not say where slices lie."""
    if encoded is None:
        return None
    along_x, along_y, along_z = encoded.field_of_view
    place = SliceGeometry.of_header((along_y / shape[2], along_x / shape[3]), along_z / encoded.matrix[2])
    return None if place is None else (place,) * shape[0]


def _check_sides(shape: tuple[int, ...], limits: ReadLimits) -> None:
    bounds = (limits.max_slices, limits.max_coils, limits.max_side, limits.max_side)
    for axis, side, bound in zip(("slice", "coil", "row", "column"), shape, bounds, strict=True):
        if not 1 <= side <= bound:
            raise InputError(field=f"kspace: {axis}", got=str(side), wanted=f"1 to {bound}")


def _mask(stored: NDArray[np.generic], n_lines: int) -> NDArray[np.bool_]:
    if stored.size != n_lines or stored.dtype.kind not in "biuf" or not np.isin(stored, (0, 1)).all():
        raise InputError(field="mask", got=f"{stored.dtype} {stored.shape}", wanted=f"{n_lines} flags, one per column")
    return stored.reshape(-1).astype(bool)


def _card(file: h5py.File, path: Path, limits: ReadLimits) -> tuple[dict[str, str], EncodedSpace | None]:
    """What is known in words, and the space that the header says was encoded; None without a header."""
    encoded = None
    card = {"file": path.name, "format": "fastMRI HDF5"}
    for name in _ATTRIBUTES:
        # Sizes first: an attribute, too, can declare more than it should.
        if name in file.attrs and file.attrs.get_id(name).get_storage_size() <= 256:
            value = file.attrs[name]
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
            card[name] = text[:200]
    if has_object(file, "ismrmrd_header"):
        header = parse_mrd_header(f"{path}: ismrmrd_header", read_text(file, "ismrmrd_header", limits), limits)
        encoded, reconstructed = header.encodings[0].encoded, header.encodings[0].reconstructed
        card["encoded_matrix"] = "{} x {} x {}".format(*encoded.matrix)
        card["reconstruction_matrix"] = "{} x {} x {}".format(*reconstructed.matrix)
        if not math.isnan(reconstructed.field_of_view[0]):
            card["reconstruction_field_of_view_mm"] = "{:g} x {:g} x {:g}".format(*reconstructed.field_of_view)
    return card, encoded
