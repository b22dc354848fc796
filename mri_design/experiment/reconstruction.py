"""An image, and where the method knows them its error bars, from a set of lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from mri_design.brief import briefly
from mri_design.design.trace import relative_error
from mri_design.errors import (
    InputError,
    UnknownNameError,
    UsageError,
    option,
    require_counts,
    require_instance,
    require_random,
)
from mri_design.estimation.map_estimate import MaximumAPosteriori, least_squares
from mri_design.estimation.noise_map import NoiseMap, least_squares_noise, posterior_noise
from mri_design.evidence import held_back, non_local
from mri_design.evidence.companions import CompanionChoice, CompanionPrior, choose_companions, renew_companions
from mri_design.evidence.draws import PosteriorDraws
from mri_design.evidence.error_bars import Estimates, StdFactor, energy_of, predicted_error, shaped_std, std_factor
from mri_design.evidence.held_back import HeldBack, PhaseChoice
from mri_design.experiment.extent import expected_total
from mri_design.experiment.recipe import Recipe, ReconstructionRecipe, recipe_or_default
from mri_design.experiment.textbook import TEXTBOOK, textbook
from mri_design.inference.base import StepInfo, WarmStart
from mri_design.model.posterior import GaussianPosterior, require_posterior
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.operators.conventions import Chosen
from mri_design.registry import full_name
from mri_design.scan.io.safe import DEFAULT_LIMITS
from mri_design.status import Convergence, Status

MAP_SMOOTHING = 1e-3
"""Rounding of the modulus in the last stage of MAP: sharper corners take many iterations."""
OF_THE_POSTERIOR = "as the posterior has them, mostly too small: too few readouts to hold some back"
"""Text about error bars that nothing scales."""
Method = Literal["mean", "map", "least-squares", "zero-filled", "l1-wavelet", "total-variation"]
METHODS: tuple[Method, ...] = get_args(Method)


def method_named(name: str) -> Method:
    """The method of a name or of an alias (`registry.ALIASES`).

    Raises
    ------
    UsageError
        Naming those that do.
    """
    method = full_name(name, METHODS)
    if method not in METHODS:
        raise UnknownNameError("method", name, METHODS)
    return method


@briefly
@dataclass(frozen=True)
class Image:
    """An image with its error bars.

    Parameters
    ----------
    image : complex array, shape (ky, kx)
        In the units of the calibrated data.
    std : float array, shape (ky, kx), optional
        Posterior standard deviation of each complex pixel, sqrt(E|u - mean|^2), real and imaginary part together;
        only the posterior mean has one.
    convergence : Convergence
        Of the method.
    left_out : str
        Why a non-local block of the prior was left out, in a sentence; empty where none was.
    std_factor : StdFactor, optional
        What the posterior's standard deviations were multiplied by to be as large as the error that is predicted; None
        where they are as the posterior has them.
    phase_choice : PhaseChoice, optional
        The model of the phase that lines held back have chosen; None where the recipe or the slice names it.
    band_strength : float, optional
        Fraction of the spectral correction that was applied; None where the recipe asks for none.
    noise : NoiseMap, optional
        What the noise of the samples does to the image, where the recipe asks for it.
    companions : CompanionChoice, optional
        Which other images of the object are in the prior; None where none was offered.
    alone : complex array, shape (ky, kx), optional
        Where companions are used and error bars are made: the image without them, and without non-local blocks.
    draws : complex array, shape (draw, ky, kx), optional
        Images as the posterior holds them possible, where the recipe asks for some: their standard deviation around
        ``image`` is ``std``, and pixels vary together as errors of images do.
    sampler : PosteriorDraws, optional
        Makes such draws of an image with error bars, as long as it is in memory.
    """

    image: Array
    std: Array | None
    convergence: Convergence
    _: KW_ONLY
    left_out: str = ""
    std_factor: StdFactor | None = None
    phase_choice: PhaseChoice | None = None
    band_strength: float | None = None
    noise: NoiseMap | None = None
    companions: CompanionChoice | None = None
    alone: Array | None = None
    draws: Array | None = None
    sampler: PosteriorDraws | None = None

    def times(self, unit: float | Array) -> Image:
        """Image and error bars in other units: times a number, or a number for each pixel."""
        there = {name: getattr(self, name) for name in ("image", "std", "alone", "draws", "noise", "sampler")}
        scaled: dict[str, Any] = {}
        for name, part in there.items():
            if part is not None:
                array = isinstance(part, np.ndarray)
                scaled[name] = np.asarray(part * unit, dtype=part.dtype) if array else part.times(unit)
        return replace(self, **scaled)

    @property
    def predicted_error(self) -> float | None:
        """Relative L2 error of the complex image by its error bars, with no look at the truth; None without them."""
        if self.std is None or not self.image.any():
            return None
        return relative_error(energy_of(self.std), energy_of(self.image))

    def account(self) -> dict[str, str]:
        """Words for a summary and a manifest: choices that the scan made about its image, and what was left out."""
        texts: dict[str, str] = {}
        if self.left_out:
            texts["non-local left out"] = non_local.why_left_out(self.left_out)
        if self.phase_choice is not None:
            texts["model of the image"] = str(self.phase_choice)
        if self.companions is not None:
            texts["companions"] = str(self.companions)
        if self.band_strength:
            texts["band factors"] = f"{100 * self.band_strength:.0f} % of the correction"
        if self.std_factor is not None:
            texts["error bars"] = str(self.std_factor)
        elif self.std is not None:
            texts["error bars"] = OF_THE_POSTERIOR
        if self.noise is not None:
            texts["noise"] = str(self.noise)
        return texts


def _unwatched(part: str) -> None:
    """Show nothing of the progress."""


@briefly
@dataclass(frozen=True)
class InferenceOptions:
    """Optional settings of one reconstruction that are no part of a recipe.

    Parameters
    ----------
    warm_start : WarmStart, optional
        Posterior mean only: where an earlier inference of the slice ended, to start from there.
    signal : float, optional
        Signal level that the prior's scales follow, as in `SliceModel.model`; by default it is measured from the
        centre of the lines.
    callback : callable, optional
        Posterior mean only: called after every outer loop.
    watch : callable, optional
        Called with the name of a part of the work when it begins: "reconstructing" (MAP, least squares), or
        "choosing the model", "outer loops" and "error bars" of the posterior mean.
    number : int
        Of the image among those of a run, whose draws have to be independent.
    """

    warm_start: WarmStart | None = None
    signal: float | None = None
    callback: Callable[[StepInfo], None] | None = None
    watch: Callable[[str], None] = _unwatched
    number: int = 0


def reconstruct(
    slice_model: SliceModel,
    lines: Chosen | None = None,
    method: Method | None = None,
    recipe: Recipe | None = None,
    rng: np.random.Generator | None = None,
    *,
    with_std: bool = True,
    options: InferenceOptions = InferenceOptions(),
) -> Image:
    """Reconstruct one slice from ``lines``, in the units of the samples as they were read, as runs do.

    Parameters
    ----------
    slice_model : SliceModel
        The slice.
    lines : sequence of int, or bool array, optional
        Measured lines, or a mask that is true for them; by default all that the slice holds.
    method : str, optional
        "mean", "map", "least-squares", "zero-filled", "l1-wavelet" or "total-variation": posterior mean, MAP,
        damped least squares (SENSE for several coils), inverse FFT (gridding of shots), or a rival of
        `experiment.textbook`; the recipe's by default.
    recipe : Recipe, optional
        Settings of inference and estimation; the default recipe without one.
    rng : numpy Generator, optional
        For the variances; by default that of ``mri-design recon`` with seed 0.
    with_std : bool
        Posterior mean only: False saves the extra samples that the error bars take.
    options : InferenceOptions
        Where to start from, the signal level, and a callback.

    Raises
    ------
    UsageError
        For an unknown method.
    InputError
        For an argument of another kind than described here.
    """
    require_instance(SliceModel, wanted="an SliceModel, as PreparedScan.slice_model makes it", slice_model=slice_model)
    lines = _chosen(slice_model, lines)
    calibrated = slice_model.calibrated(lines)
    made = reconstruct_prepared(calibrated, lines, method, recipe, rng, with_std=with_std, options=options)
    return made.times(calibrated.image_unit)


def _chosen(slice_model: SliceModel, lines: Chosen | None) -> Sequence[int]:
    """Numbers of the lines, by default of all that the slice holds; more than there are is refused."""
    numbers = slice_model.chosen(slice_model.measured if lines is None else lines)
    size = slice_model.candidates.size
    if isinstance(numbers, Sized) and len(numbers) > size:
        unit = f"{slice_model.candidates.unit}s"
        raise InputError(field=unit, got=f"{len(numbers)} of them", wanted=f"different {unit}, {size} at most")
    return numbers if isinstance(numbers, range) else tuple(numbers)  # of two, a list might be a mask


def reconstruct_prepared(
    slice_model: SliceModel,
    lines: Sequence[int],
    method: Method | None = None,
    recipe: Recipe | None = None,
    rng: np.random.Generator | None = None,
    *,
    with_std: bool = True,
    options: InferenceOptions = InferenceOptions(),
) -> Image:
    """As `reconstruct`, in the units of the calibrated data, in which inference and designs calculate."""
    recipe = recipe_or_default(recipe)
    rng = image_rng(0) if rng is None else rng
    require_random(rng)
    require_instance(InferenceOptions, wanted="an InferenceOptions object", options=options)
    method = recipe.reconstruction.method if method is None else method_named(method)
    lines = _chosen(slice_model, lines)
    slice_model = slice_model.calibrated(lines)
    options.watch("choosing the model" if method == "mean" else "reconstructing")
    if method == "zero-filled":
        return Image(slice_model.plain_image(lines), None, Convergence(Status.CONVERGED, 1, 0.0))
    if method == "least-squares":
        model, damping = slice_model.model(lines, options.signal), recipe.reconstruction.damping
        image, convergence = least_squares(model, damping=damping)
        asked = recipe.reconstruction.noise_map
        return Image(image, None, convergence, noise=least_squares_noise(model, damping, rng) if asked else None)
    if method in TEXTBOOK:
        image, convergence = textbook(slice_model, lines, method, recipe.reconstruction.weight)
        return Image(image, None, convergence)
    engine, seed = recipe.inference.engine(), int(rng.spawn(1)[0].integers(2**63))
    without = held_back.hold_back(slice_model, lines, engine, seed, options.signal)
    choice = None
    if recipe.phase.chosen_by_what_is_held_back(slice_model.candidates.name) and slice_model.phase is None:
        one_sided = held_back.is_one_sided(lines, slice_model.candidates)
        choice = held_back.choose_phase(
            without, recipe.phase.imaginary_ratios, engine.cut_short(1), one_sided=one_sided
        )
        slice_model = replace(slice_model, phase=choice.phase)
        without = None if without is None else without.under(choice.phase)
        options = replace(options, warm_start=None) if choice.phase is not None else options
    given, alone, companions, judging = recipe.companion, slice_model, None, without
    companion_prior = CompanionPrior(given.companion_strength, given.trust_companion, given.register_companion)
    if slice_model.companions and slice_model.companion is None:
        options.watch("choosing companions")
        if without is not None and held_back.FEWEST // 2 <= len(without.held) < held_back.FEWEST:
            judging = held_back.hold_back(slice_model, lines, engine, seed, options.signal, held_back.NARROW_CENTRE)
        companions = choose_companions(
            slice_model, lines, judging, companion_prior, engine, slice_model.central_image(lines)
        )
        slice_model = companions.applied(slice_model, companion_prior)
        options = replace(options, warm_start=None) if companions.used else options

    def renewed(image: Array) -> CompanionChoice | None:
        if companions is None:
            return None
        return renew_companions(companions, alone, lines, judging, companion_prior, engine, image)

    if method == "map":
        made = _map_image(slice_model, lines, recipe, options.signal)
        again = renewed(made.image)
        if again is not None:
            companions, slice_model = again, again.applied(alone, companion_prior)
            made = _map_image(slice_model, lines, recipe, options.signal, made.image)
        return replace(made, phase_choice=choice, companions=companions)
    options.watch("outer loops")
    result, posterior, local = _mean(slice_model, lines, recipe, rng, options)
    again = renewed(result.image)
    if again is not None:
        options.watch("outer loops once more")
        companions, slice_model = again, again.applied(alone, companion_prior)
        # from where the means so far have ended, for companions that are laid anew
        first = replace(slice_model, alike=None).model(lines, options.signal)
        start = WarmStart(
            posterior.mean, non_local.carried(posterior if local is None else local, first, ("companion",)).z
        )
        spent = result.convergence.matvecs
        result, posterior, local = _mean(slice_model, lines, recipe, rng, replace(options, warm_start=start))
        matvecs = result.convergence.matvecs + spent
        result = replace(result, convergence=replace(result.convergence, matvecs=matvecs))
    result = replace(result, phase_choice=choice, companions=companions)
    if recipe.reconstruction.noise_map:
        noise_rng = np.random.default_rng([seed, 1])  # of its own, so that error bars are the same without the map
        result = replace(result, noise=posterior_noise(posterior, noise_rng))
    if recipe.reconstruction.band_factors:
        factors = held_back.shipped_spectral_correction("modulus" if slice_model.phase is None else "phase-aware")
        share = held_back.strength(without, factors, None if choice is None else choice.image)
        corrected = factors.applied(slice_model, lines, result.image, share) if share else result.image
        result = replace(result, image=corrected, band_strength=share)
    if not with_std:
        return result
    inferred = _Inferred(slice_model, alone, lines, without, posterior=posterior, local=local)
    options.watch("error bars")
    return _with_error_bars(result, inferred, recipe, rng, seed, options)


@dataclass(frozen=True)
class _Inferred:
    """What stands behind an image whose error bars are wanted.

    Parameters
    ----------
    slice_model, alone : SliceModel
        With the companions that its prior knows, and without; the same where it knows none.
    lines : sequence of int
        Behind the image.
    without : HeldBack, optional
        What is inferred without some of them; None where none could be held back.
    posterior : GaussianPosterior
        Of the image.
    local : GaussianPosterior, optional
        That without non-local blocks; None where there are none.
    """

    slice_model: SliceModel
    alone: SliceModel
    lines: Sequence[int]
    without: HeldBack | None
    _: KW_ONLY
    posterior: GaussianPosterior
    local: GaussianPosterior | None


def _with_error_bars(
    result: Image,
    known: _Inferred,
    recipe: Recipe,
    rng: np.random.Generator,
    seed: int,
    options: InferenceOptions,
) -> Image:
    """The image with standard deviations, and the draws that the recipe asks for, scaled to its predicted error."""
    alone, lines, without, posterior, local = known.alone, known.lines, known.without, known.posterior, known.local
    engine = recipe.inference.engine()
    std = pixel_std(posterior, recipe.reconstruction.std_samples, rng)
    before = posterior if local is None else local
    if alone is not known.slice_model:
        before = non_local.local_posterior(alone, lines, engine, seed, options.signal)
        result = replace(result, alone=before.mean)
    folds = [] if without is None else [without]
    if without is not None and alone.candidates.name == "lines":  # which are few
        other = held_back.hold_back(without.slice_model, lines, engine, seed, without.signal, fold=1)
        folds += [] if other is None else [other]
    gain = np.nan if result.companions is None else result.companions.gain
    estimates = Estimates(
        alone,
        lines,
        posterior,
        before,
        local=None if local is None else local.mean,
        alone=result.alone,
        folds=folds,
        gain=gain if np.isfinite(gain) else 0.0,
    )
    evidence = estimates.evidence(std, seed)
    predicted = predicted_error(evidence, learnt=estimates.of_known_blocks)
    scale = std_factor(predicted, evidence, alone.candidates.unit)
    scaled = std
    if scale is not None:
        scaled = shaped_std(std, posterior.mean, estimates.others) * np.float32(scale.factor)
    sampler = PosteriorDraws(posterior, result.image, scaled, seed, options.number, without)
    draws = sampler(recipe.reconstruction.draws) if recipe.reconstruction.draws else None
    return replace(result, std=scaled, std_factor=scale, draws=draws, sampler=sampler)


def loops_shown(
    show: Callable[[int, int], None], recipe: Recipe, slice_model: SliceModel
) -> Callable[[StepInfo], None]:
    """A callback that shows how many outer loops are done, of how many.

    Parameters
    ----------
    show : callable
        Takes both numbers.
    recipe : Recipe
        Its tolerance ends the loops.
    slice_model : SliceModel
        Whose posterior mean is made; a prior with non-local blocks takes several stages. Fewer loops are shown as soon
        as the changes so far say so (`expected_total`).
    """
    changes: list[tuple[int, float]] = []
    most = recipe.inference.loops + non_local.loops_of_stages(slice_model)

    def after_loop(step: StepInfo) -> None:
        changes.append((step.loop, step.change))
        show(step.loop, expected_total(changes, recipe.inference.tolerance, most))

    return after_loop


def _map_image(
    slice_model: SliceModel, lines: Sequence[int], recipe: Recipe, signal: float | None, start: Array | None = None
) -> Image:
    """MAP: in stages where the prior is non-local, since that is known from an image only."""
    estimate = MaximumAPosteriori(MAP_SMOOTHING, inner=recipe.inference.inner_solver())
    if non_local.is_non_local(slice_model):
        model, start, left_out = non_local.map_stages(slice_model, lines, estimate, signal=signal, start=start)
    else:
        model, left_out = slice_model.model(lines, signal), ""
    image, convergence = estimate(model, start)
    return Image(image, None, convergence, left_out=left_out)


def _mean(
    slice_model: SliceModel, lines: Sequence[int], recipe: Recipe, rng: np.random.Generator, options: InferenceOptions
) -> tuple[Image, GaussianPosterior, GaussianPosterior | None]:
    """The mean without error bars, its posterior, and of a non-local prior that without such blocks.

    Where the prior is non-local the mean is made in stages, since such a prior is known from an image only.
    """
    engine, callback = recipe.inference.engine(), non_local.counting_on(options.callback)
    if non_local.is_non_local(slice_model):
        seed = int(rng.integers(2**63))
        rng = np.random.default_rng(seed)
        last = non_local.mean_stages(
            slice_model,
            lines,
            engine,
            seed,
            signal=options.signal,
            warm_start=options.warm_start,
            callback=callback,
        )
    else:
        last = non_local.LastStage(slice_model.model(lines, options.signal), options.warm_start)
    posterior = engine.infer(last.model, rng, warm_start=last.start, callback=callback)
    convergence = replace(posterior.convergence, matvecs=posterior.convergence.matvecs + last.matvecs)
    return Image(posterior.mean, None, convergence, left_out=last.left_out), posterior, last.local


def image_rng(seed: int) -> np.random.Generator:
    """Generator of everything random in the image of a run with this seed, whichever verb makes it."""
    return np.random.default_rng([seed, 2])


def reconstruct_by_recipe(
    slice_model: SliceModel, lines: Sequence[int], recipe: Recipe, seed: int, *, with_std: bool = False
) -> Image:
    """Reconstruct one slice by its recipe's method: what every mask of a comparison gets, so that only masks differ.

    Parameters
    ----------
    slice_model : SliceModel
        The slice.
    lines : sequence of int
        Measured lines, in any order.
    recipe : Recipe
        Method, inference and estimation.
    seed : int
        Of the run; variances are drawn from a generator of their own that is made from it.
    with_std : bool
        Whether to compute error bars, where the method has them.
    """
    return reconstruct_prepared(slice_model, sorted(lines), None, recipe, image_rng(seed), with_std=with_std)


def check_draws(recipe: ReconstructionRecipe) -> None:
    """Refuse draws of an image that has no posterior.

    Raises
    ------
    UsageError
        For another method than the posterior mean.
    """
    if recipe.draws and recipe.method != "mean":
        raise UsageError(
            f"{recipe.draws} draws are asked for, and only the posterior mean has any: leave out {option('draws')}, or "
            f"the method {recipe.method}"
        )


def check_size_of_draws(recipe: ReconstructionRecipe, images: int, grid: tuple[int, int]) -> None:
    """Refuse more draws of all images of a run than one file may hold.

    Raises
    ------
    InputError
        Saying how many there could be.
    """
    each, most = images * grid[0] * grid[1] * np.dtype(np.complex64).itemsize, DEFAULT_LIMITS.max_bytes
    if recipe.draws * each > most:
        raise InputError(
            field="draws",
            got=f"{recipe.draws} of {images} images of {grid[0]} x {grid[1]} pixels, {recipe.draws * each / 1e9:.3g} "
            "GB",
            wanted=f"{most / 1e9:.3g} GB at most, {most // each} draws",
            cure=f"Ask for fewer ({option('draws')}), or for fewer slices ({option('slices')}).",
        )


def pixel_std(posterior: GaussianPosterior, samples: int, rng: np.random.Generator) -> Array:
    """Standard deviation of each complex pixel, in the image's units.

    Where inference has computed the variances of all pixels exactly, or by a control variate, these are used. Otherwise
    they come from ``samples`` posterior draws (relative standard error of each pixel about 1 / (2 sqrt(samples))).

    Raises
    ------
    InputError
        For anything but a posterior and a generator, or no draw.
    """
    require_posterior(posterior)
    require_counts(samples=samples, least=1)
    require_random(rng)
    sd = np.sqrt(posterior.model.noise_variance)
    if posterior.marginals.kind == "exact" or posterior.marginals.image is not None:
        return np.asarray(np.sqrt(posterior.image_variances), dtype=np.float32)
    power = np.zeros(posterior.mean.shape)
    draws = posterior.deviations(rng, samples)
    for draw in draws:
        power += np.abs(draw) ** 2
    return np.asarray(sd * np.sqrt(power / len(draws)), dtype=np.float32)
