"""Other images of the object as side information: registration, judgement by lines held back, and stages of estimation.

Some lines are held back and predicted from the others, with each companion and without it; a companion is used if it
predicts them better. A repeat is a companion whose image the scan is expected to show, where its own data do not
contradict it.

Companions are laid over the scan by rigid registration, by normalised mutual information (Studholme, Hill & Hawkes,
Pattern Recognition 32:71, 1999).

Non-local blocks of a prior are known only from an image, so such images are estimated in stages: estimate, compare
patches, and estimate again (`posterior_mean`, `map_image`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import count
from typing import Any, Literal

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.design.engine import found_energies
from mri_design.errors import InputError
from mri_design.estimation.map_estimate import MaximumAPosteriori
from mri_design.evidence.error_bars import share_measured
from mri_design.evidence.held_back import CLEARLY, FEWEST, HeldBack
from mri_design.inference.base import StepInfo, WarmStart, pooled_variances
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import GaussianPosterior, pooled_products
from mri_design.model.slice import SliceModel, non_locally_refined
from mri_design.model.sparsity import (
    AlikePatches,
    Companion,
    ExpectedImage,
    SparsityBlock,
    companion_patches,
    estimate_phase,
    prior_blocks,
    unit_modulus,
)
from mri_design.operators.base import Array
from mri_design.status import Convergence
from mri_design.variances.columns import ExactByColumns

LOOKS = 2
"""Number of searches for similar patches."""
COLD = 2
"""Outer loops from a cold start."""


def is_non_local(slice_model: SliceModel) -> bool:
    """Whether the prior of a slice has non-local blocks."""
    return any(block.kind == "non-local" for block in prior_blocks(slice_model.prior))


def posterior_mean(
    slice_model: SliceModel,
    lines: Sequence[int],
    engine: DoubleLoop,
    rng: np.random.Generator,
    *,
    signal: float | None = None,
    warm_start: WarmStart | None = None,
    callback: Callable[[StepInfo], None] | None = None,
) -> tuple[GaussianPosterior, GaussianPosterior | None, int, str]:
    """Infer an image, in stages if the prior has non-local blocks: without them, then with those of the image so far.

    Each stage but the last is one outer loop from where the one before it ended, or two from a cold start: patches can
    be distinguished long before the image has settled.

    Parameters
    ----------
    slice_model : SliceModel
        The slice; patches it knows already are left out of the first stage.
    lines : sequence of int
        Measured lines.
    engine : DoubleLoop
        Who infers.
    rng : numpy Generator
        All stages draw the same, so that draws of one may start those of the next.
    signal : float, optional
        As in `SliceModel.model`.
    warm_start : WarmStart, optional
        Of the model without non-local blocks.
    callback : callable, optional
        Called after every outer loop, which are numbered through all stages.

    Returns
    -------
    posterior : GaussianPosterior
        Of the last stage.
    local : GaussianPosterior or None
        Of the first stage, whose other blocks are limited as in models with non-local ones; None if it is the last.
    matvecs : int
        Products with A of all stages.
    left_out : str
        Why non-local blocks are left out; empty if they are not.
    """
    callback = _counting_on(callback)
    if not is_non_local(slice_model):
        posterior = engine.infer(slice_model.model(lines, signal), rng, warm_start=warm_start, callback=callback)
        return posterior, None, posterior.convergence.matvecs, ""
    seed, without = int(rng.integers(2**63)), replace(slice_model, alike=None)
    local, matvecs, start, left_out = None, 0, warm_start, ""
    if isinstance(engine.variances, ExactByColumns):
        model, left_out = without.model(lines, signal), "exact variances by columns do not cover it"
    else:
        slice_model = _without_non_local(slice_model)
        usual, model = prior_blocks(slice_model.prior), slice_model.model(lines, signal)
        for look in range(LOOKS):
            short = engine.cut_short(COLD if look == 0 and warm_start is None else 1, half_the_draws=True)
            posterior = short.infer(model, np.random.default_rng(seed), warm_start=start, callback=callback)
            if local is None and slice_model.n_coils > 1:
                slice_model = _as_determined(slice_model, posterior)
            local = posterior if local is None else local
            slice_model = _reweighted(slice_model, usual, posterior.mean)
            matvecs += posterior.convergence.matvecs
            try:
                slice_model = non_locally_refined(slice_model, posterior.mean)
            except InputError as error:
                model, start = without.model(lines, signal), WarmStart.from_posterior(posterior)
                left_out = _refused(error)
                break
            model = slice_model.model(lines, signal)
            start = carried(posterior, model)
    posterior = engine.infer(model, np.random.default_rng(seed), warm_start=start, callback=callback)
    return posterior, local, matvecs + posterior.convergence.matvecs, left_out


def loops_of_stages(slice_model: SliceModel) -> int:
    """Most outer loops before the last stage of `posterior_mean`; 0 for a prior without non-local blocks."""
    return COLD + LOOKS - 1 if is_non_local(slice_model) else 0


def local_posterior(
    slice_model: SliceModel, lines: Sequence[int], engine: DoubleLoop, seed: int, signal: float | None = None
) -> GaussianPosterior:
    """The posterior without non-local blocks, and without the limits that these put on other blocks (`posterior_mean`).

    It is inferred anew: a loop from the first stage would keep too much of its larger variances.
    """
    model = replace(slice_model, alike=None).model(lines, signal)
    return engine.cut_short(COLD).infer(model, np.random.default_rng(seed))


def _counting_on(callback: Callable[[StepInfo], None] | None) -> Callable[[StepInfo], None] | None:
    """Wrap a callback so that outer loops are numbered through all stages instead of from one in each."""
    if callback is None:
        return None
    numbers = count(1)

    def numbered(step: StepInfo) -> None:
        callback(replace(step, loop=next(numbers)))

    return numbered


def map_image(
    slice_model: SliceModel,
    lines: Sequence[int],
    estimate: MaximumAPosteriori,
    *,
    signal: float | None = None,
    start: Array | None = None,
) -> tuple[Array, Convergence, str]:
    """The MAP image, in stages as `posterior_mean`; how it ended, and why non-local blocks are left out."""
    without, image, left_out = replace(slice_model, alike=None), start, ""
    if is_non_local(slice_model):
        slice_model = _without_non_local(slice_model)
        for _ in range(LOOKS):
            image, _ = estimate(slice_model.model(lines, signal), image)
            try:
                slice_model = non_locally_refined(slice_model, image)
            except InputError as error:
                slice_model, left_out = without, _refused(error)
                break
    return *estimate(slice_model.model(lines, signal), image), left_out


def _without_non_local(slice_model: SliceModel) -> SliceModel:
    """The slice without non-local blocks, the others limited as in models that have some.

    Of noisy scans they then leave more noise in the image. That is what patches have to be compared in: where the
    other blocks had smoothed them, they would all seem to be alike.
    """
    prior = tuple(block.limited_for_non_local() for block in prior_blocks(slice_model.prior))
    return replace(slice_model, prior=prior, alike=None)


def _as_determined(slice_model: SliceModel, posterior: GaussianPosterior) -> SliceModel:
    """The slice with the strength of its prior adapted to what a first posterior leaves open of the image.

    One coil leaves half of the image open where it measures half of the lines; that is what its prior is made for.
    """
    variance = float(np.mean(posterior.image_variances)) / slice_model.noise_variance
    prior = tuple(block.where_determined(variance, posterior.mean) for block in prior_blocks(slice_model.prior))
    return replace(slice_model, prior=prior)


def _reweighted(slice_model: SliceModel, usual: Sequence[SparsityBlock], image: Array) -> SliceModel:
    """The slice with its reweighted blocks adapted to an image."""
    pairs = zip(prior_blocks(slice_model.prior), usual, strict=True)
    prior = tuple(first.less_where_bright(image) if first.reweighted else block for block, first in pairs)
    return replace(slice_model, prior=prior)


def _refused(error: InputError) -> str:
    """Why a non-local block was refused, without the cure: that has just been done."""
    return f"{error.field}: got {error.got}; wanted {error.wanted}"


def carried(
    posterior: GaussianPosterior, model: GeneralizedLinearModel, others: Collection[str] = ("non-local",)
) -> WarmStart:
    """Warm start of another model of the same image: z of equal blocks, and from the draws of new ones and ``others``.

    Parameters
    ----------
    posterior : GaussianPosterior
        Of the first model.
    model : GeneralizedLinearModel
        The second one.
    others : collection of str
        Blocks that have the same name in both, but other coefficients.
    """
    names = [block.name for block in posterior.model.blocks]
    known = dict(zip(names, pooled_variances(posterior.model, posterior.marginals), strict=True))
    draws = posterior.marginals.samples
    z: list[Array] = []
    for block in model.blocks:
        if block.name in known and block.name not in others:
            z.append(known[block.name])
        elif draws is None:
            z.append(np.asarray(block.potential.start_variance, dtype=posterior.mean.real.dtype))
        else:
            power = np.mean([_power(block, draw) for draw in draws], axis=0)
            z.append(np.maximum(power, np.finfo(np.float32).tiny))
    return WarmStart(posterior.mean, tuple(z), draws)


def _power(block: SiteBlock, draw: Array) -> Array:
    """|s|^2 of every site of a block."""
    (products,) = pooled_products([block], draw, draw)
    return block.site_power(block.analysis(draw)) if products is None else products[1]


Image = NDArray[Any]

LARGEST_SHIFT = 0.15
"""Largest motion that is searched, as a fraction of the grid's shorter side."""
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
        """Largest displacement, in pixels, half-way between the middle of an image and its edge."""
        return float(np.hypot(*self.shift) + abs(np.deg2rad(self.angle)) * min(shape) / 4)

    def apart(self, other: RigidMotion, shape: tuple[int, ...]) -> float:
        """Pixels by which another motion leaves the same places elsewhere, at most, as `displacement`."""
        (down, right), (there, across) = self.shift, other.shift
        return RigidMotion((down - there, right - across), self.angle - other.angle).displacement(shape)

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


