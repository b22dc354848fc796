"""HDF5 files read without following them anywhere: no links, no external storage, no virtual data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.io.safe import ReadLimits, check_declared_shape, check_expansion
from mri_design.scan.io.samples import is_pair

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
# Built into the library: deflate, shuffle, Fletcher-32, szip, n-bit, scale-offset, and h5py's lzf. Any other
# filter would make HDF5 look for plug-ins to load.
_FILTERS = {1, 2, 3, 4, 5, 6, 32000}
_MAX_AXES = 8
_MOST_LISTED = 200


def is_hdf5(path: Path) -> bool:
    """True where the HDF5 signature stands at the start, or after a user block of up to 4 KiB."""
    with path.open("rb") as stream:
        for offset in (0, 512, 1024, 2048, 4096):
            stream.seek(offset)
            if stream.read(len(_SIGNATURE)) == _SIGNATURE:
                return True
    return False


@contextmanager
def open_read_only(path: str | os.PathLike[str]) -> Iterator[h5py.File]:
    """Open an untrusted HDF5 file for reading; whatever the library raises becomes an `InputError`.

    The file's bytes never change. What is NOT done: the library runs in this process, so a defect in it that
    a crafted file could trigger is not contained here (`isolated` contains it).

    Raises
    ------
    InputError
        On any failure to open the file or, inside the block, to read from it.
    """
    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            yield file
    except InputError:
        raise
    except Exception as error:  # h5py raises at least nine types on damaged bytes
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InputError(
            field=str(path),
            got=f"unreadable HDF5 ({reason})",
            wanted="an undamaged HDF5 file",
            cure="Copy or download the file again.",
        ) from error


def names_in(path: Path) -> set[str]:
    """Names at the top of an HDF5 file, links of any kind included; none of a file with more than a thousand."""
    with open_read_only(path) as file:
        return {str(name) for name in file} if len(file) <= 1000 else set()


def arrays_in(file: h5py.File) -> dict[str, str]:
    """Names ("group/dataset") and contents in words of what a file holds, of the first few hundred objects.

    Links are not followed.
    """
    found: dict[str, str] = {}

    def visit(name: str, held: h5py.Group | h5py.Dataset) -> bool | None:
        if isinstance(held, h5py.Dataset):
            kind = "complex" if held.dtype.kind == "c" or is_pair(held.dtype) else str(held.dtype)[:20]
            found[name] = f"{kind} {held.shape}"
        return True if len(found) > _MOST_LISTED else None

    file.visititems(visit)
    return found


def has_object(file: h5py.File, name: str) -> bool:
    """True where ``name`` ("group/dataset") is reached through hard links alone."""
    place: h5py.Group = file
    for part in name.split("/"):
        if not isinstance(place, h5py.Group) or not isinstance(place.get(part, getlink=True), h5py.HardLink):
            return False
        place = place[part]
    return True


def require_dataset(file: h5py.File, name: str, limits: ReadLimits) -> h5py.Dataset:
    """The dataset ``name``, once nothing about it leads out of the file or over the budget.

    Raises
    ------
    InputError
        Where it is missing or not a dataset, is reached through a soft or external link, stores its samples
        in another file or in other datasets, uses a filter that is not built in, or declares more than the
        budget.
    """
    field = f"{file.filename}: {name}"
    place: Any = file
    for part in name.split("/"):
        link = place.get(part, getlink=True) if isinstance(place, h5py.Group) else None
        if link is None:
            raise InputError(field=field, got="nothing under this name", wanted="a dataset")
        if not isinstance(link, h5py.HardLink):
            raise InputError(
                field=field,
                got="an external link" if isinstance(link, h5py.ExternalLink) else "a soft link",
                wanted="a dataset stored in this file",
                cure="Copy the data into one file, for example with h5repack.",
            )
        place = place[part]
    if not isinstance(place, h5py.Dataset):
        raise InputError(field=field, got=type(place).__name__.lower(), wanted="a dataset")
    _check_storage(field, place, limits)
    return place


def read_array(file: h5py.File, name: str, limits: ReadLimits) -> NDArray[Any]:
    """The whole dataset ``name`` of plain numbers or complex numbers.

    Raises
    ------
    InputError
        As `require_dataset`, and on text, references and variable-length elements.
    """
    dataset = require_dataset(file, name, limits)
    require_numbers_of(file, dataset)
    return np.asarray(dataset[()])


def require_numbers_of(file: h5py.File, dataset: h5py.Dataset) -> None:
    """Refuse a dataset of anything but plain or complex numbers.

    Raises
    ------
    InputError
        For text, references and variable-length elements.
    """
    if dataset.dtype.hasobject or dataset.dtype.kind not in "biufcV":
        name = str(dataset.name).removeprefix("/")
        raise InputError(field=f"{file.filename}: {name}", got=f"dtype {dataset.dtype}", wanted="numbers")


def read_text(file: h5py.File, name: str, limits: ReadLimits) -> str:
    """The text of a dataset that holds one string.

    Raises
    ------
    InputError
        As `require_dataset`, on more than one element, on something that is not UTF-8 text, and on more
        than ``max_text_bytes``.
    """
    dataset = require_dataset(file, name, limits)
    field = f"{file.filename}: {name}"
    if dataset.size != 1 or not (dataset.dtype.kind == "S" or h5py.check_string_dtype(dataset.dtype)):
        raise InputError(field=field, got=f"{dataset.dtype} {dataset.shape}", wanted="one text")
    content = np.asarray(dataset[()]).reshape(-1)[0]
    encoded = content.encode() if isinstance(content, str) else bytes(content)
    if len(encoded) > limits.max_text_bytes:
        raise InputError(field=field, got=f"{len(encoded)} bytes", wanted=f"at most {limits.max_text_bytes}")
    try:
        return encoded.rstrip(b"\x00").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(field=field, got=f"undecodable text ({error.reason})", wanted="UTF-8") from error


def _check_storage(field: str, dataset: h5py.Dataset, limits: ReadLimits) -> None:
    creation = dataset.id.get_create_plist()
    layout = creation.get_layout()
    if layout == h5py.h5d.VIRTUAL or dataset.is_virtual:
        raise InputError(field=field, got="a virtual dataset", wanted="samples stored in this file")
    if creation.get_external_count() or dataset.external:
        raise InputError(field=field, got="external storage", wanted="samples stored in this file")
    for index in range(creation.get_nfilters()):
        code = creation.get_filter(index)[0]
        if code not in _FILTERS:
            raise InputError(field=field, got=f"filter number {code}", wanted="gzip, lzf, szip or no compression")
    shape = dataset.shape
    if shape is None or len(shape) > _MAX_AXES:
        raise InputError(field=field, got=f"shape {shape}", wanted=f"an array of at most {_MAX_AXES} axes")
    item_bytes = dataset.id.get_type().get_size()
    declared = check_declared_shape(f"{field}: shape", shape, item_bytes, limits)
    if layout == h5py.h5d.CHUNKED:  # the library allocates a whole chunk, however small the dataset
        check_declared_shape(f"{field}: chunk", creation.get_chunk(), item_bytes, limits)
    check_expansion(field, dataset.id.get_storage_size(), declared, limits)
