"""What a scan along a trajectory holds and what the package would make of it, in words."""

from __future__ import annotations

import numpy as np

from mri_design.errors import InputError
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.trajectories.preparing import prepare_samples
from mri_design.scan.calibration.trajectory_centre import dense_centre
from mri_design.scan.trajectory_data import TrajectoryData

__all__ = ["describe_samples"]


def describe_samples(data: TrajectoryData, recipe: Recipe) -> dict[str, str]:
    """Size, trajectory, noise, coils and provenance; what cannot be told says why instead.

    Parameters
    ----------
    data : TrajectoryData
        As read.
    recipe : Recipe
        Whose noise and calibration settings would be in force.

    Returns
    -------
    dict of str to str
        Label to text, in the order in which people ask.
    """
    ky, kx = data.grid_shape
    count = len(data.trajectory)
    reach = np.abs(data.trajectory).max(axis=0)
    side = dense_centre(data, min(ky, kx))
    return {
        "name": data.name,
        "grid": f"{ky} x {kx} pixels (ky, kx)",
        "slices, coils": f"{data.n_slices}, {data.n_coils}",
        "trajectory": f"{data.readouts} readouts of {count // data.readouts} samples, up to {reach[0]:.4g} (ky) and "
        f"{reach[1]:.4g} (kx) cycles per field of view",
        "samples": f"{count}, {count / (ky * kx):.1%} of the number of pixels",
        "dense": f"in the {side} x {side} central samples of the grid",
        **_calibration(data, recipe),
        **data.card,
    }


def _calibration(data: TrajectoryData, recipe: Recipe) -> dict[str, str]:
    try:
        scan = prepare_samples(data, recipe)
    except InputError as error:
        return {"calibration": f"not possible: {error}"}
    deviation = scan.unit * float(np.sqrt(scan.data.noise_variance or 0.0))
    peak = scan.unit * float(np.abs(scan.data.kspace).max())
    whitened = ", after whitening" if data.noise_covariance is not None and scan.data.noise_variance == 1 else ""
    return {
        "noise": f"sd {deviation:.4g} per real component, {scan.noise_source}{whitened}; largest sample {peak:.4g}",
        "coil maps": scan.maps_source,
    }