def alikeness(one: Image, other: Image) -> float:
    """Normalised mutual information of moduli between 0 and 1, with `BINS` levels: from 1 (none) to 2 (equal)."""
    first, second = (np.minimum((image * BINS).astype(np.intp), BINS - 1).ravel() for image in (one, other))
    joint = np.bincount(first * BINS + second, minlength=BINS * BINS).reshape(BINS, BINS) / first.size
    alone, apart, both = (_entropy(p) for p in (joint.sum(axis=1), joint.sum(axis=0), joint))
    return (alone + apart) / both if both > 0 else 1.0


def alike_after(motion: RigidMotion, fixed: Image, moving: Image) -> float:
    """`alikeness` of two images (ky, kx), of any brightness, of which one moves."""
    return -_unlike(_grey(fixed), _grey(moving))(np.array([*motion.shift, motion.angle]))


def register(fixed: Image, moving: Image) -> RigidMotion:
    """Find the rigid motion that makes one image most similar to another.

    Coarse turns are tried first, each with the shift at which edges of both images lie upon each other best. Those that
    make the images most alike are refined by Powell's method, on every second pixel of large images, and the best of
    them on all pixels.

    Parameters
    ----------
    fixed : float or complex array, shape (ky, kx)
        The image that stays: may be of low resolution, or noisy.
    moving : array of the same shape
        The image to move.

    Returns
    -------
    RigidMotion
        No turn and no shift where moving it hardly at all makes the images most alike.

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
    return RigidMotion() if motion.displacement(fixed.shape) < LEAST else motion


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


SMOOTH = 8.0
"""Standard deviation, in pixels, of the window in which brightness and phase of both images are compared."""
FLOOR = 0.02
"""Of the largest energy in such a window: where there is less, the factor is that of the whole image."""
LOOPS = 2
"""Outer loops of the inference of what the data say beyond the other image."""
SURROUNDINGS = 1.5
"""Standard deviation, in pixels, of the window in which the data contradict it."""


def matched(slice_model: SliceModel, lines: Sequence[int], modulus: Array, image: Array) -> Array:
    """The other image with the phase of the current image, times a smooth complex factor fitted to the central lines.

    Parameters
    ----------
    slice_model : SliceModel
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
    slice_model: SliceModel,
    lines: Sequence[int],
    modulus: Array,
    doubt: float,
    without: HeldBack,
) -> ExpectedImage:
    """The image that a scan is expected to show, given another image of it.

    What its data say beyond that image is inferred by itself, as a sparse image: y - X c instead of y. Where it is
    large, the two differ, and the other image is not trusted.

    Parameters
    ----------
    slice_model : SliceModel
        The scan, without other images in its prior.
    lines : sequence of int
        Measured readouts.
    modulus : float array, shape (ky, kx)
        The other image, laid over the scan.
    doubt : float
        Difference, in signal levels, where it is trusted by half.
    without : HeldBack
        Its posterior, of fewer lines and without other images, has the phase; its engine infers the difference.
    """
    image = matched(slice_model, lines, modulus, without.posterior.mean)
    level, sd = slice_model.level(lines), float(np.sqrt(slice_model.noise_variance))
    beyond = slice_model.central_image(lines) - slice_model.centrally(image, lines)
    plain = replace(slice_model, phase=None, alike=None)
    model = plain.model(lines, max(float(np.percentile(np.abs(beyond), 99.5)), sd))
    model = replace(model, data=model.data - model.measurement(image))
    difference = without.engine.cut_short(LOOPS).infer(model, np.random.default_rng(without.seed)).mean
    apart = scipy.ndimage.gaussian_filter(np.abs(difference), SURROUNDINGS) / (doubt * level)
    return ExpectedImage(image, 1 / (1 + apart**2))


