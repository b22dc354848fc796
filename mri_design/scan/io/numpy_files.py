"""NumPy arrays (.npy) and archives of them (.npz), with an optional JSON header next to the file.

NumPy parses the header of an array. Sizes are checked before memory is allocated, pickles are never loaded, and nothing
is extracted to the disk.
"""

from __future__ import annotations

import io
import math
import re
import stat
import warnings
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.io import stored_arrays
from mri_design.scan.io.safe import ReadLimits, check_declared_shape, check_expansion, check_file, damage_named
from mri_design.scan.io.source import ReadOptions, Source, starting

MAGIC = b"\x93NUMPY"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_LONGEST_HEADER = 10_000
"""Characters; the header of a plain array has under 200."""
_PARSERS = {(1, 0): np.lib.format.read_array_header_1_0} | dict.fromkeys(
    ((2, 0), (3, 0)), np.lib.format.read_array_header_2_0
)
_MOST_AXES = 8
_PIECE = 2**22
"""Bytes that are read at once; an archive copies them twice."""
_NOISE = ("noise_variance", "noise_covariance")

is_npy = starting(MAGIC)
"""Whether a file begins as an array of NumPy does."""
is_numpy = starting(MAGIC, *_ZIP)
recognises = is_numpy
"""Whether a file begins as an array or an archive of NumPy does."""


def npy_array(stream: IO[bytes], held: int, field: str, limits: ReadLimits) -> stored_arrays.StoredArray:
    """One plain numeric array of an open file; its header is read here and checked against the limits.

    Parameters
    ----------
    stream : binary stream
        At its beginning; it has to stay open while values are read.
    held : int
        Bytes of the stream.
    field : str
        File and member, for messages.
    limits : ReadLimits
        The budget.

    Raises
    ------
    InputError
        For a malformed or over-long header, a type other than flags, integers, floats and complex numbers, a shape over
        the budget, missing bytes, or bytes after the array; and, when values are read, if the file has become shorter.
    """
    head = io.BytesIO(stream.read(_LONGEST_HEADER + 12))  # NumPy itself would read as much as a header declares
    with damage_named(f"{field}: header", "unreadable", "an array that numpy.save wrote"), warnings.catch_warnings():
        warnings.simplefilter("error")  # about headers that only Python 2 wrote
        version = np.lib.format.read_magic(head)
        shape, fortran_order, dtype = _PARSERS[version](head, max_header_size=_LONGEST_HEADER)
    if dtype.kind not in "biufc" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        wanted = "flags, integers, or real or complex numbers of at most double precision"
        cure = "Save plain numbers, for example with .astype('complex64')."
        raise InputError(f"{field}: dtype", f"{dtype}"[:60], wanted, cure)
    if len(shape) > _MOST_AXES or any(type(side) is not int for side in shape):
        raise InputError(f"{field}: shape", f"{shape}"[:80], f"at most {_MOST_AXES} sizes of at least 1")
    start = head.tell()
    size = check_declared_shape(f"{field}: shape", shape, dtype.itemsize, limits, available=held - start)
    if held - start != size:
        got = f"{held - start - size} bytes after the array"
        raise InputError(field, got, "nothing", "Write it again with numpy.save.")

    def values(first: int, shape: tuple[int, ...]) -> NDArray[Any]:
        stream.seek(start + first * dtype.itemsize)
        flat, filled = np.empty(math.prod(shape), dtype), 0
        while more := stream.readinto(flat.view(np.uint8)[filled : filled + _PIECE]):  # type: ignore[attr-defined]
            filled += more
        if filled != flat.nbytes:
            raise InputError(field, f"{filled} of {flat.nbytes} bytes", "the whole array")
        return flat.reshape(shape)

    def read(number: int | None) -> NDArray[Any]:
        if number is not None:
            return values(number * math.prod(shape[1:]), (1, *shape[1:]))
        whole = values(0, shape[::-1]).T if fortran_order else values(0, shape)
        stream.read(1)  # at the end an archive compares the checksum
        return whole

    return stored_arrays.StoredArray(shape, dtype, read, sliced=not fortran_order and len(shape) > 1)


@contextmanager
def opened_npy(path: Path, limits: ReadLimits, *, field: str | None = None) -> Iterator[stored_arrays.StoredArray]:
    """The array of an open file; ``field`` names it in messages, by default by its path.

    Raises
    ------
    InputError
        As `npy_array`.
    """
    size = check_file(path)
    with path.open("rb") as stream:
        yield npy_array(stream, size, str(path) if field is None else field, limits)


