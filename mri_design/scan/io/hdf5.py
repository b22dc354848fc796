"""HDF5 files with arrays of k-space: fastMRI volumes, MATLAB v7.3 and others.

Links, external storage and virtual data are not followed.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, option
from mri_design.operators.conventions import chosen_flags
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io import safe
from mri_design.scan.io.layouts import PAIR, gathering
from mri_design.scan.io.raw_data import MrdHeader, parse_mrd_header
from mri_design.scan.io.source import ReadOptions, Source
from mri_design.scan.io.stored_arrays import ArrayHeader, StoredArray, axes_of_parts, source_of
from mri_design.scan.sampling import is_pair, to_complex64

# Built into the library: deflate, shuffle, Fletcher-32, szip, n-bit, scale-offset, and h5py's lzf. Any other
# filter would make HDF5 look for plug-ins to load.
_FILTERS = {1, 2, 3, 4, 5, 6, 32000}
_MAX_AXES = 8
_MOST_LISTED = 200


@contextmanager
def open_read_only(path: str | os.PathLike[str]) -> Iterator[h5py.File]:
    """Open an untrusted HDF5 file for reading; whatever the library raises becomes an `InputError`.

    The file does not change. `isolated` contains crashes of the library, which runs in this process.

    Raises
    ------
    InputError
        If the file cannot be opened or, inside the block, read.
    """
    wanted = "an undamaged HDF5 file"
    with safe.damage_named(str(path), "unreadable HDF5", wanted), h5py.File(path, "r", locking="best-effort") as file:
        yield file


def names_in(file: h5py.File) -> set[str]:
    """Names at the top of a file, links included; empty for a file with more than a thousand."""
    return {str(name) for name in file} if len(file) <= 1000 else set()


def arrays_in(file: h5py.File) -> dict[str, str]:
    """Names ("group/dataset") of a file's first few hundred arrays, and their types and shapes in words."""
    found: dict[str, str] = {}

    def visit(name: str, held: h5py.Group | h5py.Dataset) -> bool | None:
        if isinstance(held, h5py.Dataset):
            kind = "complex" if held.dtype.kind == "c" or is_pair(held.dtype) else str(held.dtype)[:20]
            found[name] = f"{kind} {held.shape}"
        return True if len(found) > _MOST_LISTED else None

    file.visititems(visit)
    return found


def has_object(file: h5py.File, name: str) -> bool:
    """Whether ``name`` ("group/dataset") is reached through hard links alone."""
    return not isinstance(_reached(file, name), str)


def _reached(file: h5py.File, name: str) -> h5py.HLObject | str:
    """The object that a name reaches through hard links alone; or in words why it reaches none."""
    place: Any = file
    for part in name.split("/"):
        link = place.get(part, getlink=True) if isinstance(place, h5py.Group) else None
        if not isinstance(link, h5py.HardLink):
            kinds = {h5py.ExternalLink: "an external link", h5py.SoftLink: "a soft link"}
            return kinds.get(type(link), "nothing under this name")
        place = place[part]
    return place


def require_dataset(file: h5py.File, name: str, limits: safe.ReadLimits, *, numbers: bool = False) -> h5py.Dataset:
    """The dataset ``name``, after checks that it lies in this file and within the budget.

    Raises
    ------
    InputError
        If it is missing or not a dataset, is reached through a soft or external link, stores its samples in another
        file or in other datasets, uses a filter that is not built in, or declares more than the budget. With
        ``numbers`` also for text, references and variable-length elements.
    """
    field, dataset = f"{file.filename}: {name}", _reached(file, name)
    if not isinstance(dataset, h5py.Dataset):
        got = dataset if isinstance(dataset, str) else type(dataset).__name__.lower()
        cure = "Copy the data into one file, for example with h5repack." if "link" in got else ""
        raise InputError(field, got, "a dataset stored in this file", cure)
    creation = dataset.id.get_create_plist()
    layout, shape = creation.get_layout(), dataset.shape
    foreign = [creation.get_filter(n)[0] for n in range(creation.get_nfilters())]
    foreign = [code for code in foreign if code not in _FILTERS]
    for wrong, got, wanted in (
        (layout == h5py.h5d.VIRTUAL or dataset.is_virtual, "a virtual dataset", "samples stored in this file"),
        (creation.get_external_count() or dataset.external, "external storage", "samples stored in this file"),
        (foreign, f"filter numbers {foreign}", "gzip, lzf, szip or no compression"),
        (shape is None or len(shape) > _MAX_AXES, f"shape {shape}", f"an array of at most {_MAX_AXES} axes"),
    ):
        if wrong:
            raise InputError(field, got, wanted)
    item_bytes = dataset.id.get_type().get_size()
    declared = safe.check_declared_shape(f"{field}: shape", shape, item_bytes, limits)
    if layout == h5py.h5d.CHUNKED:  # the library allocates a whole chunk, however small the dataset
        safe.check_declared_shape(f"{field}: chunk", creation.get_chunk(), item_bytes, limits)
    safe.check_expansion(field, dataset.id.get_storage_size(), declared, limits)
    if numbers and (dataset.dtype.hasobject or dataset.dtype.kind not in "biufcV"):
        raise InputError(field, f"dtype {dataset.dtype}", "numbers")
    return dataset


