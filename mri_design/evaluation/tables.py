"""Rows of results as CSV, Markdown and text to show, the same bytes for the same rows."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mri_design.errors import InputError
from mri_design.scan.io.atomic import write_text

Row = Mapping[str, object]
"""One line of a table: column name to value."""

_DEFAULT_FLOAT = ".6g"
_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf|nan", re.ASCII)
_DIGITS = 3
_MOST_DECIMALS, _LARGEST = 6, 1e7


def write_csv(
    path: str | Path,
    rows: Sequence[Row],
    columns: Sequence[str] | None = None,
    formats: Mapping[str, str] | None = None,
) -> None:
    """Write rows as CSV; parameters as for `csv_text`."""
    write_text(Path(path), csv_text(rows, columns, formats))


def csv_text(
    rows: Sequence[Row], columns: Sequence[str] | None = None, formats: Mapping[str, str] | None = None
) -> str:
    """Rows as CSV text, one header line, ``\\n`` line ends on every platform.

    Text that a spreadsheet would run as a formula (it begins with = + - @ or a control character) gets an apostrophe
    in front, in the header too; numbers are left alone. `read_csv` takes the apostrophe off.

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
    names, texts = _texts(rows, columns, formats)
    return "".join(_csv_line([_harmless(text) for text in cells]) for cells in [names, *texts])


def read_csv(path: str | Path) -> list[dict[str, object]]:
    """Rows of a file that `write_csv` wrote: numbers as numbers, percentages as fractions, empty cells as None.

    Parameters
    ----------
    path : str or Path
        A file of this package; yes and no stay text.

    Raises
    ------
    OSError
        Where it cannot be read.
    """
    return [{name: _value(text) for name, text in row.items()} for row in read_csv_texts(path)]


def read_csv_texts(path: str | Path) -> list[dict[str, str]]:
    """Rows of a file that `write_csv` wrote, every cell as the text that was written, without a guarding apostrophe.

    Raises
    ------
    OSError
        Where it cannot be read.
    """
    with open(path, encoding="utf-8", newline="") as stream:
        header, *lines = ([_unquoted(cell) for cell in cells] for cells in csv.reader(stream))
    return [dict(zip(header, cells, strict=True)) for cells in lines]


def markdown_text(
    rows: Sequence[Row], columns: Sequence[str] | None = None, formats: Mapping[str, str] | None = None
) -> str:
    """Rows as a Markdown table, numeric columns aligned right; parameters as for `csv_text`."""
    names, texts = _texts(rows, columns, formats)
    rules = ["---:" if is_numeric(rows, name) else ":---" for name in names]
    header, *shown = ([_escape_markdown(text) for text in cells] for cells in [names, *texts])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [header, rules, *shown])


def _texts(
    rows: Sequence[Row], columns: Sequence[str] | None, formats: Mapping[str, str] | None
) -> tuple[list[str], list[list[str]]]:
    """Names of columns, and the cells of every row as text."""
    names, chosen = column_names(rows, columns), formats or {}
    return names, [[format_cell(row.get(name), chosen.get(name, _DEFAULT_FLOAT)) for name in names] for row in rows]


def column_names(rows: Sequence[Row], columns: Sequence[str] | None = None) -> list[str]:
    """The requested columns, or all in order of first appearance; errors as for `csv_text`."""
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


def shown_texts(rows: Sequence[Row], names: Sequence[str], formats: Mapping[str, str] | None = None) -> list[list[str]]:
    """Every cell as text for people: a column of floats without a format has one number of decimals.

    They are as many as give its smaller numbers (the lower quartile) three significant digits; columns of very small or
    very large numbers are written with powers of ten. Whole numbers and text stay as they are.
    """
    chosen = {name: _column_format([row.get(name) for row in rows]) for name in names} | dict(formats or {})
    return [[_shown(row.get(name), chosen[name]) for name in names] for row in rows]


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


def _csv_line(cells: Sequence[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(cells)  # cells with either sign are quoted
    return out.getvalue().removesuffix("\r\n") + "\n"


def _harmless(text: str) -> str:
    """The text, so that no spreadsheet takes it for a formula."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text.removesuffix("%")) else text


def _unquoted(text: str) -> str:
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def _value(text: str) -> object:
    if not text:
        return None
    share = text.endswith("%")
    if not _NUMBER.fullmatch(text.removesuffix("%")):
        return text
    if text.lstrip("+-").isdecimal():
        return int(text)
    return float(text.removesuffix("%")) / (100 if share else 1)


def _column_format(values: Sequence[object]) -> str:
    """The format of all numbers of a column; empty where there is no float among them."""
    floats = [float(v) for v in values if isinstance(v, (float, np.floating))]
    sizes = np.abs([v for v in floats if math.isfinite(v) and v])
    if not floats:
        return ""
    if not len(sizes) or np.all(sizes == np.round(sizes)):
        return ".0f"
    small = float(np.quantile(sizes, 0.25, method="lower"))
    decimals = max(_DIGITS - 1 - math.floor(math.log10(small)), 0)
    return f".{decimals}f" if decimals <= _MOST_DECIMALS and sizes.max() < _LARGEST else f".{_DIGITS - 1}e"


def _shown(value: object, number_format: str) -> str:
    if number_format and isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        value = float(value)
    return format_cell(value, number_format or _DEFAULT_FLOAT)


COMPARED = 3
"""Digits to which errors are compared: two errors are alike if these are."""


def alike(first: float, second: float) -> bool:
    """Whether two errors are the same as far as they are printed where they are compared."""
    return percent(first, COMPARED) == percent(second, COMPARED)


def percent(value: float, digits: int = 2) -> str:
    """A fraction in per cent with so many digits, or all before the point; a line never ends before the sign."""
    hundredths = 100 * value
    rounded = float(f"{hundredths:.{digits}g}")
    before = len(str(int(abs(rounded)))) if abs(rounded) >= 1 else 1
    form = f".{max(0, digits - before)}f" if abs(rounded) >= 1 else f".{digits}g"
    return f"{hundredths:{form}}\N{NO-BREAK SPACE}%"