def _smooth(image: Array) -> Array:
    return np.asarray(scipy.ndimage.gaussian_filter(image.astype(np.float64), SMOOTH, mode="wrap"))


LEAST_GAIN = 0.03
"""Mean logarithm of the energy left unpredicted without over that with it, where half of the lines are measured."""
JUDGED_AT = 0.25
"""Share of the readouts at least for whose limit companions are judged; at smaller limits what they change is no more
than what an inference that is cut short leaves."""
REPEATED = 0.5
"""As `LEAST_GAIN`, of a companion that is used as a repeat."""
FARTHEST = 10.0
"""Millimetres by which an image that headers have placed may have to be moved; beyond them it is left out."""
ACROSS = 1.06
"""Factor by which the mutual information at another place of a volume has to exceed that at its slice: half-way
between two slices there is less noise, which looks alike (results/companions/across.md has the trials)."""
ANEW = 0.5
"""Pixels by which companions have to lie elsewhere in the image that they helped to make before they are laid anew."""
REPEAT_ANEW = 0.1
"""As `ANEW`, of a repeat, whose differences between pixels are expected where they lie (results/companions/repeats.md
has what that gains)."""


Strength = Literal["careful", "moderate", "strong"]
"""How much other images may ask of the image."""


def companion_limit(strength: Strength, share: float) -> float:
    """Largest rate of a companion's block, per standard deviation of the noise (results/companions has the trials).

    The fewer readouts are measured, the weaker other images may act before lesions lose contrast.

    Parameters
    ----------
    strength : {"careful", "moderate", "strong"}
        The recipe's.
    share : float
        Readouts measured over those of the whole grid, at most 1.
    """
    careful = 0.04 * share * min(1.0, 4 * share)
    return {"careful": careful, "moderate": 0.03, "strong": 0.1}[strength]


