"""Pages of results, whose words are written by hand and whose tables a benchmark replaces."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from mri_design.evaluation.run_folder import installed_versions
from mri_design.evaluation.tables import Row, markdown_text
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
