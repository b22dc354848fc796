"""The order of measurement that a run over lines or over samples of a plane left, where it is not that of choice."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from mri_design.errors import InputError
from mri_design.evaluation.output.tables import read_csv
from mri_design.runs.export.stored_images import MOST_TEXT
from mri_design.scan.io.safe import check_file

ACQUISITION = "acquisition.csv"


def read_trains(folder: Path, unit: str) -> tuple[tuple[int, ...], ...] | None:
    """The trains of acquisition.csv; None where the order of measurement is that of choice, one after the other.

    Parameters
    ----------
    folder : Path
        Of the run.
    unit : str
        The column with the numbers: "line" or "sample".

    Raises
    ------
    InputError
        Where the file is damaged.
    """
    path = folder / ACQUISITION
    if not path.is_file():
        return None
    try:
        if check_file(path) > MOST_TEXT:
            raise ValueError("a very long file")
        rows = [(int(str(row["train"])), int(str(row[unit]))) for row in read_csv(path)]
    except (OSError, ValueError, KeyError) as error:
        field = f"{folder.name}/{ACQUISITION}"
        raise InputError(field=field, got=str(error), wanted=f"{unit}s and trains of a run") from error
    return tuple(tuple(number for _, number in train) for _, train in groupby(rows, key=lambda row: row[0]))
