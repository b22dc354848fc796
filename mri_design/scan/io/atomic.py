"""Files that are either complete or absent: written under another name, synced, then renamed."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import secrets
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mri_design.errors import InputError, did_you_mean, option

_ARGUMENTS = ("out", "file", "folder", "path")
_PREFIX, _SUFFIX = ".mri-design-", ".partial"


def require_folder_of(path: Path) -> None:
    """Refuse to write into a folder that does not exist: its name may be mistyped.

    Raises
    ------
    InputError
        Naming the folder, and an existing folder with a similar name.
    """
    folder = path.absolute().parent
    if folder.is_dir():
        return
    missing = next(part for part in (*reversed(folder.parents), folder) if not part.is_dir())
    near, cure = "", f"Correct the name, or make the folder: mkdir -p {shlex.quote(str(path.parent))}"
    if missing.exists():
        got = f"{path}, where {missing} is no folder"
        raise InputError("out", got, "a name in a folder", f"Give another {option('out')}.", _ARGUMENTS)
    with suppress(OSError):
        near = did_you_mean(missing.name, [other.name for other in missing.parent.iterdir() if other.is_dir()])
    got, wanted = f"{path}, and the folder {missing} does not exist", "a name in a folder that exists"
    raise InputError("out", got, wanted, f"{near} {cure}".strip(), _ARGUMENTS)


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Replace the file at ``path`` by ``content``, completely or not at all.

    The bytes go to a temporary file in the same folder, are synced to the disk, and the file is renamed. An older file
    stays intact until then. The temporary file is removed on failure.

    Raises
    ------
    InputError
        If ``path`` is a symbolic link or names no file.
    OSError
        If the disk is full, a size limit is reached or the folder cannot be written; ``filename`` and the message hold
        ``path``.
    """
    with replacing(Path(path)) as stream:
        stream.write(content)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Replace the file at ``path`` by ``text`` in UTF-8; see `write_bytes` for the guarantees."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: str | os.PathLike[str], content: Any) -> None:
    """Replace the file at ``path`` by ``content`` as JSON; see `write_bytes` for the guarantees.

    NumPy scalars and arrays become numbers and lists; keys keep their order.

    Raises
    ------
    InputError
        If ``content`` holds NaN, infinities or objects that JSON cannot hold. Nothing is written.
    """
    try:
        text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(str(path), str(error), "finite numbers, text, lists and tables") from error
    write_text(path, text + "\n")


def write_npy(path: str | os.PathLike[str], array: ArrayLike) -> None:
    """Replace the file at ``path`` by ``array`` in npy format; see `write_bytes` for the guarantees.

    Raises
    ------
    InputError
        If the array holds Python objects, which only pickle could store.
    """
    with replacing(Path(path)) as stream:
        np.save(stream, _without_objects(array, str(path)))


def write_npy_parts(
    path: str | os.PathLike[str],
    shape: tuple[int, ...],
    dtype: DTypeLike,
    parts: Iterable[np.ndarray[Any, Any]],
    *,
    axes: int = 1,
) -> None:
    """Replace the file at ``path`` by an array that is written in parts along its first axes; see `write_bytes`.

    Parameters
    ----------
    path : path
        The file.
    shape : tuple of int
        Of the whole array.
    dtype : dtype
        Of its numbers.
    parts : iterable of arrays, shape ``shape[axes:]``
        All parts in order, of which one is in memory at a time.
    axes : int
        Number of the first axes.

    Raises
    ------
    InputError
        For a part of another shape, or another number of parts; the old file is kept.
    """
    kind = np.dtype(dtype)
    with replacing(Path(path)) as stream:
        described = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(stream, described)
        written = 0
        for part in parts:
            if part.shape != shape[axes:]:
                raise InputError(str(path), f"a part of shape {part.shape}", f"shape {shape[axes:]}")
            stream.write(np.ascontiguousarray(part, dtype=kind).reshape(-1).view(np.uint8).data)
            written += 1
        if written != math.prod(shape[:axes]):
            raise InputError(str(path), f"{written} parts", f"{math.prod(shape[:axes])}")


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, ArrayLike]) -> None:
    """Replace the file at ``path`` by named arrays, uncompressed; see `write_bytes` for the guarantees.

    Equal arrays give equal bytes: members keep the mapping's order and carry a fixed date.

    Raises
    ------
    InputError
        If a name is not a plain identifier, or an array holds Python objects.
    """
    with replacing(Path(path)) as stream:
        _put_archive(stream, arrays, str(path))


def npy_bytes(array: ArrayLike) -> bytes:
    """The bytes of an npy file."""
    written = io.BytesIO()
    np.save(written, _without_objects(array, "npy"))
    return written.getvalue()


def npz_bytes(arrays: Mapping[str, ArrayLike]) -> bytes:
    """The bytes of an npz file."""
    written = io.BytesIO()
    _put_archive(written, arrays, "npz")
    return written.getvalue()


def remove_stale_temporaries(folder: str | os.PathLike[str]) -> list[Path]:
    """Remove the temporary files of interrupted writes from ``folder``, and return their paths, sorted.

    The caller must be the folder's only writer. Sub-folders and other files are left alone.
    """
    removed = []
    for entry in sorted(Path(folder).iterdir()):
        ours = entry.name.startswith(_PREFIX) and entry.name.endswith(_SUFFIX)
        if ours and entry.is_file() and not entry.is_symlink():
            entry.unlink(missing_ok=True)
            removed.append(entry)
    return removed


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A stream whose content replaces the file if no error occurs; see `write_bytes` for the guarantees."""
    if path.name in ("", ".", "..") or path.is_symlink():
        got = "a symbolic link" if path.is_symlink() else "a folder"
        raise InputError(str(path), got, "the name of a file", "Name the file itself.")
    temporary = path.parent / f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}"
    try:
        # "x" refuses a file or link with the temporary name; with "+" NumPy calls write(), which says why it failed,
        # instead of its own tofile().
        with temporary.open("xb+") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        # write() reports no file name, and the temporary's name would not help.
        reason = error.strerror or str(error)
        raise OSError(error.errno or errno.EIO, f"{reason}, while writing", str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):  # file systems without folder sync
            raise
    finally:
        os.close(descriptor)


def _put_archive(stream: BinaryIO, arrays: Mapping[str, ArrayLike], field: str) -> None:
    if wrong := next((name for name in arrays if not name.isidentifier()), ""):
        raise InputError(f"{field}: member name", repr(wrong), "letters, digits, underscore")
    plain = {name: _without_objects(array, f"{field}: {name}") for name, array in arrays.items()}
    np.savez(stream, **plain)  # type: ignore[arg-type]


def _without_objects(array: ArrayLike, field: str) -> np.ndarray[Any, Any]:
    if (held := np.asarray(array)).dtype.hasobject:
        raise InputError(field, f"dtype {held.dtype}", "numbers, flags or fixed-length text")
    return held


def _plain(value: object) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} {value!r}")
