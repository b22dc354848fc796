"""Fronts of packages: names are looked up when they are first used, so that a package costs nothing to import."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

_LINE = re.compile(r"^from (\.[\w.]*) import (\w+) as \w+$", re.MULTILINE)


def front(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, by the stub (``.pyi``) beside its ``file``.

    Every line of the stub is ``from .module import name as name``, or ``from . import module as module``.
    """
    places = {name: module for module, name in _LINE.findall(Path(file).with_suffix(".pyi").read_text("utf-8"))}

    class Front(ModuleType):
        """The package: a name of its front stays what it is where a part of the same name is imported."""

        def __setattr__(self, name: str, value: object) -> None:
            if not (isinstance(value, ModuleType) and places.get(name, ".") != "."):
                super().__setattr__(name, value)

    def look_up(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        place = places[name]
        found = import_module(f".{name}", package) if place == "." else getattr(import_module(place, package), name)
        setattr(sys.modules[package], name, found)
        return found

    sys.modules[package].__class__ = Front
    return look_up, lambda: sorted(places), sorted(places)
