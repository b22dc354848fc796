"""Random heads: scenes with the spectrum, the dark surroundings and the phase of real ones, without any real image.

A few ranges (how spectra fall, how their sides differ) were held against training images.

A ring (scalp and skull) around a brain of random ellipses with sizes from a power law (the dead leaves of Lee, Mumford
& Huang 2001) and folded bands; texture in the tissue; a phase that is flat with local exceptions, smooth, or rough; one
side of k-space a little brighter than the other. Strategies that learn before they see a scan learn from these.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mri_design.scan.simulation.random_scene import (
    ScenePhase,
    Values,
    dead_leaves,
    ellipse,
    fine_positions,
    scene_image,
)


def random_head(
    shape: int | tuple[int, int], rng: np.random.Generator, *, phase: ScenePhase = "any"
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
    y, x = fine_positions(shape, rng, phase)
    return scene_image(*_scene(y, x, rng), y, x, rng, phase)


def _scene(y: Values, x: Values, rng: np.random.Generator) -> tuple[Values, Values]:
    """Ring and brain at the grid of ``y`` and ``x``; and where there is anything."""
    radii, turn, centre = rng.uniform((0.33, 0.27), (0.48, 0.45)), 0.2 * rng.normal(), rng.normal(0, 0.02, 2)
    thickness = rng.uniform(0.015, 0.04)
    ellipses = [ellipse(y, x, centre, radii - i * thickness, turn) for i in range(3)]
    outside, bone, brain = ellipses
    scene = outside * rng.uniform(0.3, 1.5)
    scene = scene * (1 - bone) + bone * rng.uniform(0, 0.2)
    scene = scene * (1 - brain) + brain * np.maximum(dead_leaves(y, x, rng), 0)
    return scene, outside
