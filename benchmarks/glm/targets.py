"""Targets of the studies on generalized linear models, and the one table that all parts share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mri_design.evaluation.tables import Row, csv_text, read_csv_texts
from mri_design.scan.io.atomic import write_text

COLUMNS = ["name", "target", "measured", "unit", "met"]


@dataclass(frozen=True)
class Target:
    """One row of targets.csv.

    Parameters
    ----------
    name : str
        What is measured, with its conditions; the table puts "PART: " before it.
    bound : float or None
        The goal; None where a number is reported, whatever it is.
    measured : float or None
        None where it could not be measured, which is not met.
    unit : str
        Of goal and measurement.
    at_least : bool
        Whether more is better.
    """

    name: str
    bound: float | None
    measured: float | None
    unit: str
    at_least: bool = False

    def row(self, part: str) -> Row:
        """As it stands in the table; a measured NaN is not met."""
        met = self.measured is not None
        if self.measured is not None and self.bound is not None:
            met = self.measured >= self.bound if self.at_least else self.measured <= self.bound
        goal = "reported" if self.bound is None else f"{'>=' if self.at_least else '<='} {self.bound:.10g}"
        return {
            "name": f"{part}: {self.name}",
            "target": goal,
            "measured": None if self.measured is None else float(f"{self.measured:.10g}"),
            "unit": self.unit,
            "met": bool(met),
        }


def write_targets(path: Path, parts: Sequence[str], measured: Mapping[str, Sequence[Target]]) -> list[Row]:
    """Write the table: new rows of the parts in ``measured``, the rows that the file has of the others.

    Parameters
    ----------
    parts : sequence of str
        Every part, in the order of the table.
    """
    kept: list[Row] = []
    if path.exists():
        kept = list(read_csv_texts(path))
    rows: list[Row] = []
    for part in parts:
        if part in measured:
            rows += [target.row(part) for target in measured[part]]
        else:
            rows += [row for row in kept if str(row["name"]).startswith(f"{part}: ")]
    write_text(path, csv_text(rows, COLUMNS, {"measured": ".10g"}))
    return rows
