"""Another image of a scan as what the scan is expected to show, where its own data do not contradict it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import scipy  # whose parts are loaded when they are first used

from mri_design.errors import InputError
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.companion import ExpectedImage, unit_modulus
from mri_design.model.mr_image import MRSlice
from mri_design.model.phase import estimate_phase
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array

SMOOTH = 8.0
"""Standard deviation, in pixels, of the window in which brightness and phase of both images are compared."""
FLOOR = 0.02
"""Of the largest energy in such a window: where there is less, the factor is that of the whole image."""
LOOPS = 2
"""Outer loops of the inference of what the data say beyond the other image."""
SURROUNDINGS = 1.5
"""Standard deviation, in pixels, of the window in which the data contradict it."""


def matched(slice_model: MRSlice, lines: Sequence[int], modulus: Array, image: Array) -> Array:
    """The other image with the phase of the image so far, times a smooth complex factor that central lines tell.

    Parameters
    ----------
    slice_model : MRSlice
        The scan.
    lines : sequence of int
        Measured readouts.
    modulus : float array, shape (ky, kx)
        The other image, laid over the scan.
    image : complex array, shape (ky, kx)
        The image so far.
    """
    moving = unit_modulus(modulus).astype(np.complex64)
    with suppress(InputError):  # where the image shows no phase
        moving = moving * estimate_phase(image, slice_model.noise_variance).rotation.astype(np.complex64)
    own, other = slice_model.central_image(lines), slice_model.centrally(moving, lines)
    power, common = _smooth(np.abs(other) ** 2), own * np.conj(other)
    floor = FLOOR * float(power.max())
    whole = np.vdot(other, own) / np.vdot(other, other)
    factor = (_smooth(common.real) + 1j * _smooth(common.imag) + floor * whole) / (power + floor)
    return np.asarray(factor * moving, dtype=np.complex64)


def expected_image(
    slice_model: MRSlice,
    lines: Sequence[int],
    modulus: Array,
    doubt: float,
    so_far: GaussianPosterior,
    engine: DoubleLoop,
    seed: int,
) -> ExpectedImage:
    """What a scan is expected to show after another image of it.

    What its data say beyond that image is inferred by itself, as a sparse image: y - X c in the place of y. Where it is
    large, the two differ, and the other image is not trusted.

    Parameters
    ----------
    slice_model : MRSlice
        The scan, without other images in its prior.
    lines : sequence of int
        Measured readouts.
    modulus : float array, shape (ky, kx)
        The other image, laid over the scan.
    doubt : float
        Difference, in signal levels, where it is trusted by half.
    so_far : GaussianPosterior
        Of the scan without other images, perhaps of fewer lines, whose mean has its phase.
    engine : DoubleLoop
        Infers the difference, in two loops.
    seed : int
        Of what it draws.
    """
    image = matched(slice_model, lines, modulus, so_far.mean)
    level, sd = slice_model.level(lines), float(np.sqrt(slice_model.noise_variance))
    beyond = slice_model.central_image(lines) - slice_model.centrally(image, lines)
    plain = replace(slice_model, phase=None, alike=None)
    model = plain.model(lines, max(float(np.percentile(np.abs(beyond), 99.5)), sd))
    model = replace(model, data=model.data - model.measurement(image))
    difference = engine.cut_short(LOOPS).infer(model, np.random.default_rng(seed)).mean
    apart = scipy.ndimage.gaussian_filter(np.abs(difference), SURROUNDINGS) / (doubt * level)
    return ExpectedImage(image, 1 / (1 + apart**2))


def _smooth(image: Array) -> Array:
    return np.asarray(scipy.ndimage.gaussian_filter(image.astype(np.float64), SMOOTH, mode="wrap"))
