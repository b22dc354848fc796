"""An image, and where the method knows them its error bars, from samples along a trajectory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mri_design.experiment.non_local import left_out_because
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import (
    InferenceOptions,
    Method,
    Reconstruction,
    check_method,
    pixel_std,
    point_estimate,
    posterior_mean,
)
from mri_design.model.trajectory_slice import TrajectorySlice
from mri_design.status import Convergence, Status

__all__ = ["gridded", "reconstruct_samples"]

_NO_OPTIONS = InferenceOptions()


def reconstruct_samples(
    slice_model: TrajectorySlice,
    method: Method,
    recipe: Recipe,
    rng: np.random.Generator,
    options: InferenceOptions = _NO_OPTIONS,
) -> Reconstruction:
    """Reconstruct one slice.

    Parameters
    ----------
    slice_model : TrajectorySlice
        The slice.
    method : {"mean", "map", "least-squares", "zero-filled"}
        Posterior mean, MAP, least squares, or the gridded image, which for lines is the zero-filled one.
    recipe : Recipe
        Settings of inference and estimation; sites act on moduli whatever its model of the phase.
    rng : numpy Generator
        For the variances.
    options : InferenceOptions
        Signal level and callback.

    Returns
    -------
    Reconstruction
        Standard deviations are as the posterior has them: what would scale them learns from lines held back.

    Raises
    ------
    UsageError
        For an unknown method.
    """
    check_method(method)
    if method == "zero-filled":
        return gridded(slice_model)
    model = slice_model.model(options.signal)
    bayesian = method in ("mean", "map")
    left_out = ""
    if bayesian and slice_model.local_prior != slice_model.prior:
        left_out = left_out_because("it is for scans of lines.")
    if method != "mean":
        return replace(point_estimate(model, method, recipe), left_out=left_out)
    posterior, result = posterior_mean(model, recipe, rng, options)
    return replace(result, std=pixel_std(posterior, recipe.reconstruction.std_samples, rng), left_out=left_out)


def gridded(slice_model: TrajectorySlice) -> Reconstruction:
    """The gridded image as a reconstruction."""
    return Reconstruction(slice_model.gridded_image, None, Convergence(Status.CONVERGED, 1, 0.0))
