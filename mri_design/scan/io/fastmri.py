"""K-space in HDF5: fastMRI's files of one volume, phase encode along the last axis, and arrays of MATLAB and others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import h5py
import numpy as np
from numpy.typing import NDArray

from mri_design.calibration.centre import measured_samples
from mri_design.errors import InputError, option
from mri_design.operators.conventions import chosen_flags
from mri_design.scan.data import KSpaceData
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.hdf5 import (
    arrays_in,
    has_object,
    is_hdf5,
    names_in,
    open_read_only,
    read_array,
    read_text,
    require_dataset,
    require_numbers_of,
)
from mri_design.scan.io.layouts import PAIR, gathering
from mri_design.scan.io.mrd_header import EncodedSpace, parse_mrd_header
from mri_design.scan.io.safe import ReadLimits, check_sides
from mri_design.scan.io.samples import is_pair, measured_lines, only_coils, to_complex64, working_coils
from mri_design.scan.io.source import ReadOptions, SlicedSource, Source, require_counters
from mri_design.scan.io.stored_arrays import ArrayHeader, ArraySource, axes_of_parts
from mri_design.scan.sampling import Sampling
from mri_design.scan.source_image import SourceImage

_ATTRIBUTES = ("acquisition", "max", "norm")  # the patient's identifier is left where it is


_TOLD_BY = ("ismrmrd_header", "mask")
_USUAL = {3: ("slice", "kx", "ky"), 4: ("slice", "coil", "kx", "ky")}


def is_fastmri(path: Path) -> bool:
    """Whether a file is HDF5 with ``kspace`` at its top, which beside ``dataset``, of raw data, has to be no link.

    Without either, or where ``kspace`` is a group, the only array of complex numbers in a file is taken for it.
    """
    if not is_hdf5(path):
        return False
    names = names_in(path)
    with open_read_only(path) as file:
        if "kspace" in names and not _is_group(file, "kspace"):
            return "dataset" not in names or has_object(file, "kspace")
        return "dataset" not in names and _only_complex(file) is not None


def _is_group(file: h5py.File, name: str) -> bool:
    """Whether a name, which no link leads to, is that of a group, such as a structure of MATLAB."""
    return has_object(file, name) and isinstance(file[name], h5py.Group)


def _only_complex(file: h5py.File) -> str | None:
    """The only array of complex numbers in a file."""
    found = [name for name, text in arrays_in(file).items() if text.startswith("complex")]
    return found[0] if len(found) == 1 else None


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
def opened(path: Path, options: ReadOptions) -> Iterator[Source]:
    """An open volume or array, once its sizes, its mask and its header have been checked.

    ``kspace`` is (slice, coil, row, column) or (slice, row, column), the phase encode along the columns, unless the
    samples show otherwise (`shown`; beside the marks of fastMRI only where they do not gather along both last axes), or
    the same as pairs of real numbers; MATLAB's arrays (v7.3), whose axes HDF5 reverses, and other arrays are read as
    those of NumPy are. A volume becomes (slice, coil, ky, kx) as stored: readout oversampling is kept, and the size of
    the reconstructed image, where the file's header tells it, goes to the provenance as ``reconstruction_matrix``.
    Lines that the ``mask`` omits, and lines without any sample, are known to be not measured.

    Raises
    ------
    InputError
        On anything else than such a file, naming the field.
    """
    limits = options.limits
    with open_read_only(path) as file:
        top = "kspace" in file and not _is_group(file, "kspace")
        name = "kspace" if top else _only_complex(file) or "kspace"
        stored = require_dataset(file, name, limits)
        require_numbers_of(file, stored)
        told = any(has_object(file, beside) for beside in _TOLD_BY) or any(name in file.attrs for name in _ATTRIBUTES)
        header = _header_of_array(path, stored, options, told)
        if header is not None:
            array = _Array(stored, header.from_matlab and header.dims is None and stored.ndim > 3)
            yield ArraySource(path, "kspace", {"kspace": array}, header, limits)
            return
        require_counters(path, options.counters)
        if stored.ndim not in (3, 4):
            raise InputError("kspace", f"shape {stored.shape}", "(slice, coil, row, column) or (slice, row, column)")
        slices, coils, rows, columns = stored.shape if stored.ndim == 4 else (stored.shape[0], 1, *stored.shape[1:])
        bounds = {
            "slice": limits.max_slices,
            "coil": limits.max_coils,
            "row": limits.max_side,
            "column": limits.max_side,
        }
        sides = zip(bounds.items(), (slices, coils, rows, columns), strict=True)
        check_sides({f"kspace: {axis}": (side, bound) for (axis, bound), side in sides})
        declared = _mask(read_array(file, "mask", limits), rows, columns) if has_object(file, "mask") else None
        yield _Volume(path, stored, (slices, coils, rows, columns), declared, *_provenance(file, path, limits))


@dataclass(frozen=True)
class _Array:
    """A dataset that is read as a whole; of MATLAB's without named axes, [kx, ky, 1, coil], those of length 1 go."""

    dataset: h5py.Dataset
    squeezed: bool
    sliced: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.dataset.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.dataset.dtype

    def whole(self) -> NDArray[Any]:
        array = self.dataset[()]
        array = to_complex64("kspace", array) if is_pair(array.dtype) else array
        return array.squeeze() if self.squeezed else array

    def part(self, number: int) -> NDArray[Any]:
        return self.whole()[number : number + 1]


def _header_of_array(path: Path, stored: h5py.Dataset, options: ReadOptions, told: bool) -> ArrayHeader | None:
    """How an array is read that is no volume of fastMRI's; None of one that is."""
    matlab = "MATLAB_class" in stored.attrs
    text = {"format": "MATLAB v7.3" if matlab else "HDF5", "dataset": str(stored.name).removeprefix("/")}
    header = ArrayHeader(text=text, from_matlab=matlab).asked(options)
    if header.dims is not None:
        return replace(header, dims=header.dims[::-1]) if matlab else header
    usual, real = _USUAL.get(stored.ndim), stored.dtype.kind in "iuf"
    if told and real and stored.shape[-1:] == (2,) and stored.ndim - 1 in _USUAL:
        return replace(header, dims=(*_USUAL[stored.ndim - 1], PAIR))
    if matlab or (not told and (usual is None or real)):
        return header
    if usual is None:
        return None

    def part(number: int) -> NDArray[np.complex64]:
        return to_complex64("kspace", stored[number : number + 1])

    if told:
        along, last = gathering(part(len(stored) // 2)), [stored.ndim - 2, stored.ndim - 1]
        if along != last:
            along = gathering(to_complex64("kspace", stored[()]))
        return None if along == last or len(along) != 2 else header
    names = axes_of_parts(part, len(stored), usual)
    return None if names == usual else replace(header, dims=names)


def _mask(stored: NDArray[Any], n_rows: int, n_lines: int) -> NDArray[np.bool_]:
    if stored.size == n_rows != n_lines:
        got = f"{n_rows} entries, as many as k-space has rows"
        wanted = f"one for each of its {n_lines} columns, along which fastMRI has the phase encode"
        named = option("dims", "slice,coil,ky,kx")
        cure = f"If it goes along the rows: {named}; then lines of zeros count as not measured."
        raise InputError("mask", got, wanted, cure)
    return chosen_flags(stored, (n_lines,), field="mask", unit="column")


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
