"""Description in words of a scan along a trajectory: size, sampling, calibration, provenance."""

from __future__ import annotations

import numpy as np

from mri_design.errors import InputError
from mri_design.experiment.description import noise_sentence
from mri_design.experiment.inputs import DEAD_COILS
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.trajectories.preparing import samples_with_known_noise, source_of_sample_maps
from mri_design.scan.calibration.trajectory_centre import dense_centre
from mri_design.scan.data import TrajectoryData
from mri_design.scan.sampling import refused_samples

SAME_PLACE = 1e-3
"""Cycles per field of view: samples on the same point of a grid this fine were measured at the same place."""


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
    refused = refused_samples(data.kspace)
    return {
        "name": data.name,
        "grid": f"{ky} x {kx} pixels (ky, kx)",
        "slices, coils": f"{data.n_slices}, {data.n_coils}",
        "trajectory": f"{data.n_readouts} readouts of {count // data.n_readouts} samples, up to {reach[0]:.4g} (ky) "
        f"and {reach[1]:.4g} (kx) cycles per field of view",
        **({"samples": refused} if refused else _sampling(data) | _calibration(data, recipe)),
        **data.header,
    }


def _sampling(data: TrajectoryData) -> dict[str, str]:
    """Number and density of the samples."""
    ky, kx = data.grid_shape
    count, side = len(data.trajectory), dense_centre(data, min(ky, kx))
    return {
        "samples": f"{count}, {count / (ky * kx):.1%} of the number of pixels{_repeated(data)}",
        "density weights": "computed from the trajectory" if data.density is None else "those of the file",
        "dense": f"in the {side} x {side} central samples of the grid",
    }


def _repeated(data: TrajectoryData) -> str:
    """Tell how many samples share their place with others, as spokes share the centre; empty where none do."""
    _, times = np.unique(np.round(data.trajectory / SAME_PLACE).astype(np.int64), axis=0, return_counts=True)
    shared = int(times[times > 1].sum())
    if not shared:
        return ""
    places = int(np.count_nonzero(times > 1))
    where = "one place" if places == 1 else f"{places} places"
    return f"; {shared} of them lie at {where} that others share, and each counts as a measurement of its own"


def _calibration(data: TrajectoryData, recipe: Recipe) -> dict[str, str]:
    """Noise and coil maps as `prepare_samples` would have them; no maps are made."""
    try:
        scan, source, unit = samples_with_known_noise(data, recipe)
        maps, *_ = source_of_sample_maps(scan, recipe)
    except InputError as error:
        return {"calibration": f"not possible: {error}"}
    whitened = data.noise_covariance is not None and scan.noise_variance == 1
    coils = {"coils": scan.header[DEAD_COILS]} if DEAD_COILS in scan.header else {}
    return {"noise": noise_sentence(scan, unit, source, whitened), **coils, "coil maps": maps}
