"""Random heads: scenes with the spectrum, the dark surroundings and the phase of real ones, without any real image.

A few ranges (how spectra fall, how their sides differ) were held against training images.

A ring (scalp and skull) around a brain of random ellipses with sizes from a power law (the dead leaves of Lee, Mumford
& Huang 2001) and folded bands; texture in the tissue; a phase that is flat with local exceptions, smooth, or rough; one
side of k-space a little brighter than the other. Strategies that learn before they see a scan learn from these.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.errors import require_choice, require_random
from mri_design.scan.simulation.scenes import checked_shape, pixel_positions, rough_phase, smooth_phase

Values = NDArray[np.float64]
HeadPhase = Literal["any", "flat", "smooth", "rough"]

_KINDS: tuple[HeadPhase, ...] = ("flat", "smooth", "rough")
_SHARES = (0.45, 0.25, 0.3)
_SMALLEST, _LARGEST = 0.012, 0.25
"""Radii of the leaves, in fields of view."""
_SIZE_POWER = 2.2
"""Leaves larger than r are as many as r to minus this."""
_UNEVENNESS = 0.2
"""Nats in amplitude between the centre of k-space and its edge, standard deviation: relaxation along an echo train."""


def random_head(
    shape: int | tuple[int, int], rng: np.random.Generator, *, phase: HeadPhase = "any"
) -> NDArray[np.complex128]:
    """Draw a head.

    Parameters
    ----------
    shape : int or (int, int)
        Grid (ky, kx).
    rng : numpy Generator
        Source of all random numbers of the head.
    phase : {"any", "flat", "smooth", "rough"}
        What is left in the image: nearly constant with local exceptions (coil-combined spin echoes), a polynomial, or
        `rough_phase`; "any" draws one of them.

    Returns
    -------
    complex128 array, shape (ky, kx)
        Complex image, scaled so that the 99.5th percentile of its magnitude is 1. It contains no noise. Its
        resolution is that of the grid: it is drawn at twice that, and k-space is cropped.

    Raises
    ------
    InputError
        On a wrong shape, phase or generator.
    """
    require_random(rng)
    require_choice(get_args(HeadPhase), phase=phase)
    rows, columns = checked_shape(shape)
    y, x = np.meshgrid(pixel_positions(2 * rows), pixel_positions(2 * columns), indexing="ij")
    magnitude, tissue = _magnitude(y, x, rng)
    cropped = np.abs(_cropped(magnitude))
    tissue = tissue[::2, ::2]
    noise_like = rng.uniform(0.002, 0.012) * np.percentile(cropped, 99.5) * rng.standard_normal(cropped.shape)
    image = np.abs(cropped + noise_like * tissue) * np.exp(1j * _phase((rows, columns), rng, phase))
    image = _uneven(image, rng)
    echo_off_centre = np.exp(2j * np.pi * rng.uniform(-0.4, 0.4) * pixel_positions(rows))[:, None]
    return np.asarray(image * echo_off_centre / np.percentile(np.abs(image), 99.5))


def _magnitude(y: Values, x: Values, rng: np.random.Generator) -> tuple[Values, Values]:
    """Ring and brain at the grid of ``y`` and ``x``; and where there is anything."""
    radii, turn, centre = rng.uniform((0.33, 0.27), (0.48, 0.45)), 0.2 * rng.normal(), rng.normal(0, 0.02, 2)
    thickness = rng.uniform(0.015, 0.04)
    ellipses = [_ellipse(y, x, centre, radii - i * thickness, turn) for i in range(3)]
    outside, bone, brain = ellipses
    scene = outside * rng.uniform(0.3, 1.5)
    scene = scene * (1 - bone) + bone * rng.uniform(0, 0.2)
    scene = scene * (1 - brain) + brain * np.maximum(_tissue(y, x, rng), 0)
    fine = _band(y.shape, 1.2, rng)
    scene = scene * (1 + rng.uniform(0, 0.08) * fine) * np.exp(0.6 * (rng.normal() * y + rng.normal() * x))
    return np.asarray(scipy.ndimage.gaussian_filter(scene, rng.uniform(0.2, 0.7))), outside


def _tissue(y: Values, x: Values, rng: np.random.Generator) -> Values:
    """Dead leaves, and bands folded like a cortex over them."""
    background = rng.uniform(0.4, 0.8)
    tissue = np.full(y.shape, background)
    for _ in range(rng.integers(40, 160)):
        radius = min(_SMALLEST * (1 - rng.uniform(0, 0.998)) ** (-1 / _SIZE_POWER), _LARGEST)
        place, turn = rng.uniform(-0.45, 0.45, 2), rng.uniform(0, np.pi)
        leaf = _ellipse(y, x, place, radius * np.array([1.0, rng.uniform(0.3, 1)]), turn)
        tissue = tissue * (1 - leaf) + leaf * np.clip(rng.normal(background, 0.3), 0, 1.3)
    folds = np.tanh(3 * _band(y.shape, y.shape[0] * rng.uniform(0.008, 0.02), rng))
    return np.asarray(tissue + rng.uniform(0, 0.25) * folds * (rng.uniform() < 0.8))


def _ellipse(y: Values, x: Values, centre: Values, radii: Values, turn: float) -> Values:
    """1 inside, 0 outside, with an edge one pixel wide."""
    across, along = y - centre[0], x - centre[1]
    u = (across * np.cos(turn) + along * np.sin(turn)) / radii[0]
    v = (along * np.cos(turn) - across * np.sin(turn)) / radii[1]
    return np.asarray(np.clip((1 - np.hypot(u, v)) * radii.min() * len(y) + 0.5, 0, 1))


def _band(shape: tuple[int, ...], width: float, rng: np.random.Generator) -> Values:
    """Noise smoothed to ``width`` pixels, of unit variance."""
    smooth = scipy.ndimage.gaussian_filter(rng.standard_normal(shape), width, mode="wrap")
    return np.asarray(smooth / smooth.std())


def _cropped(image: Values) -> NDArray[np.complex128]:
    """The middle half of k-space, as an image at the same brightness."""
    rows, columns = (side // 2 for side in image.shape)
    spectrum = scipy.fft.fftshift(scipy.fft.fft2(scipy.fft.ifftshift(image)))
    middle = spectrum[(rows + 1) // 2 :, (columns + 1) // 2 :][:rows, :columns]
    return np.asarray(scipy.fft.fftshift(scipy.fft.ifft2(scipy.fft.ifftshift(middle))) / 4)


def _uneven(image: NDArray[np.complex128], rng: np.random.Generator) -> NDArray[np.complex128]:
    """One side of k-space brighter than the other, as it is in real scans (results/benchmarks/measured-once.md)."""
    k = 2 * pixel_positions(len(image))
    log_weight = rng.normal(0, _UNEVENNESS) * np.sign(k) * np.abs(k) ** rng.uniform(0.3, 1)
    spectrum = scipy.fft.fftshift(scipy.fft.fft(image, axis=0), axes=0) * np.exp(log_weight)[:, None]
    return np.asarray(scipy.fft.ifft(scipy.fft.ifftshift(spectrum, axes=0), axis=0))


def _phase(shape: tuple[int, int], rng: np.random.Generator, phase: HeadPhase) -> Values:
    kind = rng.choice(_KINDS, p=_SHARES) if phase == "any" else phase
    if kind == "smooth":
        return smooth_phase(shape, rng, amplitude=rng.uniform(0.3, np.pi))
    if kind == "rough":
        return rough_phase(shape, rng)
    uneven = _band(shape, rng.uniform(2, 5), rng)
    exceptions = np.where(np.abs(uneven) > 2.3, np.sign(uneven), 0)
    slow = smooth_phase(shape, rng)
    return rng.uniform(0.03, 0.2) * uneven + rng.uniform(0, 1.5) * exceptions + rng.uniform(0, 0.3) * slow
