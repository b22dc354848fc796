"""Dataclasses in an archive: plain values as JSON, arrays in full precision.

The declarations of the dataclass say what is stored, so a new field needs no change here. Fields that do not count for
equality (``compare=False``) are left out and read back as their defaults. An archive is untrusted: it is bounded, holds
no Python objects, and becomes only the types that the wanted dataclass declares.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, option
from mri_design.scan.io.atomic import replacing
from mri_design.scan.io.numpy_files import opened_npz, read_npz_members
from mri_design.scan.io.safe import ReadLimits, check_file

T = TypeVar("T")
LIMITS = ReadLimits(max_bytes=2**33, max_text_bytes=2**26)
"""The default bounds, in which a byte counts eightfold."""
_TEXT, _NUMBERS = "text", "numbers"
_TYPES = ("bool", "int64", "float32", "float64", "complex64", "complex128")
"""Types of arrays."""
_SCALARS = (bool, int, float, str)


def write_record(path: Path, record: object, beside: Sequence[tuple[str, NDArray[Any]]] = ()) -> None:
    """Write a dataclass; an older file is replaced in one step or not at all.

    Parameters
    ----------
    path : Path
        Of the archive.
    record : dataclass
        Of plain values, arrays, dataclasses, and sequences and mappings of such.
    beside : sequence of (str, array)
        Arrays of the record that have their own files, and the names of these: they are not stored again.
    """
    places: dict[int, object] = {id(array): name for name, array in beside}
    files = {name: _form(array) for name, array in reversed(beside)}
    stored, end = list[NDArray[Any]](), 1

    def place(array: NDArray[Any]) -> object:
        nonlocal end
        if id(array) not in places:
            places[id(array)] = {**_form(array), "at": end}
            stored.append(array)
            end += array.nbytes
        return places[id(array)]

    kept = {"kind": type(record).__name__, "beside": files, "record": _plain(record, place)}
    text = np.frombuffer(json.dumps(kept).encode(), np.uint8)
    with replacing(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        _put(archive, _TEXT, [text])
        _put(archive, _NUMBERS, [np.zeros(1, np.uint8), *stored])  # never empty, because readers refuse empty arrays


def _put(archive: zipfile.ZipFile, name: str, arrays: Sequence[NDArray[Any]]) -> None:
    """Write the bytes of several arrays as one member of an npz archive, without copies."""
    header = {"descr": "|u1", "fortran_order": False, "shape": (sum(array.nbytes for array in arrays),)}
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array_header_1_0(member, header)
        for array in arrays:
            member.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _form(array: NDArray[Any]) -> dict[str, object]:
    return {"type": array.dtype.name, "shape": list(array.shape)}


def _plain(value: Any, place: Callable[[NDArray[Any]], object]) -> Any:
    """The value in the types of JSON, with arrays as ``place`` describes them."""
    if value is None or type(value) in _SCALARS:  # first, because a long design has very many
        return value
    if isinstance(value, np.ndarray):
        return place(value)
    if is_dataclass(value):
        return {name: _plain(getattr(value, name), place) for name in _kinds(value.__class__)}
    if isinstance(value, Mapping):
        return {str(key): _plain(one, place) for key, one in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(one, place) for one in value]
    if isinstance(value, Enum):
        return value.value
    return value.item() if isinstance(value, np.generic) else value


def read_record(
    path: Path,
    kinds: Mapping[str, type[T]],
    beside: Callable[[str, str, tuple[int, ...]], NDArray[Any]] | None = None,
    limits: ReadLimits = LIMITS,
) -> T:
    """Read a dataclass that `write_record` wrote.

    Parameters
    ----------
    path : Path
        Of the archive.
    kinds : mapping of str to type
        Classes to make, by the names of the dataclasses that the archive may hold: these, or classes with fewer fields.
    beside : callable, optional
        Takes the name, type and shape of an array with its own file, and returns it. Without it the archive holds all
        arrays.
    limits : ReadLimits
        The budget.

    Raises
    ------
    InputError
        If the archive is damaged, or holds something else.
    """
    field, wanted = f"{path.parent.resolve().name}/{path.name}", "what a run of this program left"
    cure = f"Copy the folder again, or make the run again with {option('overwrite')}."
    damage = (InputError, OSError, AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError)
    try:
        check_file(path)
        with opened_npz(path, limits) as archive:
            members = [archive.members[name] for name in (_TEXT, _NUMBERS)]
            if any(member.compress_type != zipfile.ZIP_STORED for member in members):
                raise InputError(field, "compressed members", wanted)  # none is written, and they may be very long
            if (size := members[0].file_size) > limits.max_text_bytes:
                raise InputError(field, f"a text of {size} bytes, over {limits.max_text_bytes}", wanted)
            text, numbers = archive.array(_TEXT), archive.array(_NUMBERS)
        found = json.loads(text.tobytes())
        forms = [(name, str(one["type"]), tuple(one["shape"])) for name, one in found["beside"].items()]
    except damage as error:
        reason = error.got if isinstance(error, InputError) else error
        raise InputError(field, f"a damaged file ({reason})", wanted, cure) from error
    own = {} if beside is None else {form[0]: beside(*form) for form in forms}
    copied = dict[tuple[Any, ...], NDArray[Any]]()
    left = numbers.nbytes

    def array(stored: Any) -> NDArray[Any]:
        nonlocal left
        if isinstance(stored, str):
            return own[stored]
        shape = tuple(_as_type(int, side, array) for side in stored["shape"])
        start, count = _as_type(int, stored["at"], array), math.prod(shape)
        if stored["type"] not in _TYPES or min(start, *shape, 0) < 0:
            raise ValueError(f"an array of {stored['type']} {shape}")
        place = (start, stored["type"], shape)
        if place not in copied:
            values = np.frombuffer(numbers, stored["type"], count, start)
            left -= values.nbytes
            if left < 0:
                raise ValueError("arrays that overlap")
            copied[place] = values.reshape(shape).copy()
        return copied[place]

    try:
        kind: Any = kinds[found["kind"]]
        parts = {name: found["record"][name] for name in _kinds(kind)}
        made: T = _as_type(kind, parts, array)
    except damage as error:
        raise InputError(field, f"another content ({error})", wanted, cure) from error
    return made


def holds_record(path: Path, kind: str) -> bool:
    """Whether a file is an archive that begins as `write_record` begins one of this dataclass."""
    try:
        found = read_npz_members(path, {_TEXT}, LIMITS)[0]
    except InputError:
        return False  # which its reader refuses, and says why
    return _TEXT in found and found[_TEXT].tobytes().startswith(json.dumps({"kind": kind})[:-1].encode())


@cache
def _kinds(record: Any) -> dict[str, Any]:
    """Types of the fields of a dataclass that are stored."""
    hints = get_type_hints(record)
    return {each.name: hints[each.name] for each in fields(record) if each.compare and each.init}


def _as_type(kind: Any, value: Any, array: Callable[[Any], NDArray[Any]]) -> Any:
    """A value read from JSON, converted to the type of its field."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in (Any, object):
        return value
    if is_dataclass(kind):
        record = cast(Any, kind)
        return record(**{name: _as_type(_kinds(record)[name], one, array) for name, one in value.items()})
    if origin is np.ndarray:
        return array(value)
    if origin in (Union, UnionType):
        if value is None and NoneType in inner:
            return None
        others = [one for one in inner if one is not NoneType]
        literal = [one for one in others if get_origin(one) is Literal and value in get_args(one)]
        return _as_type((literal or others)[0], value, array)
    if origin is Literal and value in inner:
        return value
    if origin is tuple and isinstance(value, list):
        kinds = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(_as_type(one, each, array) for one, each in zip(kinds, value, strict=True))
    if origin is Sequence and isinstance(value, list):
        return [_as_type(inner[0], one, array) for one in value]
    if origin is Mapping and isinstance(value, dict):
        return {key: _as_type(inner[1], one, array) for key, one in value.items()}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise TypeError(f"{str(value)[:40]} instead of {kind}")
    return value
