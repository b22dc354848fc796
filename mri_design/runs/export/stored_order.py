"""The order in which a design over samples of a plane, spokes or arms of spirals measures, read from its folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mri_design.errors import InputError
from mri_design.evaluation.output.tables import read_csv
from mri_design.runs.counted import SAMPLES, SHOTS
from mri_design.scan.io.formats import read
from mri_design.scan.io.numpy_files.npy_stream import read_npy_stream
from mri_design.scan.io.safe import DEFAULT_LIMITS, check_file
from mri_design.scan.trajectory_data import TrajectoryData
from mri_design.sequences.orders import PlaneOrder, SpiralOrder, SpokeOrder

__all__ = ["read_plane", "read_shots"]


def read_plane(folder: Path) -> PlaneOrder | None:
    """The samples of a plane in the order of choice; None where the folder is of another design.

    Raises
    ------
    InputError
        Where the files are damaged or contradict each other.
    """
    path, mask_path = folder / SAMPLES, folder / "mask.npy"
    if not path.is_file():
        return None
    field, size = f"{folder.name}/{SAMPLES}", check_file(mask_path)
    with mask_path.open("rb") as stream:
        mask = read_npy_stream(stream, size, f"{folder.name}/mask.npy", DEFAULT_LIMITS)
    if mask.dtype != np.bool_ or mask.ndim != 2:
        got = f"{mask.dtype} {mask.shape}"
        raise InputError(field=f"{folder.name}/mask.npy", got=got, wanted="bool (ky, kz), as of a plane")
    try:
        check_file(path)
        numbers = [int(str(row["sample"])) for row in read_csv(path)]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(field=field, got=str(error)[:120], wanted="the samples of a run") from error
    if sorted(numbers) != np.flatnonzero(mask).tolist():
        raise InputError(field=field, got=f"{len(numbers)} samples other than those of mask.npy", wanted="the same")
    rows, columns = mask.shape
    return PlaneOrder(tuple(divmod(number, columns) for number in numbers), (rows, columns))


def read_shots(folder: Path) -> tuple[SpokeOrder | SpiralOrder, int] | None:
    """The spokes or arms in the order of choice, and the samples of each; None where the folder is of another design.

    Arms are readouts whose first sample is the one nearest to the centre of k-space.

    Raises
    ------
    InputError
        Where the trajectory cannot be read, is none of spokes or arms, or one of spokes on a grid that is not square.
    """
    if not (folder / SHOTS).is_file():
        return None
    path = folder / "trajectory.npz"
    scan = read(path)
    if not isinstance(scan, TrajectoryData):
        raise InputError(field=str(path), got="a scan on a grid", wanted="the trajectory of a run")
    trajectory = scan.trajectory.reshape(scan.readouts, -1, 2)
    if not np.linalg.norm(trajectory, axis=2).argmin(axis=1).any():
        return SpiralOrder(trajectory, scan.grid_shape), trajectory.shape[1]
    if scan.grid_shape[0] != scan.grid_shape[1]:
        raise InputError(field=f"{path}: matrix", got=str(scan.grid_shape), wanted="a square, for spokes")
    return SpokeOrder.of_trajectory(trajectory), trajectory.shape[1]
