"""NumPy arrays (.npy) and archives of them (.npz), with an optional JSON header beside the file.

Files are untrusted: sizes are held to bounds before memory is taken, pickles are never loaded, and nothing of an
archive is ever extracted to the disk.
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
"""Characters; the header of any plain array is under 200."""
_PARSERS = {(1, 0): np.lib.format.read_array_header_1_0} | dict.fromkeys(
    ((2, 0), (3, 0)), np.lib.format.read_array_header_2_0
)
_MOST_AXES = 8
_PIECE = 2**22
"""Bytes; what is read at once from an archive is copied there twice."""
_NOISE = ("noise_variance", "noise_covariance")

is_npy = starting(MAGIC)
"""Whether a file begins as an array of NumPy does."""
is_numpy = starting(MAGIC, *_ZIP)
recognises = is_numpy
"""Whether a file begins as an array or an archive of NumPy does."""


def npy_array(stream: IO[bytes], held: int, field: str, limits: ReadLimits) -> stored_arrays.StoredArray:
    """One plain numeric array of an open file, whose header is read and held against the limits.

    Parameters
    ----------
    stream : binary stream
        At its beginning, and open while values are read.
    held : int
        Bytes that the stream claims to hold.
    field : str
        File and member, for messages.
    limits : ReadLimits
        The budget.

    Raises
    ------
    InputError
        On a wrong magic or version, an over-long or malformed header, a type other than flags, integers, floats and
        complex numbers, a shape over the budget, missing bytes, or bytes after the array; and, when values are read,
        where the file has become shorter.
    """
    head = io.BytesIO(stream.read(_LONGEST_HEADER + 12))  # NumPy itself reads as much as a header declares
    with damage_named(field, "no npy magic bytes", "an array written by numpy.save"):
        version = np.lib.format.read_magic(head)
    if version not in _PARSERS:
        raise InputError(f"{field}: version", f"{version[0]}.{version[1]}", "1.0, 2.0 or 3.0")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of headers that only Python 2 wrote
            shape, fortran_order, dtype = _PARSERS[version](head, max_header_size=_LONGEST_HEADER)
    except Exception as error:  # damaged text may fail anywhere in the parser
        described, width = head.getvalue()[len(MAGIC) + 2 :], 2 if version == (1, 0) else 4
        length = int.from_bytes(described[:width], "little")
        got = f"{length} characters, {described[width : width + min(length, 40)]!r}"
        wanted = f"descr, fortran_order and shape, in at most {_LONGEST_HEADER} characters"
        raise InputError(f"{field}: header", got, wanted, "Copy or download the file again.") from error
    if dtype.kind in "fc" and dtype.itemsize > (8 if dtype.kind == "f" else 16):
        cure = f"Save the array with .astype('{'complex128' if dtype.kind == 'c' else 'float64'}')."
        raise InputError(f"{field}: dtype", f"{dtype.str}, extended precision", "single or double precision", cure)
    if dtype.kind not in "biufc":
        cure = "Save a plain numeric array, no objects."
        raise InputError(f"{field}: dtype", f"{dtype}"[:60], "flags, integers, floats or complex numbers", cure)
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
        stream.read(1)  # to the end, where an archive looks at the checksum
        return whole

    return stored_arrays.StoredArray(shape, dtype, read, sliced=not fortran_order and len(shape) > 1)


@contextmanager
def opened_npy(path: Path, limits: ReadLimits, *, field: str | None = None) -> Iterator[stored_arrays.StoredArray]:
    """The array of a file, while it is open; ``field`` names it in messages, by default by its path.

    Raises
    ------
    InputError
        As `npy_array`.
    """
    size = check_file(path)
    with path.open("rb") as stream:
        yield npy_array(stream, size, str(path) if field is None else field, limits)


def read_npy(path: Path, limits: ReadLimits, *, field: str | None = None) -> NDArray[Any]:
    """All of the array of a file; see `opened_npy`."""
    with opened_npy(path, limits, field=field) as array:
        return array.read(None)


_MOST_MEMBERS = 256
_LONGEST_DIRECTORY = 2**17
"""Bytes; 256 members with names of ordinary length need a quarter of it."""
_ENCRYPTED, _COMPRESSIONS = 0x1, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_PLAIN_NAME = re.compile(r"\w[\w .+-]{0,99}")
"""No separators, drive letters or leading dots."""


@dataclass(frozen=True)
class NpzArchive:
    """An open archive, whose entries were checked, by the names of its arrays."""

    archive: zipfile.ZipFile
    members: Mapping[str, zipfile.ZipInfo]
    path: Path
    limits: ReadLimits

    def array(self, name: str) -> NDArray[Any]:
        """All of one member."""
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
    """An npz archive, while it is open.

    Every member's entry is checked, also of those not wanted, because an archive that hides a path outside its folder
    is not to be trusted.

    Raises
    ------
    InputError
        On a damaged or encrypted archive, a member whose name is a path, a symbolic link or a duplicate, a declared
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
    """The wanted members of an npz archive that exist, by name, and the names of all members.

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
    """The array of a .npy file, or of an archive the first of some members that it has; without names its only one.

    Raises
    ------
    InputError
        For anything else, under ``field``, by default the file's name; ``wanted`` says what it should be.
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
        # orig_filename keeps what zipfile's own clean-up of separators and null bytes would hide.
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
    """A file that refuses one huge read, which is how zipfile loads a directory of millions of entries."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _LONGEST_DIRECTORY:
            raise InputError(str(self.name), f"an archive directory of {size} bytes", f"at most {_LONGEST_DIRECTORY}")
        return super().read(size)


@contextmanager
def opened(path: Path, options: ReadOptions) -> Iterator[Source]:
    """K-space or images of a .npy or .npz file, while it is open.

    Without a header file a complex array is k-space with axes (ky, kx), (coil, ky, kx) or (slice, coil, ky, kx), and
    a real one is a stack of images (row, column) or (slice, row, column). A header file beside it (same stem,
    ``.json``) may say otherwise: ``dims`` (rep, slice, coil, and k0 k1 or ky kx in any order; k1 is the phase
    encode; a volume has coil and k0 k1 k2 or kx ky kz, one of images x y z), ``phase_encode_axis``,
    ``zero_filled_k1_columns``, ``noise_variance`` (per real component), ``noise_covariance``
    (rows of pairs, real and imaginary), ``kind`` ("image domain ..."), ``dtype``
    ("... pairs (real, imag)": a last axis of two), ``shape`` (of the array, or a table with those of members), ``key``
    and, along a trajectory, ``matrix``, ``trajectory_unit`` and ``trajectory_axes``. Only the first repetition is read;
    the header of the result says how many there were.

    An archive holds ``kspace`` or ``image``, or the member that the header file's ``key`` names; beside k-space also
    ``measured`` (ky), ``coil_maps`` (as k-space), ``reference`` (as k-space without the coil axis), and
    ``noise_variance`` or ``noise_covariance`` (coil, coil). Lines without any sample are known to be not measured. A
    volume's readout (k0, or x of images) is transformed to positions, which take the place of slices: every one is a
    plane (ky, kz) of its own. An archive with a ``trajectory`` holds samples along it, perhaps with the weights
    ``density``.

    Slices of k-space, and images, can be read one by one where they lie one after the other in the file.

    Raises
    ------
    InputError
        On anything else than such a file, naming the field. Pickles are never loaded.
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
            got, cure = ", ".join([*archive.members][:8]) or "none", 'Say "key": NAME in the header file beside it.'
            raise InputError("members", got, f"an array named {' or '.join(keys)}", cure)
        along = stored_arrays.TRAJECTORY_MEMBERS if "trajectory" in archive.members else ()
        beside = [name for name in (*stored_arrays.COMPANIONS, *along) if options.noise or name not in _NOISE]
        names = [key, *(name for name in archive.members if name in beside and name != key)]
        if left := [name for name in archive.members if name not in {*names, *keys, *stored_arrays.COMPANIONS}]:
            header = replace(header, left_out={"members_not_read": tuple(left)})
        held = {name: members.enter_context(archive.opened(name)) for name in names}
        source = stored_arrays.source_of(path, key, held, header, options.limits)
        if isinstance(source, stored_arrays.StackSource):
            for name in names:  # to their ends, for the checksums
                with archive.archive.open(archive.members[name]) as member:
                    while member.read(2**20):
                        pass
        yield source
