"""Bounds for untrusted files, which are checked before memory is allocated."""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mri_design.errors import InputError, MriDesignError

# Text files that version control leaves instead of large data that was never fetched.
_POINTERS = (b"version https://git-lfs.github.com/spec/", b"/annex/objects/", b"../.git/annex/objects/")
_HDF5 = b"\x89HDF\r\n\x1a\n"
_SEVERAL = ("slice", "contrast", "phase", "repetition", "set", "NumberOfFrames", "z")
"""Axes that are bounded as slices are."""
_SMALL_ENOUGH_TO_EXPAND = 64 * 2**20


@dataclass(frozen=True)
class ReadLimits:
    """How much memory a file may make its reader allocate.

    Parameters
    ----------
    max_bytes : int
        Largest array a file may declare, in bytes, both as stored and as complex64. A reader holds up to
        three such arrays at once.
    max_slices, max_coils : int
        Largest number of slices (images, repetitions) and of receive coils.
    max_side : int
        Largest number of samples along one axis of the grid.
    max_readouts : int
        Largest number of readouts in a raw-data file.
    max_text_bytes : int
        Largest header or header file, in bytes.
    max_expansion : int
        Largest ratio of decompressed to compressed size for arrays over 64 MiB. Noise does not compress, so
        a measured scan stays far below it.

    Raises
    ------
    InputError
        If a bound is not a positive integer.
    """

    max_bytes: int = 4 * 2**30
    max_slices: int = 4096
    max_coils: int = 1024
    max_side: int = 32768
    max_readouts: int = 4_000_000
    max_text_bytes: int = 4 * 2**20
    max_expansion: int = 200

    def __post_init__(self) -> None:
        for bound in fields(self):
            number = getattr(self, bound.name)
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise InputError(f"ReadLimits.{bound.name}", repr(number), "a positive whole number")


DEFAULT_LIMITS = ReadLimits()
"""The default bounds."""


def check_file(path: Path) -> int:
    """Size in bytes of ``path``, which must be a non-empty regular file that really holds its data.

    Symbolic links are followed: the user named this path, and data sets are often linked into place.

    Raises
    ------
    InputError
        If the path is missing, unreadable, a folder, a device or a pipe, empty, or the pointer that Git LFS or
        git-annex leaves for data that was not fetched.
    """
    name = str(path)
    try:
        status, head = path.stat(), b""
        if stat.S_ISREG(status.st_mode):
            with path.open("rb") as stream:
                head = stream.read(64)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        cure = "Look at the spelling and the folder." if missing else "Look at the rights to read it."
        raise InputError(name, error.strerror or str(error), "a readable file", cure) from error
    except ValueError as error:  # a path with an embedded null byte
        raise InputError(name, str(error), "a readable file") from error
    if stat.S_ISDIR(status.st_mode):
        raise InputError(name, "a folder", "a regular file", "Name a file in it.")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(name, "a device, pipe or socket", "a regular file", "Save what it gives to a file first.")
    if not head:
        raise InputError(name, "an empty file", "a file that holds something", "Copy or download it again.")
    if head.startswith(_POINTERS):
        raise InputError(name, "a pointer to the data", "the file", "Fetch it: `git lfs pull` or `git annex get`.")
    return status.st_size


def is_hdf5(path: Path) -> bool:
    """Whether a file has the HDF5 signature at the start, or after a user block of up to 4 KiB."""
    with path.open("rb") as stream:
        head = stream.read(4096 + len(_HDF5))
    return any(head[start : start + len(_HDF5)] == _HDF5 for start in (0, 512, 1024, 2048, 4096))


def read_small(path: Path, most: int) -> bytes:
    """The bytes of a text file.

    Raises
    ------
    InputError
        As `check_file`, and for a file of more than ``most`` bytes.
    """
    if (size := check_file(path)) > most:
        raise InputError(str(path), f"an over-long file, {size} bytes", f"at most {most} bytes")
    return path.read_bytes()


