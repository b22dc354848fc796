"""Rigid registration of two images of one object, whatever their contrasts: turns and shifts within the plane.

Images are alike where one tells the brightness of the other, which their normalised mutual information measures
(Studholme, Hill & Hawkes, Pattern Recognition 32:71, 1999).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.errors import InputError

Image = NDArray[Any]

LARGEST_SHIFT = 0.15
"""Of the grid's shorter side: motion that is looked for."""
LARGEST_ANGLE = 15.0
"""Degrees."""
BINS = 32
"""Grey levels of the mutual information."""
LEAST = 0.25
"""Pixels by which the object has to have moved: splines blur, and blurred images are more alike than noisy ones."""
COARSE = 64
"""Pixels along the shorter side that the first search takes, or up to twice as many."""
_STEP = 3.0
_KEPT = 3
_ROUNDS = 4
_SMOOTH = 1.0


@dataclass(frozen=True)
class RigidMotion:
    """A turn about the middle of the image, and a shift after it.

    Parameters
    ----------
    shift : (float, float)
        Along (ky, kx), in pixels.
    angle : float
        In degrees, from rows towards columns.
    """

    shift: tuple[float, float] = (0.0, 0.0)
    angle: float = 0.0

    def displacement(self, shape: tuple[int, ...]) -> float:
        """Pixels by which it moves what lies half-way from the middle of an image to its edge, at most."""
        return float(np.hypot(*self.shift) + abs(np.deg2rad(self.angle)) * min(shape) / 4)

    def apart(self, other: RigidMotion, shape: tuple[int, ...]) -> float:
        """Pixels by which another motion leaves the same places elsewhere, at most, as `displacement`."""
        (down, right), (there, beside) = self.shift, other.shift
        return RigidMotion((down - there, right - beside), self.angle - other.angle).displacement(shape)

    def applied(self, image: Image, *, order: int = 3) -> Image:
        """The image after the motion, on its own grid; beyond its field of view it is zero.

        Parameters
        ----------
        image : float or complex array, shape (ky, kx)
        order : int
            Of the splines between pixels; 1 is linear.
        """
        if self == RigidMotion():
            return image
        turn = np.deg2rad(self.angle)
        back = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
        middle = (np.array(image.shape) - 1) / 2
        offset = middle - back @ (middle + np.array(self.shift))

        def moved(part: Image) -> Image:
            return np.asarray(scipy.ndimage.affine_transform(part, back, offset, order=order))

        return moved(image.real) + 1j * moved(image.imag) if np.iscomplexobj(image) else moved(image)


@dataclass(frozen=True)
class Registration:
    """How an image had to be moved.

    Parameters
    ----------
    motion : RigidMotion
        No turn and no shift where moving it hardly at all makes the images most alike.
    before, after : float
        Normalised mutual information of both images, from 1, as they lay and after the motion.
    """

    motion: RigidMotion
    before: float
    after: float


def alikeness(one: Image, other: Image) -> float:
    """Normalised mutual information of moduli from 0 to 1: 1 (none) to 2 (one tells the other), in `BINS` levels."""
    first, second = (np.minimum((image * BINS).astype(np.intp), BINS - 1).ravel() for image in (one, other))
    joint = np.bincount(first * BINS + second, minlength=BINS * BINS).reshape(BINS, BINS) / first.size
    alone, apart, both = (_entropy(p) for p in (joint.sum(axis=1), joint.sum(axis=0), joint))
    return (alone + apart) / both if both > 0 else 1.0


def alike_after(motion: RigidMotion, fixed: Image, moving: Image) -> float:
    """`alikeness` of two images (ky, kx), of any brightness, of which one moves."""
    return -_unlike(_grey(fixed), _grey(moving))(np.array([*motion.shift, motion.angle]))