def read_text(file: h5py.File, name: str, limits: safe.ReadLimits) -> str:
    """The text of a dataset that holds one string.

    Raises
    ------
    InputError
        As `require_dataset`, and for several elements, text that is not UTF-8, or more than ``max_text_bytes``.
    """
    dataset = require_dataset(file, name, limits)
    field = f"{file.filename}: {name}"
    if dataset.size != 1 or not (dataset.dtype.kind == "S" or h5py.check_string_dtype(dataset.dtype)):
        raise InputError(field, f"{dataset.dtype} {dataset.shape}", "one text")
    content = np.asarray(dataset[()]).reshape(-1)[0]
    encoded = content.encode() if isinstance(content, str) else bytes(content)
    if len(encoded) > limits.max_text_bytes:
        raise InputError(field, f"{len(encoded)} bytes", f"at most {limits.max_text_bytes}")
    try:
        return encoded.rstrip(b"\x00").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(field, f"undecodable text ({error.reason})", "UTF-8") from error


_ATTRIBUTES = ("acquisition", "max", "norm")  # the patient's identifier is left where it is


_MARKS = ("ismrmrd_header", "mask")
_USUAL = {3: ("slice", "kx", "ky"), 4: ("slice", "coil", "kx", "ky")}


def recognises(path: Path) -> bool:
    """Whether a file is HDF5 with ``kspace`` at its top, or with a single array of complex numbers.

    In a file with ``dataset``, of raw data, ``kspace`` must not be a link.
    """
    if not safe.is_hdf5(path):
        return False
    with open_read_only(path) as file:
        names = names_in(file)
        if "kspace" in names and not _is_group(file, "kspace"):
            return "dataset" not in names or has_object(file, "kspace")
        return "dataset" not in names and _only_complex(file) is not None


def _is_group(file: h5py.File, name: str) -> bool:
    """Whether a name that is no link is a group, such as a structure of MATLAB."""
    return has_object(file, name) and isinstance(file[name], h5py.Group)


def _only_complex(file: h5py.File) -> str | None:
    """The only array of complex numbers in a file."""
    found = [name for name, text in arrays_in(file).items() if text.startswith("complex")]
    return found[0] if len(found) == 1 else None


def without_kspace(path: Path) -> tuple[str, str]:
    """The arrays of a file without k-space, in words, and Python that takes k-space from them."""
    with open_read_only(path) as file:
        held = arrays_in(file)
    got = f"HDF5 with {'; '.join(f'{name}: {text}' for name, text in list(held.items())[:6]) or 'no arrays'}"
    real = sorted(held, key=lambda name: re.search("im|i$", name.rsplit("/")[-1].lower()) is not None)
    samples = "file['NAME'][()])"
    if len(real) == 2 and len(set(held.values())) == 1 and "complex" not in held[real[0]]:
        samples = f"file['{real[0]}'][()] + 1j * file['{real[1]}'][()]), if they are its real and imaginary parts"
    cure = "Save the one with k-space for NumPy: import h5py, numpy; file = h5py.File('{name}'); "
    return got, f"{cure}numpy.savez('{{stem}}.npz', kspace={samples}."


