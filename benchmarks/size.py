"""How large the package, its tests and its benchmarks are, and how many files one design enters.

    OMP_NUM_THREADS=1 python benchmarks/size.py [--before CHECKOUT]

prints a table and writes it to results/house/size.csv. Counted are

- code lines of each part of mri_design and of the whole: lines with a token that is neither comment, blank nor part of
  a docstring (by `ast` and `tokenize`);
- files of mri_design, ``__init__.py`` included;
- lines of tests and of benchmarks as an editor counts them, comments, docstrings and blanks included;
- files of mri_design of which a function is entered by ``design phantom:brain --lines 12``, default recipe, from the
  first of cli/design.py to the last of the conjugate gradients, those of the image and its error bars after the design
  included; and of these, how many are on the stack at a solve, on the way from the verb down to it.

``--before`` measures a working tree of an earlier version, too (`git worktree add CHECKOUT COMMIT`); without it the
column stays as it is in the table.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

HERE = Path(__file__).resolve().parents[1]
OUT = HERE / "results/house/size.csv"
PACKAGE, VERB, SOLVER = "mri_design", "cli/design.py", "krylov/conjugate_gradients.py"
BLANK = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}
CODE, FILES, TESTS = "code lines of mri_design", "files of mri_design", "lines of tests"
BENCHMARKS, ENTERED, STACKED = "lines of benchmarks", "files entered by a design", "... of these on the way to a solve"
ISSUE = {CODE: 37100, FILES: 473, TESTS: 43900, BENCHMARKS: 19200, ENTERED: 49}
"""Sizes when this was asked for; files entered were counted in another way then."""
WANTED = {CODE: 29000, FILES: 300, TESTS: 33000, BENCHMARKS: 11000, ENTERED: 30}
TRIP = "import sys; sys.path[:0] = sys.argv[1:3]; import size; size.print_trip(sys.argv[2])"


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
    """Everything but the trip, of a working tree."""
    files = sorted((root / PACKAGE).rglob("*.py"))
    parts: Counter[str] = Counter()
    for file in files:
        inside = file.relative_to(root / PACKAGE).parts
        parts[inside[0] if len(inside) > 1 else "root"] += code_lines(file.read_text(encoding="utf-8"))
    found = {f"{CODE}, {part}": count for part, count in sorted(parts.items())}
    found |= {CODE: sum(parts.values()), FILES: len(files)}
    for what, folder in ((TESTS, "tests"), (BENCHMARKS, "benchmarks")):
        texts = (file.read_text(encoding="utf-8") for file in (root / folder).rglob("*.py"))
        found[what] = sum(len(text.splitlines()) for text in texts)
    return found


def entered(call: Callable[[], object], package: Path, first: str, last: str) -> tuple[set[str], set[str]]:
    """Files of a package whose functions a call enters between two of its files, and those on the stack at the last.

    Parameters
    ----------
    call : callable
        What is run.
    package : Path
        Its folder.
    first, last : str
        Files in it: from the first function that is entered in the one to the last in the other.
    """
    root = f"{package}{os.sep}"
    since, until, stacked = dict[str, None](), set[str](), set[str]()

    def file_of(frame: FrameType) -> str | None:
        code = frame.f_code
        inside = code.co_filename.startswith(root) and code.co_name != "<module>"
        return Path(code.co_filename).relative_to(package).as_posix() if inside else None

    def note(frame: FrameType, event: str, _: object) -> None:
        file = file_of(frame) if event == "call" else None
        if file is None or (not since and file != first):
            return
        since[file] = None
        if file == last:
            until.update(since)
            caller: FrameType | None = frame
            while caller is not None:
                stacked.update(filter(None, [file_of(caller)]))
                caller = caller.f_back

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return until, stacked & until


def print_trip(root: str) -> None:
    """Print how many files a design of the version in a working tree enters, and how many lie on the way to a solve."""
    from typer.testing import CliRunner

    from mri_design.cli.main import app  # of that version

    with tempfile.TemporaryDirectory() as place:
        words = ["design", "phantom:brain", "--lines", "12", "--quiet", "--out", f"{place}/run"]
        found = entered(lambda: CliRunner().invoke(app, words), Path(root) / PACKAGE, VERB, SOLVER)
    print(json.dumps([len(files) for files in found]))


def measured(root: Path) -> dict[str, int]:
    """Everything of a working tree, the trip in a process of its own."""
    command = [sys.executable, "-P", "-c", TRIP, str(Path(__file__).parent), str(root.resolve())]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(root.resolve())}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    trip = json.loads(done.stdout.splitlines()[-1])
    return sizes(root) | dict(zip((ENTERED, STACKED), trip, strict=True))


def table(now: dict[str, int], before: dict[str, int]) -> list[dict[str, object]]:
    """Rows: what, the issue's number, before, now, wanted."""
    names = list(dict.fromkeys([*now, *before]))
    names.sort(key=lambda name: not name.startswith(f"{CODE}, "))
    numbers = {"issue": ISSUE, "before": before, "now": now, "wanted": WANTED}
    return [{"what": name, **{column: of.get(name) for column, of in numbers.items()}} for name in names]


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="working tree of an earlier version")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    from mri_design.evaluation.tables import markdown_text, read_csv_texts, write_csv

    kept = read_csv_texts(chosen.out) if chosen.out.exists() else []
    before = {row["what"]: int(row["before"]) for row in kept if row["before"]}
    rows = table(measured(HERE), before if chosen.before is None else measured(chosen.before))
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    write_csv(chosen.out, rows)
    print(markdown_text(rows))


if __name__ == "__main__":
    main()
