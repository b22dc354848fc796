"""No function but those that people call directly takes more than seven parameters, and recipes stop at the experiment.

A function with more is missing a noun: group what belongs together into a frozen dataclass. The command line and its
counterpart for scripts are left out, where a parameter is an option, and so are the compiled loops, which take arrays
one by one. A dataclass may have more fields, but then the first four at most can be given by position.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.test_layers import PACKAGE, parsed

MOST = 7
BY_POSITION = 4
"""Fields of a dataclass with more than `MOST`."""
LEFT_OUT = ("cli/", "interactive/", "operators/kernels/")


def long_signatures(package: Path) -> Iterator[str]:
    """Every function with too many parameters, as ``path: name``; ``self`` and ``cls`` do not count."""
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package).as_posix()
        if inside.startswith(LEFT_OUT):
            continue
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(parameters(node)) > MOST:
                yield f"{inside}: {node.name}"


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Names of the parameters, those for further arguments included."""
    given = function.args
    every = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    names = [argument.arg for argument in every if argument is not None]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def unnamed_fields(package: Path) -> Iterator[str]:
    """Every dataclass of many fields that takes too many of them by position, as ``path: name``."""
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(parsed(path)):
            made = [ast.unparse(one) for one in node.decorator_list] if isinstance(node, ast.ClassDef) else []
            if isinstance(node, ast.ClassDef) and any(re.match(r"(dataclasses\.)?dataclass\b", one) for one in made):
                given = list(constructor_fields(node))
                marked = given.index("KW_ONLY") if "KW_ONLY" in given else len(given)
                positions = 0 if any("kw_only=True" in one for one in made) else marked
                if len(given) - given.count("KW_ONLY") > MOST and positions > BY_POSITION:
                    yield f"{path.relative_to(package).as_posix()}: {node.name}"


def constructor_fields(made: ast.ClassDef) -> Iterator[str]:
    """Names of the fields that its constructor takes, and KW_ONLY where its mark stands."""
    for line in made.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            kind, value = ast.unparse(line.annotation), ast.unparse(line.value) if line.value else ""
            if "ClassVar" not in kind and "init=False" not in value:
                yield "KW_ONLY" if kind.endswith("KW_ONLY") else line.target.id


def test_dataclasses_with_more_than_seven_fields_want_them_named() -> None:
    found = set(unnamed_fields(PACKAGE))
    assert not found, f"more than {MOST} fields, more than {BY_POSITION} of them by position: {sorted(found)}"


@pytest.mark.parametrize(
    ("decorator", "fields", "caught"),
    [
        ("@dataclass", "abcdefg", False),
        ("@dataclass", "abcdefgh", True),
        ("@dataclass(frozen=True)", "abcdefgh", True),
        ("@dataclasses.dataclass", "abcdefgh", True),
        ("@dataclass(kw_only=True)", "abcdefgh", False),
        ("@dataclass", "abcd_efgh", False),
        ("@dataclass", "abcde_fgh", True),
        ("@other", "abcdefgh", False),
    ],
)
def test_fields_are_counted(tmp_path: Path, decorator: str, fields: str, caught: bool) -> None:
    lines = [f"    {name}: {'KW_ONLY' if name == '_' else 'int'}" for name in fields]
    (tmp_path / "a.py").write_text("\n".join([decorator, "class Many:", "    z: ClassVar[int] = 0", *lines]))
    assert list(unnamed_fields(tmp_path)) == (["a.py: Many"] if caught else [])


def test_no_function_takes_more_than_seven_parameters() -> None:
    found = set(long_signatures(PACKAGE))
    assert not found, f"more than {MOST} parameters, group some: {sorted(found)}"


@pytest.mark.parametrize(
    ("path", "signature", "caught"),
    [
        ("runs/a.py", "a, b, c, d, e, f, g", False),
        ("runs/a.py", "a, b, c, d, e, f, g, h", True),
        ("runs/a.py", "self, a, b, c, d, e, f, g", False),
        ("runs/a.py", "a, b, c, d, *, e, f, g, h", True),
        ("runs/a.py", "a, b, c, d, e, f, *more, **others", True),
        ("cli/a.py", "a, b, c, d, e, f, g, h", False),
        ("interactive/a.py", "a, b, c, d, e, f, g, h", False),
        ("operators/kernels/a.py", "a, b, c, d, e, f, g, h", False),
    ],
)
def test_parameters_are_counted(tmp_path: Path, path: str, signature: str, caught: bool) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(f"def function({signature}): return a\n")
    assert list(long_signatures(tmp_path)) == ([f"{path}: function"] if caught else [])


def test_nothing_below_the_experiment_knows_a_recipe_and_what_judges_runs_neither() -> None:
    allowed = ("experiment/", "runs/", "cli/", "interactive/")
    knowing = [
        path.relative_to(PACKAGE).as_posix()
        for path in sorted(PACKAGE.rglob("*.py"))
        if "mri_design.experiment.recipe" in path.read_text(encoding="utf-8")
    ]
    assert [name for name in knowing if not name.startswith(allowed)] == []
