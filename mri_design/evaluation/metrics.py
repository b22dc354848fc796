"""Image errors: metrics against a reference, predicted errors, noise of the reference, calibrated error bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import ArrayLike, NDArray

from mri_design.brief import briefly
from mri_design.errors import InputError, number_array
from mri_design.evaluation.tables import Row, percent
from mri_design.evidence.regions import Distances
from mri_design.operators.base import Array
from mri_design.operators.conventions import to_image, to_kspace
from mri_design.scan.data import KSpaceData

Image = NDArray[np.complexfloating] | NDArray[np.floating]

_SSIM_WINDOW = 7  # pixels; the window of Wang et al. 2004 without Gaussian weights, as MR challenges use it
_BRIGHT, _PERCENTILE, _AROUND = 0.1, 99.0, 5


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


@dataclass(frozen=True)
class RelativeError:
    """Error of an image relative to the norm of the true one, as its error bars predict it and as it was found.

    Both are L2 errors of the complex image, without the noise of the reference. Against an image from a file, whose
    phase and noise are not known, both are those of the modulus.

    Parameters
    ----------
    predicted : float, optional
        None of an image without error bars.
    found : float, optional
        None without a reference image.
    unknown : str
        Why no error was found although there is a reference.
    against : str
        Name of the file with the reference image, if it came from a file.
    """

    predicted: float | None = None
    found: float | None = None
    unknown: str = ""
    against: str = ""

    @property
    def of(self) -> str:
        """What both are the error of: "complex image" or "modulus"."""
        return "modulus" if self.against else "complex image"

    def __str__(self) -> str:
        """Both, as far as they are known: "6.3 % predicted, 6.1 % found"."""
        pair = (("predicted", self.predicted), ("found", self.found))
        text = ", ".join(f"{percent(value)} {name}" for name, value in pair if value is not None)
        text = text.replace("\N{NO-BREAK SPACE}", " ")  # for terminals of any encoding
        return f"{text} (modulus against {self.against})" if text and self.against else text

    @property
    def columns(self) -> dict[str, float | None]:
        """As columns of a table."""
        return {"predicted_error": self.predicted, "found_error": self.found}

    @property
    def settings(self) -> dict[str, object]:
        """As settings of a manifest; nothing where nothing is known."""
        return {"error": {"of": self.of, **asdict(self)}} if str(self) else {}

    def over(self, rows: Iterable[Row]) -> RelativeError:
        """Means over rows with `columns`, of images judged as this one.

        Of the rows in which both are known, if any, else of those that have either.
        """
        pairs = [[row[name] for name in self.columns] for row in rows]
        pairs = [pair for pair in pairs if None not in pair] or pairs
        known = [[float(str(value)) for value in values if value is not None] for values in zip(*pairs, strict=True)]
        means = [sum(values) / len(values) if values else None for values in known]
        return replace(self, predicted=means[0], found=means[1]) if means else self


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
    seen = bright(magnitude)
    inside = scipy.ndimage.median_filter(seen.astype(np.uint8), _AROUND) > 0
    mask = np.asarray(scipy.ndimage.binary_fill_holes(inside))
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

    Notes
    -----
    The size of a difference is ignored, and pairs are taken as independent: slices of one head are not.
    """
    smaller, larger = int(np.sum(np.less(a, b))), int(np.sum(np.greater(a, b)))
    pairs = smaller + larger
    # Both tails of a fair coin are alike; where the signs balance they overlap, and everything is as extreme.
    tail = sum(math.comb(pairs, k) for k in range(min(smaller, larger) + 1)) / 2**pairs
    return min(1.0, 2 * tail)


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


_PATCH = 5  # pixels: dark regions are recognised by the mean over so many


