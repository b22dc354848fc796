"""What a run over whole lines left in its folder, read back and held against itself."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, UsageError
from mri_design.evaluation.output.tables import read_csv
from mri_design.runs.export.stored_images import MOST_TEXT, StoredImages, read_images, read_manifest
from mri_design.scan.io.safe import check_file
from mri_design.sequences.orders import LineOrder

__all__ = ["StoredRun", "read_run"]

_IMAGE = "--to nifti and --to dicom take its image"
_WITHOUT_LINES = {
    "shots": "is a design over shots, which chose no lines: {image}, --to seq makes a sequence of them, and mri-design "
    "convert takes its trajectory.npz to other formats",
    "samples": "is a run over samples of a plane, which are no lines: {image}, mask.npy has the samples, and of the "
    "design that chose them samples.csv has their order and --to seq makes a sequence",
    "readouts": "is a reconstruction of samples along a trajectory, which are no lines: {image}, mri-design convert "
    "takes the trajectory to other formats, and --to seq makes a sequence of the design that chose it",
}
"""What can be had of runs that measured something else, by `StoredImages.counted`."""


@dataclass(frozen=True, kw_only=True)
class StoredRun(StoredImages):
    """The results of one run over whole lines: its images, and its lines.

    Parameters
    ----------
    order : LineOrder
        Lines in the order of measurement, in echo trains.
    """

    order: LineOrder


def read_run(folder: Path) -> StoredRun:
    """Read the folder of a run over lines.

    Parameters
    ----------
    folder : Path
        Of a finished design, reconstruction or protocol.

    Returns
    -------
    StoredRun

    Raises
    ------
    UsageError
        Where it is no folder of such a run, or of one that has not ended or chose no whole lines.
    InputError
        Where its files are damaged or contradict each other.
    """
    images = read_images(folder)
    if images.counted != "lines":
        raise UsageError(f"{folder} {_WITHOUT_LINES[images.counted].format(image=_IMAGE)}")
    return StoredRun(order=_order(folder, read_manifest(folder), images.mask), **vars(images))


def _order(folder: Path, manifest: dict[str, Any], mask: NDArray[np.bool_]) -> LineOrder:
    """Lines and trains of acquisition.csv where the order of measurement is another one, else those of the manifest."""
    path = folder / "acquisition.csv"
    if path.is_file():
        field = f"{folder.name}/acquisition.csv"
        try:
            if check_file(path) > MOST_TEXT:
                raise ValueError("a very long file")
            rows = [(int(str(row["train"])), int(str(row["line"]))) for row in read_csv(path)]
            trains = tuple(tuple(line for _, line in train) for _, train in groupby(rows, key=lambda row: row[0]))
            order = LineOrder(trains, len(mask))
        except (OSError, ValueError, KeyError) as error:
            raise InputError(field=field, got=str(error), wanted="lines and trains of a run") from error
    else:
        field = f"{folder.name}/manifest.json: lines"
        order = LineOrder.of_lines(manifest["lines"], len(mask))
    if sorted(order.lines) != np.flatnonzero(mask).tolist():
        raise InputError(
            field=field, got=f"{len(order.lines)} lines other than those of mask.npy", wanted="the same lines"
        )
    return order