def read_json_table(path: Path, limits: ReadLimits) -> dict[str, Any]:
    """The table of a small JSON file.

    Raises
    ------
    InputError
        As `read_small`, and for a file that is no table.
    """
    encoded = read_small(path, limits.max_text_bytes)
    try:
        content = json.loads(encoded)
    except (ValueError, RecursionError) as error:
        raise InputError(str(path), f"unreadable JSON ({error})", "a JSON table") from error
    if not isinstance(content, dict):
        raise InputError(str(path), type(content).__name__, "a JSON table")
    return content


def check_sides(limits: ReadLimits, sides: Mapping[str, int], *, field: str = "") -> None:
    """Refuse sizes of axes, by name, outside 1 to the bound on slices, coils or a side of the grid.

    ``field`` comes before the names in messages.
    """
    bounds = dict.fromkeys(_SEVERAL, limits.max_slices) | {"coil": limits.max_coils}
    for name, side in sides.items():
        bound = bounds.get(name, limits.max_side)
        if not 1 <= side <= bound:
            raise InputError(f"{field}{name}", str(side), f"1 to {bound}")


def check_declared_shape(
    field: str, shape: Sequence[int], item_bytes: int, limits: ReadLimits, *, available: int | None = None
) -> int:
    """Bytes of an array with the declared shape, which is refused before it is allocated.

    Parameters
    ----------
    field : str
        File and field, for the message.
    shape : sequence of int
        Declared sizes; Python integers, so that no product can overflow.
    item_bytes : int
        Bytes of one stored element.
    limits : ReadLimits
        The budget. Elements smaller than a complex64 count as one, which they become.
    available : int, optional
        Bytes that the file really holds for this array.

    Raises
    ------
    InputError
        For a negative or empty axis, more bytes than the budget, or more than the file holds.
    """
    if any(side < 1 for side in shape) or item_bytes < 1:
        raise InputError(field, f"shape {tuple(shape)}", "sizes of at least 1")
    count = math.prod(shape)
    memory, needed = count * max(item_bytes, 8), count * item_bytes
    if memory > limits.max_bytes:
        got, cure = f"shape {tuple(shape)}, {_readable(memory)}", "Raise max_bytes in the read limits if it is trusted."
        raise InputError(field, got, f"at most {_readable(limits.max_bytes)}", cure)
    if available is not None and needed > available:
        got, cure = f"{available} bytes for shape {tuple(shape)}", "The file is truncated: copy or download it again."
        raise InputError(field, got, f"{needed} bytes", cure)
    return needed


def check_expansion(field: str, stored: int, expanded: int, limits: ReadLimits) -> None:
    """Refuse an array that decompresses to far more than any measurement does.

    Raises
    ------
    InputError
        If more than 64 MiB come out of less than ``1 / max_expansion`` of that.
    """
    if expanded > _SMALL_ENOUGH_TO_EXPAND and expanded > limits.max_expansion * max(stored, 1):
        got, wanted = f"{_readable(expanded)} from {_readable(stored)}", f"at most {limits.max_expansion} times as much"
        raise InputError(field, got, wanted, "Store the array uncompressed if this is no decompression bomb.")


@contextmanager
def damage_named(field: str, what: str, wanted: str) -> Iterator[None]:
    """Turn any error that a library raises on damaged bytes into an `InputError`."""
    try:
        yield
    except MriDesignError:
        raise
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise InputError(field, f"{what} ({reason})", wanted, "Copy or download the file again.") from error


@contextmanager
def errors_named(path: Path) -> Iterator[None]:
    """Put the file's name before the field of every `InputError` raised inside, unless it names the file already."""
    try:
        yield
    except InputError as error:
        if error.field.startswith((str(path), f"{path.with_suffix('')}.")):
            raise
        raise error.about(f"{path}: {error.field}") from error


def _readable(size: int) -> str:
    if size >= 2**60:  # a hostile product may not even fit a float
        return "more than 2^60 bytes"
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} bytes"