def reference_noise(data: KSpaceData, reference: Array, unit: float | Array = 1.0) -> float | None:
    r"""Relative L2 error of the noise-free image's magnitude against the scan's own, noisy image.

    Parameters
    ----------
    data : KSpaceData
        One slice, calibrated: its noise is white and known, maps of several coils have unit root-sum-of-squares.
    reference : complex array, shape (ky, kx)
        What errors are measured against, times ``unit``.
    unit : float or float array, shape (ky, kx)
        What images of the data are multiplied by to be shown and judged (`Scan.image_unit`).

    Returns
    -------
    float or None
        None where the data came with a true image (``data.reference``), or the noise is not known.

    Notes
    -----
    With an orthonormal transform and unit maps every pixel has the noise variance of a sample, :math:`\sigma^2` per
    real component (times the fraction of lines that were measured). A magnitude a then is off by
    :math:`E(|a + n| - a)^2 = 2 a^2 + 2 \sigma^2 - 2 a E|a + n|`, the last by Rice's distribution: :math:`\sigma^2` in
    the object and twice that in the dark. For a, the image's own mean over 5 x 5 pixels stands without its noise.
    """
    if data.reference is not None or data.noise_variance is None:
        return None
    noise = _noise_of_pixels(data, reference, unit, data.noise_variance)
    power = scipy.ndimage.uniform_filter(np.abs(reference).astype(np.float64) ** 2, _PATCH)
    signal = np.maximum(power - 2 * noise, 0.0)
    t = np.divide(signal, 4 * noise, out=np.zeros_like(signal), where=noise > 0)
    mean_magnitude = np.sqrt(np.pi / 2 * noise) * (
        (1 + 2 * t) * scipy.special.ive(0, t) + 2 * t * scipy.special.ive(1, t)
    )
    missed = np.maximum(2 * signal + 2 * noise - 2 * np.sqrt(signal) * mean_magnitude, 0.0)
    return float(np.sqrt(missed.sum() / np.sum(np.abs(reference) ** 2, dtype=np.float64)))


def _noise_of_pixels(data: KSpaceData, reference: Array, unit: float | Array, variance: float) -> NDArray[np.float64]:
    """Variance per real component that the noise of the samples gives to the pixels of the scan's own image."""
    maps = data.coil_maps
    weight = np.ones(reference.shape) if maps is None else np.sum(np.abs(maps[0]) ** 2, axis=0)
    return np.asarray(variance * float(np.mean(data.measured)) * weight * np.square(unit), dtype=np.float64)


_WINDOW, _LEAST_BEYOND = 9, 0.02
"""Pixels of the side of a neighbourhood, and the share of its squared error that is left at least without noise."""


def error_beyond_noise(
    image: Array, std: Array, data: KSpaceData, reference: Array, unit: float | Array, used: NDArray[np.bool_]
) -> NDArray[np.float64]:
    r"""Errors of complex pixels without what noise of a scan's own image adds to them.

    Parameters
    ----------
    image : complex array, shape (ky, kx)
        Posterior mean of a part of the samples that the reference was made from, times ``unit``.
    std : float array, shape (ky, kx)
        Its standard deviations, of any size.
    data, reference, unit
        As for `reference_noise`.
    used : bool array, shape (ky,) or (ky, kx)
        That part.

    Returns
    -------
    float array, shape (ky, kx)
        Moduli; as they are where the reference is a true image, or the noise is not known.

    Notes
    -----
    Of an error e = u - x the difference e - n is seen, n being the noise of the reference: on the mean
    :math:`|e - n|^2 = |e|^2 + |n|^2 - 2\,\text{Re}\,e \bar n`. Noise of samples that were not used is independent of
    e. That of the others is y - X x, and the error of a posterior mean is orthogonal to all that is calculated from
    y, as the residual r = y - X u is. So, where X^H X is a projection, :math:`e \bar n = |X^H n|^2 - |X^H r|^2` summed
    over the image: nothing where the image keeps no noise of its samples, and their noise where it keeps all. Half of
    this sum is laid evenly over the pixels, half like their variances. In every neighbourhood the rest of the squared
    error tells by how much the variances are wrong; with these and the noise an error is made as small as it is on
    the mean without noise. That is right for errors that are Gaussian there. Where they are much smaller than the
    noise, the error bars' own word stands, as far as it holds around.
    """
    error = np.abs(image - reference).astype(np.float64)
    if data.reference is not None or data.noise_variance is None:
        return error
    noise, own = 2 * _noise_of_pixels(data, reference, unit, data.noise_variance), std.astype(np.float64) ** 2
    added = noise - _noise_kept(image, data, unit, used, noise) * (1 + own / own.mean())
    seen, mean, added_around = (scipy.ndimage.uniform_filter(part, _WINDOW) for part in (error**2, own, added))
    left = np.maximum(seen - added_around, _LEAST_BEYOND * seen)
    own *= np.divide(left, mean, out=np.zeros_like(own), where=mean > 0)
    with_noise = own + np.maximum(added, -own / 2)
    return np.asarray(error * np.sqrt(np.divide(own, with_noise, out=np.ones_like(own), where=with_noise > 0)))


