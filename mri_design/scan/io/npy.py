"""NumPy's arrays (npy) and archives of them (npz), read from untrusted files without pickle and within bounds."""

from __future__ import annotations

import ast
import io
import math
import re
import stat
import struct
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.io.safe import ReadLimits, check_declared_shape, check_expansion, check_file

MAGIC = b"\x93NUMPY"
_MAX_HEADER = 10_000  # characters; the header of any plain array is under 200
_MAX_AXES = 8
# Byte order, kind and size; nothing structured, no text, no dates, no Python objects.
_EXTENDED_DTYPE = re.compile(r"[<>|=]?(f12|f16|c24|c32)")  # long doubles
_PLAIN_DTYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|c8|c16)")


def read_npy_stream(
    stream: IO[bytes], available: int | None, field: str, limits: ReadLimits, *, alone: bool = True
) -> NDArray[Any]:
    """Read one plain numeric array.

    Parameters
    ----------
    stream : binary stream
        Positioned at the magic bytes.
    available : int or None
        Bytes that the stream claims to hold; the claim is checked against what comes. None for a pipe.
    field : str
        File and member, for messages.
    limits : ReadLimits
        The budget.
    alone : bool
        Whether the array must fill the stream exactly; False leaves what follows it.

    Returns
    -------
    array in the stored type, in native byte order where that costs nothing

    Raises
    ------
    InputError
        On a wrong magic or version, an over-long or malformed header, a type other than flags, integers,
        floats and complex numbers, a shape over the budget, missing bytes, or bytes after the array.
    """
    declared = _declared(stream, available, field, limits)
    flat = declared.values(stream, math.prod(declared.shape))
    if alone and stream.read(1):
        raise InputError(field=field, got="more bytes than the archive declares", wanted=f"{available} bytes")
    return flat.reshape(declared.shape[::-1]).T if declared.fortran_order else flat.reshape(declared.shape)


