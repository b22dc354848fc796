"""Draws of an image with the spectrum that its errors have, by which means of regions are as wrong as predicted.

The posterior of a sparse model spreads what is not known over k-space too evenly: the errors of its mean are far larger
than its draws near the centre and smaller far out. A map of standard deviations does not show that, but the mean of a
region does, which knows low frequencies only. So every sample of the draws is multiplied by the root of a factor. How
the squared error of samples that were not measured falls with their distance from the centre is alike in most images,
and how much larger it is in this one shows on the readouts that were held back: what was found there beyond the noise,
over what draws expect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.evidence.held_back import HeldBack
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.operators.conventions import to_image, to_kspace
from mri_design.readouts import radii

Numbers = NDArray[np.float64]

EDGES = (0.0, 1 / 12, 1 / 6, 1 / 4, 3 / 8, 13 / 24, 3 / 4, 1.0, 1.5)
"""Edges of rings of k-space, |k| in units of half the grid."""
MIDDLES = tuple((low + high) / 2 for low, high in pairwise(EDGES))
KNOWN = (2.34, 0.59, 0.35, 0.28, 0.16, 0.03, -0.11, -0.20)
"""Logarithm of the squared error over that of draws, of measured samples, by ring."""
USUAL = np.array((1.66, 1.66, 1.66, 1.35, 0.88, 0.34, -0.25, -0.39))
"""Logarithm of what is found on readouts held back over what draws expect, by ring, in the mean of training scans."""
OFFSETS = np.array((2.48, 2.48, 2.33, 1.63, 1.38, 1.08, 0.44, -0.42))
SLOPES = np.array((0.41, 0.41, 0.41, 0.49, 0.26, 0.21, 0.33, 0.37))
"""Logarithm of the squared error over that of draws, of samples that were not measured: the offset where as much is
found as is usual, and the slope times what is found beyond it (benchmarks/draw_spectrum.py at commit
e84cd693 learnt all of these)."""
BRIGHTNESS = 0.1
"""Standard deviation of an image's brightness, as a whole, over that of its pixels: a tenth, as on training scans."""
_LEARNT = 1 / 6
"""Radius from which on something is held back in scans that taught: nearer, what is found in the next ring holds."""
_FEWEST, _DRAWS, _LEAST = 9, 8, 0.05
_AT_ONCE = 8
"""Draws that are solved for together, to bound the memory."""
_SMOOTH, _ROUNDS = 2.0, 4
"""Pixels over which variances of draws are smoothed, and how often what is left of the difference is made up for."""
_TOLERANCE = 1e-3
"""Of the solver: less would leave out of the draws what varies slowly over the image, as means of regions do."""


def with_spectrum_of_errors(deviations: Array, noise_variance: float, found: Numbers | None) -> Array:
    """Draws of u - mean, (draw, ky, kx), whose power in k-space is that of errors.

    A sample counts as measured by as much of its power as is noise.

    Parameters
    ----------
    deviations : complex array, shape (draw, ky, kx)
        As the posterior has them, in the units of the data.
    noise_variance : float
        Per real component.
    found : float array, shape (ring,), or None
        See `found_ratios`.
    """
    samples = to_kspace(deviations)
    power = np.mean(np.abs(samples) ** 2, axis=0)
    noise = 2 * noise_variance * (1 + 2 / np.sqrt(len(samples)))  # the most that so few draws have of it
    known = np.minimum(noise / np.maximum(power, np.finfo(power.dtype).tiny), 1)
    places = radii((power.shape[0], power.shape[1]))
    of_noise, of_rest = (np.exp(np.interp(places, MIDDLES, ring)) for ring in (KNOWN, error_ratios(found)))
    factor = np.sqrt(known * of_noise + (1 - known) * of_rest)
    return np.asarray(to_image(samples * factor), dtype=deviations.dtype)


def with_brightness(deviations: Array, image: Array, rng: np.random.Generator) -> Array:
    """Draws of u - mean, (draw, ky, kx), between which the brightness of the image (ky, kx) varies, too.

    The modulus of a mean is too small wherever what is missing would have added to it, and so everywhere at once.
    """
    size = np.sqrt(np.sum(np.abs(image) ** 2, dtype=np.float64))
    if not size:
        return deviations
    spread = np.sqrt(np.mean(np.sum(np.abs(deviations) ** 2, axis=(1, 2), dtype=np.float64))) / size
    factors = BRIGHTNESS * spread * rng.normal(size=(len(deviations), 1, 1))
    return np.asarray(deviations + factors * image, dtype=deviations.dtype)


def error_ratios(found: Numbers | None) -> Numbers:
    """Logarithm of the squared error over that of draws, (ring,), of samples that were not measured."""
    beyond = np.zeros(len(USUAL)) if found is None else everywhere(found) - USUAL
    return np.asarray(OFFSETS + SLOPES * np.nan_to_num(beyond))


def everywhere(found: Numbers) -> Numbers:
    """What is found by ring, and where nothing is held back that of the nearest ring; NaN where there is none."""
    there = np.flatnonzero(np.isfinite(found))
    if not there.size:
        return found
    return np.asarray(found[there[np.abs(there[:, None] - np.arange(len(found))).argmin(axis=0)]])


def found_ratios(without: HeldBack, seed: int) -> Numbers:
    """Logarithm of the energy found on the readouts held back over what draws of the others expect there, by ring.

    Both are taken to k-space by the adjoint of these readouts, and what noise makes of it is taken off.

    Parameters
    ----------
    without : HeldBack
        The readouts, and what is inferred from the others.
    seed : int
        Of draws and noise.

    Returns
    -------
    float array, shape (ring,)
        NaN for rings in which hardly anything is held back, and near the centre.
    """
    rng = np.random.default_rng([seed, 3])
    posterior, model = without.posterior, without.slice_model
    measurement, data = model.measurement(without.held), model.acquire(without.held)
    sd = float(np.sqrt(model.noise_variance))

    def power(samples: Array) -> Numbers:
        return np.asarray(np.abs(to_kspace(measurement.adjoint(samples))) ** 2, dtype=np.float64)

    draws = posterior.draw(rng, _DRAWS)[0]
    parts = rng.normal(scale=sd, size=(2, _DRAWS, *data.shape))
    found = power(data - measurement(posterior.mean))
    expected = np.mean([power(sd * measurement(one)) for one in draws], axis=0)
    noise = np.mean([power((real + 1j * part).astype(data.dtype)) for real, part in zip(*parts, strict=True)], axis=0)
    places, ratios = radii((model.shape[0], model.shape[1])), []
    for low, high in pairwise(EDGES):
        ring = (places >= low) & (places < high) & (noise > 1e-6 * noise.max())
        there, beyond = float(expected[ring].sum()), float(found[ring].sum() - noise[ring].sum())
        enough = low >= _LEARNT and np.count_nonzero(ring) >= _FEWEST and there > 0
        ratios.append(np.log(max(beyond / there, _LEAST)) if enough else np.nan)
    return np.array(ratios)


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
        What draws are multiplied by, see `Image.times`.
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