def repeat_doubt(strength: Strength, share: float) -> float | None:
    """Difference, in signal levels, at which a repeat is trusted by half; None if repeats are not considered.

    Faint lesions that a repeat alone shows would remain, and where few readouts are measured new ones would lose
    contrast (results/companions/repeats.md has the trials).

    Parameters
    ----------
    strength, share
        As of `companion_limit`.
    """
    if strength == "careful" or (strength == "moderate" and share < 0.2):
        return None
    return 0.05 if strength == "strong" else 0.02


def with_block_of(
    kind: Literal["companion", "repeat"], prior: Sequence[Any], strength: Strength, share: float
) -> tuple[Any, ...]:
    """The blocks of a prior, with the usual one of a companion or a repeat unless they have one."""
    if any(block.kind == kind for block in prior):
        return tuple(prior)
    if kind == "companion":
        return *prior, SparsityBlock(kind, 0.8, isotropic=True, tau_limit=companion_limit(strength, share))
    return *prior, SparsityBlock(kind, 30.0, tau_limit=0.3 if strength == "strong" else 0.1)


@briefly
@dataclass(frozen=True)
class Offered:
    """A companion, as it was laid over the image.

    Parameters
    ----------
    companion : Companion
        After its registration.
    motion : RigidMotion, optional
        How it was moved; None where that was not requested, or there was no image yet.
    gain : float
        Mean over the lines held back of log(energy left without it / with it); NaN where that is not known.
    refused : str
        Why it cannot serve, as the end of a sentence; empty where it can.
    used : bool
        Whether it is in the prior.
    renewed : float
        Pixels by which it was laid elsewhere once there was an image that it had helped to make; 0 where it was not.
    aside : str
        Where it was taken from, if that is not the slice that headers or numbers name.
    """

    companion: Companion
    motion: RigidMotion | None = None
    gain: float = float("nan")
    refused: str = ""
    used: bool = False
    renewed: float = 0.0
    aside: str = ""

    @property
    def moved(self) -> bool:
        """Whether its registration moved it."""
        return self.motion is not None and self.motion.displacement(self.companion.image.shape) > 0

    @property
    def saved(self) -> float | None:
        """Fraction of the energy left on the lines held back that is less with it; None where that is not known."""
        return float(1 - np.exp(-self.gain)) if np.isfinite(self.gain) else None