def is_npy(path: Path) -> bool:
    """Whether a file begins as an array does."""
    with path.open("rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def read_npy(path: Path, limits: ReadLimits, *, field: str | None = None) -> NDArray[Any]:
    """The array of a file; ``field`` names it in messages, by default by its path.

    Raises
    ------
    InputError
        As `read_npy_stream`.
    """
    size = check_file(path)
    with path.open("rb") as stream:
        return read_npy_stream(stream, size, str(path) if field is None else field, limits)


@dataclass(frozen=True)
class NpySlices:
    """An array in a file, of which the parts along its first axis can be read one by one.

    Parameters
    ----------
    stream : binary stream
        Open while parts are read.
    declared : Declared
        What the header says.
    """

    stream: IO[bytes]
    declared: Declared

    @classmethod
    def of(cls, stream: IO[bytes], available: int, field: str, limits: ReadLimits) -> NpySlices | None:
        """Slices of a file that holds one array; None where the first axis is not the slowest one.

        Parameters
        ----------
        stream, available, field, limits
            As for `read_npy_stream`.

        Raises
        ------
        InputError
            As `read_npy_stream`.
        """
        declared = _declared(stream, available, field, limits)
        return None if declared.fortran_order or not declared.shape else cls(stream, declared)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole array."""
        return self.declared.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """As stored."""
        return self.declared.dtype

    def part(self, number: int) -> NDArray[Any]:
        """One part, shape (1, ...).

        Raises
        ------
        InputError
            Where the file has become shorter.
        """
        if isinstance(self.stream, zipfile.ZipExtFile):
            with _damage_named(self.declared.field):
                return self._part(number)
        return self._part(number)

    def _part(self, number: int) -> NDArray[Any]:
        count = math.prod(self.shape[1:])
        start = self.declared.start + number * count * self.dtype.itemsize
        if isinstance(self.stream, zipfile.ZipExtFile):  # it would pass over what lies before by 16 MiB at a time
            if start < self.stream.tell():
                self.stream.seek(0)
            while self.stream.tell() < start and self.stream.read(min(start - self.stream.tell(), 2**18)):
                pass
        self.stream.seek(start)
        return self.declared.values(self.stream, count).reshape(1, *self.shape[1:])


@dataclass(frozen=True)
class Declared:
    """Header of an array.

    Parameters
    ----------
    shape : tuple of int
        Within the limits.
    dtype : numpy dtype
        A plain one.
    fortran_order : bool
        Whether the last axis is the slowest one.
    start : int
        Bytes of the header.
    field : str
        File and member, for messages.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran_order: bool
    start: int
    field: str

    def values(self, stream: IO[bytes], count: int) -> NDArray[Any]:
        """Read so many values from where the stream stands."""
        flat = np.empty(count, self.dtype)
        view, size, filled = flat.view(np.uint8), count * self.dtype.itemsize, 0
        while filled < size:
            chunk = stream.read(min(size - filled, 2**24))
            if not chunk:
                raise InputError(field=self.field, got=f"{filled} of {size} bytes", wanted="the whole array")
            view[filled : filled + len(chunk)] = np.frombuffer(chunk, np.uint8)
            filled += len(chunk)
        return flat


def declared_dtype(path: Path, limits: ReadLimits) -> np.dtype[Any]:
    """The dtype that a ``.npy`` file says its values have; raises as `read_npy`, but for what the values are."""
    with path.open("rb") as stream:
        return _declared(stream, path.stat().st_size, path.name, limits).dtype


def declared_shape(path: Path, limits: ReadLimits) -> tuple[int, ...]:
    """The shape that a ``.npy`` file says its array has; raises as `read_npy`, but for what the values are."""
    with path.open("rb") as stream:
        return _declared(stream, path.stat().st_size, path.name, limits).shape


def _declared(stream: IO[bytes], available: int | None, field: str, limits: ReadLimits) -> Declared:
    """The header, held against the limits and what the stream claims to hold."""
    header, header_bytes = _read_header(stream, field)
    shape, dtype, fortran_order = _parse_header(header, field)
    body = None if available is None else available - header_bytes
    size = check_declared_shape(f"{field}: shape", shape, dtype.itemsize, limits, available=body)
    if body is not None and body != size:
        raise InputError(
            field=field,
            got=f"{body - size} bytes after the array",
            wanted="nothing after the array",
            cure="The file is damaged or holds something else as well; write it again with numpy.save.",
        )
    return Declared(shape, dtype, fortran_order, header_bytes, field)


def _read_header(stream: IO[bytes], field: str) -> tuple[str, int]:
    start = stream.read(len(MAGIC) + 2)
    if len(start) < len(MAGIC) + 2 or not start.startswith(MAGIC):
        raise InputError(field=field, got="no npy magic bytes", wanted="an array written by numpy.save")
    version = (start[-2], start[-1])
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise InputError(field=f"{field}: version", got=f"{version[0]}.{version[1]}", wanted="1.0, 2.0 or 3.0")
    width = 2 if version == (1, 0) else 4
    length_bytes = stream.read(width)
    if len(length_bytes) < width:
        raise InputError(field=f"{field}: header", got="end of file", wanted="the header's length")
    (length,) = struct.unpack("<H" if width == 2 else "<I", length_bytes)
    if length > _MAX_HEADER:
        raise InputError(
            field=f"{field}: header", got=f"a declared length of {length}", wanted=f"at most {_MAX_HEADER}"
        )
    encoded = stream.read(length)
    if len(encoded) < length:
        raise InputError(field=f"{field}: header", got=f"{len(encoded)} bytes", wanted=f"{length} bytes")
    text = encoded.decode("utf-8" if version == (3, 0) else "latin-1", errors="replace")
    return text, len(start) + width + length


def _parse_header(text: str, field: str) -> tuple[tuple[int, ...], np.dtype[Any], bool]:
    try:
        # Literals only. The length bound above keeps the parser's own recursion and memory small.
        header = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise InputError(
            field=f"{field}: header", got=f"{text[:40]!r}", wanted="descr, fortran_order and shape"
        ) from error
    if not isinstance(header, dict) or set(header) != {"descr", "fortran_order", "shape"}:
        raise InputError(field=f"{field}: header", got=f"{text[:40]!r}", wanted="descr, fortran_order and shape")
    descr, fortran_order, shape = header["descr"], header["fortran_order"], header["shape"]
    if isinstance(descr, str) and _EXTENDED_DTYPE.fullmatch(descr):
        double = "complex128" if "c" in descr else "float64"
        raise InputError(
            field=f"{field}: dtype",
            got=f"{descr}, extended precision, which differs from machine to machine",
            wanted="single or double precision",
            cure=f"Save the array with .astype('{double}').",
        )
    if not isinstance(descr, str) or not _PLAIN_DTYPE.fullmatch(descr):
        raise InputError(
            field=f"{field}: dtype",
            got=repr(descr)[:60],
            wanted="flags, integers, floats or complex numbers",
            cure="Save a plain numeric array; objects would need pickle, which can run code.",
        )
    if not isinstance(fortran_order, bool):
        raise InputError(field=f"{field}: fortran_order", got=repr(fortran_order)[:40], wanted="True or False")
    whole = isinstance(shape, tuple) and all(type(side) is int for side in shape)
    if not whole or len(shape) > _MAX_AXES or any(side < 1 for side in shape):
        raise InputError(
            field=f"{field}: shape", got=repr(shape)[:80], wanted=f"at most {_MAX_AXES} sizes of at least 1"
        )
    return shape, np.dtype(descr), fortran_order


_MAX_MEMBERS = 256
_MAX_DIRECTORY = 2**17  # bytes; 256 members with names of ordinary length need a quarter of it
_ENCRYPTED = 0x1
_PLAIN_NAME = re.compile(r"\w[\w .+-]{0,99}")  # no separators, drive letters or leading dots


def read_npz_members(
    path: Path, wanted: Collection[str], limits: ReadLimits
) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Read the wanted members of an npz archive.

    Returns
    -------
    arrays : dict of str to array
        The wanted members that exist.
    present : list of str
        Names of all members, without ``.npy``.

    Raises
    ------
    InputError
        As `opened_npz`.
    """
    with opened_npz(path, limits) as archive:
        return {name: archive.array(name) for name in archive.names if name in wanted}, archive.names


@contextmanager
def opened_npz(path: Path, limits: ReadLimits) -> Iterator[NpzArchive]:
    """An npz archive, while it is open.

    Nothing is ever extracted to the disk. Every member's entry is checked, also of those not wanted, because
    an archive that hides a path outside its folder is not to be trusted.

    Raises
    ------
    InputError
        On a damaged or encrypted archive, a member whose name is a path, a symbolic link or a duplicate, a
        declared size over the budget or over any plausible compression, or an array that is not plain.
    """
    with _damage_named(str(path)), path.open("rb") as stream:
        bounded = _DirectoryBound(stream.fileno(), str(path))
        archive = zipfile.ZipFile(bounded)
        bounded.directory_loaded = True
        yield NpzArchive(archive, _checked_members(archive, path, limits), path, limits)


@contextmanager
def _damage_named(field: str) -> Iterator[None]:
    """Make an error of the input of what zipfile and zlib raise on damaged bytes: at least eight types."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            field=field, got=f"a damaged archive ({error})", wanted="an archive that numpy.savez wrote"
        ) from error


