"""How large the package, its tests and its benchmarks are.

    python benchmarks/size.py [--before CHECKOUT]

prints a table and writes it to results/house/size.csv. Counted are

- code lines of each part of mri_design and of the whole: lines with a token that is neither comment, blank nor part of
  a docstring (by `ast` and `tokenize`);
- files of mri_design, ``__init__.py`` included;
- lines of tests and of benchmarks as an editor counts them, comments, docstrings and blanks included; functions whose
  name begins with ``test_``; and files of benchmarks.

``--before`` counts a working tree of an earlier version, too (`git worktree add CHECKOUT COMMIT`); without it the
column stays as it is in the table.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
OUT = HERE / "results/house/size.csv"
PACKAGE = "mri_design"
BLANK = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}
CODE, FILES, TESTS, FUNCTIONS = "code lines of mri_design", "files of mri_design", "lines of tests", "test functions"
BENCHMARKS, BENCHMARK_FILES = "lines of benchmarks", "files of benchmarks"
WANTED = {CODE: 42500, FILES: 320, TESTS: 38000, FUNCTIONS: 2200, BENCHMARKS: 9000, BENCHMARK_FILES: 45}


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


def sizes(root: Path) -> dict[str, int]:
    """Everything that is counted of a working tree."""

    def texts(folder: str) -> dict[Path, str]:
        return {file: file.read_text(encoding="utf-8") for file in sorted((root / folder).rglob("*.py"))}

    files, tests, benchmarks = texts(PACKAGE), texts("tests"), texts("benchmarks")
    parts: Counter[str] = Counter()
    for file, text in files.items():
        inside = file.relative_to(root / PACKAGE).parts
        parts[inside[0] if len(inside) > 1 else "root"] += code_lines(text)
    return {f"{CODE}, {part}": count for part, count in sorted(parts.items())} | {
        CODE: sum(parts.values()),
        FILES: len(files),
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