@briefly
@dataclass(frozen=True)
class CompanionChoice:
    """The companions that a slice's own lines have chosen.

    Parameters
    ----------
    offered : tuple of Offered
        All there are.
    gain : float
        As `Offered.gain`, of those that are used together; NaN where nothing could be held back.
    held_back : int
        Lines (or samples, shots) that it was judged by.
    trusted : bool
        Whether they are used whatever the lines held back say.
    unit : str
        What was held back, in the singular.
    patches : AlikePatches, optional
        What the companions used say; None where none is, or one is a repeat.
    expected : ExpectedImage, optional
        What a companion makes expect that is used as a repeat.
    share : float
        See `companion_limit`.
    """

    offered: tuple[Offered, ...]
    _: KW_ONLY
    gain: float = float("nan")
    held_back: int = 0
    trusted: bool = False
    unit: str = "line"
    patches: AlikePatches | None = field(default=None, compare=False, repr=False)
    expected: ExpectedImage | None = field(default=None, compare=False, repr=False)
    share: float = 1.0

    @property
    def used(self) -> tuple[str, ...]:
        """Names of those in the prior; empty if there are none."""
        return tuple(one.companion.name for one in self.offered if one.used)

    @property
    def unsure(self) -> bool:
        """Whether one of them helped, but too little, or too uncertainly, to be used."""
        return not self.used and any(one.gain > 0 for one in self.offered if not one.refused)

    def applied(self, slice_model: SliceModel, strength: Strength) -> SliceModel:
        """The slice with the companions that are used in its prior."""
        if self.expected is not None:
            prior = with_block_of("repeat", slice_model.prior, strength, self.share)
            return replace(slice_model, expected=self.expected, prior=prior)
        if self.patches is None:
            return slice_model
        prior = with_block_of("companion", slice_model.prior, strength, self.share)
        return replace(slice_model, companion=self.patches, prior=prior)

    def using(self, places: Sequence[int]) -> CompanionChoice:
        """A copy in which the companions at these places of `offered` are used, and no others."""
        return replace(self, offered=tuple(replace(one, used=n in places) for n, one in enumerate(self.offered)))

    def columns(self) -> dict[str, object]:
        """For tables of errors: names of the companions used, lines that were held back, and `gain` (None for NaN)."""
        gain = self.gain if np.isfinite(self.gain) else None
        return {"companions": " and ".join(self.used) or "none", "held_back": self.held_back, "companion_gain": gain}


