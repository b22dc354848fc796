"""What the study's targets take from the pages of other benchmarks, beside whose folder the study has its own."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mri_design.evaluation.tables import read_csv_texts

GOOD = (0.7, 1.4)
"""Summed variances over the squared error that count as right."""
VARIANCES = "default: variance ratio"
"""The column before that of the scaled error bars, in the tables of `non_local.py`."""


class Pages:
    """The folder that the other benchmarks write into; a page or table that is not there says nothing.

    Parameters
    ----------
    folder : Path
        Of ``series.md``, ``non-local-held-out.md``, ``recon-time.csv``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def right_error_bars(self) -> float | None:
        """Percentage of test masks whose scaled pixel variances, by the default recipe, sum to about the squared error.

        The page prints two digits behind the point, so a case on the very edge may be counted on the other side.
        """
        for header, *rows in self._tables("non-local-held-out.md"):
            if VARIANCES in header:
                column = header.index(VARIANCES) + 1
                low, high = GOOD
                return 100 * float(np.mean([low <= float(row[column]) <= high for row in rows]))
        return None

    def series(self, now: str, against: str, lines: Sequence[int] = ()) -> float | None:
        """Mean change in per cent of `calibrated` that has seen an earlier scan, over images and numbers of lines.

        Parameters
        ----------
        now : str
            What has become of the scan since, as the page says it.
        against : str
            The mask it is compared with, as the heading of the table ends.
        lines : sequence of int
            Numbers of lines to mean over; all of them without.
        """
        wanted = [f"{count} lines" for count in lines]
        for header, *rows in self._tables("series.md", under=against):
            named = [dict(zip(header, row, strict=True)) for row in rows]
            for row in named:
                if (row["scan now"], row["mask"]) == (now, "calibrated, earlier scan seen"):
                    columns = wanted or [name for name in header if name.endswith(" lines")]
                    return statistics.mean(float(row[name].removesuffix(" %")) for name in columns)
        return None

    def seconds(self, matrix: int) -> float | None:
        """Processor time of the default recipe's image over that of `local`, median over images of a grid."""
        path = self.folder / "recon-time.csv"
        rows = read_csv_texts(path) if path.exists() else []
        found = [float(row["default / local"]) for row in rows if row["grid"] == str(matrix)]
        return statistics.median(found) if found else None

    def _tables(self, page: str, under: str = "") -> list[list[list[str]]]:
        """Tables of a page in Markdown, each its header and its rows of cells; those under a heading that ends so."""
        path = self.folder / page
        tables: list[list[list[str]]] = []
        heading, inside = "", False
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            heading = line if line.startswith("#") else heading
            if line.startswith("| ") and heading.endswith(under):
                cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
                if not inside:
                    tables.append([])
                if not set("".join(cells)) <= {":", "-"}:
                    tables[-1].append(cells)
            inside = line.startswith("| ")
        return tables
