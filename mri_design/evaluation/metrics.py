"""Metrics: distance of an image to its reference, comparison of two methods, and a test for fold-over."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError, number_array

Image = NDArray[np.complexfloating] | NDArray[np.floating]

_SSIM_WINDOW = 7  # pixels; the window of Wang et al. 2004 without Gaussian weights, as MR challenges use it
_BRIGHT, _PERCENTILE, _AROUND = 0.1, 99.0, 5
OBJECT = (
    "The object is where more than half of the 5 x 5 pixels around are above a tenth of the reference's 99th "
    "percentile, holes in it filled."
)
"""How `object_mask` finds it, for captions."""


@dataclass(frozen=True)
class ImageMetrics:
    """The four numbers every comparison reports for one image.

    Parameters
    ----------
    relative_l2 : float
        Relative error of the magnitudes (`relative_l2`), 0 for equal images.
    relative_l2_complex : float
        Relative error with phase, ``|| u - r || / || r ||``.
    psnr : float
        Peak signal-to-noise ratio of the magnitudes inside the object in dB, infinite for equal magnitudes.
    ssim : float
        Structural similarity of the magnitudes, mean over the object (`object_mask`), 1 for equal images.
    """

    relative_l2: float
    relative_l2_complex: float
    psnr: float
    ssim: float


def measure(image: Image, reference: Image) -> ImageMetrics:
    """All metrics of one image against its reference.

    Parameters
    ----------
    image, reference : complex or real array, shape (ky, kx)
        In the same units, at least 3 x 3 pixels; no scale or phase is fitted between them.

    Raises
    ------
    InputError
        Where the shapes disagree, a pixel is not finite, the reference is zero or an image is too small.

    Notes
    -----
    Peak and data range are the reference's largest magnitude. The window of SSIM is 7 x 7 pixels, or the largest odd
    one that fits; pixels around which it leaves the image do not count. Air is left out of both, as most of an image
    is often air, whose noise they would measure.

    References
    ----------
    Z. Wang et al., "Image quality assessment: from error visibility to structural similarity", IEEE Trans.
    Image Processing 13, 2004.
    """
    from skimage.metrics import structural_similarity  # here: figures of masks do without

    u, r = _checked(image, reference)
    shortest = min(r.shape)
    if shortest < 3:
        raise InputError(field="image", got=f"shape {r.shape}", wanted="at least 3 x 3 pixels for SSIM")
    # scaled to a peak of one: the products of tiny scanner units would otherwise leave the float range
    peak = np.abs(r).max()
    ours, theirs = np.abs(u) / peak, np.abs(r) / peak
    inside = object_mask(theirs)
    mean_square = np.mean((ours - theirs)[inside] ** 2)
    window = min(_SSIM_WINDOW, shortest - (shortest % 2 == 0))
    _, similar = structural_similarity(ours, theirs, win_size=window, data_range=1.0, full=True)
    within = np.zeros_like(inside)
    within[tuple(slice(window // 2, side - window // 2) for side in r.shape)] = True
    counted = inside & within if (inside & within).any() else within
    return ImageMetrics(
        relative_l2=relative_l2(image, reference),
        relative_l2_complex=float(np.linalg.norm(u - r) / np.linalg.norm(r)),
        psnr=float(-10.0 * np.log10(mean_square)) if mean_square > 0 else float("inf"),
        ssim=float(np.mean(similar[counted])),
    )


def object_mask(magnitude: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Where an image (ky, kx) shows the object, and not air: by it PSNR and SSIM are taken.

    Where more than half of the 5 x 5 pixels around a pixel are bright (`bright`), so that single pixels of noise do not
    count; dark parts within the object are filled. Where that is nowhere, bright pixels themselves.
    """
    from scipy.ndimage import binary_fill_holes, median_filter

    seen = bright(magnitude)
    mask = np.asarray(binary_fill_holes(median_filter(seen.astype(np.uint8), _AROUND) > 0))
    return mask if mask.any() else seen


