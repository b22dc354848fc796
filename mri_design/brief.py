"""Short `repr` of objects for consoles: arrays by type and shape, fields with their defaults left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

from mri_design.errors import described

MOST = 400
"""Letters that one object takes."""
_MEMBER, _MEMBERS, _DEEP = 100, 6, 3
T = TypeVar("T")


def brief(value: object, depth: int = 0) -> str:
    """A value in a few words: numbers as they are, arrays by type and shape, long lists by their first members.

    Parameters
    ----------
    value : object
        Anything.
    depth : int
        How deep it stands inside of others; the deepest are given by their type alone.
    """
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Enum):
        return str(value.value)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"<{value.dtype} {value.shape}>" if value.shape else f"{value:.6g}"
    if isinstance(value, tuple | list | set | frozenset | Mapping):
        return _collection(value, depth)
    if value is None or isinstance(value, bool | int | complex | str | bytes | type):
        return value.__name__ if isinstance(value, type) else _cut(repr(value))
    if callable(value) and hasattr(value, "__qualname__"):
        return str(value.__qualname__).replace("<locals>.", "")
    if is_dataclass(value):
        shown = [one.name for one in fields(value) if one.repr and not _usual(one, getattr(value, one.name))]
        parts = [f"{name}={brief(getattr(value, name), depth + 1)}" for name in shown] if depth < _DEEP else ["..."]
        return _cut(f"{type(value).__name__}({', '.join(parts)})", _MEMBER if depth else MOST)
    text = repr(value)
    return described(value) if " at 0x" in text else _cut(text)


def briefly(made: type[T]) -> type[T]:
    """Class decorator, above ``@dataclass``: objects are shown by `brief`, without fields that are as by default."""
    made.__repr__ = brief  # type: ignore[method-assign]
    return made


def brief_attributes(value: object) -> str:
    """As `brief`, of an object that is no dataclass: its class and public attributes, but for what a site offers."""
    shown = [name for name in vars(value) if not name.startswith("_") and name != "offers"]
    parts = (f"{name}={brief(held, 1)}" for name, held in vars(value).items() if name in shown)
    return _cut(f"{type(value).__name__}({', '.join(parts)})", MOST)


def _usual(field: Field[Any], value: object) -> bool:
    """Whether a field has its default, as far as can be seen without comparing arrays."""
    if field.default_factory is not MISSING:
        return not isinstance(value, bool | int | float) and hasattr(value, "__len__") and not len(value)
    if value is field.default:
        return True
    plain = isinstance(value, bool | int | float | str | tuple) and type(value) is type(field.default)
    return plain and repr(value) == repr(field.default)


def _collection(value: Any, depth: int) -> str:
    if depth >= _DEEP:
        return f"{len(value)} in a {type(value).__name__}"
    members = sorted(value, key=repr) if isinstance(value, set | frozenset) else list(value)
    shown = members[:_MEMBERS] if len(members) > _MEMBERS + 2 else members
    if isinstance(value, Mapping):
        texts = [f"{brief(name)}: {brief(value[name], depth + 1)}" for name in shown]
    else:
        texts = [brief(member, depth + 1) for member in shown]
    texts += [f"... {len(value)} in all"] if len(shown) < len(value) else []
    opened, closed = "()" if isinstance(value, tuple) else "[]" if isinstance(value, list) else "{}"
    return _cut(f"{opened}{', '.join(texts)}{closed}", 2 * _MEMBER)


def _cut(text: str, most: int = _MEMBER) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 4]} ..."


def duration_text(seconds: float) -> str:
    """A time in the largest unit that fits: "4.2 s", "12 min"."""
    for unit, length in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.2g} {unit}" if seconds < 10 * length else f"{seconds / length:.0f} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
