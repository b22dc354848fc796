"""Pages of results, whose words are written by hand and whose tables a benchmark replaces; tables it goes on from."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from mri_design.evaluation.run_folder import installed_versions
from mri_design.evaluation.tables import Row, markdown_text, read_csv_texts, write_csv
from mri_design.scan.io.atomic import write_text

MADE = re.compile(r"^(?:\| |\*\*|!\[|Nothing was measured)", re.M)
"""How the first line begins that a benchmark made."""
MEASURED = "Measured with "


def put_section(page: Path, heading: str, made: str) -> None:
    """Put Markdown in the place of what a benchmark made under a heading before.

    That is all from the first table, bold title or figure to the next heading; the words above it stay. A page or
    heading that is missing is begun.
    """
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    found = re.search(rf"^#+ {re.escape(heading)}\n", text, re.M)
    if not found:
        write_text(page, f"{text.rstrip()}\n\n## {heading}\n\n{made.rstrip()}\n".lstrip())
        return
    following = re.compile(r"^#+ ", re.M).search(text, found.end())
    end = following.start() if following else len(text)
    before = MADE.search(text, found.end(), end)
    words = text[: before.start() if before else end].rstrip()
    write_text(page, f"{words}\n\n{made.rstrip()}\n" + (f"\n{text[end:]}" if following else ""))


def put_table(
    page: Path,
    heading: str,
    rows: Sequence[Row],
    columns: Sequence[str] | None = None,
    formats: Mapping[str, str] | None = None,
) -> None:
    """Put rows as a table under a heading; see `put_section`, and `markdown_text` for columns and formats."""
    put_section(page, heading, markdown_text(rows, columns, formats) if rows else "Nothing was measured.")


def put_conditions(page: Path, *packages: str, also: str = "") -> None:
    """Say with which versions and machine the page's newest numbers were measured, in the place where it says so."""
    versions = ", ".join(f"{name} {version}" for name, version in installed_versions(packages).items())
    line = f"{MEASURED}{versions}; {os.cpu_count()} cores{also}.\n"
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    found = re.search(rf"^{MEASURED}.*\n", text, re.M)
    text = text[: found.start()] + line + text[found.end() :] if found else f"{text.rstrip()}\n\n{line}".lstrip()
    write_text(page, text)


@dataclass(frozen=True)
class Kept:
    """A table on disk. To have some of it measured anew, for example one strength at 16 lines, empty these cells.

    Parameters
    ----------
    path : Path
        A CSV file, which need not exist yet.
    key : tuple of str
        The columns that name a row.
    rows : dict
        By what they are named.
    """

    path: Path
    key: tuple[str, ...]
    rows: dict[tuple[str, ...], Row]

    @classmethod
    def at(cls, path: Path, *key: str) -> Self:
        """What the file holds."""
        rows = read_csv_texts(path) if path.is_file() else []
        return cls(path, key, {tuple(plain(row[name]) for name in key): row for row in rows})

    def row(self, row: Row) -> dict[str, object]:
        """A row's names and what has been measured of it; `put` makes it a part of the table."""
        return {**row, **self.rows.get(self.named(row), {})}

    def put(self, row: Row) -> None:
        """Keep a row, and say what it has."""
        self.rows[self.named(row)] = row
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_csv(self.path, list(self.rows.values()))
        print(*row.values(), sep=" | ", flush=True)

    def named(self, row: Row) -> tuple[str, ...]:
        """What names a row."""
        return tuple(plain(row[name]) for name in self.key)


def plain(value: object) -> str:
    """A cell as text, numbers alike whether they are whole or not."""
    text = str(value)
    return f"{float(text):g}" if text.replace(".", "", 1).isdigit() else text
