"""Sizes are counted as the script says, on a package that is planted for it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

MODULE = '''"""A docstring
of two lines."""

# A comment.
import math


def area(radius):
    """Another docstring."""
    text = """not a
docstring"""
    return (
        math.pi * radius**2  # code
    ), text
'''
PARTS = {
    "__init__.py": "",
    "verb.py": "from planted import after, middle\n\n\ndef run():\n    middle.on()\n    after.end()\n",
    "middle.py": "from planted import aside, solver\n\n\ndef on():\n    aside.look()\n    solver.solve()\n",
    "aside.py": "def look():\n    pass\n",
    "solver.py": "def solve():\n    pass\n",
    "after.py": "def end():\n    pass\n",
}


def test_sizes_are_those_of_a_planted_package(module: Callable[[str], ModuleType], tmp_path: Path) -> None:
    size = module("size")
    for name, text in (("mri_design/a/b.py", MODULE), ("mri_design/__init__.py", ""), ("tests/t.py", "x = 1\n\n# y\n")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = size.sizes(tmp_path)
    assert size.code_lines(MODULE) == found[size.CODE] == found[f"{size.CODE}, a"] == 7
    assert (found[size.FILES], found[size.TESTS], found[size.BENCHMARKS]) == (2, 3, 0)
    rows = {row["what"]: row for row in size.table(found, {size.FILES: 5})}
    assert rows[size.FILES] == {"what": size.FILES, "issue": 473, "before": 5, "now": 2, "wanted": 300}


def test_files_are_those_entered_up_to_the_last_solve(
    module: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "planted"
    package.mkdir()
    for name, text in PARTS.items():
        (package / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    import planted.verb  # type: ignore[import-not-found]

    before = sys.getprofile()
    files, stacked = module("size").entered(planted.verb.run, package, "verb.py", "solver.py")
    assert files == {"verb.py", "middle.py", "aside.py", "solver.py"}
    assert stacked == {"verb.py", "middle.py", "solver.py"} and sys.getprofile() is before
