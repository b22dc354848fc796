"""Random bodies: slices across a torso, as random heads are slices of a head, without any real image.

A rim of fat around muscle and a cavity of random ellipses (`dead_leaves`), and in it what every torso has: liver,
stomach or spleen, two kidneys, a large vessel, and the spine with its cord; arms beside it in most of them. Each has
its own brightness, from nothing to the brightest. Half of the bodies lie across the lines.
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

_ORGANS = (
    (-0.15, -0.42, 0.45, 0.38),
    (-0.2, 0.4, 0.35, 0.28),
    (0.3, -0.3, 0.17, 0.12),
    (0.3, 0.3, 0.17, 0.12),
    (0.25, 0.05, 0.07, 0.05),
    (0.6, 0, 0.2, 0.14),
    (0.7, 0, 0.06, 0.05),
)
"""Centres and mean radii of liver, stomach, kidneys, vessel, spine and cord, in half the depth and width of a torso."""
_WITH_ARMS = 0.6


def random_body(
    shape: int | tuple[int, int], rng: np.random.Generator, *, phase: ScenePhase = "any"
) -> NDArray[np.complex128]:
    """Draw a slice across a torso.

    Parameters
    ----------
    shape : int or (int, int)
        Grid (ky, kx).
    rng : numpy Generator
        Source of all random numbers of the body.
    phase : {"any", "flat", "smooth", "rough"}
        As for `random_head`.

    Returns
    -------
    complex128 array, shape (ky, kx)
        Complex image, scaled so that the 99.5th percentile of its magnitude is 1. It contains no noise.

    Raises
    ------
    InputError
        On a wrong shape, phase or generator.
    """
    y, x = fine_positions(shape, rng, phase)
    scene, outside = _scene(*((y, x) if rng.uniform() < 0.5 else (x, y)), rng)
    return scene_image(scene, outside, y, x, rng, phase)


def _scene(y: Values, x: Values, rng: np.random.Generator) -> tuple[Values, Values]:
    """Brightness at the positions ``y``, from front to back, and ``x``, and where there is anything."""
    wide = rng.uniform(0.3, 0.44)
    size = np.array([wide * rng.uniform(0.55, 0.75), wide])
    turn, centre, fat = 0.1 * rng.normal(), rng.normal(0, 0.02, 2), rng.uniform(0.01, 0.05)
    outside, muscle = (ellipse(y, x, centre, size - rim, turn) for rim in (0, fat))
    cavity = ellipse(y, x, centre - size * (0.1, 0), (size - fat) * (0.7, 0.82), turn)
    scene = outside * rng.uniform(0.5, 1.5)
    scene = scene * (1 - muscle) + muscle * rng.uniform(0.2, 0.6)
    scene = scene * (1 - cavity) + cavity * np.maximum(dead_leaves(y, x, rng), 0)
    for *place, depth, width in _ORGANS:
        radii = size * (depth, width) * rng.uniform(0.7, 1.1, 2)
        organ = muscle * ellipse(y, x, centre + size * place, radii, turn + 0.3 * rng.normal())
        scene = scene * (1 - organ) + organ * rng.uniform(0, 1.3)
    for side in (-1, 1) if rng.uniform() < _WITH_ARMS else ():
        place = centre + np.array((rng.normal(0, 0.05), side * (wide + rng.uniform(0.05, 0.1))))
        arm = ellipse(y, x, place, rng.uniform((0.05, 0.04), (0.09, 0.06)), rng.uniform(0, np.pi))
        scene, outside = scene * (1 - arm) + arm * rng.uniform(0.3, 1), np.maximum(outside, arm)
    return scene, outside
