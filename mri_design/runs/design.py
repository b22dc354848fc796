"""A design of a scan: the choice of lines, the image of them, and its checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from mri_design.brief import briefly
from mri_design.design import DesignEngine, DesignState, DesignTrace, Frame
from mri_design.evaluation import predictions
from mri_design.experiment import design, extent, reconstruction
from mri_design.experiment.effort import DRAWS, Effort
from mri_design.experiment.regions import Regions
from mri_design.model.slice import SliceModel
from mri_design.model.sparsity import IMAGINARY_RATIO
from mri_design.operators.base import Array
from mri_design.runs.beginnings import LOCAL
from mri_design.runs.companions import (
    LITTLE,
    companions_within,
    final_weight,
)
from mri_design.runs.design_request import DesignInput, DesignRequest, DesignSlices, prepared
from mri_design.runs.image_sections import StoredImage, run_of
from mri_design.runs.known_slice import KnownSlice, NamedImage
from mri_design.runs.provenance import phrase, warn_of_maps
from mri_design.runs.watching import DesignWatch, with_phase_of_end
from mri_design.runs.work import Keep, Work
from mri_design.runs.workers import Workers, design_among
from mri_design.scan.data import KSpaceData


@briefly
@dataclass(frozen=True, kw_only=True)
class DesignResult:
    """Result of a design.

    Parameters
    ----------
    request : DesignRequest
        Its request.
    status : str
        "converged", or what did not converge or was out of reach, in words.
    known : KnownSlice
        The slice, and what was known about it.
    trace : DesignTrace
        Every decision.
    end : DesignEnd
        How it ended.
    model : str
        Name of the model that the image was made with, where the design chose between several; else empty.
    images : sequence of NamedImage
        The image made from the lines, and the zero-filled one to compare it with.
    account : predictions.DesignAccount
        The design's own predictions, what was measured, and the actual errors.
    acquisition : Acquisition or None
        The lines in the order and echo trains in which they are to be measured; None where that is as they were chosen.
    numbers : sequence of int
        Of the slices that had a say in the mask, in their scan; first that of the image.
    noise_only : sequence of int
        Slices that share the mask and had no say in it, as they show noise only.
    steered_by : str
        The other image of the object that had a say in the mask; empty where none had.
    frames : tuple of Frame
        Images along the design, the last one of all lines; empty for strategies that infer none.
    in_phase : tuple of Frame
        The same with the phase of the image of all lines (`with_phase_of_end`).
    regions : Regions, optional
        Those that were to be known.
    around : mapping of int to (Image, array or None)
        Images of other slices that have a region, and what is known of their truth, by `Regions.places`.
    """

    request: DesignRequest
    status: str
    known: KnownSlice
    trace: DesignTrace
    end: extent.DesignEnd
    model: str
    images: Sequence[NamedImage]
    account: predictions.DesignAccount
    acquisition: extent.Acquisition | None = None
    numbers: Sequence[int] = (0,)
    noise_only: Sequence[int] = ()
    steered_by: str = ""
    frames: tuple[Frame, ...] = ()
    in_phase: tuple[Frame, ...] = ()
    regions: Regions | None = None
    around: Mapping[int, tuple[reconstruction.Image, Array | None]] = field(default_factory=dict)

    @property
    def ended(self) -> str:
        """Why it ended with that many lines, where a rule could end it; else empty."""
        return _phrase("ended", self.end, self.known.slice_model.candidates.unit) if self.end.how else ""

    def stored(self) -> StoredImage:
        """The run as its folder has it."""
        known, readouts, lines = self.known, self.known.slice_model.candidates, self.trace.lines
        return run_of(
            known,
            self.images[0],
            mask=self.trace.mask().reshape(readouts.shape),
            chosen=lines,
            status=self.status,
            acquired=() if self.acquisition is None else self.acquisition.trains,
            shots=readouts.trajectory(lines),
            trace=self.trace,
            ended=self.ended or self.status,
            acceleration=known.acceleration(lines),
        )


_phrase = partial(phrase, template="design")


def design_scan(request: DesignRequest, work: Work, keep: Keep, data: DesignInput | None = None) -> DesignResult:
    """Choose the lines of a scan, reconstruct from them, and hold the design's predictions against the errors.

    Its state is kept every few seconds, and where the design is interrupted. ``data`` is what `read_input` made of the
    request, where it has been read.

    Raises
    ------
    UsageError
        Where what is kept is another design's.
    InputError
        Where the scan or the checkpoint cannot be used, or constraints contradict the scan.
    """
    slices, recipe = prepared(request, work, data), request.recipe
    keep.begin()
    looks = design.ImageErrors(recipe, work.seed, slices.companions, slices.regions)
    engine = design.design_engine(slices.plan, recipe, extent.design_seed(work.seed))
    watch = DesignWatch(work, keep, slices.most, looks)
    watch.begins(slices.scans[0], slices.plan.readouts, request.stop)
    work.progress.expect(_effort(request, slices, engine, work))
    state = _choose_lines(request, slices, engine, looks, watch, work, keep)
    lines = state.trace.lines
    scans, truths = slices.seen_from(lines)
    warn_of_maps(scans[0], work.progress)
    by_number = dict(zip(slices.numbers, slices.slices, strict=True))
    within = companions_within(slices.near, by_number, slices.frames, lines, recipe, work)
    image = looks.image_of(lines) if slices.shown is slices.slices and not within else None
    slice_model = replace(slices.slices[0].calibrated(lines), companions=(*slices.companions, *within))
    end = watch.end_of(state.trace, request.stop, slices.plan.readouts)
    if recipe.design.until_error is not None:
        end = replace(end, slices=(min(len(scans), design.MOST_SLICES), len(scans)))
    result = concluded(request, state, end, scans[0], slice_model, work, image)
    checks = predictions.check_predictions(
        slices.shown,
        state.trace,
        replace(engine, seed=work.seed),
        signals=state.signals,
        truths=truths,
        callback=partial(work.progress.show, "checking predictions"),
    )
    watch.ends(state.trace, result.known, result.images[0], result.status, result.ended)
    around = dict[int, tuple[reconstruction.Image, Array | None]]()
    for place, made in looks.images(slices.shown, state).items():
        if place:
            other = KnownSlice(scan=scans[place], slice_model=slices.slices[place], signal=state.signals[place])
            around[place] = made, other.shown_reference
    return replace(
        result,
        account=predictions.DesignAccount(state.trace, checks),
        acquisition=extent.in_acquisition_order(lines, slices.plan.readouts, recipe),
        numbers=slices.numbers if request.regions.fit is None else slices.numbers[:1],
        noise_only=slices.noise_only,
        steered_by=slices.steered_by,
        frames=watch.frames,
        in_phase=with_phase_of_end(watch.frames, slices.slices[0], state.trace),
        regions=slices.regions,
        around=around,
    )


def design_effort(request: DesignRequest, work: Work) -> Effort:
    """What `design_scan` will take; the scan is read and calibrated.

    Raises
    ------
    UsageError, InputError
        As the design, before the first line is chosen.
    """
    request.record(work)
    slices = prepared(request, work)
    return _effort(request, slices, design.design_engine(slices.plan, request.recipe, work.seed), work)


def _effort(request: DesignRequest, slices: DesignSlices, engine: DesignEngine, work: Work) -> Effort:
    start, most, rule = len(slices.start), slices.most, slices.plan
    return Effort.of(
        slices.scans[0],
        slices.scans[0].grid_shape,
        rule.readouts.kind,
        request.recipe,
        (start, most) if rule.strategy.needs_posterior else (most, rule.readouts.size),
        steps=-(-(most - start) // engine.block) if rule.strategy.needs_posterior else 0,
        step_draws=getattr(engine.inference.variances, "samples", DRAWS),
        sharing=len(slices.slices),
        jobs=min(work.jobs, len(slices.slices)),
    )


def _choose_lines(
    request: DesignRequest,
    slices: DesignSlices,
    engine: DesignEngine,
    looks: design.ImageErrors,
    watch: DesignWatch,
    work: Work,
    keep: Keep,
) -> DesignState:
    """Choose the lines, and measure each in the scan; several slices are shared out among processes."""
    start, most, stop, shown = len(slices.start), max(slices.most, watch.amount.most), request.stop, slices.shown
    plan, readouts, unseen = slices.plan, slices.plan.readouts, 0
    n_coils = min(one.n_coils for one in slices.slices)
    if readouts.thinned and stop is None:
        unseen = plan.strategy.unseen(readouts, most, n_coils)
    foreseen = request.of_shots or not plan.strategy.needs_posterior or plan.rules.max_jump is not None
    foreseen |= plan.strategy.plans_ahead(readouts, n_coils)
    begun = {"start": slices.start, "calibration": slices.calibration, "unseen": unseen}
    checkpoint = keep.checkpoint(begun | {"most": slices.most if foreseen else None}, most, readouts.unit)
    show = partial(work.progress.show, "designing")
    if checkpoint is None or not checkpoint.path.exists():
        show(0, most - start)

    def after_line(state: DesignState) -> None:
        show(len(state.trace.lines) - start, watch.expected(state.trace, stop) - start)

    options = design.DesignOptions(
        stop=stop,
        checkpoint=checkpoint,
        callback=after_line,
        closing=True,
        image_error=looks,
        intervals=looks.intervals if slices.regions is not None else None,
        watch=watch,
        amount=watch.amount,
    )
    with Workers(None, min(work.jobs, len(shown)), work.executor if len(shown) > 1 else LOCAL) as workers:
        state = design_among(workers, engine, shown, slices.start, most, options)
    chosen = len(state.trace.lines) - start
    show(chosen, chosen)
    return state


def concluded(
    request: DesignRequest,
    state: DesignState,
    end: extent.DesignEnd,
    scan: KSpaceData,
    slice_model: SliceModel,
    work: Work,
    image: reconstruction.Image | None,
) -> DesignResult:
    """The image from the lines that a design chose, and what the run came to, without predictions that were checked.

    ``scan`` and ``slice_model`` are those of the image with the coil maps of these lines, and with the other images of
    its object; ``image`` is the posterior mean, where the design has made it to look at its error.
    """
    recipe, trace, unit = request.recipe, state.trace, slice_model.candidates.unit
    method = recipe.reconstruction.method
    final, signal, options = design.final_model(slice_model, state, recipe)
    result = image if method == "mean" else None
    if end.how:
        work.progress.say(_phrase("ended", end, unit))
    if result is None:
        show = reconstruction.loops_shown(partial(work.progress.show, "reconstructing"), recipe, final)
        options, rng = replace(options, callback=show), reconstruction.image_rng(work.seed)
        result = reconstruction.reconstruct_prepared(final, trace.lines, method, recipe, rng, options=options)
    if result.left_out:
        work.progress.say(f"The non-local block of the prior is left out: {result.left_out}")
    if (weight := final_weight(trace)) < LITTLE:
        work.progress.say(_phrase("overruled", weight, unit))
    if result.companions is not None:
        work.progress.say(f"other images: {phrase('companions', result.companions, template='image')}")
    known = KnownSlice(scan=scan, slice_model=slice_model, signal=signal, lines=trace.lines)
    known, images = known.judged(method, result.times(known.image_unit))
    if known.unexplained:
        work.progress.warn(f"{scan.name}: {phrase('unexplained', known.misfit)}")
    rough, ended = sum(not step.converged for step in trace.steps), result.convergence
    unfinished = end.missed or rough or not ended.converged
    aware = recipe.phase.model == "aware" and options.warm_start is not None
    return DesignResult(
        request=request,
        status=_phrase("unfinished", end, unit, ended, rough) if unfinished else ended.status.value,
        known=known,
        trace=trace,
        end=end,
        model=f"phase-aware {IMAGINARY_RATIO:g}" if aware else "",
        images=images,
        account=predictions.DesignAccount(trace, ()),
    )
