"""Draws of an image from its posterior, for errors of what is computed from several pixels, as the mean of a region."""

from __future__ import annotations

import numpy as np

from mri_design.errors import InputError, UsageError
from mri_design.experiment.recipe import ReconstructionRecipe
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.scan.io.safe import DEFAULT_LIMITS

_AT_ONCE = 8
"""Draws that are solved for together, to bound the memory."""
_TOLERANCE = 1e-3
"""Of the solver: less would leave out of the draws what varies slowly over the image, as means of regions do."""


def check_draws(recipe: ReconstructionRecipe) -> None:
    """Refuse draws of an image that has no posterior.

    Raises
    ------
    UsageError
        For another method than the posterior mean.
    """
    if recipe.draws and recipe.method != "mean":
        raise UsageError(
            f"{recipe.draws} draws are asked for, and only the posterior mean has any: leave them out (--draws), or "
            f"the method {recipe.method}"
        )


def check_size_of_draws(recipe: ReconstructionRecipe, images: int, grid: tuple[int, int]) -> None:
    """Refuse more draws of all images of a run than one file may hold.

    Raises
    ------
    InputError
        Saying how many there could be.
    """
    each, most = images * grid[0] * grid[1] * np.dtype(np.complex64).itemsize, DEFAULT_LIMITS.max_bytes
    if recipe.draws * each > most:
        raise InputError(
            field="draws",
            got=f"{recipe.draws} of {images} images of {grid[0]} x {grid[1]} pixels, {recipe.draws * each / 1e9:.3g} "
            "GB",
            wanted=f"{most / 1e9:.3g} GB at most, {most // each} draws",
            cure="Ask for fewer (--draws), or for fewer slices (--slices).",
        )


def posterior_deviations(posterior: GaussianPosterior, count: int, rng: np.random.Generator) -> Array | None:
    """Draws of u - mean in the units of the data, (draw, ky, kx); None where none are asked for.

    They are others than those behind the variances, to which the site precisions of the posterior were fitted.
    """
    if not count:
        return None
    counts = [min(_AT_ONCE, count - done) for done in range(0, count, _AT_ONCE)]
    drawn = np.concatenate([posterior.draw(rng, few, tolerance=_TOLERANCE)[0] for few in counts])
    return np.asarray(drawn * np.sqrt(posterior.model.noise_variance), dtype=posterior.mean.dtype)


def scaled_deviations(deviations: Array, own: Array, wanted: Array) -> Array:
    """Deviations whose standard deviation is ``own`` at each pixel, made those of a map (ky, kx) that is ``wanted``.

    Correlations of pixels stay as they are. The variances of the deviations then sum to those of the map, whose ``own``
    rests on few draws.
    """
    scaled = deviations * np.divide(wanted, own, out=np.ones_like(own), where=own > 0)
    found, total = np.sum(np.abs(scaled) ** 2, dtype=float) / len(scaled), np.sum(wanted**2, dtype=float)
    return np.asarray(scaled * np.sqrt(total / found if found else 1.0), dtype=deviations.dtype)