@dataclass(frozen=True)
class NpzArchive:
    """An open archive, whose entries were checked."""

    archive: zipfile.ZipFile
    members: Mapping[str, zipfile.ZipInfo]
    path: Path
    limits: ReadLimits

    @property
    def names(self) -> list[str]:
        """Names of all members, without ``.npy``."""
        return list(self.members)

    def array(self, name: str) -> NDArray[Any]:
        """One member."""
        with self._opened(name) as member:
            return read_npy_stream(member, self.members[name].file_size, f"{self.path}: {name}", self.limits)

    @contextmanager
    def slices(self, name: str) -> Iterator[NpySlices | None]:
        """One member, whose parts are to be read in their order, all of them; None where it has no such parts."""
        with self._opened(name) as member:
            yield NpySlices.of(member, self.members[name].file_size, f"{self.path}: {name}", self.limits)
            member.read(1)  # to the end, where the checksum is looked at

    def _opened(self, name: str) -> IO[bytes]:
        entry = self.members[name]
        check_expansion(f"{self.path}: {name}", entry.compress_size, entry.file_size, self.limits)
        return self.archive.open(entry)


def _checked_members(archive: zipfile.ZipFile, path: Path, limits: ReadLimits) -> dict[str, zipfile.ZipInfo]:
    entries = archive.infolist()
    if len(entries) > _MAX_MEMBERS:
        raise InputError(field=str(path), got=f"{len(entries)} members", wanted=f"at most {_MAX_MEMBERS}")
    members: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        name = entry.filename.removesuffix(".npy")
        field = f"{path}: member {entry.filename!r}"
        # orig_filename keeps what zipfile's own clean-up of separators and null bytes would hide.
        if (
            not entry.filename.endswith(".npy")
            or not _PLAIN_NAME.fullmatch(name)
            or entry.orig_filename != entry.filename
        ):
            cure = f"Of PyTorch, save the tensor: numpy.save('{path.stem}.npy', torch.load('{path.name}').numpy())."
            raise InputError(field, "a path or foreign file", "a plain array name with .npy", cure)
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise InputError(field=field, got="a symbolic link", wanted="an array")
        if name in members:
            raise InputError(field=field, got="the name twice", wanted="each name once")
        if entry.flag_bits & _ENCRYPTED:
            raise InputError(field=field, got="an encrypted member", wanted="an array without a password")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(field=field, got=f"compression method {entry.compress_type}", wanted="stored or deflated")
        if entry.file_size > limits.max_bytes + 2**16:
            raise InputError(
                field=field,
                got=f"{entry.file_size} declared bytes",
                wanted=f"at most {limits.max_bytes}",
                cure="Raise max_bytes in the read limits if the file is trusted.",
            )
        members[name] = entry
    return members


class _DirectoryBound(io.FileIO):
    """A file that refuses one huge read, which is how zipfile loads a directory of millions of entries."""

    def __init__(self, descriptor: int, name: str) -> None:
        super().__init__(descriptor, "rb", closefd=False)
        self._field = name
        self.directory_loaded = False

    def read(self, size: int | None = -1, /) -> bytes:
        if not self.directory_loaded and size is not None and size > _MAX_DIRECTORY:
            raise InputError(
                field=self._field, got=f"an archive directory of {size} bytes", wanted=f"at most {_MAX_DIRECTORY}"
            )
        return super().read(size)
