"""Settings that are declared once: recipes are checked against them, and flags, tables and a schema are made of them.

A section of a recipe is a frozen dataclass. The annotation of a field says which values it takes, in msgspec's terms
(``Annotated[int, Meta(ge=1)]``), `setting` adds what an annotation cannot say, and the docstring explains it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

import msgspec

from mri_design.brief import brief
from mri_design.errors import InputError, described, did_you_mean
from mri_design.registry import full_name


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting: which values it takes, its default, and what pages and help say about it.

    Parameters
    ----------
    hint : type
        Its annotation, which msgspec checks.
    default : object
        ``dataclasses.MISSING`` if every recipe has to give it.
    help : str
        One or two sentences: its entry in the docstring of the section.
    names : mapping or callable, optional
        Names that a text may have, if more can be registered: a table, or a function that lists them.
    check : callable, optional
        Raises `InputError` for a value that is not allowed. A text may then have more after its name and a colon.
    unset : str
        What holds without a value.
    expert : bool
        Whether few recipes need it.
    cure : str
        What to do about a wrong value.
    read : callable, optional
        The value of what may be written for it, as of per cent; raises `InputError`.
    """

    hint: Any = str
    default: Any = MISSING
    help: str = ""
    names: Mapping[str, object] | Callable[[], tuple[str, ...]] | None = None
    check: Callable[[Any], object] | None = None
    unset: str = ""
    expert: bool = False
    cure: str = ""
    read: Callable[[Any], object] | None = None

    @property
    def choices(self) -> tuple[str, ...]:
        """The names that a text may have; empty if any text is allowed."""
        names = self.names() if callable(self.names) else self.names
        kinds = (self.hint, *get_args(self.hint))
        listed = next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ())
        return listed if names is None else tuple(names)

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the values, with the default and the help."""
        schema = msgspec.json.schema(self.hint)
        if self.names is not None:  # further ones may be registered
            schema["examples"] = list(self.choices)
        known = {} if self.default in (MISSING, None) else {"default": self.default}
        return schema | known | ({"description": self.help} if self.help else {})

    @property
    def kinds(self) -> set[str]:
        """Types of the values, by their names in JSON Schema; those of names are strings."""
        return {one.get("type", "string") for one in self.schema.get("anyOf", [self.schema])} - {"null"}

    @property
    def wanted(self) -> str:
        """The allowed values in words."""
        counted = self.names is None and "integer" in self.kinds
        return _listed(self.choices) if self.choices and not counted else _in_words(self.schema)

    def checked(self, value: Any, place: str) -> Any:
        """The value in its type: integers as floats where these are wanted, lists as tuples, names in full.

        Raises
        ------
        InputError
            If the setting does not take the value; the field is ``place``.
        """
        value = _without_numpy(value)
        if self.choices and isinstance(value, str):
            name, *more = value.split(":", 1) if self.check else (value,)
            if (name := full_name(name, self.choices)) not in self.choices:
                got = f"unknown {place.rpartition('.')[2]} {value!r}"
                raise InputError(place, got, self.wanted, did_you_mean(name, self.choices))
            value = ":".join([name, *more])
        if self.read is not None:
            try:
                value = self.read(value)
            except InputError as error:
                raise error.about(place) from error
        try:
            value = msgspec.convert(value, self.hint)
        except msgspec.ValidationError as error:
            got = f"{value}" if isinstance(value, list | tuple | dict) else described(value)
            raise InputError(place, got, self.wanted, self.cure) from error
        if self.check is not None and value is not None:
            try:
                self.check(value)
            except InputError as error:
                raise error.about(place, error.cure or self.cure) from error
        return value


def _without_numpy(value: Any) -> Any:
    """A value with the numbers of NumPy, also in lists and tables, as those of Python."""
    if isinstance(value, list | tuple):
        return tuple(_without_numpy(one) for one in value)
    if isinstance(value, Mapping):
        return {name: _without_numpy(one) for name, one in value.items()}
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () else value


def setting(default: Any = MISSING, **described: Any) -> Any:
    """A field of a section: its default, and further parameters of its `Setting`."""
    return field(default=default, metadata=described)


class Settings:
    """A section of a recipe: a frozen dataclass that checks its values."""

    sections: ClassVar[Mapping[str, type[Settings]]] = {}

    def __post_init__(self) -> None:
        for name, one in self.declared().items():
            value = getattr(self, name)
            if value is not one.default:  # defaults are right
                object.__setattr__(self, name, self.checked(name, value))

    @classmethod
    def checked(cls, name: str, value: Any, prefix: str = "") -> Any:
        """A value of a setting; errors name it with a prefix."""
        one = cls.declared()[name]
        if isinstance(one.hint, type) and issubclass(one.hint, Settings):
            return value if isinstance(value, one.hint) else one.hint.of(value, f"{prefix}{name}")
        return one.checked(value, f"{prefix}{name}")

    @classmethod
    def of(cls, values: object, place: str = "") -> Self:
        """A section from plain values, as a TOML file has them.

        Parameters
        ----------
        values : mapping of str to object
            Values that differ from the defaults; those of a section inside are mappings, too.
        place : str
            Path of the section, for errors.

        Raises
        ------
        InputError
            For an unknown or missing setting, and a value that it does not take.
        """
        if not isinstance(values, Mapping):
            wanted = f"a table [{place}]" if place else "a table of settings"
            raise InputError(place or "recipe", described(values), wanted)
        prefix = f"{place}." if place else ""
        for name, value in values.items():
            if name not in cls.declared():
                raise cls._unknown(str(name), value, prefix)
        for name, one in cls.declared().items():
            if name not in values and one.default is MISSING:
                raise InputError(f"{prefix}{name}", "nothing", one.wanted, f"Give {prefix}{name} a value.")
        return cls(**{name: cls.checked(name, value, prefix) for name, value in values.items()})

    @classmethod
    @cache
    def declared(cls) -> dict[str, Setting]:
        """Every setting by its name."""
        entries = "".join(f"{inspect.getdoc(each) or ''}\n" for each in reversed(cls.__mro__))
        helps = dict(re.findall(r"^(\w+) : .*\n((?: {4}.*\n)+)", entries, re.MULTILINE))
        hints = get_type_hints(cls, include_extras=True)
        return {
            one.name: Setting(
                hint=hints[one.name],
                default=one.default,
                help=" ".join(helps.get(one.name, "").split()),
                **one.metadata,
            )
            for one in fields(cls)  # type: ignore[arg-type]
        }

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """JSON Schema of the section, as a TOML file has it."""
        return {
            "type": "object",
            "description": cls.summary(),
            "properties": {name: one.schema for name, one in cls.declared().items()},
            "required": [name for name, one in cls.declared().items() if one.default is MISSING],
            "additionalProperties": False,
        }

    @classmethod
    def summary(cls) -> str:
        """What the docstring says about the section as a whole, in one line."""
        return " ".join((inspect.getdoc(cls) or "").partition("Parameters\n")[0].split())

    def plain(self) -> dict[str, Any]:
        """Values as a manifest has them: tables as dictionaries, tuples as lists."""
        return {name: _plain(getattr(self, name)) for name in self.declared()}

    @classmethod
    def _unknown(cls, name: str, value: object, prefix: str) -> InputError:
        known = cls.declared()
        near = did_you_mean(name, list(known)).replace("mean ", f"mean {prefix}")
        elsewhere = [f"{other}.{name}" for other, section in cls.sections.items() if name in section.declared()]
        cure = near or (f"Did you mean {elsewhere[-1]}?" if elsewhere else "")
        what = "section" if not prefix and isinstance(value, Mapping) else "setting"
        wanted = f"a setting of [{prefix.partition('.')[0]}]" if prefix else "one of"
        return InputError(f"{prefix}{name}", f"an unknown {what}", f"{wanted}: {', '.join(known)}", cure)


def _plain(value: Any) -> Any:
    if isinstance(value, Settings):
        return value.plain()
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, str | float | int | dict) else {"own": brief(value)}


def _listed(names: tuple[str, ...]) -> str:
    *others, last = map(repr, names)
    return f"{', '.join(others)} or {last}" if others else last


def _in_words(schema: Mapping[str, Any]) -> str:
    """The values that a JSON Schema allows, as a noun phrase."""
    if "anyOf" in schema:
        several = [_in_words(one) for one in schema["anyOf"] if one.get("type") != "null"]
        return ("; or " if any("," in one for one in several) else " or ").join(several)
    if "enum" in schema:
        return _listed(tuple(schema["enum"]))
    match schema["type"]:
        case "integer" | "number" as kind:
            number = {"integer": "a whole number", "number": "a finite number"}[kind]
            if schema.keys() >= {"minimum", "maximum"}:
                return f"{number}, {schema['minimum']:g} to {schema['maximum']:g}"
            limits = [words.format(schema[name]) for name, words in _LIMITS.items() if schema.get(name, HUGE) < HUGE]
            return f"{number}, {' and '.join(limits)}" if limits else number
        case "array":
            counts = sorted({schema[name] for name in ("minItems", "maxItems")})
            one = schema["items"] or schema["prefixItems"][0]
            return f"a list of {' to '.join(map(str, counts))}, each {_in_words(one)}"
        case "object":
            return f"a table of names, each {_in_words(schema['additionalProperties'])}"
        case kind:
            return {"boolean": "true or false", "string": "a text"}[kind]


HUGE = 1e300
"""Limit of numbers that are only required to be finite."""
_LIMITS = {"minimum": "{:g} or more", "exclusiveMinimum": "above {:g}", "exclusiveMaximum": "below {:g}"}