def register(fixed: Image, moving: Image) -> Registration:
    """Find the motion that makes an image most like another one.

    Coarse turns are tried first, each with the shift at which edges of both images lie upon each other best. Those that
    make the images most alike are refined by Powell's method, on every second pixel of large images, and the best of
    them on all pixels.

    Parameters
    ----------
    fixed : float or complex array, shape (ky, kx)
        The image that stays: may be of low resolution, or noisy.
    moving : array of the same shape
        The image to move.

    Raises
    ------
    InputError
        For other shapes, or an image without signal.
    """
    if fixed.ndim != 2 or fixed.shape != moving.shape:
        raise InputError("images", f"shapes {fixed.shape} and {moving.shape}", "two images (ky, kx) of one shape")
    stays, moves = (_grey(image) for image in (fixed, moving))
    most = LARGEST_SHIFT * min(fixed.shape)
    step = max(1, min(fixed.shape) // COARSE)
    few = moves[::step, ::step]
    coarse, fine = _unlike(stays[::step, ::step], few, step), _unlike(stays, moves)
    edges = _edges(stays[::step, ::step])
    starts = [np.zeros(3)]
    for angle in np.arange(-LARGEST_ANGLE, LARGEST_ANGLE + 1e-9, _STEP):
        turned = RigidMotion(angle=float(angle)).applied(few, order=1)
        down, right = _best_shift(edges, turned, most / step)
        starts.append(np.array([step * down, step * right, angle]))
    starts = sorted(starts, key=coarse)[:_KEPT]
    bounds = [(-most, most), (-most, most), (-LARGEST_ANGLE, LARGEST_ANGLE)]
    best = min((_refined(coarse, at, bounds) for at in starts), key=coarse)
    if step > 1:
        best = _refined(fine, best, bounds)
    motion = _motion(best)
    still = -fine(np.zeros(3))
    if motion.displacement(fixed.shape) < LEAST:
        return Registration(RigidMotion(), still, still)
    return Registration(motion, still, -fine(best))


Unlikeness = Callable[[NDArray[np.float64]], float]


def _unlike(stays: Image, moves: Image, step: int = 1) -> Unlikeness:
    """How little alike two images, or every ``step``-th pixel of them, are after one moved.

    The motion is given by shifts in whole images' pixels, and an angle.
    """

    def unlike(values: NDArray[np.float64]) -> float:
        motion = _motion(np.append(values[:2] / step, values[2]))
        return -alikeness(stays, np.clip(motion.applied(moves, order=1), 0, 1))

    return unlike


def _refined(unlike: Unlikeness, start: NDArray[np.float64], bounds: list[tuple[float, float]]) -> NDArray[np.float64]:
    """The motion near a start after which the images are most alike."""
    options = {"xtol": 0.02, "ftol": 1e-5, "maxiter": _ROUNDS}
    found = scipy.optimize.minimize(unlike, start, method="Powell", bounds=bounds, options=options)
    return np.asarray(found.x, dtype=np.float64)


def _motion(values: NDArray[np.float64]) -> RigidMotion:
    down, right, angle = map(float, values)
    return RigidMotion((down, right), angle)


def _entropy(shares: NDArray[np.float64]) -> float:
    there = shares[shares > 0]
    return float(-np.sum(there * np.log(there)))


def _grey(image: Image) -> Image:
    """Modulus without its finest grain, from 0 to 1."""
    modulus = scipy.ndimage.gaussian_filter(np.abs(image).astype(np.float64), _SMOOTH)
    level = float(np.percentile(modulus, 99.5)) if np.isfinite(modulus).all() else 0.0
    if not level > 0:
        raise InputError("image", "no signal, or NaN", "an image that shows the object")
    return np.clip(modulus / level, 0, 1)


def _edges(image: Image) -> Image:
    """Strength of edges, which contrasts share."""
    return np.asarray(scipy.ndimage.gaussian_gradient_magnitude(image, 1.5))


def _best_shift(edges: Image, moving: Image, most: float) -> tuple[float, float]:
    """Whole pixels by which edges lie upon each other best."""
    spectrum = np.fft.fft2(edges) * np.conj(np.fft.fft2(_edges(moving)))
    match = np.fft.ifft2(spectrum).real
    steps = np.meshgrid(*(np.fft.fftfreq(n, 1 / n) for n in edges.shape), indexing="ij")
    match[np.maximum(np.abs(steps[0]), np.abs(steps[1])) > most] = -np.inf
    place = np.unravel_index(int(np.argmax(match)), match.shape)
    return float(steps[0][place]), float(steps[1][place])
