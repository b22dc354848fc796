"""A whole design run: the memory it takes, engine, checkpoints, resume, and predicted errors of the image."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.design.engine import (
    Amount,
    DesignEngine,
    DesignState,
    ImageError,
    InferredSlices,
    Intervals,
    Measuring,
    Moment,
    Refined,
)
from mri_design.design.strategy import Strategy
from mri_design.design.trace import Forecast, relative_error
from mri_design.errors import InputError, option, require_counts, require_instance, require_working, sequence_of
from mri_design.evidence.error_bars import energy_of
from mri_design.experiment.extent import DesignPlan, design_seed
from mri_design.experiment.recipe import Recipe, recipe_from
from mri_design.experiment.reconstruction import Image, InferenceOptions, image_rng, reconstruct_prepared
from mri_design.experiment.regions import Regions
from mri_design.experiment.stored_designs import Checkpoint, load_state, saving_states
from mri_design.experiment.strategies import make_strategy
from mri_design.inference.double_loop import DoubleLoop
from mri_design.kinds import Kind, count_text
from mri_design.model.slice import SliceModel, phase_refined
from mri_design.model.sparsity import Companion
from mri_design.operators.conventions import Chosen
from mri_design.readouts import Readouts

COMPLEX, REAL = 8, 8
"""Bytes of a value: k-space is in single precision, energies are in double."""
DRAWN_COPIES = 4
"""Arrays of the draws' k-space that are alive together: coil images, their transform, and its energies in between."""
IMAGE_COPIES = 24
"""Images per draw and slice: the draw, what a circulant explains of it, and coefficients and right-hand sides."""
COIL_PAIR_COPIES = 6
"""Arrays over pairs of coils that are alive together while a block is thinned (`squared_correlation`)."""
KEPT = 3
"""Numbers per sample that are kept of every block: its score, its expected energy, and its predicted energy."""
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""Where Linux says how much memory the programs of a container may take."""


def needed_memory(plane: Readouts, n_coils: int, draws: int, blocks: int, slices: int = 1) -> int:
    """Estimated largest memory of a design in bytes: candidates times coils times draws, and the stored blocks.

    Parameters
    ----------
    plane : Readouts
        The candidates.
    n_coils, draws, blocks : int
        Receive coils, posterior draws, and inferences after which a block of samples is chosen.
    slices : int
        That share the mask.
    """
    images = slices * draws * IMAGE_COPIES * COMPLEX
    in_coils = draws * n_coils * DRAWN_COPIES * COMPLEX
    pairs = 0 if n_coils == 1 else n_coils**2 * COIL_PAIR_COPIES * COMPLEX
    data = slices * n_coils * COMPLEX * 2  # k-space and coil maps
    return plane.size * (images + data + max(in_coils, pairs) + blocks * KEPT * REAL)


def available_memory() -> int:
    """Bytes that this machine has, or that a container's limit leaves of it."""
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(installed, int(CGROUP_LIMIT.read_text()))
    except (OSError, ValueError):  # no such file, or "max"
        return installed


FEWEST_DRAWS = 8
"""Posterior draws behind the scores of samples, where inference makes fewer."""


