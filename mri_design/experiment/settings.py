"""Settings that are declared once, for recipes, flags and the pages that list them.

A section of a recipe is a frozen dataclass whose fields say what they take (`setting`), and whose docstring says what
they are for. Recipes are checked against that, flags are made from it (`mri_design.cli.flags`), and the tables of the
pages as well. Reading it imports nothing that takes time, because ``--help`` waits for it.
"""

from __future__ import annotations

import ast
import inspect
import math
import operator
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

from mri_design.brief import brief
from mri_design.errors import InputError, described, did_you_mean
from mri_design.registry import full_name


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What one setting takes: its type, as it is annotated, and what is declared beside it.

    Parameters
    ----------
    least, above, most, below : float, optional
        Limits of a number: included, excluded.
    members : (int, int), optional
        How many numbers a list may have.
    unset : str
        What is in force where the setting has no value and the recipe names none.
    check : callable, optional
        Raises `InputError` for a value that is none; the field of the error does not matter.
    names : mapping, or callable, optional
        Every value of a text, where more may be registered: a table by these names, or what lists them.
    expert : bool
        Whether few recipes need it; the pages show it in a table of its own.
    metavar, panel : str, optional
        Of the flag: what stands for the value, and the part of ``--help``.
    cure : str
        End of the message where the value is refused.
    help : str
        In a sentence or two, for recipe, pages and command line: its entry in the docstring of the section.
    base : type
        ``bool``, ``int``, ``float``, ``str``, ``tuple`` or a class of `Settings`.
    listed : tuple of str
        Every value of a text that is annotated with them.
    optional : bool
        Whether None stands for no value.
    inner : Setting, optional
        Of the members of a tuple.
    words : tuple of str
        Texts that may be given instead of a number.
    """

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    members: tuple[int, int] | None = None
    unset: str = ""
    check: Callable[[Any], object] | None = None
    names: Mapping[str, object] | Callable[[], tuple[str, ...]] | None = None
    expert: bool = False
    metavar: str | None = None
    panel: str | None = None
    cure: str = ""
    help: str = ""
    base: Any = str
    listed: tuple[str, ...] = ()
    optional: bool = False
    inner: Setting | None = None
    words: tuple[str, ...] = ()

    def annotated(self, hint: Any) -> Setting:
        """The setting with the type that an annotation means."""
        if get_origin(hint) in (Union, UnionType):
            kinds = [one for one in get_args(hint) if one is not NoneType]
            words = tuple(word for other in kinds[1:] for word in get_args(other))
            return replace(self.annotated(kinds[0]), optional=NoneType in get_args(hint), words=words)
        if get_origin(hint) is Literal:
            return replace(self, base=str, listed=get_args(hint))
        if get_origin(hint) is tuple:
            return replace(self, base=tuple, inner=self.annotated(get_args(hint)[0]))
        return replace(self, base=hint)

    @property
    def limits(self) -> str:
        """Limits in words, behind a comma; empty without any."""
        if self.least is not None and self.most is not None:
            return f", {self.least:g} to {self.most:g}"
        given = {words: getattr(self, name) for name, (_, words) in _LIMITS.items()}
        text = " and ".join(words.format(limit) for words, limit in given.items() if limit is not None)
        return f", {text}" if text else ""

    @property
    def choices(self) -> tuple[str, ...]:
        """Every value of a text that has only some."""
        names = self.names() if callable(self.names) else self.names
        return self.listed if names is None else tuple(names)

    @property
    def wanted(self) -> str:
        """Noun phrase that says which values are taken."""
        if self.choices:
            *others, last = map(repr, self.choices)
            return f"{', '.join(others)} or {last}"
        if self.base in (int, float):
            number = ("a whole number" if self.base is int else "a finite number") + self.limits
            return " or ".join([number, *map(repr, self.words)])
        if self.inner is not None:
            many = "" if self.members is None else " of {} to {}".format(*self.members)
            return f"a list{many}, each {self.inner.wanted}"
        return {bool: "true or false", str: "text in quotes"}[self.base]

    def checked(self, value: Any, place: str) -> Any:
        """The value as it is kept: numbers as numbers, lists as tuples, tables as sections.

        Raises
        ------
        InputError
            About ``place``.
        """
        if (value is None and self.optional) or (isinstance(value, str) and value in self.words):
            return value
        if issubclass(self.base, Settings):
            return value if isinstance(value, self.base) else self.base.of(value, place)
        if self.inner is not None:
            return self._members(value, place, self.inner)
        value = value.item() if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () else value
        if self.choices and isinstance(value, str):
            if (value := full_name(value, self.choices)) in self.choices:
                return value
            name, near = place.rpartition(".")[2], did_you_mean(value, self.choices)
            raise InputError(place, f"unknown {name} {value!r}", self.wanted, near)
        right = type(value) is self.base or (self.base is float and type(value) is int)
        if self.choices or not right or (self.base in (int, float) and not self._allows(value)):
            raise InputError(place, described(value), self.wanted, self.cure)
        if self.check is not None:
            try:
                self.check(value)
            except InputError as error:
                raise error.about(place) from error
        return float(value) if self.base is float else value

    def _allows(self, number: float) -> bool:
        """Whether a number is finite and within the limits."""
        given = ((within, getattr(self, name)) for name, (within, _) in _LIMITS.items())
        return math.isfinite(number) and all(limit is None or within(number, limit) for within, limit in given)

    def _members(self, value: Any, place: str, inner: Setting) -> tuple[Any, ...]:
        least, most = self.members or (0, math.inf)
        if not isinstance(value, list | tuple) or not least <= len(value) <= most:
            wanted = f"one [[{place}]] table or several" if issubclass(inner.base, Settings) else self.wanted
            raise InputError(place, described(value), wanted, self.cure)
        return tuple(inner.checked(one, f"{place}.{i}") for i, one in enumerate(value))


_LIMITS: dict[str, tuple[Callable[[float, float], bool], str]] = {
    "least": (operator.ge, "{:g} or more"),
    "above": (operator.gt, "above {:g}"),
    "most": (operator.le, "{:g} or less"),
    "below": (operator.lt, "below {:g}"),
}


def setting(default: Any = MISSING, **described: Any) -> Any:
    """A field of a section: its default, and what its `Setting` says beside the help."""
    return field(default=default, metadata={"setting": Setting(**described)})


def docstring(made: Any) -> str:
    """The docstring of a class or function, without indentation; read in its source where Python drops it (``-OO``)."""
    if sys.flags.optimize < 2:
        return inspect.cleandoc(made.__doc__ or "")
    try:
        [node] = ast.parse(textwrap.dedent(inspect.getsource(made))).body
    except (OSError, TypeError):  # no source: a class of Python itself
        return ""
    return ast.get_docstring(node) or "" if isinstance(node, ast.ClassDef | ast.FunctionDef) else ""


class Settings:
    """A section of a recipe: a frozen dataclass that refuses values which its fields do not allow."""

    sections: ClassVar[Mapping[str, type[Settings]]] = {}

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]
            value = getattr(self, one.name)
            if value is not one.default:  # defaults are not looked at, so that they cost no time
                object.__setattr__(self, one.name, self.declared()[one.name].checked(value, one.name))

    @classmethod
    def of(cls, values: object, place: str = "") -> Self:
        """A section from plain values, as a TOML file has them.

        Parameters
        ----------
        values : mapping of str to object
            What differs from the defaults; a section where it contains others.
        place : str
            Where it stands, for errors.

        Raises
        ------
        InputError
            For a setting that does not exist, a missing one, and a value that is none.
        """
        if not isinstance(values, Mapping):
            wanted = f"a table [{place}]" if place else "a table of settings"
            raise InputError(place or "recipe", described(values), wanted)
        known = cls.declared()
        prefix = f"{place}." if place else ""
        for name, value in values.items():
            if name not in known:
                raise cls._unknown(str(name), value, prefix)
        checked = {name: known[name].checked(value, f"{prefix}{name}") for name, value in values.items()}
        for one in fields(cls):  # type: ignore[arg-type]
            if one.name not in values and one.default is MISSING:
                cure = f"Give {prefix}{one.name} a value."
                raise InputError(f"{prefix}{one.name}", "nothing", known[one.name].wanted, cure)
        return cls(**checked)

    @classmethod
    @cache
    def declared(cls) -> dict[str, Setting]:
        """Every setting by its name."""
        hints, found = get_type_hints(cls), dict[str, Setting]()
        entries = "".join(docstring(each) + "\n" for each in reversed(cls.__mro__))
        helps = dict(re.findall(r"^(\w+) : .*\n((?: {4}.*\n)+)", entries, re.MULTILINE))
        for one in fields(cls):  # type: ignore[arg-type]
            help_text = " ".join(helps.get(one.name, "").split())
            found[one.name] = replace(one.metadata.get("setting", Setting()), help=help_text).annotated(hints[one.name])
        return found

    def plain(self) -> dict[str, Any]:
        """Values as a manifest has them: tables as dictionaries, tuples as lists."""
        return {name: _plain(getattr(self, name)) for name in self.declared()}

    @classmethod
    def _unknown(cls, name: str, value: object, prefix: str) -> InputError:
        known, place = cls.declared(), f"{prefix}{name}"
        near = did_you_mean(name, list(known)).replace("mean ", f"mean {prefix}")
        elsewhere = [f"{other}.{name}" for other, section in cls.sections.items() if name in section.declared()]
        if not near and elsewhere:
            near = f"Did you mean {elsewhere[-1]}?"
        what = "section" if not prefix and isinstance(value, Mapping) else "setting"
        wanted = f"a setting of [{prefix.partition('.')[0]}]" if prefix else "one of"
        wanted += f": {', '.join(known)}"
        return InputError(place, f"an unknown {what}", wanted, near)


def _plain(value: Any) -> Any:
    if isinstance(value, Settings):
        return value.plain()
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, str | float | int) else {"own": brief(value)}
