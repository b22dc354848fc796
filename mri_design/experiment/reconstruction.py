"""An image, and where the method knows them its error bars, from a set of lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import scipy  # whose parts are loaded when they are first used

from mri_design.brief import briefly
from mri_design.design.trace import expected_total, relative_error
from mri_design.errors import (
    InputError,
    UnknownNameError,
    UsageError,
    option,
    require_counts,
    require_instance,
    require_random,
)
from mri_design.estimation.compressed_sensing import TEXTBOOK, textbook
from mri_design.estimation.map_estimate import (
    MaximumAPosteriori,
    NoiseMap,
    least_squares,
    least_squares_noise,
    posterior_noise,
)
from mri_design.evidence import held_back
from mri_design.evidence.companions import (
    CompanionChoice,
    carried,
    choose_companions,
    local_posterior,
    loops_of_stages,
    map_image,
    posterior_mean,
    renew_companions,
)
from mri_design.evidence.error_bars import (
    PosteriorDraws,
    StdFactor,
    energy_of,
    error_evidence,
    of_known_blocks,
    predicted_error,
    pull_of_prior,
    shaped_std,
    std_factor,
)
from mri_design.evidence.held_back import HeldBack, PhaseChoice
from mri_design.experiment.recipe import Recipe, ReconstructionRecipe, recipe_from
from mri_design.inference.base import StepInfo, WarmStart
from mri_design.model.posterior import GaussianPosterior, require_posterior
from mri_design.model.slice import SliceModel
from mri_design.model.sparsity import SharedFrame, SparsityBlock
from mri_design.model.two_sets import TwoSets
from mri_design.operators.base import Array
from mri_design.operators.conventions import Chosen
from mri_design.registry import full_name
from mri_design.scan.io.safe import DEFAULT_LIMITS
from mri_design.status import Convergence, Status

MAP_SMOOTHING = 1e-3
"""Rounding of the modulus in the last stage of MAP: sharper corners take many iterations."""
WEIGHTS = {"l1-wavelet": 0.001, "total-variation": 0.003, "least-squares": 0.001}
"""Regularisation weights, unless a recipe has one."""
STD_SAMPLES = 48
"""Posterior samples for error bars, if no control variate gives them."""
Method = Literal["mean", "map", "least-squares", "zero-filled", "l1-wavelet", "total-variation"]
METHODS: tuple[Method, ...] = get_args(Method)


def method_named(name: str) -> Method:
    """The method of a name or of an alias (`registry.ALIASES`).

    Raises
    ------
    UsageError
        For any other name.
    """
    method = full_name(name, METHODS)
    if method not in METHODS:
        raise UnknownNameError("method", name, METHODS)
    return method


UNEXPLAINED = 2.0
"""Misfit of the samples of several coils from which on their maps or the noise are doubted."""


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
        Why a non-local block of the prior was left out; empty where none was.
    std_factor : StdFactor, optional
        What the posterior's standard deviations were multiplied by to be as large as the error that is predicted; None
        where they are as the posterior has them.
    phase_choice : PhaseChoice, optional
        The model of the phase that lines held back have chosen; None where the recipe or the slice names it.
    band_strength : float, optional
        Fraction of the spectral correction that was applied; None where the recipe requests none.
    noise : NoiseMap, optional
        What the noise of the samples does to the image, where the recipe requests it.
    companions : CompanionChoice, optional
        Which other images of the object are in the prior; None where none was offered.
    alone : complex array, shape (ky, kx), optional
        Where companions are used and error bars are made: the image without them, and without non-local blocks.
    draws : complex array, shape (draw, ky, kx), optional
        Images drawn from the posterior, where the recipe requests some: their standard deviation around
        ``image`` is ``std``, and pixels vary together as errors of images do.
    sampler : PosteriorDraws, optional
        Makes such draws of an image with error bars, as long as it is in memory.
    pull : float array, shape (ky, kx), optional
        With error bars: by how much the prior makes moduli too small (`error_bars.pull_of_prior`).
    misfit : float, optional
        Of the posterior mean, see `misfit_of_samples`; where it is `unexplained`, that of the image before it, and the
        noise of this one is larger by this factor.
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
    sampler: PosteriorDraws | None = field(default=None, compare=False)
    pull: Array | None = None
    misfit: float | None = None

    @classmethod
    def kept(cls, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> Image:
        """An image that was kept: its arrays "recon", "std", "noise" and so on, and its `facts`."""
        ended = Convergence(Status(facts["status"]), facts["iterations"], facts["residual"], facts["matvecs"])
        factor = None if facts["std_factor"] is None else StdFactor(**facts["std_factor"])
        noise = NoiseMap(arrays["noise"], arrays["g_factor"], facts["replicas"]) if "noise" in arrays else None
        image, std = arrays["recon"], arrays.get("std")
        return cls(
            image, std, ended, left_out=facts["left_out"], std_factor=factor, noise=noise, misfit=facts["misfit"]
        )

    @property
    def as_kept(self) -> Image:
        """Without what is known in memory alone, as a run has it that goes on from its files."""
        kept = {"left_out": self.left_out, "std_factor": self.std_factor, "noise": self.noise, "misfit": self.misfit}
        return Image(self.image, self.std, self.convergence, **kept)  # type: ignore[arg-type]

    @property
    def facts(self) -> dict[str, Any]:
        """Values for JSON, besides the arrays: how the method ended, and the factor on error bars."""
        ended, factor = self.convergence, self.std_factor
        return {
            "status": ended.status.value,
            "iterations": ended.iterations,
            "residual": float(ended.residual),
            "matvecs": ended.matvecs,
            "std_factor": None if factor is None else factor.facts,
            "left_out": self.left_out,
            "misfit": self.misfit,
            "replicas": 0 if self.noise is None else self.noise.replicas,
        }

    def times(self, unit: float | Array) -> Image:
        """Image and error bars in other units: times a number, or a number for each pixel."""

        def scaled(part: Any) -> Any:
            return np.asarray(part * unit, dtype=part.dtype) if isinstance(part, np.ndarray) else part.times(unit)

        parts = {name: getattr(self, name) for name in ("image", "std", "alone", "draws", "noise", "sampler", "pull")}
        return replace(self, **{name: scaled(part) for name, part in parts.items() if part is not None})

    @property
    def predicted_error(self) -> float | None:
        """Relative L2 error of the complex image, predicted by its error bars; None without them."""
        if self.std is None or not self.image.any():
            return None
        return relative_error(energy_of(self.std), energy_of(self.image))


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
    watch: Callable[[str], None] = lambda part: None
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
        damped least squares (SENSE for several coils), inverse FFT (gridding of shots), or a rival (`textbook`); the
        recipe's by default.
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
    require_instance(SliceModel, wanted="a SliceModel, as Scan.slice_model makes it", slice_model=slice_model)
    require_instance(InferenceOptions, wanted="an InferenceOptions object", options=options)
    recipe, rng = recipe_from(recipe), image_rng(0) if rng is None else rng
    require_random(rng)
    method = None if method is None else method_named(method)
    lines = _chosen(slice_model, lines)
    calibrated = slice_model.calibrated(lines)
    made = reconstruct_prepared(calibrated, lines, method, recipe, rng, with_std=with_std, options=options)
    return made.times(calibrated.image_unit)


def _chosen(slice_model: SliceModel, lines: Chosen | None) -> Sequence[int]:
    """Numbers of the lines, by default of all measured ones; refuses more than there are."""
    numbers = slice_model.chosen(slice_model.measured if lines is None else lines)
    size = slice_model.candidates.size
    if isinstance(numbers, Sized) and len(numbers) > size:
        unit = f"{slice_model.candidates.unit}s"
        raise InputError(field=unit, got=f"{len(numbers)} of them", wanted=f"different {unit}, {size} at most")
    return numbers if isinstance(numbers, range) else tuple(numbers)  # of two, a list might be a mask


def reconstruct_prepared(
    slice_model: SliceModel,
    lines: Sequence[int],
    method: Method | None,
    recipe: Recipe,
    rng: np.random.Generator,
    *,
    with_std: bool = True,
    options: InferenceOptions = InferenceOptions(),
) -> Image:
    """As `reconstruct`, in the units of the calibrated data, in which inference and designs calculate.

    Lines are numbers, and without a method it is the recipe's.
    """
    lines = tuple(lines)  # of two, a list might be a mask
    method, slice_model = method or recipe.reconstruction.method, slice_model.calibrated(lines)
    both = TwoSets.of(slice_model)
    if both is not None and method != "zero-filled":
        signal = slice_model.signal_level(lines) if options.signal is None else options.signal
        options = replace(options, warm_start=None, signal=signal)
        return _shown(
            reconstruct_prepared(both.wide, lines, method, recipe, rng, with_std=with_std, options=options), both
        )
    options.watch("choosing the model" if method == "mean" else "reconstructing")
    if method not in ("mean", "map"):
        return _without_prior(slice_model, lines, method, recipe, rng, options.signal)
    estimate = _Estimate(slice_model, lines, recipe, rng, options)
    image = estimate.chosen_image(method)
    misfit, spent = image.misfit, image.convergence.matvecs
    if misfit is not None and unexplained(misfit, slice_model.n_coils):  # what maps do not explain counts as noise
        raised = replace(slice_model, noise_variance=misfit * slice_model.noise_variance)
        estimate = _Estimate(raised, lines, recipe, rng, replace(options, warm_start=None))
        again = estimate.chosen_image(method)
        ended = replace(again.convergence, matvecs=again.convergence.matvecs + spent)
        image = replace(again, convergence=ended, misfit=misfit)
    if method == "map":
        return image
    image = estimate.with_noise_and_bands(image)
    return estimate.with_error_bars(image) if with_std else image


_DRAWS_OF_BOTH, _NEAR_BOTH = 16, 2.0
"""Draws behind the variances of two sets of coil maps, and over how many pixels they are smoothed."""


def _shown(made: Image, both: TwoSets) -> Image:
    """The image of both sets of coil maps, from that over twice the field of view.

    Its variances are those of both sets, where errors are independent, times what draws say of their dependence, as a
    mean over some pixels.
    """
    weights = both.weights(made.image)
    seen = partial(both.shown, weights=weights)
    alone, draws = (None if part is None else seen(part) for part in (made.alone, made.draws))
    shown = replace(made, image=seen(made.image), alone=alone, draws=draws, noise=None, pull=None)
    if made.std is None or made.sampler is None:
        return shown
    deviations = made.sampler(_DRAWS_OF_BOTH) - made.image
    independent = [np.linalg.norm(both.apart(one) * weights, axis=0) for one in (made.std, *deviations)]
    together, each = (
        scipy.ndimage.gaussian_filter(np.mean(np.abs(part) ** 2, axis=0, dtype=np.float64), _NEAR_BOTH)
        for part in (seen(deviations), np.array(independent[1:]))
    )
    factor = np.sqrt(np.divide(together, each, out=np.ones_like(each), where=each > 0))
    std = (independent[0] * factor).astype(np.float32)
    return replace(shown, std=std, sampler=replace(made.sampler, folded=seen))


def _without_prior(
    slice_model: SliceModel,
    lines: Sequence[int],
    method: Method,
    recipe: Recipe,
    rng: np.random.Generator,
    signal: float | None,
) -> Image:
    """The image by a method that knows no prior of the recipe: zero filling, least squares, a rival."""
    if method == "zero-filled":
        return Image(slice_model.plain_image(lines), None, Convergence(Status.CONVERGED, 1, 0.0))
    asked, noise = recipe.reconstruction, None
    weight = asked.weight or WEIGHTS[method]
    if method in TEXTBOOK:
        image, ended = textbook(slice_model, lines, method, weight, shifts=asked.wavelet_shifts)
    else:
        model = slice_model.model(lines, signal)
        image, ended = least_squares(model, damping=weight)
        noise = least_squares_noise(model, weight, rng) if asked.noise_map else None
    return Image(image, None, ended, noise=noise)


def shared_frame(
    slice_model: SliceModel, lines: Sequence[int], recipe: Recipe, rng: np.random.Generator, signal: float
) -> SharedFrame:
    """What a frame says of itself to those that share its sites, in the units of the calibrated data."""
    estimate = _Estimate(slice_model, lines, recipe, rng, InferenceOptions(signal=signal))
    image, sd = estimate.chosen_image("mean").image, float(np.sqrt(slice_model.noise_variance))
    drawn, phase = estimate.posterior.own_deviations(rng, recipe.inference.samples), estimate.known.phase
    if phase is not None and phase.phase is None:
        phase = phase.seen_in(image, slice_model.noise_variance)
    return SharedFrame(image, drawn * sd, signal, sd, phase)


class _Estimate:
    """MAP or posterior mean of one slice, step by step: model choices by the scan itself, image, error bars.

    Attributes
    ----------
    alone, known : SliceModel
        Without the companions that its prior is to know, and with them; the same if there are none.
    without, judging : HeldBack, optional
        What is inferred without some of the lines, and what companions are judged by; None where none could be held
        back.
    start : WarmStart, optional
        From which the posterior mean begins.
    phase : PhaseChoice, optional
        The model of the phase that was chosen.
    companions : CompanionChoice, optional
        Which other images were chosen.
    posterior, local : GaussianPosterior, optional
        Behind the image, and that without non-local blocks, where there are some.
    """

    def __init__(
        self,
        slice_model: SliceModel,
        lines: Sequence[int],
        recipe: Recipe,
        rng: np.random.Generator,
        options: InferenceOptions,
    ) -> None:
        self.lines, self.recipe, self.rng, self.options = lines, recipe, rng, options
        self.engine, self.seed = recipe.inference.engine(), int(rng.spawn(1)[0].integers(2**63))
        self.alone = self.known = slice_model
        self.without = self.judging = self._held_back()
        self.start = options.warm_start
        self.phase: PhaseChoice | None = None
        self.companions: CompanionChoice | None = None
        self.posterior: GaussianPosterior
        self.local: GaussianPosterior | None = None

    def _held_back(self, centre: int | None = None) -> HeldBack | None:
        return held_back.hold_back(self.alone, self.lines, self.engine, self.seed, self.options.signal, centre)

    def choose_phase(self) -> None:
        """Choose the model of the phase by lines held back, unless the recipe or the slice names one."""
        one, wanted = self.alone, self.recipe.phase
        if one.phase is not None or not wanted.chosen_by_what_is_held_back(one.candidates.name):
            return
        one_sided = one.candidates.one_sided(self.lines)
        self.phase = held_back.choose_phase(self.without, one_sided=one_sided)
        self.alone = self.known = replace(one, phase=self.phase.phase)
        self.without = self.judging = None if self.without is None else self.without.under(self.phase)
        self.start = self.start if self.phase.phase is None else None

    def choose_companions(self) -> None:
        """Choose the other images of the object that the prior uses, by lines held back."""
        if not self.alone.companions or self.alone.companion is not None:
            return
        self.options.watch("choosing companions")
        if self.without is not None and held_back.FEWEST // 2 <= len(self.without.held) < held_back.FEWEST:
            self.judging = self._held_back(held_back.NARROW_CENTRE)
        middle, wanted = self.alone.central_image(self.lines), self.recipe.companion
        self.companions = choose_companions(
            self.alone, self.lines, self.judging, middle, wanted.strength, trusted=wanted.trust
        )
        self.known = self.companions.applied(self.alone, wanted.strength)
        self.start = None if self.companions.used else self.start

    def chosen_image(self, method: Method) -> Image:
        """The image without error bars, under the model that the scan chooses."""
        self.choose_phase()
        self.choose_companions()
        return self.image(method)

    def image(self, method: Method) -> Image:
        """The image without error bars; reconstructed again if companions are registered anew."""
        estimated = self._map if method == "map" else self._mean
        image, chosen, strength = estimated(None), self.companions, self.recipe.companion.strength
        if chosen is not None:
            again = renew_companions(chosen, self.alone, self.lines, self.judging, image.image, strength)
            if again is not None:
                self.companions, self.known = again, again.applied(self.alone, strength)
                image = estimated(image)
        return replace(image, phase_choice=self.phase, companions=self.companions)

    def _map(self, before: Image | None) -> Image:
        """MAP."""
        estimate = MaximumAPosteriori(MAP_SMOOTHING, inner=self.recipe.inference.inner_solver())
        start, signal = None if before is None else before.image, self.options.signal
        image, ended, left_out = map_image(self.known, self.lines, estimate, signal=signal, start=start)
        return Image(image, None, ended, left_out=left_out)

    def _mean(self, before: Image | None) -> Image:
        """The posterior mean, from where the means so far have ended."""
        self.options.watch("outer loops")
        signal, start, spent = self.options.signal, self.start, 0
        if before is not None:
            earlier = self.posterior if self.local is None else self.local
            first = replace(self.known, alike=None).model(self.lines, signal)
            start = WarmStart(before.image, carried(earlier, first, ("companion",)).z)
            spent = before.convergence.matvecs
        self.posterior, self.local, matvecs, left_out = posterior_mean(
            *(self.known, self.lines, self.engine, self.rng),
            signal=signal,
            warm_start=start,
            callback=self.options.callback,
        )
        ended = replace(self.posterior.convergence, matvecs=matvecs + spent)
        misfit = misfit_of_samples(self.posterior, self.known.n_coils / self.known.coils_read)
        return Image(self.posterior.mean, None, ended, left_out=left_out, misfit=misfit)

    def with_noise_and_bands(self, image: Image) -> Image:
        """The image with a map of its noise and the spectral correction of its modulus, if the recipe has them."""
        if self.recipe.reconstruction.noise_map:
            rng = np.random.default_rng([self.seed, 1])  # of its own, so that error bars are the same without the map
            image = replace(image, noise=posterior_noise(self.posterior, rng))
        if self.recipe.reconstruction.band_factors:
            known, phase = self.known, self.phase
            factors = held_back.shipped_band_factors("modulus" if known.phase is None else "phase-aware")
            share = held_back.strength(self.without, factors, None if phase is None else phase.image)
            if share:
                pixels = held_back.with_band_factors(factors, known, self.lines, image.image, share)
                image = replace(image, image=pixels)
            image = replace(image, band_strength=share)
        return image

    def with_error_bars(self, image: Image) -> Image:
        """The image with standard deviations, and the draws that the recipe requests, scaled to its predicted error."""
        self.options.watch("error bars")
        alone, posterior, asked = self.alone, self.posterior, self.recipe.reconstruction
        std = pixel_std(posterior, STD_SAMPLES, self.rng)
        before = posterior if self.local is None else self.local
        if alone is not self.known:
            before = local_posterior(alone, self.lines, self.engine, self.seed, self.options.signal)
            image = replace(image, alone=before.mean)
        folds = [] if self.without is None else [self.without]
        if self.without is not None and alone.candidates.kind.axes == 1:  # which are few
            other = self.without.another()
            folds += [] if other is None else [other]
        gain = 0.0 if self.companions is None or np.isnan(self.companions.gain) else self.companions.gain
        local = None if self.local is None else self.local.mean
        evidence = replace(
            error_evidence(alone, self.lines, posterior, before, std, folds, self.seed),
            from_local=0.0 if local is None else energy_of(posterior.mean - local),
            from_alone=0.0 if image.alone is None else energy_of(posterior.mean - image.alone),
            gain=gain,
        )
        predicted = predicted_error(evidence, learnt=of_known_blocks(posterior))
        factor = std_factor(predicted, evidence, alone.candidates.unit)
        if factor is not None:
            others = [fold.posterior.mean for fold in folds] + ([] if local is None else [local])
            std = shaped_std(std, posterior.mean, others) * np.float32(factor.factor)
        sampler = PosteriorDraws(posterior, image.image, std, self.seed, self.options.number, self.without)
        draws = sampler(asked.draws) if asked.draws else None
        pull = pull_of_prior(posterior)
        return replace(image, std=std, std_factor=factor, draws=draws, sampler=sampler, pull=pull)


def misfit_of_samples(posterior: GaussianPosterior, part: float = 1.0) -> float:
    """Mean of |y - X u|^2 over the measured samples, u the posterior mean, over their noise's, 2 sigma^2.

    It is about one, or somewhat less, where noise and coil maps are right. It is more where one set of maps does not
    explain what the coils measured: maps of another scan, or of an object that reaches beyond its field of view. Of
    virtual coils, ``part`` of those that were read, it is that of all coils, the others of which hold noise.
    """
    model = posterior.model
    left = np.abs(model.data - model.measurement(posterior.mean)) ** 2
    return part * float(np.mean(left, dtype=np.float64) / (2 * model.noise_variance)) + 1 - part


def unexplained(misfit: float | None, n_coils: int) -> bool:
    """Whether the samples of several coils speak against their maps, or against the noise."""
    return misfit is not None and n_coils > 1 and misfit > UNEXPLAINED


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
    most = recipe.inference.loops + loops_of_stages(slice_model)

    def after_loop(step: StepInfo) -> None:
        changes.append((step.loop, step.change))
        show(step.loop, expected_total(changes, recipe.inference.tolerance, most))

    return after_loop


def image_rng(seed: int) -> np.random.Generator:
    """Generator of everything random in the image of a run with this seed, whichever verb makes it."""
    return np.random.default_rng([seed, 2])


def reconstruct_by_recipe(
    slice_model: SliceModel, lines: Sequence[int], recipe: Recipe, seed: int, *, with_std: bool = False
) -> Image:
    """Reconstruct one slice by its recipe's method, the same for every mask of a comparison.

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
            f"{recipe.draws} draws are requested, and only the posterior mean has any: leave out {option('draws')}, or "
            f"the method {recipe.method}"
        )