def found_error(
    image: Array, data: KSpaceData, reference: Array, unit: float | Array, used: NDArray[np.bool_]
) -> float | None:
    """Relative L2 error of a complex image, without what noise of a scan's own image as reference adds to it.

    Parameters
    ----------
    image : complex array, shape (ky, kx)
        Of a part of the samples that the reference was made from, times ``unit``.
    data, reference, unit, used
        As for `error_beyond_noise`, whose notes derive it.

    Returns
    -------
    float or None
        Relative to the reference, without its noise too; None where that is hardly more than noise.
    """
    error, whole = (float(np.sum(np.abs(one) ** 2, dtype=np.float64)) for one in (image - reference, reference))
    if data.reference is None and data.noise_variance is not None:
        noise = 2 * _noise_of_pixels(data, reference, unit, data.noise_variance)
        error -= float(noise.sum()) - 2 * noise.size * _noise_kept(image, data, unit, used, noise)
        whole -= float(noise.sum())
        if whole < noise.sum():
            return None
    return float(np.sqrt(max(error, 0.0) / whole))


def _noise_kept(
    image: Array, data: KSpaceData, unit: float | Array, used: NDArray[np.bool_], noise: NDArray[np.float64]
) -> float:
    """Of an image's error e and the noise n of its reference the mean over pixels of Re e conj(n): not negative."""
    scale = np.broadcast_to(np.asarray(unit, dtype=np.float64), image.shape)
    calibrated = np.divide(image, scale, out=np.zeros_like(image), where=scale > 0)
    maps = np.ones((1, *image.shape)) if data.coil_maps is None else data.coil_maps[0]
    kept = used if used.ndim == 2 else used[:, None]
    residual = np.where(kept, data.kspace[0] - to_kspace(maps * calibrated), 0)
    of_residual = np.asarray(np.sum(maps.conj() * to_image(residual), axis=0) * scale)  # X^H (y - X u)
    kept_noise = float(np.mean(used)) * noise.mean() - np.mean(np.abs(of_residual) ** 2)
    return max(float(kept_noise), 0.0)


NO_RANKS = 1.25
"""Errors up to this many times the reference's noise tell no image from another: the noise is known to a tenth."""


def ranked(error: float, noise: float, of_all: bool) -> str:
    """Whether an error against a noisy reference ranks images: "yes", or why not.

    Parameters
    ----------
    error, noise : float
        Relative L2 error of the magnitude against a noisy reference, and `reference_noise` of that.
    of_all : bool
        Whether the image was made from all samples that the reference was made from.
    """
    if of_all:
        return "no: made from the reference's own samples"
    return "yes" if error > NO_RANKS * noise else "no: the difference is within the noise of the reference"


LEVELS = (50, 80, 95)
"""Shares of the pixels, in per cent."""
FEWEST = 2
"""Fewest images of a group: a single one does not show how images differ."""