def choose_companions(
    slice_model: SliceModel,
    lines: Sequence[int],
    without: HeldBack | None,
    image: Array,
    strength: Strength = "careful",
    *,
    trusted: bool = False,
) -> CompanionChoice:
    """The companions, each by itself or all together, with which lines that are held back are predicted best.

    Parameters
    ----------
    slice_model : SliceModel
        Its ``companions`` are offered.
    lines : sequence of int
        Measured readouts.
    without : HeldBack, optional
        The prediction without companions, whose engine infers once with every candidate, from where it ended; None
        where nothing can be held back.
    image : complex array, shape (ky, kx)
        To register to, where nothing is held back; else that of the lines that are not.
    strength : {"careful", "moderate", "strong"}
        How much companions may ask of the image.
    trusted : bool
        Whether they are used whatever the lines held back say.

    Returns
    -------
    CompanionChoice
        None is used where fewer than four lines are held back, unless they are trusted; else only such as are
        better by more than `LEAST_GAIN`, less where fewer lines are measured, and by more than `CLEARLY` standard
        errors, at the limit of `JUDGED_AT` or of the lines measured, whichever is larger.
    """
    judged = without is not None and len(without.held) >= FEWEST
    seen = without.posterior.mean if without is not None and judged else image
    offered = tuple(_laid_over(companion, seen) for companion in slice_model.companions)
    share = share_measured(slice_model, lines)
    held = 0 if without is None or not judged else len(without.held)
    choice = CompanionChoice(offered, held_back=held, unit=slice_model.candidates.unit, share=share)
    usable = [place for place, one in enumerate(offered) if not one.refused]
    sets = [[place] for place in usable] + ([usable] if len(usable) > 1 else [])
    if not sets:
        return choice
    patches = [companion_patches([offered[place].companion.image for place in places]) for places in sets]
    if without is None or not judged:
        return replace(choice.using(sets[-1]), trusted=True, patches=patches[-1]) if trusted else choice
    gains = np.array([_gains_with(without, found, strength, max(share, JUDGED_AT)) for found in patches])
    mean, error = gains.mean(axis=1), gains.std(axis=1, ddof=1) / np.sqrt(gains.shape[1])
    each = dict(zip(usable, mean.tolist(), strict=False))  # those by themselves come first
    choice = replace(
        choice,
        offered=tuple(replace(one, gain=each.get(place, float("nan"))) for place, one in enumerate(offered)),
        trusted=trusted,
    )
    clear = (mean > LEAST_GAIN * min(1.0, 2 * share)) & (mean > CLEARLY * error)
    doubt, laid = repeat_doubt(strength, share), [offered[place].companion for place in usable]
    repeated = None if doubt is None else _best_repeat(without, laid, strength, doubt)
    if doubt is not None and repeated is not None and repeated[1] > max(mean[clear], default=0.0):
        number, gain = repeated
        expected, at = expected_image(slice_model, lines, laid[number].image, doubt, without), usable[number]
        each_gain = tuple(replace(one, gain=gain) if n == at else one for n, one in enumerate(choice.offered))
        return replace(replace(choice, offered=each_gain).using([at]), gain=gain, expected=expected)
    if not (trusted or clear.any()):
        return choice
    best = len(sets) - 1 if trusted else int(np.argmax(np.where(clear, mean, -np.inf)))
    return replace(choice.using(sets[best]), gain=float(mean[best]), patches=patches[best])


def renew_companions(
    choice: CompanionChoice,
    slice_model: SliceModel,
    lines: Sequence[int],
    without: HeldBack | None,
    image: Array,
    strength: Strength = "careful",
) -> CompanionChoice | None:
    """Register the companions used once more, to the image that was reconstructed with them.

    Parameters
    ----------
    choice : CompanionChoice
        As `choose_companions` has made it.
    slice_model, lines, without, strength
        As it was called with.
    image : complex array, shape (ky, kx)
        The image with the companions in its prior.

    Returns
    -------
    CompanionChoice or None
        None where they stay as they are: none lies elsewhere by more than `ANEW` or, as a repeat, `REPEAT_ANEW`;
        nothing was held back; or the lines held back would be predicted worse than before. These lines influence
        the image and so the motion, but nothing else that they are predicted by.
    """
    if without is None or not choice.held_back:
        return None
    pairs = zip(choice.offered, slice_model.companions, strict=True)
    least = ANEW if choice.expected is None else REPEAT_ANEW
    offered = tuple(_laid_anew(one, given, image, least) for one, given in pairs)
    if all(one is first for one, first in zip(offered, choice.offered, strict=True)):
        return None
    used = [one.companion for one in offered if one.used]
    doubt = repeat_doubt(strength, choice.share)
    if choice.expected is not None and doubt is not None:
        (repeat,) = used
        gain = float(np.mean(_gains_as_repeat(without, repeat, strength, doubt)))
        expected = expected_image(slice_model, lines, repeat.image, doubt, without)
        renewed = replace(choice, gain=gain, expected=expected)
    else:
        patches = companion_patches([one.image for one in used])
        gain = float(np.mean(_gains_with(without, patches, strength, max(choice.share, JUDGED_AT))))
        renewed = replace(choice, gain=gain, patches=patches)
    if gain < choice.gain:
        return None
    alone = len(used) == 1
    return replace(renewed, offered=tuple(replace(one, gain=gain) if alone and one.used else one for one in offered))


