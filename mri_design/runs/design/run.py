"""A design run: the lines of one scan are chosen, the image is made from them, and the predictions are checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from mri_design.brief import briefly
from mri_design.design import Acquisition, DesignState, DesignTrace, Strategy
from mri_design.evaluation import predictions
from mri_design.experiment import design, extent, reconstruction
from mri_design.model.sparsity import Companion
from mri_design.runs.design.companions import (
    companions_within,
    steering_image,
    tell_of_others,
)
from mri_design.runs.design.scan import (
    DesignInput,
    DesignRequest,
    SharedSlices,
    calibrated,
    depends_on,
    informed,
    without_air,
)
from mri_design.runs.known_slice import KnownSlice, NamedImage
from mri_design.runs.resident import run_design_among
from mri_design.runs.store import Ending
from mri_design.runs.stored_run import StoredRun, arrays_of, run_of, shown_settings
from mri_design.runs.work import Keep, Work
from mri_design.runs.workers import LOCAL, Workers


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
    ended : str
        Why it ended with that many lines, where a rule could end it; else empty.
    model : str
        Name of the model that the image was made with, where the design chose between several; else empty.
    images : sequence of NamedImage
        The image made from the lines, and the zero-filled one to compare it with.
    account : predictions.DesignAccount
        The design's own predictions, beside what was measured and beside the actual errors.
    acquisition : Acquisition or None
        The lines in the order and echo trains in which they are to be measured; None where that is as they were chosen.
    numbers : sequence of int
        Of the slices that had a say in the mask, in their scan; first that of the image.
    noise_only : sequence of int
        Slices that share the mask and had no say in it, as they show noise only.
    steered_by : str
        The other image of the object that had a say in the mask; empty where none had.
    """

    request: DesignRequest
    status: str
    known: KnownSlice
    trace: DesignTrace
    ended: str
    model: str
    images: Sequence[NamedImage]
    account: predictions.DesignAccount
    acquisition: Acquisition | None = None
    numbers: Sequence[int] = ()
    noise_only: Sequence[int] = ()
    steered_by: str = ""

    @property
    def ending(self) -> Ending:
        """How the design ended: its status, its lines, and the error of its image."""
        return Ending(self.status, self.trace.lines, self.images[0].error)

    def stored(self, identity: str) -> StoredRun:
        """The run as its folder has it."""
        known, image, readouts = self.known, self.images[0], self.known.slice_model.candidates
        acquired = tuple((line,) for line in self.trace.lines) if self.acquisition is None else self.acquisition.trains
        settings = {**known.settings(), **image.error.settings, **shown_settings(known, image), "identity": identity}
        arrays = arrays_of(known, image.reconstruction, known.shown_reference)
        mask = self.trace.mask().reshape(readouts.shape)
        order = {"acquired": acquired, "shots": readouts.trajectory(self.trace.lines), "grid": readouts.grid}
        run = run_of("the image", settings, mask, self.trace.lines, arrays, readouts.kind, **order)
        return replace(run, status=self.status)


def design_scan(data: DesignInput, request: DesignRequest, work: Work, keep: Keep) -> DesignResult:
    """Choose the lines of a scan, reconstruct from them, and hold the design's predictions against the errors.

    Its state is kept every few seconds, and where the design is interrupted.

    Raises
    ------
    UsageError
        Where what is kept is another design's.
    InputError
        Where the scan or the checkpoint cannot be used, or constraints contradict the scan.
    """
    shared, empty = without_air(calibrated(data, request, work), work)
    scan, number, seed = data.scan, shared.numbers[0], work.seed
    companions = data.companions_of(shared.data, number)
    shared, strategy = informed(shared, request.strategy, seed)
    offered = list(zip(data.companions, companions, strict=True))
    steered = steering_image(offered, shared.slices, shared.numbers, scan.n_slices, shared.start, shared.recipe, seed)
    if steered is not None:
        strategy = steered[0]
        work.progress.say(f"{steered[1]} shows the same as the first {shared.readouts.unit}s: it has a say in the mask")
    keep.begin()
    looks = design.ImageErrors(shared.recipe, seed, companions)
    state = _chosen(shared, strategy, request, looks, work, keep)

    lines = state.trace.lines
    measured = shared.measured(lines, work.progress)
    near = request.near(shared.numbers, scan)
    by_number = dict(zip(shared.numbers, zip(measured.scans, shared.slices, strict=True), strict=True))
    within = companions_within(near, by_number, data.frames, lines, shared.recipe, work)
    image = looks.image_of(lines) if shared.seen is shared.slices and not within else None
    return replace(
        concluded(request, measured, state, (*companions, *within), image, work),
        account=predictions.DesignAccount(state.trace, _checked(measured, strategy, state, work)),
        acquisition=extent.in_acquisition_order(lines, shared.readouts, shared.recipe),
        noise_only=empty,
        steered_by="" if steered is None else steered[1],
    )


