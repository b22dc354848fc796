"""The JSON card that may stand beside an array: what its axes mean and where it came from."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mri_design.errors import InputError
from mri_design.scan.io.safe import ReadLimits, check_file


@dataclass(frozen=True, kw_only=True)
class ArrayCard:
    """The fields of a side card that change how an array is read, and all of it as text.

    Parameters
    ----------
    dims : tuple of str, optional
        Name of every stored axis.
    zero_filled : tuple of int
        Phase-encode lines that were filled with zeros instead of being measured.
    image_domain : bool
        True where the array holds images, not k-space.
    float_pairs : bool
        True where the last axis holds real and imaginary parts.
    phase_encode_axis : int or str, optional
        Stored axis of the phase encode, by position or by its name in ``dims``.
    noise_variance : float, optional
        Noise variance per real component.
    shape : tuple of int, optional
        Stored shape, to be compared with the array's.
    member_shapes : mapping of str to tuple of int
        The same of the members of an archive, by name.
    key : str, optional
        Member of an npz archive that holds the array.
    matrix : tuple of int, optional
        Pixels (ky, kx) of the image along a trajectory, where somebody asked for them; those of the card are in
        ``text``.
    text : mapping of str to str
        Every field, for people.
    """

    dims: tuple[str, ...] | None = None
    zero_filled: tuple[int, ...] = ()
    image_domain: bool = False
    float_pairs: bool = False
    phase_encode_axis: int | str | None = None
    noise_variance: float | None = None
    shape: tuple[int, ...] | None = None
    member_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    key: str | None = None
    matrix: tuple[int, int] | None = None
    text: Mapping[str, str] | None = None


def read_card(path: Path, limits: ReadLimits, matrix: tuple[int, int] | None = None) -> ArrayCard:
    """The card beside the array at ``path`` (same stem, ``.json``), or one without fields where there is none.

    Parameters
    ----------
    path : Path
        The array.
    limits : ReadLimits
        Bound on the card's length.
    matrix : tuple of int, optional
        That of the result.

    Raises
    ------
    InputError
        Where the card is not a JSON table within bounds, or a field that changes the reading has a
        wrong type.
    """
    card_path = path.with_suffix(".json")
    if not card_path.exists() or card_path == path:
        return ArrayCard(text={}, matrix=matrix)
    if check_file(card_path) > limits.max_text_bytes:
        raise InputError(field=str(card_path), got="an over-long card", wanted=f"at most {limits.max_text_bytes} bytes")
    try:
        content = json.loads(card_path.read_bytes())
        text = as_text(content) if isinstance(content, dict) else {}
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(field=str(card_path), got=f"unreadable JSON ({error})", wanted="a JSON table") from error
    if not isinstance(content, dict):
        raise InputError(field=str(card_path), got=type(content).__name__, wanted="a JSON table")
    kind = _text(card_path, content, "kind") or ""
    dtype = _text(card_path, content, "dtype") or ""
    dims = _list(card_path, content, "dims", str)
    shape, member_shapes = _shapes(card_path, content)
    zero_filled = _list(card_path, content, "zero_filled_k1_columns", int)
    return ArrayCard(
        dims=None if dims is None else tuple(dims),
        zero_filled=tuple(zero_filled or ()),
        image_domain=kind.startswith("image domain"),
        float_pairs="pairs (real, imag)" in dtype,
        phase_encode_axis=_axis(card_path, content),
        noise_variance=_variance(card_path, content),
        shape=shape,
        member_shapes=member_shapes,
        key=_text(card_path, content, "key"),
        matrix=matrix,
        text=text,
    )


def as_text(content: Mapping[str, Any]) -> dict[str, str]:
    """A table with text values only; tables inside become dotted names, lists their JSON form."""
    flat: dict[str, str] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            flat.update({f"{name}.{inner}": text for inner, text in as_text(value).items()})
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            # JSON may hold lone surrogates, which no file written later could encode.
            flat[name] = text.encode("utf-8", "replace").decode("utf-8")
    return flat


def _text(card: Path, content: Mapping[str, Any], name: str) -> str | None:
    value = content.get(name)
    if value is not None and not isinstance(value, str):
        raise InputError(field=f"{card}: {name}", got=repr(value)[:60], wanted="text")
    return value


def _list(card: Path, content: Mapping[str, Any], name: str, kind: type) -> list[Any] | None:
    value = content.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(type(item) is kind for item in value):
        wanted = "a list of whole numbers" if kind is int else "a list of axis names"
        raise InputError(field=f"{card}: {name}", got=repr(value)[:60], wanted=wanted)
    return value


def _shapes(card: Path, content: Mapping[str, Any]) -> tuple[tuple[int, ...] | None, dict[str, tuple[int, ...]]]:
    """The shape of the array, or a table with those of an archive's members."""
    stored = content.get("shape")
    if not isinstance(stored, dict):
        shape = _list(card, content, "shape", int)
        return None if shape is None else tuple(shape), {}
    return None, {name: tuple(_list(card, stored, name, int) or ()) for name in stored}


def _axis(card: Path, content: Mapping[str, Any]) -> int | str | None:
    value = content.get("phase_encode_axis")
    if value is not None and type(value) not in (int, str):
        raise InputError(
            field=f"{card}: phase_encode_axis",
            got=repr(value)[:60],
            wanted="an axis number or a name in dims",
        )
    return value


def _variance(card: Path, content: Mapping[str, Any]) -> float | None:
    value = content.get("noise_variance")
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    if not number or not (math.isfinite(value) and value > 0):
        raise InputError(field=f"{card}: noise_variance", got=repr(value)[:60], wanted="a positive finite number")
    return float(value)
