"""Rows of results as CSV and Markdown, the same bytes for the same rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mri_design.errors import InputError
from mri_design.io.atomic import write_text

__all__ = [
    "Row",
    "cell_texts",
    "column_names",
    "csv_text",
    "format_cell",
    "is_numeric",
    "markdown_text",
    "write_csv",
    "write_markdown",
]

Row = Mapping[str, object]
"""One line of a table: column name to value."""

_DEFAULT_FLOAT = ".6g"


def write_csv(
    path: str | Path,
    rows: Sequence[Row],
    columns: Sequence[str] | None = None,
    formats: Mapping[str, str] | None = None,
) -> None:
    """Write rows as CSV; parameters as for `csv_text`."""
    write_text(Path(path), csv_text(rows, columns, formats))


def write_markdown(
    path: str | Path,
    rows: Sequence[Row],
    columns: Sequence[str] | None = None,
    formats: Mapping[str, str] | None = None,
) -> None:
    """Write rows as a Markdown table; parameters as for `csv_text`."""
    write_text(Path(path), markdown_text(rows, columns, formats))


def csv_text(
    rows: Sequence[Row], columns: Sequence[str] | None = None, formats: Mapping[str, str] | None = None
) -> str:
    """Rows as CSV text, one header line, ``\\n`` line ends on every platform.

    Parameters
    ----------
    rows : sequence of mappings
        A missing value or None becomes an empty cell.
    columns : sequence of str, optional
        Which columns, in which order; by default all, in order of first appearance.
    formats : mapping of str to str, optional
        Format specification of a column's floats, for example ``{"psnr": ".2f"}``; ``.6g`` elsewhere.

    Raises
    ------
    InputError
        Where there are neither rows nor columns, or a column is in no row.
    """
    names = column_names(rows, columns)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(cell_texts(rows, names, formats))
    return out.getvalue()


def markdown_text(
    rows: Sequence[Row], columns: Sequence[str] | None = None, formats: Mapping[str, str] | None = None
) -> str:
    """Rows as a Markdown table, numeric columns aligned right; parameters as for `csv_text`."""
    names = column_names(rows, columns)
    rules = ["---:" if is_numeric(rows, name) else ":---" for name in names]
    lines = [[_escape_markdown(name) for name in names], rules]
    lines += [[_escape_markdown(cell) for cell in cells] for cells in cell_texts(rows, names, formats)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def column_names(rows: Sequence[Row], columns: Sequence[str] | None = None) -> list[str]:
    """The columns asked for, or all in order of first appearance; errors as for `csv_text`."""
    present = list(dict.fromkeys(name for row in rows for name in row))
    names = present if columns is None else list(columns)
    if not names:
        raise InputError(field="rows", got="no rows", wanted="at least one row, or the column names")
    absent = [name for name in names if name not in present]
    if rows and absent:
        raise InputError(field="columns", got=", ".join(absent), wanted=f"some of {', '.join(present)}")
    return names


def format_cell(value: object, float_format: str = _DEFAULT_FLOAT) -> str:
    """One value as text: None is empty, booleans are yes and no, floats follow ``float_format``."""
    if value is None:
        return ""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        # adding zero turns -0.0 into 0.0, which would otherwise depend on the order of a sum
        return format(float(value) + 0.0, float_format)
    return str(value)


def cell_texts(rows: Sequence[Row], names: Sequence[str], formats: Mapping[str, str] | None = None) -> list[list[str]]:
    """Every cell as text, row by row; a column without a format follows ``.6g``."""
    chosen = formats or {}
    return [[format_cell(row.get(name), chosen.get(name, _DEFAULT_FLOAT)) for name in names] for row in rows]


def is_numeric(rows: Sequence[Row], name: str) -> bool:
    """True where the column holds numbers only (missing ones allowed), which are aligned right."""
    values = [row[name] for row in rows if row.get(name) is not None]
    return bool(values) and all(
        isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool) for value in values
    )


def _escape_markdown(text: str) -> str:
    for mark, safe in (("\\", "\\\\"), ("|", "\\|"), ("<", "&lt;")):
        text = text.replace(mark, safe)
    return " ".join(text.split())
