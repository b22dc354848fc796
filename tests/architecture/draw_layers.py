"""Draws the layers of the package for CONTRIBUTING, from the code: ``python -m tests.architecture.draw_layers``.

The layers are those of the tables in `test_layers`, what a package is for is the first sentence of its docstring, and
files, code lines and imports are counted. The drawing replaces what stands between two marks of the page.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from benchmarks.size import code_lines
from tests.architecture.test_layers import EVERYONE_MAY_IMPORT, LAYERS, PACKAGE, imports, parsed

PAGE = PACKAGE.parent / "CONTRIBUTING.md"
BEGIN, END = "<!-- layers: drawn by `make picture` -->\n", "<!-- end of layers -->"
WIDTH, INDENT = 118, 50


def drawing(package: Path) -> str:
    """The layers from the highest to the lowest, with the packages that are named in each, as text."""
    named = {part: package / part for part in LAYERS if (package / part).is_dir()}
    below = " ".join(sorted(EVERYONE_MAY_IMPORT))
    lines = [f"{'layer  package':26}{'files':>6}{'lines':>8}  imports       what it is for"]
    for layer in sorted(set(LAYERS.values()), reverse=True):
        lines += ["-" * WIDTH]
        for part, folder in named.items():
            if LAYERS[part] == layer:
                lines += _rows(f"{layer:>5}  {part}", folder, _layers_imported(folder))
                for inner in sorted(path.parent for path in folder.rglob("*/__init__.py")):
                    lines += _rows(f"{'':9}{inner.relative_to(folder).as_posix()}", inner, "")
    lines += ["", *textwrap.wrap(f"Everybody may import the modules {below}.", WIDTH)]
    for part in sorted(set(LAYERS) - set(named), key=lambda part: (part not in EVERYONE_MAY_IMPORT, part)):
        text = f"{_purpose(package / f'{part}.py')}"
        lines += textwrap.wrap(f"{part + '.py':18}{text}", WIDTH, subsequent_indent=" " * 18)
    return "\n".join(lines) + "\n"


def _rows(name: str, folder: Path, layers: str) -> Iterator[str]:
    """Name, files and code lines (inner packages included), layers that are imported, and what it is for."""
    files = list(folder.rglob("*.py"))
    size = sum(map(_code_lines, files))
    start = f"{name:26}{len(files):>6}{size:>8,}  "
    purpose = _purpose(folder / "__init__.py")
    yield from textwrap.wrap(f"{start}{layers:14}{purpose}", WIDTH, subsequent_indent=" " * INDENT)


@cache
def _code_lines(file: Path) -> int:
    return code_lines(file.read_text(encoding="utf-8"))


def _layers_imported(folder: Path) -> str:
    """Numbers of the layers of other packages that the files of a package import."""
    found = set[int]()
    for path in folder.rglob("*.py"):
        dotted = [PACKAGE.name, *path.relative_to(folder.parent).with_suffix("").parts]
        for _, target in imports(parsed(path), dotted):
            top, _, rest = target.partition(".")
            other = rest.partition(".")[0]
            if top == PACKAGE.name and other not in {folder.name, *EVERYONE_MAY_IMPORT}:
                found.add(LAYERS[other])
    return " ".join(map(str, sorted(found))) or "none"


def _purpose(file: Path) -> str:
    """First sentence of a module's docstring."""
    docstring = ast.get_docstring(parsed(file)) or ""
    return " ".join(docstring.partition("\n\n")[0].split()).removesuffix(".")


def page_with(page: str, drawing: str) -> str:
    """A page with another drawing between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}```text\n{drawing}```\n{end}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), drawing(PACKAGE)), encoding="utf-8")