@contextmanager
def opened(path: Path, options: ReadOptions) -> Iterator[Source]:
    """An open volume or array, after checks of its sizes, its mask and its header.

    In fastMRI files ``kspace`` is (slice, coil, row, column) or (slice, row, column), the phase encode along the
    columns, unless the energy does not gather along both last axes; it may be stored as pairs of real numbers. MATLAB's
    arrays (v7.3), whose axes HDF5 reverses, and other arrays are read as those of NumPy. A volume becomes (slice, coil,
    ky, kx) as stored: readout oversampling is kept, and the matrix of the reconstructed image in the file's header goes
    to the provenance as ``reconstruction_matrix``. Lines that the ``mask`` omits, and lines without a sample, count as
    not measured.

    Raises
    ------
    InputError
        For any other file, naming the field.
    """
    limits = options.limits
    with open_read_only(path) as file:
        top = "kspace" in file and not _is_group(file, "kspace")
        name = "kspace" if top else _only_complex(file) or "kspace"
        stored = require_dataset(file, name, limits, numbers=True)
        marked = any(has_object(file, beside) for beside in _MARKS) or any(name in file.attrs for name in _ATTRIBUTES)
        header, pairs = _header_of_array(stored, options, marked), is_pair(stored.dtype)
        squeezed = header is not None and header.from_matlab and header.dims is None and stored.ndim > 3

        def read(number: int | None) -> NDArray[Any]:
            part = stored[()] if number is None else stored[number : number + 1]
            part = to_complex64("kspace", part) if pairs else part
            return part.squeeze() if squeezed else part  # MATLAB's [kx, ky, 1, coil]

        kind = np.dtype(np.complex64) if pairs else stored.dtype
        arrays = {"kspace": StoredArray(tuple(stored.shape), kind, read, sliced=not squeezed)}
        if header is None:
            rows, columns = stored.shape[-2:]
            if has_object(file, "mask"):
                mask = np.asarray(require_dataset(file, "mask", limits, numbers=True)[()])
                if mask.size == rows != columns:
                    cure = f"If it goes along the rows: {option('dims', 'slice,coil,ky,kx')}."
                    raise InputError("mask", f"{rows} entries, one a row of k-space", f"{columns}, one a column", cure)
                flags = chosen_flags(mask, (columns,), field="mask", unit="column")
                arrays["measured"] = StoredArray(flags.shape, flags.dtype, lambda _: flags)
            text, raw, known = *_provenance(file, path, limits), dict[str, Any]()
            if raw is not None:
                encoded = raw.encodings[0].encoded
                along_x, along_y, along_z = encoded.field_of_view
                place = SliceGeometry.of_header((along_y / columns, along_x / rows), along_z / encoded.matrix[2])
                known = {"place": place, "identifiers": raw.source, "left_out": raw.left_out}
            header = ArrayHeader(dims=_USUAL[stored.ndim], of_coils=True, counters=options.counters, text=text, **known)
        yield source_of(path, "kspace", arrays, header, limits)


def _header_of_array(stored: h5py.Dataset, options: ReadOptions, marked: bool) -> ArrayHeader | None:
    """How an array is read; None for a volume of fastMRI."""
    matlab = "MATLAB_class" in stored.attrs
    text = {"format": "MATLAB v7.3" if matlab else "HDF5", "dataset": str(stored.name).removeprefix("/")}
    header = ArrayHeader(text=text, from_matlab=matlab).asked(options)
    if header.dims is not None:
        return replace(header, dims=header.dims[::-1]) if matlab else header
    usual, real = _USUAL.get(stored.ndim), stored.dtype.kind in "iuf"
    if marked and real and stored.shape[-1:] == (2,) and stored.ndim - 1 in _USUAL:
        return replace(header, dims=(*_USUAL[stored.ndim - 1], PAIR))
    if matlab or (not marked and (usual is None or real)):
        return header
    if usual is None:
        got = f"shape {stored.shape}"
        raise InputError("kspace", got, "(slice, coil, row, column) or (slice, row, column)")

    def part(number: int) -> NDArray[np.complex64]:
        return to_complex64("kspace", stored[number : number + 1])

    if marked:
        along, last = gathering(part(len(stored) // 2)), [stored.ndim - 2, stored.ndim - 1]
        if along != last:
            along = gathering(to_complex64("kspace", stored[()]))
        return None if along == last or len(along) != 2 else header
    names = axes_of_parts(part, len(stored), usual)
    return None if names == usual else replace(header, dims=names)


def _provenance(file: h5py.File, path: Path, limits: safe.ReadLimits) -> tuple[dict[str, str], MrdHeader | None]:
    """Facts about the scan in words, and the header of raw data, if any."""
    header = None
    provenance = {"file": path.name, "format": "fastMRI HDF5"}
    for name in _ATTRIBUTES:
        # Sizes first: an attribute can declare too much as well.
        if name in file.attrs and file.attrs.get_id(name).get_storage_size() <= 256:
            value = file.attrs[name]
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
            provenance[name] = text[:200]
    if has_object(file, "ismrmrd_header"):
        header = parse_mrd_header(f"{path}: ismrmrd_header", read_text(file, "ismrmrd_header", limits), limits)
        provenance |= header.notes
        encoded, reconstructed = header.encodings[0].encoded, header.encodings[0].reconstructed
        provenance["encoded_matrix"] = "{} x {} x {}".format(*encoded.matrix)
        provenance["reconstruction_matrix"] = "{} x {} x {}".format(*reconstructed.matrix)
        if not math.isnan(reconstructed.field_of_view[0]):
            provenance["reconstruction_field_of_view_mm"] = "{:g} x {:g} x {:g}".format(*reconstructed.field_of_view)
    return provenance, header