def check_shared(recipe: Recipe) -> None:
    """Refuse frames that are to share sites which they do not have.

    Raises
    ------
    UsageError
        For another method than the posterior mean, and for other sites than Laplace's.
    """
    method, words = recipe.reconstruction.method, option("with", "joint")
    if method != "mean":
        raise UsageError(f"{words}: the posterior means of frames share sites: leave out {option('method', method)}")
    for block in recipe.blocks():
        if isinstance(block, SparsityBlock) and block.site != "laplace":
            raise UsageError(f"{words}: the sites of {block.name} are {block.site}, and frames share laplace only")


def check_size_of_draws(recipe: ReconstructionRecipe, images: int, grid: tuple[int, int]) -> None:
    """Refuse more draws of all images of a run than one file may hold.

    Raises
    ------
    InputError
        Saying how many there could be.
    """
    each, most = images * grid[0] * grid[1] * np.dtype(np.complex64).itemsize, DEFAULT_LIMITS.max_bytes
    if recipe.draws * each > most:
        of = f"{recipe.draws} of {images} images of {grid[0]} x {grid[1]} pixels"
        got, wanted = f"{of}, {recipe.draws * each / 1e9:.3g} GB", f"{most / 1e9:.3g} GB at most, {most // each} draws"
        cure = f"Ask for fewer ({option('draws')}), or for fewer slices ({option('slices')})."
        raise InputError("draws", got, wanted, cure)


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
