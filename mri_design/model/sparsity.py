"""The prior of an image: blocks of sites on its coefficients, whose rates follow the data's own signal.

Kinds of coefficients and of sites have names in `mri_design.registry`.

Another contrast, echo, repeat or frame has its edges where the image has them, whatever its brightness. So patches are
compared in its modulus, and the image is expected to be smooth between pixels whose surroundings are alike there:
Bowsher et al., IEEE Nucl Sci Symp 2004, for single pixels; Ehrhardt & Betcke, SIAM J Imaging Sci 9:1084 (2016), for
weights of total variation. A repeat in the same contrast shows the image itself (`ExpectedImage`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import reduce
from itertools import product
from typing import cast

import numpy as np
import scipy  # whose parts are loaded when they are first used

from mri_design.brief import briefly
from mri_design.errors import InputError, described, positive_number, require_choice, require_counts
from mri_design.model.generalized_linear import SiteBlock
from mri_design.operators.base import Array, LinearOperator, squared_modulus
from mri_design.operators.elementary import Identity, PhasedParts
from mri_design.operators.sparsity import FiniteDifferences, GraphDifferences, Wavelet
from mri_design.registry import BLOCKS, SITES, BlockMaker, SiteMaker, full_name
from mri_design.sites.priors import Laplace, SharedLaplace, StudentT

NEAREST = 2
"""Pixels closer than this along both axes are left to plain differences."""

LEAST_KNOWN = 0.01
"""Fraction of the signal below which differences are never expected to lie, however alike the patches."""


@briefly
@dataclass(frozen=True)
class AlikePatches:
    """For every pixel those in the middle of the most similar patches, and how similar they are.

    Parameters
    ----------
    neighbours : int array, shape (K, ky, kx)
        Flat numbers (row times kx plus column) of pixels, the most alike first.
    differences : float array, shape (K, ky, kx)
        Root mean square difference of the two patches, in units of the image.

    Raises
    ------
    InputError
        For shapes that differ.
    """

    neighbours: Array
    differences: Array

    def __post_init__(self) -> None:
        if self.neighbours.ndim != 3 or self.differences.shape != self.neighbours.shape:
            raise InputError(
                "alike patches", f"{self.neighbours.shape}, {self.differences.shape}", "two arrays (K, ky, kx)"
            )

    def expected(self, signal: float) -> Array:
        """Differences to expect between a pixel and its neighbours, for an image whose signal level is that."""
        return np.asarray(self.differences + LEAST_KNOWN * signal)

    def seen_in(self, image: Array) -> AlikePatches:
        """The same pixels, with the differences that their patches have in an image (ky, kx)."""
        half = Window.of_grid(image.shape).half
        steps = product(range(-half, half + 1), repeat=2)
        moved = (np.roll(image, step, (0, 1)) for step in steps)
        total = sum(np.abs(one - one.ravel()[self.neighbours]) ** 2 for one in moved)
        return AlikePatches(self.neighbours, np.sqrt(total) / (2 * half + 1))


MEMBERS = ("frame", "deviations", "scales", "rotation", "confidence")
"""Arrays of a `SharedFrame`."""


@briefly
@dataclass(frozen=True)
class SharedFrame:
    """Another frame of a series, as it is known by itself: its sites are those of the frame that is inferred.

    Parameters
    ----------
    image : complex array, shape (ky, kx)
        Its posterior mean.
    deviations : complex array, shape (draw, ky, kx)
        Draws of u - mean.
    signal, noise_sd : float
        Its signal level, and the standard deviation of its noise per real component.
    phase : PhasePrior, optional
        The phase that its sites know.
    """

    image: Array
    deviations: Array
    signal: float
    noise_sd: float
    phase: PhasePrior | None = None

    @classmethod
    def kept(cls, arrays: Mapping[str, Array]) -> SharedFrame:
        """A frame of its `arrays`."""
        phase, (signal, noise_sd, ratio) = None, arrays["scales"].tolist()
        if "rotation" in arrays:
            phase = PhasePrior(PhaseMap(arrays["rotation"], arrays["confidence"]), ratio)
        return cls(arrays["frame"], arrays["deviations"], signal, noise_sd, phase)

    @property
    def arrays(self) -> dict[str, Array]:
        """All that there is to keep, by the names of `MEMBERS`."""
        known, ratio = (None, 1.0) if self.phase is None else (self.phase.phase, self.phase.imaginary_ratio)
        found = {"frame": self.image, "deviations": self.deviations}
        found |= {"scales": np.array([self.signal, self.noise_sd, ratio])}
        return found if known is None else found | {"rotation": known.rotation, "confidence": known.confidence}


@briefly
@dataclass(frozen=True)
class Window:
    """Search window for similar patches, and the size of the patches.

    Parameters
    ----------
    nearest : int
        Pixels closer than this along both axes are left out.
    radius : int
        Pixels farther than this along either axis are left out; on small grids the window ends where it would meet
        itself.
    half : int
        Patches have 2 half + 1 pixels a side.
    indistinct : float
        Mean squared distance of the nearest patches over that of all in the window, from which no pixels are alike.
        White noise has more, heads have much less (results/benchmarks/measured-once.md).
    """

    nearest: int
    radius: int
    half: int
    indistinct: float

    @classmethod
    def of_grid(cls, shape: tuple[int, ...]) -> Window:
        """The image's own: 5 x 5 pixels within 8 pixels for 128 x 128, 9 x 9 within 12 for 256 x 256."""
        side = float(np.sqrt(shape[0] * shape[1]))
        return cls(NEAREST, round(4 + side / 32), min(max(1, round(side / 64)), (min(shape) - 1) // 2), 0.4)

    def steps(self, shape: tuple[int, ...]) -> Array:
        """Steps to one half of the window, which stand for their opposites too, (number, 2)."""
        down, right = (min(self.radius, (n - 1) // 2) for n in shape)
        steps = [
            (dy, dx)
            for dy in range(down + 1)
            for dx in range(-right, right + 1)
            if (dy > 0 or dx > 0) and max(dy, abs(dx)) >= self.nearest
        ]
        return np.array(steps, dtype=np.int64).reshape(-1, 2)


def find_alike(image: Array, count: int = 6, window: Window | None = None) -> AlikePatches:
    """The K most similar patches of every pixel, within a window around it.

    The image is taken to be periodic.

    Parameters
    ----------
    image : float or complex array, shape (ky, kx) or (images, ky, kx)
        The image so far. Of several images pixels are alike that are in all of them: squared differences add up.
    count : int
        K.
    window : Window, optional
        By default it grows with the grid (`Window.of_grid`).

    Returns
    -------
    AlikePatches
        The same for the same image: of equally similar patches the one that comes first in the window.

    Raises
    ------
    InputError
        For anything but a finite image, a grid whose window holds fewer than K other patches, and images in which
        nothing is more alike than anything else (constant ones, noise).

    Notes
    -----
    Patches are compared as complex numbers, so that pixels of other phase are not alike. Buades, Coll & Morel, SIAM
    Multiscale Model. Simul. 4 (2005), compare patches for denoising.
    """
    from mri_design.operators.kernels.differences import nearest_patches

    require_counts(least=1, neighbours=count)
    if image.ndim not in (2, 3) or not np.isfinite(image).all():
        raise InputError("image", f"shape {image.shape}, or NaN", "a finite image (ky, kx)")
    shape = image.shape[-2:]
    window = Window.of_grid(shape) if window is None else window
    half, steps = window.half, window.steps(shape)
    if 2 * len(steps) < count:
        raise InputError(
            "neighbours",
            str(count),
            f"at most the {2 * len(steps)} patches of the window in an image {shape}"
            if len(steps)
            else f"an image larger than {shape[0]} x {shape[1]}, which has no window of patches",
            "Take fewer, or leave the non-local block out for images as small as this.",
        )
    scale = float(np.abs(image).max())
    channels = image.reshape(-1, *shape)
    parts = np.concatenate([channels.real, channels.imag] if np.iscomplexobj(image) else [channels])
    parts = np.asarray(parts / (scale if scale > 0 else 1.0))
    neighbours, distances, mean = nearest_patches(parts, steps, half, count)
    if not float(distances.mean()) < window.indistinct * mean:
        raise InputError("image", "patches that are all equally alike", "structure", "Leave the non-local block out.")
    return AlikePatches(neighbours, scale * np.sqrt(distances) / (2 * half + 1))


WINDOW = Window(nearest=1, radius=4, half=1, indistinct=0.36)
"""3 x 3 patches within four pixels, neighbours included (results/companions has what noise and heads show)."""


@briefly
@dataclass(frozen=True)
class Companion:
    """Another image of the object that a scan shows.

    Parameters
    ----------
    name : str
        For messages.
    image : float or complex array, shape (ky, kx)
        On the grid of the scan, of any brightness and contrast; zero where it shows nothing.
    placed : str
        How it was laid over the scan, in words.
    by_headers : bool
        Whether headers give the positions of both images.
    pixel : (float, float), optional
        Size of a pixel along (ky, kx), millimetres; None if unknown.
    in_place : bool
        Whether it lies where the scan lies, so that it is never registered: another slice or echo of the same scan.
    refused : str
        Why it cannot serve, as the end of a sentence; empty where it can.
    beside : mapping of float to (str, callable)
        Of a volume, neighbouring slices: by their distance from it, never 0, in millimetres where headers say where
        both images lie. Each is where that is, in words that go on from "taken from", and a function that gives the
        image there, or None where the volume has none.

    Raises
    ------
    InputError
        For an image that is zero, or not finite.
    """

    name: str
    image: Array
    placed: str = ""
    _: KW_ONLY
    by_headers: bool = False
    pixel: tuple[float, float] | None = None
    in_place: bool = False
    refused: str = ""
    beside: Mapping[float, tuple[str, Callable[[], Array | None]]] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if self.image.ndim != 2:
            raise InputError(f"companion {self.name}", f"shape {self.image.shape}", "one image (ky, kx)")
        unit_modulus(self.image)


def unit_modulus(image: Array) -> Array:
    """Modulus of an image, its 99.5th percentile 1.

    Raises
    ------
    InputError
        For images that are not finite, or zero nearly everywhere.
    """
    modulus = np.abs(image).astype(np.float64)
    level = float(np.percentile(modulus, 99.5)) if np.isfinite(modulus).all() else float("nan")
    if not level > 0:
        raise InputError("companion", "an image that is zero, or NaN", "an image that shows the object")
    return modulus / level


def companion_patches(images: Sequence[Array], count: int = 6) -> AlikePatches:
    """Pixels that are alike in all companions.

    Parameters
    ----------
    images : sequence of arrays, shape (ky, kx)
        On the grid of the scan, complex or moduli, of any brightness.
    count : int
        Neighbours of every pixel.

    Returns
    -------
    AlikePatches
        Differences in signal levels; those of several companions add up as squares.

    Raises
    ------
    InputError
        For images that show nothing, noise for example.
    """
    return find_alike(np.stack([unit_modulus(image) for image in images]), count, WINDOW)


@briefly
@dataclass(frozen=True)
class ExpectedImage:
    """An image about which another one is expected to lie, and how far that is believed where.

    Parameters
    ----------
    image : complex array, shape (ky, kx)
        In the units and with the phase of the image that is inferred.
    trust : float array, shape (ky, kx)
        From 0 to 1: share of their full rate that sites have.

    Raises
    ------
    InputError
        For different shapes.
    """

    image: Array
    trust: Array

    def __post_init__(self) -> None:
        if self.image.ndim != 2 or self.image.shape != self.trust.shape:
            raise InputError("repeat", f"shapes {self.image.shape} and {self.trust.shape}", "two images (ky, kx)")


SHARED = 0.7
"""Rate of sites that frames share, over that at which moduli are on the mean as large as with a site for each frame
(results/regions/joint-echoes.md)."""
DETERMINED = (7.0, 9.0)
"""Mean variances of pixels below which data determine an image, and above which they do not."""
BRIGHT = 0.1
"""Modulus, per signal level, of pixels whose limit is half as large (results/coils/everyday.md has the trials)."""
LEAST_DIFFERENCE = 0.03
"""Difference, in signal levels, that an image is expected to have where its companions have none."""
SURROUNDINGS = 1.5
"""Standard deviation, in pixels, of the window in which a pixel's brightness is seen."""


@briefly
@dataclass(frozen=True)
class Coefficients:
    """Coefficients that the sites of a block act on.

    Parameters
    ----------
    analysis : LinearOperator
        Image (ky, kx) -> coefficients.
    rates : float array, optional
        Dimensionless, as `SparsityBlock.rate` and in its place, where coefficients differ.
    groups : tuple of int
        Axes of the coefficients over which one site sees the norm.
    centre : complex array, shape (ky, kx), optional
        An image whose coefficients the sites expect, instead of zeros.
    weights : float array, optional
        Of rates, after their limit.
    """

    analysis: LinearOperator
    rates: Array | None = None
    groups: tuple[int, ...] = ()
    centre: Array | None = None
    weights: Array | None = None


@briefly
@dataclass(frozen=True)
class ImageFacts:
    """Facts about an image from which the blocks of its prior are built.

    Parameters
    ----------
    shape : (int, int)
        Its grid.
    signal : float
        99.5th percentile of its modulus.
    alike : AlikePatches, optional
        Which pixels belong together, where that is known.
    companion : AlikePatches, optional
        Which do in other images of the same object.
    expected : ExpectedImage, optional
        The image that a repeat makes expect.
    frames : tuple of SharedFrame
        Frames that share the sites.
    """

    shape: tuple[int, int]
    signal: float
    alike: AlikePatches | None = None
    companion: AlikePatches | None = None
    expected: ExpectedImage | None = None
    frames: tuple[SharedFrame, ...] = ()


@dataclass(frozen=True)
class SparsityBlock:
    """Sites of one kind, by default Laplace sites exp(-rate |s| / signal), on moduli of coefficients of one kind.

    Parameters
    ----------
    kind : str, LinearOperator, SiteBlock, or callable
        Which coefficients: "pixels", "differences", "wavelet"; "non-local", differences between a pixel and those in
        the middle of similar patches; what `register_block` has named; or coefficients of your own, as an operator of
        the image (ky, kx), or as a function that `register_block` takes. The sites of a `SiteBlock` are as they are,
        per standard deviation of the noise: neither the signal nor the phase changes them.
    rate : float
        Dimensionless rate: per unit of the image's own signal level (99.5th percentile of the modulus); non-local
        differences have it per unit of what the similarity of their patches makes expect (`AlikePatches.expected`).
    isotropic : bool
        For differences: one site on both directions of a pixel together (isotropic total variation); for non-local
        ones a site on all neighbours of a pixel together.
    wavelet, levels : str, int
        For wavelets: PyWavelets name and number of levels.
    coarse_rate : float
        For wavelets: rate of the coarse approximation, which is not sparse.
    tau_limit : float or float array, optional
        Largest tau, the rate per standard deviation of the noise, whatever the rate; of pixels also one for each.
        Where noise is strong, rates that suit clean images would remove weak structure that the data show, but not
        clearly enough to resist the prior.
    tau_limit_with_non_local : float, optional
        The limit in models that have a non-local block, where it is lower than ``tau_limit``: there the non-local
        block removes noise too, and both at full rate would remove structure with it.
    tau_limit_bright : float, optional
        For pixels: the limit of bright ones in models that have a non-local block, where several coils determine the
        image (`where_determined`).
    reweighted : bool
        For pixels: bright ones have the limit ``tau_limit_bright`` in every model that has a non-local block.
    neighbours : int
        For non-local differences: how many of every pixel.
    site : str or callable
        "laplace"; "student-t" with three degrees of freedom and "sech2", whose tau is 1 / width in the same units;
        what `register_site` has named; or a function of tau that makes a site, as `register_site` takes it.

    Raises
    ------
    InputError
        For an unknown kind or site, rates that are not positive, or no level.
    """

    kind: str | LinearOperator | SiteBlock | BlockMaker
    rate: float
    _: KW_ONLY
    isotropic: bool = False
    wavelet: str = "db4"
    levels: int = 3
    coarse_rate: float = 0.1
    tau_limit: float | Array | None = None
    tau_limit_with_non_local: float | None = None
    tau_limit_bright: float | None = None
    reweighted: bool = False
    neighbours: int = 6
    site: str | SiteMaker = "laplace"

    def __post_init__(self) -> None:
        for name, known in (("kind", BLOCKS), ("site", SITES)):
            if isinstance(given := getattr(self, name), str):
                object.__setattr__(self, name, full_name(given, known))
        if isinstance(self.kind, type) or not (
            isinstance(self.kind, LinearOperator | SiteBlock) or callable(self.kind)
        ):
            require_choice(tuple(BLOCKS), cure="", **{"block kind": self.kind})
        if not callable(self.site):
            require_choice(tuple(SITES), site=self.site)
        positive_number("rate", self.rate)
        positive_number("coarse_rate", self.coarse_rate)
        for name in ("tau_limit", "tau_limit_with_non_local", "tau_limit_bright"):
            limit = getattr(self, name)
            if limit is not None and not isinstance(limit, np.ndarray):
                positive_number(name, limit)
        if self.tau_limit_bright is not None and (self.kind != "pixels" or self.tau_limit is None):
            raise InputError("tau_limit_bright", f"block {self.name}", "a block of pixels that has a tau_limit, too")
        if self.reweighted and self.tau_limit_bright is None:
            raise InputError("reweighted", f"block {self.name}", "a block that has a tau_limit_bright, too")
        require_counts(least=1, levels=self.levels, neighbours=self.neighbours)

    @property
    def name(self) -> str:
        """Name for messages and tables: that of the kind, or of the operator or function."""
        if isinstance(self.kind, str):
            return self.kind
        if isinstance(self.kind, SiteBlock):
            return self.kind.name
        return type(self.kind).__name__ if isinstance(self.kind, LinearOperator) else self.kind.__name__

    def limited_for_non_local(self) -> SparsityBlock:
        """The block with its limit in models that have a non-local block."""
        limits = [limit for limit in (self.tau_limit, self.tau_limit_with_non_local) if limit is not None]
        return replace(self, tau_limit=reduce(np.minimum, limits) if limits else None)

    def where_determined(self, variance: float, image: Array) -> SparsityBlock:
        """The block in models of an image of which a first estimate is known.

        Where data leave much open, rates of pixels up to ``tau_limit`` tell the image from its aliases. Where they
        determine it, such rates empty the background of its noise, and pull bright pixels towards zero: these have a
        lower limit (`less_where_bright`). Between the two variances of `DETERMINED` limits are interpolated, in
        logarithms.

        Parameters
        ----------
        variance : float
            Mean over the pixels, real and imaginary part together, in units of the noise variance of one of them: 2
            where all lines are measured and nothing else is known.
        image : complex array, shape (ky, kx)
            The estimate.
        """
        at = np.interp(np.log(variance), np.log(DETERMINED), (0.0, 1.0))
        lower = self if at == 1 else self.less_where_bright(image)
        if lower.tau_limit is None or self.tau_limit is None or lower is self:
            return self
        return replace(self, tau_limit=lower.tau_limit ** (1 - at) * self.tau_limit**at)

    def less_where_bright(self, image: Array) -> SparsityBlock:
        """The block with limits from ``tau_limit`` where an image is dark to ``tau_limit_bright`` where it is bright.

        Weights of reweighted minimisation are small where the image is large, too (Candes, Wakin & Boyd 2008, J Fourier
        Anal Appl 14:877). Blocks without ``tau_limit_bright`` stay as they are.

        Parameters
        ----------
        image : complex array, shape (ky, kx)
            An estimate.
        """
        if self.tau_limit_bright is None or self.tau_limit is None:
            return self
        brightness = scipy.ndimage.gaussian_filter(np.abs(image), SURROUNDINGS) / (
            BRIGHT * np.percentile(np.abs(image), 99.5)
        )
        least = np.minimum(self.tau_limit_bright, self.tau_limit)
        return replace(self, tau_limit=np.maximum(self.tau_limit / (1 + brightness**2), least))

    def sites(self, image: ImageFacts, noise_sd: float, phase: PhasePrior | None = None) -> SiteBlock:
        """The block on an image grid, tau = rate sigma / signal up to the limit; on moduli, or as ``phase`` has it.

        Raises
        ------
        InputError
            For non-local differences where it is not known what is alike.
        """
        if isinstance(self.kind, SiteBlock):
            _require_image(self.name, self.kind.analysis, image.shape)
            return self.kind
        tau_per_rate = noise_sd / image.signal
        kind = BLOCKS[self.kind] if isinstance(self.kind, str) else self.kind
        made: object = kind if isinstance(kind, LinearOperator) else kind(self, image)
        made = Coefficients(made) if isinstance(made, LinearOperator) else made
        if not isinstance(made, Coefficients):
            raise InputError(f"block {self.name}", described(made), "a LinearOperator or Coefficients")
        _require_image(self.name, made.analysis, image.shape)
        analysis, groups = made.analysis, made.groups
        rates: Array | float = self.rate if made.rates is None else made.rates
        if self.tau_limit is not None:
            rates = np.minimum(rates, self.tau_limit / tau_per_rate)
        if made.weights is not None:
            rates = rates * made.weights
        if phase is not None:
            analysis, rates, groups = phase.on(analysis, rates, groups)
        site: SiteMaker = SITES[self.site] if isinstance(self.site, str) else self.site
        block = SiteBlock(self.name, analysis, site(np.asarray(rates * tau_per_rate)), groups)
        if made.centre is not None:
            return replace(block, offset=analysis(made.centre), role="prior")
        return self._shared(block, image) if image.frames else block

    def _shared(self, block: SiteBlock, image: ImageFacts) -> SiteBlock:
        """The block with sites on the vector of all frames, of which those of the other frames are held.

        A site exp(-k |(tau_f s_f / sigma_f)_f|) on F frames instead of exp(-tau_f |s_f| / sigma_f) in each.
        """
        if self.site != "laplace":
            raise InputError(f"block {self.name}: site", described(self.site), "laplace, which frames can share")
        own = cast(Laplace, block.potential)
        others: Array | float = 0.0
        for frame in image.frames:
            alike = None if image.alike is None else image.alike.seen_in(frame.image)
            one = self.sites(replace(image, signal=frame.signal, alike=alike, frames=()), frame.noise_sd, frame.phase)
            drawn = one.pooled(squared_modulus(one.analysis(frame.deviations))).mean(axis=0)
            power = (one.site_power(one.coefficients(frame.image)) + drawn) / frame.noise_sd**2
            others = others + (cast(Laplace, one.potential).rate ** 2 * power).reshape(block.site_shape)
        rate = SHARED * np.sqrt(1 + len(image.frames)) * own.rate
        return replace(block, potential=SharedLaplace(rate, others / own.rate**2))


LIMIT_WITH_NON_LOCAL = 0.1
"""The usual largest tau of differences in models that have a non-local block."""
LIMIT_BRIGHT = 0.02
"""The usual largest tau of bright pixels in models that have a non-local block."""


def usual_limits(kind: str, tau_limit: float | None) -> dict[str, float | None]:
    """The limits of a `SparsityBlock` as recipes have them, by name; with a non-local block some are lower."""
    limits = {"tau_limit": tau_limit}
    if kind == "differences":
        return limits | {"tau_limit_with_non_local": LIMIT_WITH_NON_LOCAL}
    return limits | ({"tau_limit_bright": LIMIT_BRIGHT} if kind == "pixels" and tau_limit is not None else {})


def prior_blocks(blocks: object) -> tuple[SparsityBlock, ...]:
    """Blocks of a prior as slices keep them.

    Raises
    ------
    InputError
        For anything but `SparsityBlock` and `SiteBlock` objects, naming which it is.
    """
    if not isinstance(blocks, tuple | list):
        raise InputError("prior", described(blocks), "a tuple of SparsityBlocks or SiteBlocks")
    for place, block in enumerate(blocks):
        if not isinstance(block, SparsityBlock | SiteBlock):
            raise InputError(f"prior[{place}]", described(block), "a SparsityBlock or a SiteBlock")
    return tuple(SparsityBlock(block, 1.0) if isinstance(block, SiteBlock) else block for block in blocks)


def _require_image(name: str, analysis: LinearOperator, shape: tuple[int, int]) -> None:
    if analysis.in_shape != shape:
        raise InputError(f"block {name}", f"an operator of {analysis.in_shape}", f"one of the image, {shape}")


def pixels(block: SparsityBlock, image: ImageFacts) -> LinearOperator:
    """The pixels themselves."""
    return Identity(image.shape)


def differences(block: SparsityBlock, image: ImageFacts) -> Coefficients:
    """Differences of neighbouring pixels, both of a pixel together where the block is isotropic."""
    return Coefficients(FiniteDifferences(image.shape), groups=(-3,) if block.isotropic else ())


def wavelet(block: SparsityBlock, image: ImageFacts) -> Coefficients:
    """Orthonormal wavelet coefficients, the coarse ones with a rate of their own."""
    analysis = Wavelet(image.shape, block.wavelet, block.levels)
    return Coefficients(analysis, np.where(analysis.level_map() == 0, block.coarse_rate, block.rate))


def non_local(block: SparsityBlock, image: ImageFacts) -> Coefficients:
    """Differences to the pixels in the middle of the most similar patches.

    Raises
    ------
    InputError
        Where similar patches have not been found.
    """
    if image.alike is None:
        raise InputError("alike", "none yet", "AlikePatches", "find_alike finds them in an image.")
    return _along(block, image.alike, block.rate * image.signal / image.alike.expected(image.signal))


def companion(block: SparsityBlock, image: ImageFacts) -> Coefficients:
    """Differences to the pixels whose surroundings are most alike in other images of the same object.

    Raises
    ------
    InputError
        Where there is no other image.
    """
    if image.companion is None:
        raise InputError("companion", "none", "AlikePatches", "companion_patches finds them in other images.")
    return _along(block, image.companion, block.rate / (image.companion.differences + LEAST_DIFFERENCE))


def repeat(block: SparsityBlock, image: ImageFacts) -> Coefficients:
    """Differences of neighbouring pixels, expected to be those of a repeat as far as the data do not contradict it.

    Raises
    ------
    InputError
        Where there is no repeat.
    """
    if image.expected is None:
        raise InputError("repeat", "none", "an ExpectedImage", "`evidence.companions` makes it of another image.")
    analysis = FiniteDifferences(image.shape)
    weights = np.broadcast_to(image.expected.trust, analysis.out_shape)
    return Coefficients(analysis, centre=image.expected.image, weights=weights)


def _along(block: SparsityBlock, patches: AlikePatches, rates: Array) -> Coefficients:
    """Differences to as many of the alike pixels as the block requests, with rates (K, ky, kx) of their own."""
    analysis, rates = GraphDifferences(patches.neighbours[: block.neighbours]), rates[: block.neighbours]
    if block.isotropic:
        return Coefficients(analysis, rates.mean(axis=0, keepdims=True), (-3,))
    return Coefficients(analysis, rates)


def student_t(tau: Array) -> StudentT:
    """Sites with three degrees of freedom."""
    return StudentT(3.0, np.square(tau))


DEFAULT_PRIOR = (SparsityBlock("pixels", 100.0, tau_limit=0.4), SparsityBlock("differences", 10.0))
"""Dark background and piecewise smoothness, for images whose 99.5th percentile is 1.

The pixels' rate is limited by the noise, because a fixed rate empties noisy images. The trials behind both rates and
the limit are in results/benchmarks/measured-once.md.
"""


WIDTH = 5.0
"""Standard deviation of the Gaussian in k-space samples: phase is slow over the field of view, whatever its matrix.

A wider one follows the phase more closely, and the image's own errors."""

LEAST_SIGNAL = 6.0
"""Peak of the smoothed image over the noise in it (per component) below which a phase is none: noise alone, as many
independent values as the Gaussian leaves, reaches 4 to 5."""


@briefly
@dataclass(frozen=True)
class PhaseMap:
    """e^{i phi} of an image, and how far it can be trusted.

    Parameters
    ----------
    rotation : complex array, shape (ky, kx)
        e^{i phi}.
    confidence : float array, shape (ky, kx)
        From 0 (nothing known) to 1: how much of the image's modulus around a pixel the phase accounts for.

    Raises
    ------
    InputError
        For shapes that differ, moduli other than one, or confidences outside 0 to 1.
    """

    rotation: Array
    confidence: Array

    def __post_init__(self) -> None:
        if self.rotation.ndim != 2 or self.confidence.shape != self.rotation.shape:
            raise InputError(
                "phase map", f"{self.rotation.shape} and {self.confidence.shape}", "two images (ky, kx) of one shape"
            )
        if not np.allclose(np.abs(self.rotation), 1, rtol=0, atol=1e-4):
            raise InputError("phase map", "rotations of other moduli than one", "e^{i phi}")
        if not ((self.confidence >= 0) & (self.confidence <= 1)).all():
            raise InputError("phase map", "confidences beyond 0 to 1, or NaN", "0 to 1")

    @classmethod
    def known(cls, angle: Array) -> PhaseMap:
        """A phase in radians, (ky, kx), trusted everywhere."""
        return cls(np.exp(1j * np.asarray(angle, dtype=float)), np.ones(np.shape(angle)))


def estimate_phase(image: Array, noise_variance: float) -> PhaseMap:
    """phi of an image smoothed by a Gaussian in k-space: each pixel counts by its own modulus.

    Parameters
    ----------
    image : complex array, shape (ky, kx)
        The image so far: coil-combined, a posterior mean or the central lines' own image.
    noise_variance : float
        Per real component of a fully sampled image: what the image could hold at most of it.

    Returns
    -------
    PhaseMap
        The confidence is that of a smoothed value above its noise, times its coherence |G u| / G |u|.

    Raises
    ------
    InputError
        Where the image is real, not finite, or shows nothing above the noise: then it has no phase.

    Notes
    -----
    The homodyne phase: Noll, Nishimura & Macovski, IEEE TMI 10 (1991), with a Gaussian for the window and the current
    reconstruction for the central lines.
    """
    if image.ndim != 2 or not np.iscomplexobj(image):
        raise InputError("image", f"{image.dtype} {image.shape}", "a complex image (ky, kx)")
    if not np.isfinite(image).all():
        raise InputError("image", "NaN or infinite values", "finite numbers")
    if not (np.isfinite(noise_variance) and noise_variance >= 0):
        raise InputError("noise_variance", repr(noise_variance), "a finite number, not negative")
    along_y, along_x = (np.exp(-0.5 * (np.fft.fftfreq(n, 1 / n) / WIDTH) ** 2) for n in image.shape)
    gaussian = along_y[:, None] * along_x
    smooth = scipy.fft.ifft2(gaussian * scipy.fft.fft2(image.astype(np.complex128)))
    around = scipy.fft.ifft2(gaussian * scipy.fft.fft2(np.abs(image).astype(float))).real
    noise = noise_variance * float(np.mean(gaussian**2))
    peak = float(np.abs(smooth).max())
    if not peak > LEAST_SIGNAL * np.sqrt(noise):
        raise InputError(
            "phase",
            "an image with nothing above the noise at low resolution",
            "a signal to take the phase from",
            "Use the modulus model, or measure more central lines first.",
        )
    power = np.abs(smooth) ** 2
    floor = np.finfo(float).tiny
    coherence = np.abs(smooth) / np.maximum(around, floor)
    confidence = np.clip(coherence, 0, 1) * power / np.maximum(power + 2 * noise, floor)
    turn = np.where(power > 0, smooth / np.maximum(np.abs(smooth), floor), 1)
    return PhaseMap(turn, confidence)


IMAGINARY_RATIO = 1.5
"""Ratio of a `PhasePrior` as recipes have it."""


@dataclass(frozen=True)
class PhasePrior:
    """Sites on a + i b = B e^{-i phi} u that hold b to be smaller than a.

    Parameters
    ----------
    phase : PhaseMap, optional
        phi; None has it estimated from the central lines' own image wherever a model is made (`SliceModel.model`).
    imaginary_ratio : float
        R, by how much more the imaginary part is penalised where the phase is certain; where the map's confidence c is
        less, rho = 1 + (R - 1) c.

    Notes
    -----
    One site acts on sqrt(a^2 + rho^2 b^2), which is the site on the modulus for R = 1 or where nothing is known of the
    phase. What ratios do to the error of the posterior mean is tabulated in
    results/benchmarks/measured-once.md. A scan whose phase is not smooth loses by it: let the scan decide.

    Raises
    ------
    InputError
        For a ratio that is not positive and finite.
    """

    phase: PhaseMap | None = None
    imaginary_ratio: float = 2.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.imaginary_ratio) and self.imaginary_ratio > 0):
            raise InputError("imaginary_ratio", repr(self.imaginary_ratio), "a positive finite number")

    def seen_in(self, image: Array, noise_variance: float) -> PhasePrior:
        """This prior with phi estimated from an image; see `estimate_phase` for the images that it refuses."""
        return replace(self, phase=estimate_phase(image, noise_variance))

    @property
    def _known(self) -> PhaseMap:
        if self.phase is None:
            raise InputError("phase", "none yet", "a PhaseMap", "Use `PhasePrior.seen_in` first.")
        return self.phase

    def emphasis(self, analysis: LinearOperator) -> Array:
        """rho, broadcastable to the coefficients; those that are on no pixel grid take the image's median."""
        rho = 1 + (self.imaginary_ratio - 1) * self._known.confidence
        on_pixels = analysis.out_shape[-2:] == rho.shape
        constant = self.imaginary_ratio == 1 or not on_pixels
        return np.asarray(np.median(rho)) if constant else rho

    def on(
        self, analysis: LinearOperator, rates: Array | float, group_axes: tuple[int, ...]
    ) -> tuple[LinearOperator, Array | float, tuple[int, ...]]:
        """Analysis, rates and group axes of sites on moduli -> those of sites that know the phase."""
        spread = rates if np.ndim(rates) == 0 else np.expand_dims(rates, -1)
        parts = PhasedParts(analysis, self._known.rotation, self.emphasis(analysis))
        return parts, spread, (-1, *(axis - 1 for axis in group_axes))
