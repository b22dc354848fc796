"""What is wrong with the settings of a recipe, in this program's own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from mri_design.errors import InputError, described, did_you_mean

Schema = Mapping[str, Any]
Place = tuple[int | str, ...]


def recipe_error(error: ValidationError, schema: Schema, recipe: str) -> InputError:
    """The first of the errors, as one about ``recipe: section.key``.

    Parameters
    ----------
    error : ValidationError
        What the validation found.
    schema : mapping
        JSON schema of the recipe: what every setting takes; a setting's description is the cure.
    recipe : str
        How to call the recipe, ``"recipe mine.toml"``.
    """
    first, *others = error.errors()
    if first["type"] == "missing":  # perhaps because it is misspelt
        beside = (
            other for other in others if other["type"] == "extra_forbidden" and other["loc"][:-1] == first["loc"][:-1]
        )
        first = next(beside, first)
    place, kind, value = first["loc"], first["type"], first.get("input")
    field = f"{recipe}: {_dotted(place)}" if place else recipe
    inside = first.get("ctx", {}).get("error")
    if isinstance(inside, InputError):
        return InputError(field=field, got=inside.got, wanted=inside.wanted, cure=inside.cure)
    if kind == "extra_forbidden":
        return _unknown(field, place, value, schema)
    setting = _at(schema, schema, place)
    wanted = _wanted(schema, setting, str(place[-1]) if place else recipe)
    if kind == "missing":
        return InputError(field=field, got="nothing", wanted=wanted, cure=f"Give {_dotted(place)} a value.")
    choices = [choice for choice in _choices(schema, setting) if isinstance(choice, str)]
    if choices and isinstance(value, str):
        cure = did_you_mean(value, choices)
        return InputError(field=field, got=f"unknown {place[-1]} {value!r}", wanted=wanted, cure=cure)
    hint = str(setting.get("description", "")) if setting.get("type") != "object" else ""
    return InputError(field=field, got=described(value), wanted=wanted, cure=hint)


def _unknown(field: str, place: Place, value: object, schema: Schema) -> InputError:
    *outer, name = place
    known = list(_properties(schema, _at(schema, schema, tuple(outer))))
    prefix = f"{_dotted(tuple(outer))}." if outer else ""
    near = did_you_mean(str(name), known).replace("mean ", f"mean {prefix}")
    elsewhere = {
        key: f"{section}.{key}"
        for section in _properties(schema, schema)
        for key in _properties(schema, _at(schema, schema, (section,)))
    }
    if not near and str(name) in elsewhere:
        near = f"Did you mean {elsewhere[str(name)]}?"
    what = "section" if not outer and isinstance(value, Mapping) else "setting"
    wanted = f"a setting of [{outer[0]}]: {', '.join(known)}" if outer else f"one of: {', '.join(known)}"
    return InputError(field=field, got=f"an unknown {what}", wanted=wanted, cure=near)


def _dotted(place: Place) -> str:
    return ".".join(str(part) for part in place)


def _resolved(schema: Schema, entry: Schema) -> Schema:
    """The schema itself where it is a reference, without the alternative null."""
    while "$ref" in entry or "anyOf" in entry:
        if "$ref" in entry:
            entry = schema["$defs"][entry["$ref"].rpartition("/")[2]]
        else:
            entry = next(other for other in entry["anyOf"] if other.get("type") != "null")
    return entry


def _properties(schema: Schema, entry: Schema) -> Schema:
    properties: Schema = _resolved(schema, entry).get("properties", {})
    return properties


def _at(schema: Schema, entry: Schema, place: Place) -> Schema:
    for part in place:
        entry = _resolved(schema, entry)
        entry = entry.get("items", {}) if isinstance(part, int) else entry.get("properties", {}).get(part, {})
    return _resolved(schema, entry)


def _choices(schema: Schema, entry: Schema) -> list[Any]:
    return list(_resolved(schema, entry).get("enum", []))


def _wanted(schema: Schema, entry: Schema, name: str) -> str:
    """What a setting takes, as a noun phrase."""
    entry = _resolved(schema, entry)
    if "enum" in entry:
        *others, last = [repr(choice) for choice in entry["enum"]]
        return f"{', '.join(others)} or {last}" if others else last
    kind = entry.get("type")
    if kind in ("integer", "number"):
        return ("a whole number" if kind == "integer" else "a finite number") + _limits(entry)
    if kind == "array":
        members = _wanted(schema, entry.get("items", {}), name)
        many = f" of {entry['minItems']} to {entry['maxItems']}" if "minItems" in entry and "maxItems" in entry else ""
        return f"one [[{name}]] table or several" if members.startswith("a table") else f"a list{many}, each {members}"
    known = {"object": f"a table [{name}]", "boolean": "true or false", "string": "text in quotes"}
    return known.get(str(kind), "another value")


def _limits(entry: Schema) -> str:
    low, above = entry.get("minimum"), entry.get("exclusiveMinimum")
    high, below = entry.get("maximum"), entry.get("exclusiveMaximum")
    if low is not None and high is not None:
        return f", {low:g} to {high:g}"
    parts = [
        f"{low:g} or more" if low is not None else f"above {above:g}" if above is not None else "",
        f"{high:g} or less" if high is not None else f"below {below:g}" if below is not None else "",
    ]
    limits = " and ".join(part for part in parts if part)
    return f", {limits}" if limits else ""