def require_room(
    readouts: Readouts, n_coils: int, target: int | None, recipe: Recipe, *, slices: int = 1, processes: int = 1
) -> None:
    """Refuse a design over more samples of a plane than memory can hold, with their coils and posterior draws.

    Lines are few, and shots are counted where they are made.

    Parameters
    ----------
    readouts : Readouts
        What is chosen from.
    n_coils : int
        Receive coils.
    target : int or None
        Samples in the end; None is all of them.
    recipe : Recipe
        Posterior draws, and samples in a block.
    slices, processes : int
        Slices that share the mask, and designs that are made side by side.

    Raises
    ------
    InputError
        With the candidates, what they would take, and how much there is.
    """
    if not readouts.thinned:
        return
    blocks = -(-(readouts.size if target is None else target) // recipe.design.block_of(readouts))
    draws = max(FEWEST_DRAWS, recipe.inference.samples)
    needed = processes * needed_memory(readouts, n_coils, draws, blocks, slices)
    there = available_memory()
    if needed <= there:
        return
    several = (f" of {slices} slices" if slices > 1 else "") + (f" in {processes} processes" if processes > 1 else "")
    raise InputError(
        field="candidates",
        got=f"{readouts.size} samples of a plane with {count_text(n_coils, 'coil')}, {draws} posterior draws and "
        f"{blocks} blocks{several}, which take some {needed / 1e9:.3g} GB",
        wanted=f"at most {there / 1e9:.3g} GB, the memory of this machine",
        cure=f"Choose larger blocks ({option('block')}), take a coarser grid, combine coils, "
        "draw less (inference.samples)" + (f" or use fewer processes ({option('jobs')})." if processes > 1 else "."),
    )


@briefly
@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """Options of a design besides its slices, strategy and settings; by default none is set.

    Parameters
    ----------
    draw : int
        Another draw of everything random under the same seed, see `design_seed`.
    stop : StopRule or function, optional
        Ends the design early, for example `StopRule(0.1)`.
    checkpoint : Checkpoint, optional
        Written every few seconds and at the end, however the design ends, and after every measurement of a scanner;
        where its file exists already, the design goes on from it.
    callback : callable, optional
        Sees the state after every measurement.
    where : InferredSlices, optional
        Holds the slices and infers them, see `DesignEngine.run`.
    closing : bool
        Whether to predict the image's error after the last line too.
    measure : Measuring, optional
        Where a scanner is at work: has it measure lines and fills the slices, see `DesignEngine`.
    image_error : ImageError, optional
        For stop rules that ask how wrong the image is (`StopRule.by_image`).
    intervals : Intervals, optional
        For stop rules that ask how well regions are known (`StopRule.within`).
    watch : callable, optional
        Sees every `Moment` of the design.
    amount : Amount, optional
        How many lines are wanted, where that may change.

    Raises
    ------
    InputError
        For a draw that is not a whole number of zero or more, or a rule, callback, measurement or watcher that cannot
        be called.
    """

    draw: int = 0
    stop: Callable[[Forecast], bool] | None = None
    checkpoint: Checkpoint | None = None
    callback: Callable[[DesignState], None] | None = None
    where: InferredSlices | None = None
    closing: bool = False
    measure: Measuring | None = None
    image_error: ImageError | None = None
    intervals: Intervals | None = None
    watch: Callable[[Moment], None] | None = None
    amount: Amount | None = None

    def __post_init__(self) -> None:
        require_counts(draw=self.draw, least=0)
        if self.stop is not None:
            require_working(stop=self.stop, wanted="a stop rule, for example StopRule(error=0.1)", takes=1)
        if self.callback is not None:
            require_working(callback=self.callback, wanted="a function of the state", takes=1)
        if self.measure is not None:
            require_working(measure=self.measure, wanted="a function of the decisions", takes=1)
        if self.watch is not None:
            require_working(watch=self.watch, wanted="a function of a Moment", takes=1)
        if self.checkpoint is not None:
            require_instance(Checkpoint, wanted="a Checkpoint(path, identity)", checkpoint=self.checkpoint)


NO_OPTIONS = DesignOptions()
"""One design from its beginning to its end, without rule, file or progress."""


def run_design(
    slices: Sequence[SliceModel],
    strategy: Strategy | str,
    target: int,
    recipe: Recipe | None = None,
    *,
    seed: int = 0,
    start: int | Chosen | None = None,
    options: DesignOptions = NO_OPTIONS,
) -> DesignState:
    """Design ``target`` lines for slices that share one mask.

    Parameters
    ----------
    slices : sequence of SliceModel
        Replayed as the measurement source, or filled line by line by ``options.measure``.
    strategy : Strategy or str
        Decides which line comes next; by name, as `make_strategy` takes it, or any object that is a strategy.
    target : int
        Lines in the end, at most where a rule may end the design.
    recipe : Recipe, optional
        Inference settings, lines in a block, and constraints of the sequence; the default recipe by default.
    seed : int
        Of every random decision, see `design_seed`.
    start : int, sequence of int, or bool array, optional
        How many centre lines to begin with, or the lines of `start_lines`, by number or as a mask. By default as many
        as the recipe or the strategy begins with. What coil maps are to be estimated from, or were, is not known here:
        of several coils give ``provenance.maps.calibration_lines`` or more.
    options : DesignOptions
        Stop rule, checkpoint, progress.

    Raises
    ------
    InputError
        For no slice, impossible line counts, constraints that contradict the scan, or a checkpoint that is not this
        design's.
    """
    wanted = "a list of SliceModels, as Scan.slice_model makes them"
    slices = sequence_of(SliceModel, "slices", slices, wanted=wanted, least=1)
    recipe = recipe_from(recipe)
    strategy = make_strategy(strategy, recipe.design.encoding) if isinstance(strategy, str) else strategy
    require_instance(Strategy, wanted="a strategy, for example make_strategy('calibrated')", strategy=strategy)
    require_counts(target=target, seed=seed, least=0)
    if start is not None and (isinstance(start, str) or not isinstance(start, Sequence | np.ndarray)):
        require_counts(start=start, least=0)
    require_instance(DesignOptions, wanted="DesignOptions(stop=..., checkpoint=...)", options=options)
    readouts, n_coils = slices[0].candidates, min(one.n_coils for one in slices)
    plan, measurable = DesignPlan.of(strategy, recipe, readouts), np.logical_and.reduce([s.measured for s in slices])
    if start is None:
        first = plan.start_lines(measurable, target, 0, n_coils)
    elif isinstance(start, Sequence | np.ndarray):
        first = tuple(slices[0].chosen(start))
    else:
        first = plan.rules.start(measurable, start, plan.start or 0)
    require_room(readouts, n_coils, target, recipe, slices=len(slices))
    engine = design_engine(plan, recipe, design_seed(seed, options.draw))
    return design_lines(engine, slices, first, target, options)


def design_lines(
    engine: DesignEngine, slices: Sequence[SliceModel], start: Sequence[int], target: int, options: DesignOptions
) -> DesignState:
    """`run_design` once its settings are known, from its first lines on or from where a checkpoint stands."""
    from_options = {name: getattr(options, name) for name in ("measure", "image_error", "intervals", "watch", "amount")}
    engine = replace(engine, **from_options)
    checkpoint, callback = options.checkpoint, options.callback
    resumed = checkpoint is not None and checkpoint.path.exists()
    state = load_state(checkpoint) if checkpoint is not None and resumed else engine.begin(slices, start)
    every = None if options.measure is None else 0.0  # a scanner does not measure the same data again
    with nullcontext() if checkpoint is None else saving_states(checkpoint, every=every) as save:
        last = state

        def after_line(state: DesignState) -> None:
            nonlocal last
            before, last, count = last, state, len(state.trace.lines)
            cut = count - len(before.trace.lines) < engine.block and count == target
            if save is not None and cut and options.measure is None:
                save(before.settled)  # a longer design would have chosen the whole block; slices go on from here
            elif save is not None:
                save(state)
            if callback is not None:
                callback(state)

        return engine.run(slices, state, target, after_line, options.stop, options.where, options.closing).settled


def design_engine(plan: DesignPlan, recipe: Recipe, seed: int) -> DesignEngine:
    """The engine that carries out a plan with the recipe's inference and blocks; ``seed`` is that of `design_seed`."""
    return DesignEngine(
        plan.strategy,
        design_inference(plan.strategy, recipe, plan.readouts.kind),
        seed=seed,
        block=recipe.design.block_of(plan.readouts),
        constraints=plan.rules,
        refined=refinement(recipe),
    )


def design_inference(strategy: Strategy, recipe: Recipe, kind: Kind) -> DoubleLoop:
    """Inference after every line, or other readout of a ``kind``, of a design.

    A strategy that corrects what posteriors expect (`Strategy.rough_for`) makes do with few posterior samples and rough
    solves (`InferenceRecipe.engine`). Others take ``[inference]`` as it is (results/benchmarks/measured-once.md). Draws
    are extrapolated for none: lines stay those that the published tables were measured with, and 18 pairs of designs
    showed no gain otherwise.
    """
    return recipe.inference.engine(extrapolated=False, rough=kind.sort in strategy.rough_for)


def refinement(recipe: Recipe) -> Refined | None:
    """Function with which a design estimates the phase of a slice anew; None if designs use moduli."""
    return phase_refined if recipe.phase.model == "aware" else None


def final_model(
    slice_model: SliceModel, state: DesignState, recipe: Recipe, place: int = 0
) -> tuple[SliceModel, float, InferenceOptions]:
    """A slice's model to reconstruct with after a design, its signal level, and options with it and the warm start.

    ``place`` is that of the slice among those that share the lines. Coil maps that are not known are those of all
    lines. The signal level of lines is what their common centre shows; the few shots of a start show less of it than
    all do.
    """
    lines, refined = state.trace.lines, refinement(recipe)
    slice_model = slice_model.calibrated(lines)
    of_start = slice_model.candidates.start_shows_level
    signal = state.signals[place] if of_start else slice_model.signal_level(lines)
    warm = state.warm[place] if state.warm else None
    if warm is not None and refined is not None:
        slice_model = refined(slice_model, warm.mean)
    return slice_model, signal, InferenceOptions(warm_start=warm, signal=signal)


MOST_SLICES = 4
"""Slices whose images are made, evenly out of those that share the lines."""


@briefly
@dataclass(frozen=True)
class ImageErrors:
    """Predicts the error of the posterior mean by its error bars; see `DesignEngine.image_error`.

    Parameters
    ----------
    recipe : Recipe
        Of the image. Whatever its method, the error is that of the posterior mean.
    seed : int
        Of the run: the image of the last lines is the one that the run makes.
    companions : tuple of Companion
        Other images of the object, which the prior of the first slice knows.
    regions : Regions, optional
        Whose `intervals` are wanted: the recipe has to request draws.

    Raises
    ------
    InputError
        For another recipe than a `Recipe`, or a seed below zero.
    """

    recipe: Recipe
    seed: int = 0
    companions: tuple[Companion, ...] = ()
    regions: Regions | None = None
    _last: dict[tuple[int, ...], dict[int, tuple[Image, Image]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        require_instance(Recipe, wanted="a Recipe, as load_recipe makes it", recipe=self.recipe)
        require_counts(seed=self.seed, least=0)

    def __call__(self, slices: Sequence[SliceModel], state: DesignState) -> float:
        """Norm of the error over norm of the image, over all slices with a predicted error; NaN if there are none."""
        places = range(len(slices))
        if len(slices) > MOST_SLICES:
            places = np.linspace(0, len(slices) - 1, MOST_SLICES).round().astype(int).tolist()
        errors, images = 0.0, 0.0
        for place in places:
            error, image = self._energies(slices, state, place)
            if np.isfinite(error):
                errors, images = errors + error, images + image
        return relative_error(errors, images) if errors else float("nan")

    def intervals(self, slices: Sequence[SliceModel], state: DesignState) -> NDArray[np.float64]:
        """`Forecast.intervals` of the regions, in the units of the file."""
        assert self.regions is not None
        return self.regions.intervals(self.regions.measured(self.images(slices, state)))

    def images(self, slices: Sequence[SliceModel], state: DesignState) -> dict[int, Image]:
        """Images with draws of the slices that have a region, in the units of the file, by `Regions.places`."""
        places = [] if self.regions is None else self.regions.places
        for place in places:
            if self._of(state.trace.lines, place)[1] is None:
                self._energies(slices, state, place)
        return {place: self._last[state.trace.lines][place][1] for place in places}

    def image_of(self, lines: Sequence[int]) -> Image | None:
        """The posterior mean of the first slice with its error bars, if the last call computed it for these lines."""
        return self._of(lines)[0]

    def shown(self, lines: Sequence[int]) -> Image | None:
        """As `image_of`, in the units of the file."""
        return self._of(lines)[1]

    def _of(self, lines: Sequence[int], place: int = 0) -> tuple[Image | None, Image | None]:
        return self._last.get(tuple(lines), {}).get(place, (None, None))

    def _energies(self, slices: Sequence[SliceModel], state: DesignState, place: int) -> tuple[float, float]:
        """Of the error of one slice as it is predicted, in the units of its file squared, and of its image.

        Whitened coils weigh pixels in another way than the file's coils, in whose units the run judges its image.
        """
        lines = state.trace.lines
        one, _, options = final_model(slices[place], state, self.recipe, place)
        options = replace(options, number=place)  # draws of slices and of echoes are independent
        if place == 0 and self.companions:
            one = replace(one, companions=self.companions)
        made = reconstruct_prepared(one, lines, "mean", self.recipe, image_rng(self.seed), options=options)
        shown = made.times(one.image_unit)
        if place == 0 or (self.regions is not None and place in self.regions.places):
            known = self._last.get(lines, {})
            self._last.clear()
            self._last[lines] = known | {place: (made, shown)}
        scaled = shown.std is not None and shown.std_factor is not None
        return energy_of(shown.std) if scaled else float("nan"), energy_of(shown.image)  # type: ignore[arg-type]
