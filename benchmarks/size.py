"""How large the package, its tests and its benchmarks are.

    python benchmarks/size.py [--before CHECKOUT]

prints a table and writes it to results/house/size.csv. Counted are

- code lines of each part of mri_design and of the whole: lines with a token that is neither comment, blank nor part of
  a docstring (by `ast` and `tokenize`);
- files of mri_design, ``__init__.py`` included, and lines of its templates (jinja2, toml), blanks included;
- classes of mri_design, and code lines of its longest function;
- names, and modules, that the module with `design_scan` imports from the package;
- places outside readouts/ that ask of readouts or an encoding which kind they are: `isinstance` of a class that ends in
  ``Readouts``, comparisons of names with "lines", "plane", "samples", "shots", "radial", "spiral", templates included;
- lines of tests and of benchmarks as an editor counts them, comments, docstrings and blanks included; functions whose
  name begins with ``test_``; and files of benchmarks.

``--before`` counts a working tree of an earlier version, too (`git worktree add CHECKOUT COMMIT`); without it the
column stays as it is in the table.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from collections import Counter
from pathlib import Path
from textwrap import dedent

HERE = Path(__file__).resolve().parents[1]
OUT = HERE / "results/house/size.csv"
PACKAGE = "mri_design"
BLANK = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}
CODE, FILES, TESTS, FUNCTIONS = "code lines of mri_design", "files of mri_design", "lines of tests", "test functions"
TEMPLATES, CLASSES, LONGEST = "lines of templates", "classes of mri_design", "code lines of its longest function"
NAMES, MODULES, KINDS = "names imported by design's module", "from modules", "questions which kind readouts are"
BENCHMARKS, BENCHMARK_FILES = "lines of benchmarks", "files of benchmarks"
WANTED = {
    **{CODE: 32000, FILES: 150, CLASSES: 350, LONGEST: 60, NAMES: 30, MODULES: 14, KINDS: 0},
    **{TESTS: 26000, FUNCTIONS: 1500, BENCHMARKS: 9000, BENCHMARK_FILES: 45},
}
ASKED = re.compile(
    r"""isinstance\([^()]*\b(?:Line|Plane|Shot)?Readouts\b|"""
    r"""(?<!for )\b(?:encoding|name|counted|kind|sort|family|what) (?:[=!]=|in \(|in \[) ?["']"""
    r"""(?:lines|plane|samples|shots|radial|spiral)["']"""
)


def code_lines(text: str) -> int:
    """Lines of a module that hold code."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in BLANK:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def longest_function(text: str) -> int:
    """Code lines of the longest function of a module."""
    lines, functions = text.splitlines(), (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, functions)]
    return max((code_lines(dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))) for node in found), default=0)


def imported(text: str) -> list[ast.ImportFrom]:
    """What a module imports from the package, at its head."""
    body = ast.parse(text).body
    return [node for node in body if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE)]


def sizes(root: Path) -> dict[str, int]:
    """Everything that is counted of a working tree."""

    def texts(folder: str) -> dict[Path, str]:
        return {file: file.read_text(encoding="utf-8") for file in sorted((root / folder).rglob("*.py"))}

    files, tests, benchmarks = texts(PACKAGE), texts("tests"), texts("benchmarks")
    parts: Counter[str] = Counter()
    for file, text in files.items():
        inside = file.relative_to(root / PACKAGE).parts
        parts[inside[0] if len(inside) > 1 else "root"] += code_lines(text)
    templates = [
        file.read_text("utf-8")
        for ending in ("j2", "toml")
        for file in (root / PACKAGE).rglob(f"*.{ending}")
        if file.parent.name != "recipes"
    ]
    design = imported(next(text for text in files.values() if "\ndef design_scan(" in text))
    outside = [text for file, text in files.items() if "readouts" not in file.relative_to(root).parts]
    return {f"{CODE}, {part}": count for part, count in sorted(parts.items())} | {
        CODE: sum(parts.values()),
        FILES: len(files),
        TEMPLATES: sum(len(text.splitlines()) for text in templates),
        CLASSES: sum(isinstance(node, ast.ClassDef) for text in files.values() for node in ast.walk(ast.parse(text))),
        LONGEST: max(map(longest_function, files.values())),
        NAMES: sum(len(node.names) for node in design),
        MODULES: len({node.module for node in design}),
        KINDS: sum(len(ASKED.findall(text)) for text in [*outside, *templates]),
        TESTS: sum(len(text.splitlines()) for text in tests.values()),
        FUNCTIONS: sum(
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
            for text in tests.values()
            for node in ast.walk(ast.parse(text))
        ),
        BENCHMARKS: sum(len(text.splitlines()) for text in benchmarks.values()),
        BENCHMARK_FILES: len(benchmarks),
    }


def table(now: dict[str, int], before: dict[str, int]) -> list[dict[str, object]]:
    """Rows: what, before, now, wanted; parts of the package first."""
    names = sorted(dict.fromkeys([*now, *before]), key=lambda name: not name.startswith(f"{CODE}, "))
    return [{"what": n, "before": before.get(n), "now": now.get(n), "wanted": WANTED.get(n)} for n in names]


def main() -> None:
    """Count, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="working tree of an earlier version")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    from mri_design.evaluation.tables import markdown_text, read_csv_texts, write_csv

    kept = read_csv_texts(chosen.out) if chosen.out.exists() else []
    before = {row["what"]: int(row["before"]) for row in kept if row["before"]}
    rows = table(sizes(HERE), before if chosen.before is None else sizes(chosen.before))
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    write_csv(chosen.out, rows)
    print(markdown_text(rows))


if __name__ == "__main__":
    main()