def bright(magnitude: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Pixels above a tenth of the 99th percentile, which neither air nor a few very bright pixels set."""
    return np.asarray(magnitude > _BRIGHT * np.percentile(magnitude, _PERCENTILE))


def relative_l2(image: Image, reference: Image) -> float:
    """Relative error of the magnitudes, ``|| |u| - |r| || / || r ||``.

    Parameters
    ----------
    image, reference : complex or real array, shape (ky, kx)

    Raises
    ------
    InputError
        Where the shapes disagree, a pixel is not finite or the reference is zero.
    """
    u, r = _checked(image, reference)
    return float(np.linalg.norm(np.abs(u) - np.abs(r)) / np.linalg.norm(r))


def paired_sign_test(a: ArrayLike, b: ArrayLike) -> float:
    """Two-sided p-value of "a is smaller than b as often as larger", over paired results.

    Parameters
    ----------
    a, b : array_like, shape (n,)
        One number per image or seed, in the same order. Ties carry no sign and are left out.

    Returns
    -------
    float
        1.0 where every pair is tied.

    Raises
    ------
    InputError
        Where the lengths disagree, there is no pair, or a value is not finite.

    Notes
    -----
    The size of a difference is not looked at, and pairs are taken as independent: slices of one head are not.
    """
    first = _finite_runs("a", a)
    second = _finite_runs("b", b)
    if first.ndim != 1 or first.shape != second.shape:
        raise InputError(field="b", got=f"shape {second.shape}", wanted=f"one axis and the shape of a, {first.shape}")
    smaller, larger = int(np.sum(first < second)), int(np.sum(first > second))
    pairs = smaller + larger
    # Both tails of a fair coin are alike; where the signs balance they overlap, and everything is as extreme.
    tail = sum(math.comb(pairs, k) for k in range(min(smaller, larger) + 1)) / 2**pairs
    return min(1.0, 2 * tail)


def _finite_runs(name: str, runs: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(runs, dtype=np.float64)
    if values.ndim == 0 or values.size == 0:
        raise InputError(field=name, got=f"shape {values.shape}", wanted="at least one value")
    if not np.isfinite(values).all():
        raise InputError(field=name, got="a value that is not finite", wanted="finite values")
    return values


def _checked(image: Image, reference: Image) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    u = number_array("image", image).astype(np.complex128)
    r = number_array("reference", reference).astype(np.complex128)
    if r.ndim != 2:
        raise InputError(field="reference", got=f"shape {r.shape}", wanted="one image (ky, kx)")
    if u.shape != r.shape:
        raise InputError(field="image", got=f"shape {u.shape}", wanted=f"the reference's shape {r.shape}")
    for name, pixels in (("image", u), ("reference", r)):
        if not np.isfinite(pixels).all():
            raise InputError(field=name, got="NaN or infinite pixels", wanted="finite pixels")
    if not r.any():
        raise InputError(field="reference", got="all zeros", wanted="an image with signal")
    return u, r


_FRAME = 16
_SIGNAL, _LIT = 99.5, 0.2
_SHARE = 0.25


def looks_folded(image: NDArray[np.generic]) -> bool:
    """Whether the frame of an image, where there should be air, is bright.

    An object that is cut by one or two edges of the image, as a neck is, does not make its whole frame bright.

    Parameters
    ----------
    image : complex or real array, shape (ky, kx)
        A reconstruction that suppresses streaks and noise; those of a gridded image are bright everywhere.

    Returns
    -------
    bool
        True where more than a quarter of the pixels in the outermost sixteenth of every side have a magnitude above a
        fifth of the signal, the 99.5th percentile.
    """
    magnitude = np.abs(image)
    rows, columns = (max(1, side // _FRAME) for side in magnitude.shape)
    frame = np.ones(magnitude.shape, dtype=bool)
    frame[rows:-rows, columns:-columns] = False
    return bool(np.mean(magnitude[frame] > _LIT * np.percentile(magnitude, _SIGNAL)) > _SHARE)
