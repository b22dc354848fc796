"""Errors of images one by one, kept in a file as they come, and their changes against another strategy's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mri_design.evaluation.tables import Row, csv_text, read_csv_texts
from mri_design.scan.io.atomic import write_text

KEY = ("matrix", "coils", "acceleration", "strategy", "image", "draw")


@dataclass
class Kept:
    """Rows of one table, kept in a file as they come.

    Parameters
    ----------
    path : Path
        The file.
    rows : dict
        By the columns of the key.
    key : tuple of str
        Columns that tell rows from one another.
    """

    path: Path
    rows: dict[tuple[str, ...], Row] = field(default_factory=dict)
    key: tuple[str, ...] = KEY

    @classmethod
    def open(cls, path: Path, key: tuple[str, ...] = KEY) -> Kept:
        """With what an earlier run left."""
        found = cls(path, key=key)
        for row in read_csv_texts(path) if path.exists() else []:
            found.rows[tuple(row[name] for name in key)] = dict(row)
        return found

    def has(self, row: Row) -> bool:
        """Whether there is a row of the same key."""
        return self._key(row) in self.rows

    def keep(self, row: Row) -> None:
        """Add a row and write the file."""
        self.rows[self._key(row)] = row
        write_text(self.path, csv_text(list(self.rows.values())))

    def _key(self, row: Row) -> tuple[str, ...]:
        return tuple(_text(row[name]) for name in self.key)

    def draws(self, column: str = "error", /, **wanted: object) -> dict[str, list[float]]:
        """Errors of all draws by image, of the rows whose columns have the wanted values."""
        found: dict[str, list[float]] = {}
        for row in self.rows.values():
            if all(_text(row[name]) == _text(value) for name, value in wanted.items()):
                found.setdefault(str(row["image"]), []).append(float(str(row[column])))
        return found

    def errors(self, **wanted: object) -> dict[str, float]:
        """Their means over draws."""
        return {image: float(np.mean(errors)) for image, errors in self.draws(**wanted).items()}


def _text(value: object) -> str:
    return f"{float(str(value)):g}" if str(value).replace(".", "", 1).isdigit() else str(value)


def change_columns(
    draws: Mapping[str, Mapping[str, Sequence[float]]], strategy: str, against: str
) -> dict[str, object] | None:
    """Mean error of a strategy, and its change image by image, on the images that both strategies have.

    Parameters
    ----------
    draws : mapping of str to mappings
        By strategy, errors of all draws by image, as `Kept.draws` has them.
    strategy, against : str
        Which one, and which one it is held against.

    Returns
    -------
    dict, or None where there is no such image
    """
    mine, theirs = draws[strategy], draws.get(against, {})
    images = [image for image in mine if image in theirs]
    if not images:
        return None
    errors, others = (np.array([np.mean(found[image]) for image in images]) for found in (mine, theirs))
    change = errors / others - 1
    return {
        "images": len(images),
        "masks": sum(len(mine[image]) for image in images),
        "error": float(errors.mean()),
        "against": against,
        "change_percent": 100 * float(change.mean()),
        "worst_percent": 100 * float(change.max()),
        "better_share": float(np.mean(change < 0)),
    }
