"""Draws of an image from its posterior, for errors of what is computed from several pixels, as the mean of a region."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy  # whose parts are loaded when they are first used

from mri_design.brief import briefly
from mri_design.errors import InputError, UsageError, option
from mri_design.evidence.draw_spectrum import found_ratios, with_brightness, with_spectrum_of_errors
from mri_design.evidence.prediction import HeldBack
from mri_design.experiment.recipe import ReconstructionRecipe
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.scan.io.safe import DEFAULT_LIMITS

_AT_ONCE = 8
"""Draws that are solved for together, to bound the memory."""
_SMOOTH, _ROUNDS = 2.0, 4
"""Pixels over which variances of draws are smoothed, and how often what is left of the difference is made up for."""
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
            f"{recipe.draws} draws are asked for, and only the posterior mean has any: leave out {option('draws')}, or "
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
            cure=f"Ask for fewer ({option('draws')}), or for fewer slices ({option('slices')}).",
        )


@briefly
@dataclass(frozen=True)
class PosteriorDraws:
    """Draws images from the posterior behind one: with the spectrum of its errors, and its standard deviations.

    Parameters
    ----------
    posterior : GaussianPosterior
        Of the image.
    image, std : array, shape (ky, kx)
        The image and the standard deviations of its pixels, in the units of the data.
    seed, number : int
        Of the run and of the image in it: draws of different images are independent.
    without : HeldBack, optional
        What other readouts say of those held back.
    unit : float or array, shape (ky, kx)
        What draws are multiplied by, see `Reconstruction.times`.
    """

    posterior: GaussianPosterior
    image: Array
    std: Array
    seed: int
    number: int
    without: HeldBack | None
    unit: float | Array = 1.0

    def __call__(self, count: int, seed: int | None = None) -> Array:
        """Draws (draw, ky, kx): of the run's seed those that ``reconstruct`` makes, of another one others."""
        seed = self.seed if seed is None else seed
        rng = np.random.default_rng([seed, 2, self.number])
        drawn = posterior_deviations(self.posterior, count, rng)
        found = None if self.without is None else found_ratios(self.without, self.seed)
        drawn = with_spectrum_of_errors(drawn, self.posterior.model.noise_variance, found)
        drawn = scaled_deviations(with_brightness(drawn, self.posterior.mean, rng), self.std)
        return np.asarray((self.image + drawn) * self.unit, dtype=self.image.dtype)

    def times(self, unit: float | Array) -> PosteriorDraws:
        """In other units: times a number, or a number for each pixel."""
        return replace(self, unit=self.unit * unit)


def posterior_deviations(posterior: GaussianPosterior, count: int, rng: np.random.Generator) -> Array:
    """Draws of u - mean in the units of the data, (draw, ky, kx).

    They are others than those behind the variances, to which the site precisions of the posterior were fitted.
    """
    counts = [min(_AT_ONCE, count - done) for done in range(0, count, _AT_ONCE)]
    drawn = np.concatenate([posterior.draw(rng, few, tolerance=_TOLERANCE)[0] for few in counts])
    return np.asarray(drawn * np.sqrt(posterior.model.noise_variance), dtype=posterior.mean.dtype)


def scaled_deviations(deviations: Array, std: Array) -> Array:
    """Deviations (draw, ky, kx) times a smooth map, so that their variances are those of a map (ky, kx) of deviations.

    Their own variances are those of few draws, and are known well enough as means over some pixels. In all they are
    those of the map.
    """
    power = np.mean(np.abs(deviations) ** 2, axis=0, dtype=np.float64)
    wanted, scale = scipy.ndimage.gaussian_filter(std.astype(np.float64) ** 2, _SMOOTH), np.ones(std.shape)
    for _ in range(_ROUNDS):
        near = scipy.ndimage.gaussian_filter(scale * power, _SMOOTH)
        scale *= np.divide(wanted, near, out=np.zeros_like(near), where=near > 0)
    total = np.sum(scale * power)
    scale *= np.sum(std**2, dtype=np.float64) / total if total else 1.0
    return np.asarray(deviations * np.sqrt(scale), dtype=deviations.dtype)
