"""Tables that are measured once: a run that was stopped goes on from the files it left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from mri_design.evaluation.tables import Row, csv_text, read_csv_texts
from mri_design.scan.io.atomic import write_text


def measured_once(path: Path, measure: Callable[[], Sequence[Row]], anew: bool) -> list[Row]:
    """Rows of the table at ``path``; measured and written where it is missing or ``anew``. As they are read back."""
    if anew or not path.exists():
        write_text(path, csv_text(list(measure())))
    return [{name: parsed(cell) for name, cell in row.items()} for row in read_csv_texts(path)]


def parsed(cell: str) -> object:
    """What a cell of our own table stands for."""
    if cell in ("", "yes", "no"):
        return {"": None, "yes": True, "no": False}[cell]
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell
