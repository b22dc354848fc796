"""The arrays of an npz archive, held to bounds before any of them is decompressed."""

from __future__ import annotations

import io
import re
import stat
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.io.numpy_files.npy_stream import NpySlices, read_npy_stream
from mri_design.scan.io.safe import ReadLimits, check_expansion

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
    try:
        with path.open("rb") as stream:
            bounded = _DirectoryBound(stream.fileno(), str(path))
            archive = zipfile.ZipFile(bounded)
            bounded.directory_loaded = True
            yield NpzArchive(archive, _checked_members(archive, path, limits), path, limits)
    except InputError:
        raise
    except Exception as error:  # zipfile and zlib raise at least eight types on damaged bytes
        raise InputError(
            field=str(path), got=f"a damaged archive ({error})", wanted="an archive that numpy.savez wrote"
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
        """Of all members, without ``.npy``."""
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
            raise InputError(field=field, got="a path or foreign file", wanted="a plain array name with .npy")
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
                field=self._field,
                got=f"an archive directory of {size} bytes",
                wanted=f"at most {_MAX_DIRECTORY}",
            )
        return super().read(size)
