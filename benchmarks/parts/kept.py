"""Tables that benchmarks go on from: what has been measured stays, and cells that are empty are measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mri_design.evaluation.tables import Row, read_csv_texts, write_csv


def lacking(row: Row, names: Sequence[str]) -> list[str]:
    """Which columns of a row are empty."""
    return [name for name in names if row.get(name, "") == ""]


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
    def at(cls, path: Path, *key: str) -> Kept:
        """What the file holds."""
        rows = read_csv_texts(path) if path.is_file() else []
        return cls(path, key, {tuple(row[name] for name in key): row for row in rows})

    def row(self, named: Row) -> dict[str, object]:
        """A row's names and what has been measured of it; `put` makes it a part of the table."""
        return {**named, **self.rows.get(self._name(named), {})}

    def put(self, row: Row) -> None:
        """Keep a row, and say what it has."""
        self.rows[self._name(row)] = row
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_csv(self.path, list(self.rows.values()))
        print(*row.values(), sep=" | ", flush=True)

    def _name(self, row: Row) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in self.key)
