"""Shipped recipes with quick settings, as TOML."""

import json
import tomllib
from importlib import resources


def quickened(name: str, settings: str) -> str:
    """The shipped recipe ``name`` with the settings of a TOML text in place of its own."""
    recipe = tomllib.loads(resources.files("mri_design").joinpath(f"recipes/{name}.toml").read_text("utf-8"))
    for section, values in tomllib.loads(settings).items():
        recipe[section] = {**recipe.get(section, {}), **values}
    return "".join(f"{section} = {_inline(values)}\n" for section, values in recipe.items())


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_inline(setting)}" for name, setting in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)
