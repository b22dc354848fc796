"""What a run over whole lines left in its folder, read back and held against itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, UsageError
from mri_design.runs.export.stored_images import StoredImages, read_images, read_manifest
from mri_design.runs.export.stored_trains import ACQUISITION, read_trains
from mri_design.sequences.orders import LineOrder

_IMAGE = "--to nifti and --to dicom take its image"
_WITHOUT_LINES = {
    "shots": "is a design over shots, which chose no lines: {image}, --to seq makes a sequence of them, and mri-design "
    "convert takes its trajectory.npz to other formats",
    "samples": "is a run over samples of a plane, which are no lines: {image}, --to cfl, csv and npy its samples, and "
    "--to seq makes a sequence of the design that chose them",
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
    trains = read_trains(folder, "line")
    if trains is None:
        field = f"{folder.name}/manifest.json: lines"
        order = LineOrder.of_lines(manifest["lines"], len(mask))
    else:
        field = f"{folder.name}/{ACQUISITION}"
        try:
            order = LineOrder(trains, len(mask))
        except InputError as error:
            raise InputError(field=field, got=str(error), wanted="lines and trains of a run") from error
    if sorted(order.lines) != np.flatnonzero(mask).tolist():
        raise InputError(
            field=field, got=f"{len(order.lines)} lines other than those of mask.npy", wanted="the same lines"
        )
    return order