def read_npy(path: Path, limits: ReadLimits, *, field: str | None = None) -> NDArray[Any]:
    """The whole array of a file; see `opened_npy`."""
    with opened_npy(path, limits, field=field) as array:
        return array.read(None)


_MOST_MEMBERS = 256
_LONGEST_DIRECTORY = 2**17
"""Bytes; 256 members with ordinary names need a quarter of it."""
_ENCRYPTED, _COMPRESSIONS = 0x1, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_PLAIN_NAME = re.compile(r"\w[\w .+-]{0,99}")
"""No separators, drive letters or leading dots."""


@dataclass(frozen=True)
class NpzArchive:
    """The arrays of an open archive by name; all entries were checked."""

    archive: zipfile.ZipFile
    members: Mapping[str, zipfile.ZipInfo]
    path: Path
    limits: ReadLimits

    def array(self, name: str) -> NDArray[Any]:
        """One whole member."""
        with self.opened(name) as member:
            return member.read(None)

    @contextmanager
    def opened(self, name: str) -> Iterator[stored_arrays.StoredArray]:
        """One member, while it is open."""
        entry, field = self.members[name], f"{self.path}: {name}"
        check_expansion(field, entry.compress_size, entry.file_size, self.limits)
        with self.archive.open(entry) as member:
            yield npy_array(member, entry.file_size, field, self.limits)


@contextmanager
def opened_npz(path: Path, limits: ReadLimits) -> Iterator[NpzArchive]:
    """An open npz archive, with the entries of all members checked, read or not.

    Raises
    ------
    InputError
        For a damaged or encrypted archive, a member whose name is a path, a symbolic link or a duplicate, a declared
        size over the budget or over any plausible compression, or an array that is not plain.
    """
    with damage_named(str(path), "a damaged archive", "an archive that numpy.savez wrote"), path.open("rb") as stream:
        with _Directory(path) as directory:
            zipfile.ZipFile(directory)
        archive = zipfile.ZipFile(stream)
        yield NpzArchive(archive, _checked_members(archive, path, limits), path, limits)


def read_npz_members(
    path: Path, wanted: Collection[str], limits: ReadLimits
) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Those of the wanted members that an npz archive has, and the names of all members.

    Raises
    ------
    InputError
        As `opened_npz`.
    """
    with opened_npz(path, limits) as archive:
        return {name: archive.array(name) for name in archive.members if name in wanted}, list(archive.members)


def read_stored(
    path: Path, limits: ReadLimits, wanted: str, members: Sequence[str] = (), *, field: str = ""
) -> NDArray[Any]:
    """The array of a .npy file, or of an archive the first of ``members`` that it has; its only one without names.

    Raises
    ------
    InputError
        For any other file; the error's field is ``field``, by default the file's name, and ``wanted`` describes it.
    """
    check_file(path)
    field = field or path.name
    if is_npy(path):
        return read_npy(path, limits, field=field)
    if not is_numpy(path):
        raise InputError(field, "no array of NumPy", wanted, "Save it with numpy.save.")
    with opened_npz(path, limits) as archive:
        found = [name for name in members or archive.members if name in archive.members]
        if not found or len(found) > len(members or found[:1]):
            named = f"an array named {', '.join(members)}" if members else f"{wanted}, in an archive of one array"
            raise InputError(field, ", ".join([*archive.members][:8]) or "no arrays", named)
        return archive.array(found[0])


def _checked_members(archive: zipfile.ZipFile, path: Path, limits: ReadLimits) -> dict[str, zipfile.ZipInfo]:
    entries = archive.infolist()
    if len(entries) > _MOST_MEMBERS:
        raise InputError(str(path), f"{len(entries)} members", f"at most {_MOST_MEMBERS}")
    members: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        name, size = entry.filename.removesuffix(".npy"), entry.file_size
        # orig_filename is the name before zipfile cleans up separators and null bytes.
        plain = entry.filename == entry.orig_filename == f"{name}.npy" and _PLAIN_NAME.fullmatch(name)
        tensor = f"Of PyTorch, save the tensor: numpy.save('{path.stem}.npy', torch.load('{path.name}').numpy())."
        budget = "Raise max_bytes in the read limits if the file is trusted."
        for wrong, got, wanted, cure in (
            (not plain, "a path or foreign file", "a plain array name with .npy", tensor),
            (stat.S_ISLNK(entry.external_attr >> 16), "a symbolic link", "an array", ""),
            (name in members, "the name twice", "each name once", ""),
            (entry.flag_bits & _ENCRYPTED, "an encrypted member", "an array without a password", ""),
            (entry.compress_type not in _COMPRESSIONS, f"method {entry.compress_type}", "stored or deflated", ""),
            (size > limits.max_bytes + 2**16, f"{size} declared bytes", f"at most {limits.max_bytes}", budget),
        ):
            if wrong:
                raise InputError(f"{path}: member {entry.filename!r}", got, wanted, cure)
        members[name] = entry
    return members


class _Directory(io.FileIO):
    """A file that refuses a huge read, as zipfile does it of a directory of millions of entries."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _LONGEST_DIRECTORY:
            raise InputError(str(self.name), f"an archive directory of {size} bytes", f"at most {_LONGEST_DIRECTORY}")
        return super().read(size)


