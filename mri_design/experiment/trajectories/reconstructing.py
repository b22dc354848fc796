"""An image, and where the method knows them its error bars, from samples along a trajectory."""

from __future__ import annotations

import numpy as np

from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import InferenceOptions, Method, Reconstruction, reconstruct
from mri_design.model.mr_image import MRSlice

_NO_OPTIONS = InferenceOptions()


def reconstruct_samples(
    slice_model: MRSlice,
    method: Method | None = None,
    recipe: Recipe | None = None,
    rng: np.random.Generator | None = None,
    options: InferenceOptions = _NO_OPTIONS,
) -> Reconstruction:
    """Reconstruct one slice from all its readouts.

    Parameters
    ----------
    slice_model : MRSlice
        The slice, as `PreparedSamples.slice_model` makes it.
    method : {"mean", "map", "least-squares", "zero-filled"}, optional
        Posterior mean, MAP, least squares, or the gridded image, which for lines is the zero-filled one.
    recipe, rng
        As for `reconstruct`.
    options : InferenceOptions
        Signal level and callback.

    Returns
    -------
    Reconstruction
        Standard deviations are as the posterior has them: what would scale them has learnt on lines.

    Raises
    ------
    UsageError
        For an unknown method.
    """
    return reconstruct(slice_model, range(slice_model.candidates.size), method, recipe, rng, options=options)
