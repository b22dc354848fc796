"""Measurements of the study so far: plain csv files, written again as pieces are finished, read back to go on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mri_design.evaluation.tables import Row, csv_text, format_cell, read_csv_texts
from mri_design.scan.io.atomic import write_text

TABLES: dict[str, tuple[str, ...]] = {
    "cells": ("section", "group", "reconstructor", "strategy", "lines", "draw", "image"),
    "masks": ("section", "group", "strategy", "design", "lines", "draw", "image"),
    "tuned": ("section", "group", "reconstructor", "family", "lines", "strategy", "start", "design"),
    "predictions": ("section", "group", "strategy", "mask", "image", "lines"),
    "training": ("section", "group", "strategy"),
}
"""Every table with the columns that name a row."""
BETWEEN_WRITES = 20.0  # seconds
TEXT = ("mask", "image", "strategy", "group", "section", "design", "family", "reconstructor")

Key = tuple[object, ...]


@dataclass
class Ledger:
    """All rows by table and key.

    Parameters
    ----------
    folder : Path
        Where the csv files are.
    """

    folder: Path
    rows: dict[str, dict[Key, Row]] = field(default_factory=dict)
    written: float = 0.0

    @classmethod
    def open(cls, folder: Path) -> Ledger:
        """With what an earlier run left."""
        found = cls(folder)
        for table in TABLES:
            found.rows[table] = {}
            path = folder / f"{table}.csv"
            if path.exists():
                for cells in read_csv_texts(path):
                    found.keep(table, {name: parsed(name, text) for name, text in cells.items()})
        return found

    def keep(self, table: str, row: Row) -> None:
        """Add a row, or replace the one of the same key; numbers as they will be read back."""
        read_back = {name: parsed(name, format_cell(value)) for name, value in row.items()}
        self.rows[table][tuple(row[name] for name in TABLES[table])] = read_back

    def find(self, table: str, *key: object) -> Row | None:
        """The row of a key."""
        return self.rows[table].get(key)

    def has(self, table: str, row: Row) -> bool:
        """Whether there is a row of the same key."""
        return self.find(table, *(row[name] for name in TABLES[table])) is not None

    def of(self, table: str, **wanted: object) -> list[Row]:
        """Rows whose columns have the wanted values."""
        return [row for row in self.rows[table].values() if all(row[name] == v for name, v in wanted.items())]

    def forget(self, matches: Callable[[Row], bool]) -> None:
        """Drop rows of all tables."""
        for rows in self.rows.values():
            for key in [key for key, row in rows.items() if matches(row)]:
                del rows[key]

    def write(self, now: bool = True) -> None:
        """Every table to its file; ``now=False`` waits until some seconds have passed since the last time."""
        if not now and time.monotonic() - self.written < BETWEEN_WRITES:
            return
        for table, rows in self.rows.items():
            if rows:
                write_text(self.folder / f"{table}.csv", csv_text(list(rows.values())))
            else:
                (self.folder / f"{table}.csv").unlink(missing_ok=True)
        self.written = time.monotonic()


def collect(
    ledger: Ledger, table: str, named: Sequence[Row], found: Iterable[Row], show: Callable[[int, int], None]
) -> None:
    """Keep results as they come, each under its name."""
    for done, (name, result) in enumerate(zip(named, found, strict=True), 1):
        ledger.keep(table, {**name, **result})
        ledger.write(now=False)
        show(done, len(named))
    ledger.write()


def parsed(name: str, text: str) -> object:
    """Value of a cell of our own csv."""
    if text in ("", "yes", "no"):
        return {"": "" if name in TEXT else None, "yes": True, "no": False}[text]
    if name in TEXT:
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def numbers(rows: Sequence[Mapping[str, object]], column: str) -> list[float]:
    """A column of rows that all have it."""
    return [float(str(row[column])) for row in rows]