@contextmanager
def opened(path: Path, options: ReadOptions) -> Iterator[Source]:
    """K-space or images of an open .npy or .npz file.

    Without a header file a complex array is k-space with axes (ky, kx), (coil, ky, kx) or (slice, coil, ky, kx), and
    a real one is a stack of images (row, column) or (slice, row, column). A header file next to it (same stem,
    ``.json``) may change that: ``dims`` (rep, slice, coil, and k0 k1 or ky kx in any order; k1 is the phase
    encode; a volume has coil and k0 k1 k2 or kx ky kz, one of images x y z), ``phase_encode_axis``,
    ``zero_filled_k1_columns``, ``noise_variance`` (per real component), ``noise_covariance``
    (rows of pairs, real and imaginary), ``kind`` ("image domain ..."), ``dtype``
    ("... pairs (real, imag)": a last axis of two), ``shape`` (of the array, or a table with those of members), ``key``
    and, along a trajectory, ``matrix``, ``trajectory_unit`` and ``trajectory_axes``. Only the first repetition is read;
    the header of the result says how many there were.

    An archive holds ``kspace`` or ``image``, or the member that the header file's ``key`` names; next to k-space also
    ``measured`` (ky), ``coil_maps`` (as k-space), ``reference`` (as k-space without the coil axis), and
    ``noise_variance`` or ``noise_covariance`` (coil, coil). Lines without a sample count as not measured. A volume's
    readout (k0, or x of images) is transformed to positions: each becomes a plane (ky, kz), instead of slices. With a
    ``trajectory`` an archive holds samples along it, perhaps with the weights ``density``.

    Slices that lie one after another in the file can be read one by one.

    Raises
    ------
    InputError
        For any other file, naming the field.
    """
    header = stored_arrays.read_header_file(path, options)
    if is_npy(path):
        with opened_npy(path, options.limits) as array:
            yield stored_arrays.source_of(path, "array", {"array": array}, header, options.limits)
        return
    with opened_npz(path, options.limits) as archive, ExitStack() as members:
        keys = ("kspace", "image") if header.key is None else (header.key,)
        key = next((key for key in keys if key in archive.members), None)
        if key is None:
            got, cure = (
                ", ".join([*archive.members][:8]) or "none",
                'Write "key": NAME into its header file.',
            )
            raise InputError("members", got, f"an array named {' or '.join(keys)}", cure)
        along = stored_arrays.TRAJECTORY_MEMBERS if "trajectory" in archive.members else ()
        beside = [name for name in (*stored_arrays.COMPANIONS, *along) if options.noise or name not in _NOISE]
        names = [key, *(name for name in archive.members if name in beside and name != key)]
        if left := [name for name in archive.members if name not in {*names, *keys, *stored_arrays.COMPANIONS}]:
            header = replace(header, left_out={"members_not_read": tuple(left)})
        held = {name: members.enter_context(archive.opened(name)) for name in names}
        source = stored_arrays.source_of(path, key, held, header, options.limits)
        if isinstance(source, stored_arrays.StackSource):
            for name in names:  # to the ends, to compare the checksums
                with archive.archive.open(archive.members[name]) as member:
                    while member.read(2**20):
                        pass
        yield source