def _chosen(
    shared: SharedSlices,
    strategy: Strategy,
    request: DesignRequest,
    looks: design.ImageErrors,
    work: Work,
    keep: Keep,
) -> DesignState:
    """Choose the lines, and measure each in the scan; several slices are shared out among processes."""
    start, most, recipe, stop = len(shared.start), shared.most, shared.recipe, request.stop
    checkpoint = keep.checkpoint(depends_on(shared, strategy, request), most, shared.readouts.unit)
    show = partial(work.progress.show, "designing")
    if checkpoint is None or not checkpoint.path.exists():
        show(0, most - start)

    def after_line(state: DesignState) -> None:
        show(len(state.trace.lines) - start, extent.lines_expected(state.trace, stop, most) - start)

    options = design.DesignOptions(
        stop=stop, checkpoint=checkpoint, callback=after_line, closing=True, image_error=looks
    )
    count = len(shared.seen)
    with Workers(None, min(work.jobs, count), work.executor if count > 1 else LOCAL) as workers:
        state = run_design_among(
            workers, shared.seen, strategy, most, recipe, seed=work.seed, start=shared.start, options=options
        )
    chosen = len(state.trace.lines) - start
    show(chosen, chosen)
    return state


def _checked(
    shared: SharedSlices, strategy: Strategy, state: DesignState, work: Work
) -> list[predictions.PredictionCheck]:
    """What was predicted of every line, beside what it showed."""
    return predictions.check_predictions(
        shared.seen,
        state.trace,
        design.design_engine(strategy, shared.recipe, shared.readouts, work.seed),
        signals=state.signals,
        truths=shared.truths(state.trace.lines),
        callback=partial(work.progress.show, "checking predictions"),
    )


def concluded(
    request: DesignRequest,
    shared: SharedSlices,
    state: DesignState,
    companions: tuple[Companion, ...],
    image: reconstruction.Image | None,
    work: Work,
) -> DesignResult:
    """The image from the lines that a design chose, and what the run came to, without predictions that were checked.

    ``companions`` are other images of the object, over the slice that the image is of, and ``image`` the posterior mean
    of these lines, where the design has made it to look at its error.
    """
    recipe, trace, stop, one = shared.recipe, state.trace, request.stop, shared.slices[0]
    unit, count = shared.readouts.unit, len(shared.slices)
    ended = extent.how_it_ended(trace, stop, shared.most, unit)
    if ended and recipe.design.until_error is not None and count > 1:
        ended += f" (of {min(count, design.MOST_SLICES)} of {count} slices together)"
    slice_model, warm = design.final_model(one, state, recipe)
    slice_model = replace(slice_model, companions=companions)
    measured = one.calibrated(trace.lines)
    signal = design.final_signal(measured, state)
    method = recipe.reconstruction.method
    result = image if method == "mean" else None
    if ended:
        work.progress.say(ended)
    if result is None:
        show = reconstruction.loops_shown(partial(work.progress.show, "reconstructing"), recipe, slice_model)
        options = reconstruction.InferenceOptions(warm_start=warm, signal=signal, callback=show)
        rng = reconstruction.image_rng(work.seed)
        result = reconstruction.reconstruct_prepared(slice_model, trace.lines, method, recipe, rng, options=options)
    if result.left_out:
        work.progress.say(f"The non-local block of the prior is left out: {result.left_out}")
    tell_of_others(trace, unit, result, work.progress)
    known = KnownSlice(scan=shared.scans[0], slice_model=measured, signal=signal)
    aware = recipe.phase.model == "aware" and warm is not None
    return DesignResult(
        request=request,
        status=extent.status_of(trace, stop, unit, result.convergence),
        known=known,
        trace=trace,
        ended=ended,
        model=f"phase-aware {recipe.phase.imaginary_ratios[0]:g}" if aware else "",
        images=known.judged(method, result.times(known.image_unit), trace.lines),
        account=predictions.DesignAccount(trace, ()),
        numbers=shared.numbers,
    )