def _gains(without: HeldBack, one: SliceModel) -> NDArray[np.float64]:
    """Fall of the logarithm of the energy left unpredicted under another prior, of every line held back."""
    model = one.model(without.known, without.signal)
    start = carried(without.posterior, model)
    posterior = without.engine.cut_short(1).infer(model, np.random.default_rng(without.seed), warm_start=start)
    left = found_energies(without.slice_model, posterior.mean, without.held)
    return np.asarray(np.log(without.unpredicted) - np.log(left))


def _gains_with(without: HeldBack, patches: AlikePatches, strength: Strength, share: float) -> NDArray[np.float64]:
    """`_gains` of companions at the limit of so many lines."""
    one = without.slice_model
    prior = with_block_of("companion", one.prior, strength, share)
    return _gains(without, replace(one, companion=patches, prior=prior))


def _gains_as_repeat(without: HeldBack, companion: Companion, strength: Strength, doubt: float) -> NDArray[np.float64]:
    """`_gains` of a companion as a repeat."""
    one = without.slice_model
    expected = expected_image(one, without.known, companion.image, doubt, without)
    prior = with_block_of("repeat", one.prior, strength, 1.0)
    return _gains(without, replace(one, expected=expected, prior=prior))


def _best_repeat(
    without: HeldBack, companions: Sequence[Companion], strength: Strength, doubt: float
) -> tuple[int, float] | None:
    """Place and mean gain of the companion that predicts lines held back best as a repeat; None if none does."""
    best: tuple[int, float] | None = None
    for number, companion in enumerate(companions):
        gains = _gains_as_repeat(without, companion, strength, doubt)
        mean, error = float(gains.mean()), float(gains.std(ddof=1)) / np.sqrt(len(gains))
        if mean > max(REPEATED, CLEARLY * error, 0.0 if best is None else best[1]):
            best = number, mean
    return best


def _laid_over(companion: Companion, image: Array) -> Offered:
    """The companion moved to where the image is."""
    if companion.refused:
        return Offered(companion, refused=companion.refused)
    across = 0.0
    try:
        companion_patches([companion.image])  # refused before it is moved, which smooths noise
        found = None if companion.in_place else register(image, companion.image)
        if found is not None:
            companion, found, across = _across(companion, found, image)
        moved = companion if found is None else replace(companion, image=found.applied(companion.image))
        companion_patches([moved.image])
    except InputError as error:
        return Offered(companion, refused=f"{error.got} where {error.wanted} is needed")
    pixel, aside = companion.pixel, companion.beside[across][0] if across else ""
    if found is not None and companion.by_headers and pixel is not None:
        far = float(np.hypot(found.displacement(image.shape) * max(pixel), across))
        if far > FARTHEST:
            return Offered(moved, found, refused=f"it fits {far:.0f} mm from where the headers place it", aside=aside)
    return Offered(moved, found, aside=aside)


def _across(companion: Companion, found: RigidMotion, image: Array) -> tuple[Companion, RigidMotion, float]:
    """Position across the slice at which the companion's volume fits the image clearly best, and its motion."""
    if not companion.beside:
        return companion, found, 0.0
    best, at, slices = ACROSS * (alike_after(found, image, companion.image) - 1), 0.0, companion.image
    for place, (_, image_there) in companion.beside.items():
        there = image_there()
        if there is None or not there.any():
            continue
        alike = alike_after(found, image, there) - 1
        if alike > best:
            best, at, slices = alike, place, there
    return (replace(companion, image=slices), register(image, slices), at) if at else (companion, found, 0.0)


def _laid_anew(one: Offered, given: Companion, image: Array, least: float) -> Offered:
    """A companion as it lies over another image, if it is used, and lies elsewhere there by so many pixels."""
    if not one.used or one.motion is None:
        return one
    again = _laid_over(given, image)
    if again.refused or again.motion is None:
        return one
    far = again.motion.apart(one.motion, image.shape)
    if far <= least and again.aside == one.aside:
        return one
    return replace(again, gain=one.gain, used=True, renewed=far)
