"""The bounds every untrusted file is held to, checked before anything is allocated."""

from __future__ import annotations

import math
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from mri_design.errors import InputError

# Text files that version control leaves in the place of large data that was never fetched.
_POINTERS = (b"version https://git-lfs.github.com/spec/", b"/annex/objects/", b"../.git/annex/objects/")
_SMALL_ENOUGH_TO_EXPAND = 64 * 2**20


@dataclass(frozen=True)
class ReadLimits:
    """How much a file may make the reader allocate.

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
        Where a bound is not a positive integer.
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
                raise InputError(field=f"ReadLimits.{bound.name}", got=repr(number), wanted="a positive whole number")


DEFAULT_LIMITS = ReadLimits()
"""The bounds used where a caller names none."""


def check_file(path: Path) -> int:
    """Size in bytes of ``path``, which must be a non-empty regular file that really holds its data.

    Symbolic links are followed: the user named this path, and data sets are often linked into place.

    Raises
    ------
    InputError
        Where the path is missing, unreadable, a folder, a device or a pipe, empty, or the pointer that
        Git LFS or git-annex leaves in place of data that was not fetched.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(
                field=str(path),
                got="a folder" if stat.S_ISDIR(status.st_mode) else "a device, pipe or socket",
                wanted="a regular file",
                cure="Name a file in it." if stat.S_ISDIR(status.st_mode) else "Save what it gives to a file first.",
            )
        with path.open("rb") as stream:
            head = stream.read(64)
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a path with an embedded null byte
        reason = getattr(error, "strerror", None) or str(error)
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        cure = "Look at the spelling and the folder." if missing else "Look at the rights to read it."
        cure = cure if isinstance(error, OSError) else ""
        raise InputError(field=str(path), got=reason, wanted="a readable file", cure=cure) from error
    if not head:
        raise InputError(
            field=str(path),
            got="an empty file",
            wanted="a file that holds something",
            cure="Copy or download it again; look whether the program that wrote it had room on the disk.",
        )
    if head.startswith(_POINTERS):
        raise InputError(
            field=str(path),
            got="a Git LFS or git-annex pointer, not the data",
            wanted="the file itself",
            cure="Fetch it with `git lfs pull` or `git annex get`.",
        )
    return status.st_size


def check_declared_shape(
    field: str, shape: Sequence[int], item_bytes: int, limits: ReadLimits, *, available: int | None = None
) -> int:
    """Bytes that an array of the declared shape takes, refused before it is allocated.

    Parameters
    ----------
    field : str
        File and field, for the message.
    shape : sequence of int
        Declared sizes; Python integers, so that no product can overflow.
    item_bytes : int
        Bytes of one stored element.
    limits : ReadLimits
        The budget. Elements smaller than a complex64 are counted as one: that is what they become.
    available : int, optional
        Bytes that the file really holds for this array.

    Raises
    ------
    InputError
        On a negative or empty axis, more bytes than the budget, or more than the file holds.
    """
    if any(side < 1 for side in shape) or item_bytes < 1:
        raise InputError(field=field, got=f"shape {tuple(shape)}", wanted="sizes of at least 1")
    count = math.prod(shape)
    if count * max(item_bytes, 8) > limits.max_bytes:
        raise InputError(
            field=field,
            got=f"shape {tuple(shape)}, {_readable(count * max(item_bytes, 8))}",
            wanted=f"at most {_readable(limits.max_bytes)}",
            cure="Read fewer slices, or raise max_bytes in the read limits if the file is trusted.",
        )
    if available is not None and count * item_bytes > available:
        raise InputError(
            field=field,
            got=f"{available} bytes for shape {tuple(shape)}",
            wanted=f"{count * item_bytes} bytes",
            cure="The file is truncated: copy or download it again.",
        )
    return count * item_bytes


def check_expansion(field: str, stored: int, expanded: int, limits: ReadLimits) -> None:
    """Refuse an array that decompresses to far more than any measurement does.

    Raises
    ------
    InputError
        Where more than 64 MiB come out of less than ``1 / max_expansion`` of that.
    """
    if expanded > _SMALL_ENOUGH_TO_EXPAND and expanded > limits.max_expansion * max(stored, 1):
        raise InputError(
            field=field,
            got=f"{_readable(expanded)} compressed into {_readable(stored)}",
            wanted=f"a compression ratio of at most {limits.max_expansion}",
            cure="This looks like a decompression bomb; store the array uncompressed if it is real.",
        )


@contextmanager
def errors_named(path: Path) -> Iterator[None]:
    """Put the file's name before the field of every `InputError` raised inside, but of fields that name a neighbour."""
    try:
        yield
    except InputError as error:
        if error.field.startswith((str(path), f"{path.with_suffix('')}.")):
            raise
        field = f"{path}: {error.field}"
        raise InputError(field=field, got=error.got, wanted=error.wanted, cure=error.cure) from error


def _readable(size: int) -> str:
    if size >= 2**60:  # a hostile product may not even fit a float
        return "more than 2^60 bytes"
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} bytes"
