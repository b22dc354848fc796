"""fastMRI HDF5 files: k-space of one volume, phase encode along the last axis."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.data import KSpaceData
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.hdf5 import (
    has_object,
    is_hdf5,
    names_in,
    open_read_only,
    read_array,
    read_text,
    require_dataset,
    require_numbers_of,
)
from mri_design.scan.io.mrd_header import EncodedSpace, parse_mrd_header
from mri_design.scan.io.safe import ReadLimits
from mri_design.scan.io.samples import measured_lines, only_coils, to_complex64, working_coils
from mri_design.scan.io.source import ReadOptions, SlicedSource
from mri_design.scan.sampling import Sampling, measured_samples
from mri_design.scan.source_image import SourceImage

_ATTRIBUTES = ("acquisition", "max", "norm")  # the patient's identifier is left where it is


def is_fastmri(path: Path) -> bool:
    """Whether a file is HDF5 with ``kspace`` at its top; beside ``dataset``, of raw data, it has to be no link."""
    if not is_hdf5(path) or "kspace" not in (names := names_in(path)):
        return False
    with open_read_only(path) as file:
        return "dataset" not in names or has_object(file, "kspace")


@dataclass(frozen=True)
class _Volume(SlicedSource):
    """An open file; coils that hold nothing of their own are those of the slices that are read."""

    path: Path
    stored: h5py.Dataset
    shape: tuple[int, int, int, int]
    declared: NDArray[np.bool_] | None
    provenance: dict[str, str]
    encoded: EncodedSpace | None
    source: SourceImage | None

    @property
    def n_slices(self) -> int:
        """Number of slices."""
        return self.shape[0]

    def arranged(self, stored: NDArray[Any]) -> NDArray[Any]:
        """Samples (slice, [coil,] row, column) as (slice, coil, ky, kx)."""
        return stored.reshape(len(stored), *self.shape[1:]).swapaxes(-1, -2)

    @property
    def geometry(self) -> tuple[SliceGeometry, ...] | None:
        """Sizes of pixels, where the header gives the field of view; these files do not say where slices lie."""
        if self.encoded is None:
            return None
        (along_x, along_y, along_z), (slices, _, rows, columns) = self.encoded.field_of_view, self.shape
        place = SliceGeometry.of_header((along_y / columns, along_x / rows), along_z / self.encoded.matrix[2])
        return None if place is None else (place,) * slices

    def load(self) -> KSpaceData:
        """All slices."""
        return self._scan(self.stored[()], self.geometry)

    def slice(self, index: int) -> KSpaceData:
        """One slice."""
        return self._scan(self.stored[index : index + 1], self.geometry and self.geometry[:1])

    def samplings(self) -> tuple[Sampling, ...]:
        """Which samples of each slice are not zero, one slice after the other."""
        return tuple(map(self._sampling, range(self.shape[0])))

    def _sampling(self, number: int) -> Sampling:
        (coils,) = self.arranged(self.stored[number : number + 1])
        held = measured_samples(to_complex64("kspace", coils))
        return Sampling(held if self.declared is None else held & self.declared[:, np.newaxis])

    def _scan(self, stored: NDArray[Any], geometry: tuple[SliceGeometry, ...] | None) -> KSpaceData:
        kspace = to_complex64("kspace", self.arranged(stored))
        coils, notes = working_coils(kspace)
        kspace = only_coils(kspace, coils)
        if np.shares_memory(kspace, stored):
            kspace = kspace.copy()
        return KSpaceData(
            kspace=kspace,
            measured=measured_lines("mask", kspace, self.declared),
            name=self.path.stem,
            orientation="ky-columns",
            header={**self.provenance, **notes},
            geometry=geometry,
            source=self.source,
        )


@contextmanager
def opened(path: Path, options: ReadOptions) -> Iterator[SlicedSource]:
    """An open volume, once its sizes, its mask and its header have been checked.

    ``kspace`` is (slice, coil, row, column) or (slice, row, column), the phase encode along the columns. It
    becomes (slice, coil, ky, kx) as stored: readout oversampling is kept, and the size of the reconstructed
    image, where the file's header tells it, goes to the provenance as ``reconstruction_matrix``. Lines that the
    ``mask`` omits, and lines without any sample, are known to be not measured.

    Raises
    ------
    InputError
        On anything else than such a file, naming the field.
    """
    limits = options.limits
    with open_read_only(path) as file:
        stored = require_dataset(file, "kspace", limits)
        if stored.ndim not in (3, 4):
            raise InputError(
                field="kspace", got=f"shape {stored.shape}", wanted="(slice, coil, row, column) or (slice, row, column)"
            )
        require_numbers_of(file, stored)
        slices, coils, rows, columns = stored.shape if stored.ndim == 4 else (stored.shape[0], 1, *stored.shape[1:])
        _check_sides((slices, coils, rows, columns), limits)
        declared = _mask(read_array(file, "mask", limits), columns) if has_object(file, "mask") else None
        yield _Volume(path, stored, (slices, coils, rows, columns), declared, *_provenance(file, path, limits))


def _check_sides(shape: tuple[int, ...], limits: ReadLimits) -> None:
    bounds = (limits.max_slices, limits.max_coils, limits.max_side, limits.max_side)
    for axis, side, bound in zip(("slice", "coil", "row", "column"), shape, bounds, strict=True):
        if not 1 <= side <= bound:
            raise InputError(field=f"kspace: {axis}", got=str(side), wanted=f"1 to {bound}")


def _mask(stored: NDArray[np.generic], n_lines: int) -> NDArray[np.bool_]:
    if stored.size != n_lines or stored.dtype.kind not in "biuf" or not np.isin(stored, (0, 1)).all():
        raise InputError(field="mask", got=f"{stored.dtype} {stored.shape}", wanted=f"{n_lines} flags, one per column")
    return stored.reshape(-1).astype(bool)


def _provenance(
    file: h5py.File, path: Path, limits: ReadLimits
) -> tuple[dict[str, str], EncodedSpace | None, SourceImage | None]:
    """Provenance, and what the header says was encoded, with identifiers; None without a header."""
    encoded, source = None, None
    provenance = {"file": path.name, "format": "fastMRI HDF5"}
    for name in _ATTRIBUTES:
        # Sizes first: an attribute, too, can declare more than it should.
        if name in file.attrs and file.attrs.get_id(name).get_storage_size() <= 256:
            value = file.attrs[name]
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
            provenance[name] = text[:200]
    if has_object(file, "ismrmrd_header"):
        header = parse_mrd_header(f"{path}: ismrmrd_header", read_text(file, "ismrmrd_header", limits), limits)
        source = header.source
        provenance |= header.notes
        encoded, reconstructed = header.encodings[0].encoded, header.encodings[0].reconstructed
        provenance["encoded_matrix"] = "{} x {} x {}".format(*encoded.matrix)
        provenance["reconstruction_matrix"] = "{} x {} x {}".format(*reconstructed.matrix)
        if not math.isnan(reconstructed.field_of_view[0]):
            provenance["reconstruction_field_of_view_mm"] = "{:g} x {:g} x {:g}".format(*reconstructed.field_of_view)
    return provenance, encoded, source