@briefly
@dataclass(frozen=True)
class Coverage:
    """Radii of error bars that were learnt from a group of images whose errors are known.

    An image that is exchangeable with the n of the group (as if all n + 1 had been drawn, and one of them put aside)
    has at least n / (n + 1) of the stated share within a radius, on the mean over such draws: this is conformal risk
    control (A. N. Angelopoulos, S. Bates, A. Fisch, L. Lei, T. Schuster, Conformal risk control, ICLR 2024, theorem 1)
    of the share of pixels outside, which falls with the radius and is 1 at most. The images count, not their pixels,
    which are wrong together; and the mean is over images, so that nothing is promised for a single one. See also
    V. Vovk, A. Gammerman, G. Shafer, Algorithmic learning in a random world (2005), and A. N. Angelopoulos, S. Bates,
    A gentle introduction to conformal prediction (2021).

    The radius itself is that of the group, without the correction: it is nearer to the stated share for images of the
    same kind, and for 95 % the corrected one is infinite below 19 images.

    Parameters
    ----------
    group : str
        Name of the group.
    images : tuple of str
        Their names.
    radii : tuple of mapping of str to float
        Rows of a table, for each of `LEVELS`: ``level``, that share of the pixels in per cent, on the mean over the
        images of the group; ``radius``, the number of standard deviations that holds it (for errors that are Gaussian
        and of the predicted size sqrt(-ln(1 - level / 100))); ``left_out_mean`` and ``left_out_least``, the share in
        per cent, mean and least, that each image has within the radius of the others; ``promised``, the share that a
        further image has at least, on the mean over all that may come: level n / (n + 1).
    refused : tuple of str
        What is no part of the group, and why.
    regions : Distances, optional
        How far the means of regions were from the truth, where the images have draws.
    """

    group: str
    images: tuple[str, ...]
    radii: tuple[Mapping[str, float], ...]
    refused: tuple[str, ...] = ()
    regions: Distances | None = None

    @classmethod
    def of(
        cls,
        group: str,
        scores: Mapping[str, Array],
        refused: Sequence[str] = (),
        discs: Sequence[NDArray[np.float64]] = (),
    ) -> Self:
        """The radii of some images.

        Parameters
        ----------
        group : str
            Name of the group.
        scores : mapping of str to array, shape (ky, kx)
            `scores` of every image, by its name; all of one size.
        refused : sequence of str
            See the fields.
        discs : sequence of float arrays, shape (disc, 2)
            Of every image, `distances_of_discs`.

        Raises
        ------
        InputError
            For fewer than two images, or error bars of zero at more than a share of pixels that are wrong.
        """
        if len(scores) < FEWEST:
            raise InputError(f"images of {group}", str(len(scores)), f"at least {FEWEST}")
        every = np.stack([image.ravel() for image in scores.values()])
        radii, known = (
            tuple(_radius_of(group, every, level) for level in LEVELS),
            np.concatenate([*discs, np.empty((0, 2))]),
        )
        regions = Distances.of(*known.T) if len(known) else None
        return cls(group, tuple(scores), radii, tuple(refused), regions)

    @classmethod
    def from_settings(cls, kept: Mapping[str, Any]) -> Self:
        """What `as_settings` has written."""
        regions = Distances.kept(kept["regions"]) if kept.get("regions") else None
        return cls(str(kept["group"]), tuple(kept["images"]), tuple(kept["radii"]), tuple(kept["refused"]), regions)

    def as_settings(self) -> dict[str, object]:
        """All fields for a manifest, with a summary in words."""
        return {"said": str(self), **asdict(self)}

    def radius(self, level: int) -> float:
        """Standard deviations within which ``level`` per cent of the pixels of the group lie.

        Raises
        ------
        InputError
            For another level than those of `LEVELS`.
        """
        found = {one["level"]: one["radius"] for one in self.radii}
        if level not in found:
            raise InputError("level", repr(level), f"one of {', '.join(map(str, found))}, in per cent")
        return found[level]

    @property
    def short(self) -> str:
        """The radii in a few words."""
        radii = ", ".join(f"{one['level']} % within {_short(one['radius'])} std" for one in self.radii)
        return f"{radii} ({len(self.images)} scans of {self.group})"

    def __str__(self) -> str:
        first, *others = ((one["level"], _short(one["radius"])) for one in self.radii)
        more = ", ".join(f"{level} % within {limit}" for level, limit in others)
        begin = f"of {len(self.images)} scans of {self.group}, {first[0]} % of the pixels were within"
        return f"{begin} {first[1]} standard deviations, {more}"


def _short(number: float) -> str:
    """Two digits, also of 1.0."""
    return f"{number:#.2g}".rstrip(".")


def scores(error: Array, std: Array) -> NDArray[np.float32]:
    """Errors of pixels in their standard deviations; 0 where an error is 0.

    Parameters
    ----------
    error : array, shape (ky, kx)
        Of complex pixels, or its modulus.
    std : float array, shape (ky, kx)
        Standard deviations of complex pixels, both components together.
    """
    size = np.abs(error).astype(np.float64)
    with np.errstate(divide="ignore"):
        found = np.divide(size, std, out=np.zeros_like(size), where=size > 0)
    return found.astype(np.float32)


def radius(every: Array, level: float) -> float:
    """The least radius within which a share of the pixels lies, on the mean over images.

    Parameters
    ----------
    every : float array, shape (image, pixel)
        `scores` of images of one size.
    level : float
        The share, in per cent.
    """
    return float(np.quantile(every, level / 100, method="inverted_cdf"))


def share_within(image: Array, limit: float) -> float:
    """Share of an image's `scores` within a radius, in per cent."""
    return 100 * float(np.mean(image <= limit))


def _radius_of(group: str, every: Array, level: int) -> dict[str, float]:
    found, count = radius(every, level), len(every)
    if not np.isfinite(found):
        raise InputError(
            f"error bars of {group}", f"zero at more than {100 - level} % of pixels that are wrong", "error bars"
        )
    apart = [share_within(every[one], radius(np.delete(every, one, axis=0), level)) for one in range(count)]
    shares = {"left_out_mean": float(np.mean(apart)), "left_out_least": min(apart)}
    return {"level": level, "radius": found, **shares, "promised": level * count / (count + 1)}
