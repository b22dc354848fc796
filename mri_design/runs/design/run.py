"""A design run: the lines of one scan are chosen, the image is made from them, and the predictions are checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from mri_design.brief import briefly
from mri_design.design.echo_trains import Acquisition
from mri_design.design.engine import DesignState
from mri_design.design.stopping import StopRule
from mri_design.design.strategy import Strategy
from mri_design.design.trace import DesignTrace
from mri_design.design.trials import truth_or_none
from mri_design.errors import InputError, UsageError, option, require_numbers
from mri_design.evaluation import predictions
from mri_design.evaluation.manifest import InputFile
from mri_design.experiment import design, extent, reconstruction
from mri_design.experiment.calibration import PreparedScan, estimates_own_maps, prepare
from mri_design.experiment.companion_images import CompanionImages, companion_file, companions_over
from mri_design.experiment.inputs import load_input
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.shots import candidates_of, slice_of
from mri_design.experiment.sources import GivenMaps, SliceChoice, slices_text
from mri_design.experiment.stored_designs import Checkpoint
from mri_design.experiment.strategies import ORACLES, TRAINING_RULES, make_strategy, strategy_files, strategy_label
from mri_design.experiment.volume import Around, Frames, is_around
from mri_design.kinds import KINDS
from mri_design.model.companion import Companion
from mri_design.model.slice import SliceModel
from mri_design.operators.nonuniform import require_finufft
from mri_design.runs.design.companions import companions_within, contradicted, other_frames, steering_image
from mri_design.runs.known_slice import KnownSlice, NamedImage
from mri_design.runs.provenance import tell_calibration, tell_part, warn_of_maps, warn_of_noise
from mri_design.runs.reference_slices import knowing_oracle
from mri_design.runs.resident import design_among
from mri_design.runs.store import Ending, Record
from mri_design.runs.stored_run import StoredRun
from mri_design.runs.work import Keep, Work
from mri_design.runs.workers import LOCAL, Workers
from mri_design.scan.data import KSpaceData, slice_number
from mri_design.scan.sampling import require_whole_lines
from mri_design.status import Convergence, Status

_OF_ONE_SLICE = "slices share lines, or samples of a plane; spokes and arms are those of one slice"


@dataclass(frozen=True)
class DesignRequest:
    """Request for a design.

    Parameters
    ----------
    source : str
        File or phantom; it is replayed as the scanner.
    recipe : Recipe
        Strategy, start, stop rules, constraints, order, inference and reconstruction.
    lines : int or None
        Lines, samples of a plane, or shots in the end, at most where the recipe has a stop rule; None is as many as can
        be measured then. Shots are always counted: what there is to choose from depends on their number.
    index : int
        Slice.
    maps : Path or MapsOfScan, optional
        File of coil maps, or a scan to estimate them from.
    acceleration : float, optional
        In the place of ``lines``: the grid divided by this, rounded; of shots one for so many lines of the grid.
    slices : SliceChoice, optional
        Instead of ``index``: the slices that share the mask. The image is that of the one in their middle.
    loaded : KSpaceData, optional
        The scan, where it has been read already; ``source`` still says where it is from.
    companions : tuple of str
        Files of other images of the object, which the prior of the image may know (`CompanionImages.read`) and of which
        a repeat steers the mask (`steering_image`); and ``slices``, those around the image's among the slices that
        share the mask, or ``frames`` (`Around`).

    Raises
    ------
    UsageError
        For an unknown strategy or one that learns from training scans, no end or two, a stop rule that the strategy
        cannot answer, or shots without a number of them.
    InputError
        For constraints and an order that contradict each other, or a strategy's file that cannot be used.
    """

    source: str
    recipe: Recipe
    lines: int | None = None
    index: int = 0
    _: KW_ONLY
    maps: GivenMaps | None = None
    acceleration: float | None = None
    slices: SliceChoice | None = None
    loaded: KSpaceData | None = None
    companions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.of_shots and self.acceleration is None and self.lines is None:
            counts = f"{option('shots')}, or {option('acceleration')}"
            raise UsageError(f"how many spokes or arms? Give their number with {counts}")
        if self.acceleration is not None:
            require_numbers(least=1.0, acceleration=self.acceleration)
            counted = KINDS[self.recipe.design.encoding].counted
            extent.require_one_amount(self.lines, self.acceleration, counted)
        if self.recipe.design.strategy in TRAINING_RULES:
            raise UsageError(
                f"{self.recipe.design.strategy} learns from fully sampled training scans, for other scans than these: "
                "mri-design compare --train and mri-design protocol make a mask by it, and mri-design train an order "
                "(--strategy trained:FILE)"
            )
        extent.checked_end(self.recipe, self.strategy, self.lines if self.acceleration is None else 1)
        if self.around and self.of_shots:
            words = f"{option('with', 'slices')}, {option('with', 'frames')}"
            raise UsageError(f"{words}: other images for spokes and arms come from files; give one")

    @property
    def of_shots(self) -> bool:
        """Whether spokes or arms of a spiral are chosen."""
        return KINDS[self.recipe.design.encoding].shots

    @cached_property
    def strategy(self) -> Strategy:
        """The strategy that chooses lines; an oracle gets the truth later."""
        return make_strategy(self.recipe.design.strategy, self.recipe.design.encoding, but=TRAINING_RULES)

    @property
    def stop(self) -> StopRule | None:
        """The rule that ends the design early."""
        return extent.checked_end(self.recipe, self.strategy, self.lines if self.acceleration is None else 1)

    def count(self, size: int) -> int | None:
        """Lines or samples in the end on a grid of ``size``; None where only a rule ends the design."""
        return self.lines if self.acceleration is None else extent.readouts_wanted(size, self.acceleration)

    @property
    def settings(self) -> dict[str, object]:
        """The recipe's, without the folders of a strategy's file."""
        return self.recipe.replacing("design", strategy=strategy_label(self.recipe.design.strategy)).as_settings()

    def record(self, work: Work) -> Record:
        """Inputs and settings for the manifest, before anything is computed.

        Raises
        ------
        InputError
            Where a file cannot be read.
        """
        maps = [] if self.maps is None else [str(self.maps)]
        scan = InputFile.of_all([self.source])
        strategies = strategy_files([self.recipe.design.strategy])
        beside = InputFile.of_all([*maps, *strategies, *self.companion_files])
        choices = {
            "recipe": self.settings,
            "input": [file.sha256 for file in scan] or self.source,
            "files": [file.sha256 for file in beside],
            "slice": self._slice,
            **self.named_companions,
        }
        number = {"lines": self.lines, "acceleration": self.acceleration}
        wanted = {} if self.acceleration is None else {"acceleration_wanted": self.acceleration}
        settings = {"source": self.source, "slice": self._slice, **wanted, **self.named_companions, **self.settings}
        identity, beginning = (work.identity("design", choices | more) for more in (number, {}))
        return Record(identity, [*scan, *beside], settings, beginning)

    @property
    def companion_files(self) -> list[str]:
        """The files that other images of the object are read from."""
        return [companion_file(source) for source in self.companions if not is_around(source)]

    @property
    def around(self) -> Around:
        """Which slices and frames of the scan itself are other images of the object.

        Raises
        ------
        UsageError
            See `Around.named`.
        """
        return Around.named(self.companions)

    @property
    def named_companions(self) -> dict[str, object]:
        """Their names for a manifest; nothing where there are none."""
        return {"with": [Path(source).name for source in self.companions]} if self.companions else {}

    def read_companions(self, seed: int) -> list[CompanionImages]:
        """The other images of the object.

        Raises
        ------
        InputError
            Where a file cannot be used.
        """
        return [CompanionImages.read(source, self.recipe, seed) for source in self.companions if not is_around(source)]

    @property
    def _slice(self) -> int | str:
        return self.index if self.slices is None else self.slices.text

    def numbers(self, count: int) -> list[int]:
        """The slices that share the mask, of ``count``; first that of the image.

        Raises
        ------
        InputError
            Where the scan has no such slice.
        UsageError
            For several slices of shots.
        """
        if self.slices is not None:
            chosen = self.slices.indices(count)
            middle = chosen[len(chosen) // 2]
            if len(chosen) > 1 and self.of_shots:
                raise UsageError(f"{_OF_ONE_SLICE}: give {option('slices', middle)}")
            return [middle, *(number for number in chosen if number != middle)]
        return [slice_number(self.index, count)]


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
        mask = self.trace.mask().reshape(self.known.slice_model.candidates.shape)
        acquired = tuple((line,) for line in self.trace.lines) if self.acquisition is None else self.acquisition.trains
        return StoredRun.of(
            self.known,
            self.images[0],
            mask,
            self.trace.lines,
            identity=identity,
            status=self.status,
            acquired=acquired,
        )


@dataclass(frozen=True, kw_only=True)
class Designed:
    """A design whose lines are chosen and measured, on the way to its image.

    Parameters
    ----------
    recipe : Recipe
        In force.
    data : KSpaceData
        The slice that the image is of, as read.
    scan : PreparedScan
        Calibrated, with the coil maps of all lines that were measured where maps had to be estimated from them.
    slices : sequence of SliceModel
        Those that share the lines, that of the image first.
    state : DesignState
        Where the design ended.
    most : int
        Lines it could have had.
    companions : tuple of Companion
        Other images of the object, over the slice that the image is of.
    image : Image, optional
        The posterior mean of these lines, where the design has made it to look at its error.
    """

    recipe: Recipe
    data: KSpaceData
    scan: PreparedScan
    slices: Sequence[SliceModel]
    state: DesignState
    most: int
    companions: tuple[Companion, ...] = ()
    image: reconstruction.Image | None = None


def design_scan(request: DesignRequest, work: Work, keep: Keep) -> DesignResult:
    """Choose the lines of a scan, reconstruct from them, and hold the design's predictions against the errors.

    Its state is kept every few seconds, and where the design is interrupted.

    Raises
    ------
    UsageError
        Where what is kept is another design's.
    InputError
        Where the input or the checkpoint cannot be used, or constraints contradict the scan.
    """
    scan = ReplayedScan(request, work)
    scan.calibrate()
    empty = scan.leave_out_air()
    strategy = scan.informed(request.strategy)
    keep.begin()
    state = scan.choose(strategy, keep.checkpoint(scan.depends_on(strategy), scan.most, scan.readouts.unit))
    designed = scan.measured(state)
    return replace(
        concluded(request, designed, work),
        account=predictions.DesignAccount(state.trace, scan.checked(strategy, state)),
        acquisition=extent.in_acquisition_order(state.trace.lines, scan.readouts, scan.recipe),
        numbers=scan.numbers,
        noise_only=empty,
        steered_by=scan.steered_by,
    )


class ReplayedScan:
    """A scan that is replayed as the scanner, on its way through a design: read, calibrated, chosen from, measured.

    Attributes
    ----------
    recipe : Recipe
        In force.
    numbers : list of int
        Of the slices that share the mask in their scan, first that of the image.
    data : list of KSpaceData
        These slices as read.
    readouts : Readouts
        What there is to choose from.
    lines : int or None
        Lines, samples or shots in the end; None where only a rule ends the design.
    companions : tuple of Companion
        Other images of the object, over the slice of the image.
    scans, slices : list of PreparedScan, list of SliceModel
        Calibrated, and as models take them.
    seen : list of SliceModel
        As the strategy sees them: an oracle knows the coil maps of all lines.
    first : tuple of int
        Lines that the design begins with.
    most : int
        Lines that it can have in the end.
    steered_by : str
        The other image of the object that has a say in the mask; empty where none has.

    Raises
    ------
    UsageError, InputError
        Where the scan cannot be designed by the request, before anything is calibrated.
    """

    def __init__(self, request: DesignRequest, work: Work) -> None:
        if request.of_shots:
            require_finufft()
        self._request, self._work, self.recipe, self.steered_by = request, work, request.recipe, ""
        recipe, whole = (
            request.recipe,
            request.loaded or load_input(request.source, request.recipe, work.seed, request.maps),
        )
        self._whole, self.numbers = whole, request.numbers(whole.n_slices)
        self.data = [whole.select_slice(number) for number in self.numbers]
        data, number = self.data[0], self.numbers[0]
        if request.around.slices and len(self.data) == 1:
            raise UsageError(
                f"{option('with', 'slices')}: the mask is for one slice alone, and no other is measured with it; "
                f"give several with {option('slices')}, or leave it out"
            )
        if data.reference is not None and not np.any(data.reference):
            cure = f"Give a slice that shows the object with {option('slices', 'N')}."
            raise InputError("reference", f"nothing but zeros in slice {number}", "an image with signal", cure)
        tell_part(data, recipe, work.progress)
        self._frames = other_frames(request.source, recipe, request.maps, number, request.around, work.seed)
        self._files = request.read_companions(work.seed)
        self.companions = companions_over(self._files, data, number, whole.n_slices)
        for each in self.data if not KINDS[recipe.design.encoding].square else ():
            require_whole_lines(each.name, each.samplings[0])  # before the calibration, which would ask for less
        self.lines = request.count(KINDS[recipe.design.encoding].whole(data.grid_shape))
        self.readouts = candidates_of(recipe, request.strategy, data.grid_shape, self.lines, data.n_coils)
        measured = self.readouts.measured_flags(data.samplings[0].samples)
        extent.require_lines(measured, self.lines, recipe, self.readouts)
        design.require_room(self.readouts, data.n_coils, self.lines, recipe, slices=len(self.data))

    def calibrate(self) -> None:
        """Find noise and coil maps, and with them the lines that the design begins with."""
        data, recipe, readouts, progress = self.data[0], self.recipe, self.readouts, self._work.progress
        strategy, grows = self._request.strategy, readouts.kind.centre_first and estimates_own_maps(data)
        centre_lines = partial(extent.centre_for_maps, strategy) if grows else extent.calibration_for
        self._calibrating = centre_lines(recipe, self.lines)

        def prepared(each: KSpaceData) -> PreparedScan:
            return prepare(each, self.recipe, calibration_lines=self._calibrating, ordinary=True, growing=grows)

        scan = prepared(data)
        warn_of_noise(scan, progress)
        self.recipe = recipe = extent.with_calibration(recipe, scan.calibration_lines)
        self.scans = [scan, *map(prepared, self.data[1:])]
        on_grid = recipe.replacing("design", encoding="lines") if self._request.of_shots else recipe
        source, seed = self._request.source, self._work.seed
        self.slices = [
            slice_of(each.slice_model(0, on_grid), readouts, source, partial(each.reference, 0), recipe, seed)
            for each in self.scans
        ]
        measurable = np.logical_and.reduce([each.measured for each in self.slices])
        # A plane's is among the constraints, and shots take the maps of the scan that they are made of.
        centre = scan.calibration_lines if readouts.kind.centre_first else 0
        coils = self.slices[0].n_coils
        self.first = extent.start_lines(measurable, strategy, self.lines, recipe, centre, coils, readouts)
        self.most = self.lines or recipe.constraints.rules(readouts).most_lines(measurable, self.first)
        if readouts.kind.square and scan.calibration_lines:
            side = recipe.constraints.calibration or 0
            progress.say(
                f"{side} x {side} samples at the centre are measured first, for the coil maps, of {self.most} "
                f"altogether; {option('constraints.calibration')} sets how many"
            )
        growing = f"the lines as they are measured, beginning with {len(self.first)} at the centre" if grows else ""
        tell_calibration(scan.calibration_lines, self.most, recipe, readouts, progress, growing)

    def leave_out_air(self) -> list[int]:
        """Numbers of the slices, but for that of the image, whose start shows noise only: they have no say."""
        first, models = self.first, self.slices
        bright = [one.calibrated(first, rough=True).shows_signal(first) for one in models[1:]]
        shown = [0, *(place for place, shows in enumerate(bright, 1) if shows)]
        empty = sorted(set(self.numbers).difference(self.numbers[place] for place in shown))
        if empty:
            self._work.progress.warn(f"{slices_text(empty)}: noise only, and so no say in the mask")
        self.numbers, self.scans = [self.numbers[place] for place in shown], [self.scans[place] for place in shown]
        self.slices = self.seen = [models[place] for place in shown]
        return empty

    def informed(self, strategy: Strategy) -> Strategy:
        """The strategy: an oracle with the truth, and ``calibrated`` with another image that shows the same."""
        recipe, seed, name = self.recipe, self._work.seed, self.recipe.design.strategy
        if name in ORACLES:  # which see the truth, and with it the maps of all lines
            self.seen = [one.calibrated(one.measured) for one in self.slices]
            known = zip(self.scans, self.slices, strict=True)
            truths = [scan.knowing(one.coil_map_estimate(one.measured)).reference(0) for scan, one in known]
            strategy = knowing_oracle(name, self.seen, truths, recipe, seed)
        offered, count = list(zip(self._files, self.companions, strict=True)), self._whole.n_slices
        steered = steering_image(offered, self.slices, self.numbers, count, self.first, recipe, seed)
        if steered is None:
            return strategy
        strategy, self.steered_by = steered
        unit = self.readouts.unit
        self._work.progress.say(f"{self.steered_by} shows the same as the first {unit}s: it has a say in the mask")
        return strategy

    def depends_on(self, strategy: Strategy) -> dict[str, object]:
        """What a design that goes on has to have in common with its beginning, beside input and settings."""
        most, unseen = self.most, 0
        if self.readouts.thinned and self._request.stop is None:
            unseen = strategy.unseen(self.readouts, most, min(one.n_coils for one in self.slices))
        limited = self.recipe.constraints.max_jump is not None
        foreseen = most if self._request.of_shots or not strategy.needs_posterior or limited else None
        return {"start": self.first, "calibration": self._calibrating, "unseen": unseen, "most": foreseen}

    def choose(self, strategy: Strategy, checkpoint: Checkpoint | None) -> DesignState:
        """Choose the lines, and measure each in the scan."""
        work, stop, start = self._work, self._request.stop, len(self.first)
        show = partial(work.progress.show, "designing")
        if checkpoint is None or not checkpoint.path.exists():
            show(0, self.most - start)
        self._looks = design.ImageErrors(self.recipe, work.seed, self.companions)
        shared = len(self.slices) > 1  # of one slice, lines are chosen one after the other: nothing is shared out

        def after_line(state: DesignState) -> None:
            expected = extent.lines_expected(state.trace, stop, self.most)
            show(len(state.trace.lines) - start, expected - start)

        options = design.DesignOptions(
            stop=stop, checkpoint=checkpoint, callback=after_line, closing=True, image_error=self._looks
        )
        with Workers(None, min(work.jobs, len(self.slices)), work.executor if shared else LOCAL) as workers:
            state = design_among(
                workers,
                lambda options: design.run_design(
                    self.seen, strategy, self.most, self.recipe, seed=work.seed, start=self.first, options=options
                ),
                len(self.slices),
                options,
            )
        chosen = len(state.trace.lines) - start
        show(chosen, chosen)
        return state

    def measured(self, state: DesignState) -> Designed:
        """The design with everything that its lines have measured, coil maps and neighbours of the slice included."""
        lines, whole, slices = state.trace.lines, self._whole, self.slices
        self.scans = [scan.knowing(one.coil_map_estimate(lines)) for scan, one in zip(self.scans, slices, strict=True)]
        warn_of_maps(self.scans[0], self._work.progress)
        places = {number: None if whole.geometry is None else whole.geometry[number] for number in self.numbers}
        near = self._request.around.of(self.numbers[0], Frames("", (), whole.n_slices), places)
        calibrated = dict(zip(self.numbers, zip(self.scans, slices, strict=True), strict=True))
        within = companions_within(near, calibrated, self._frames, lines, self.recipe, self._work)
        return Designed(
            recipe=self.recipe,
            data=self.data[0],
            scan=self.scans[0],
            slices=slices,
            state=state,
            most=self.most,
            companions=(*self.companions, *within),
            image=self._looks.image_of(lines) if self.seen is slices and not within else None,
        )

    def checked(self, strategy: Strategy, state: DesignState) -> list[predictions.PredictionCheck]:
        """What was predicted of every line, beside what it showed."""
        known, lines = zip(self.scans, self.slices, strict=True), state.trace.lines
        inference = design.design_inference(strategy, self.recipe, self.readouts.kind)
        return predictions.check_predictions(
            self.seen,
            state.trace,
            predictions.Replay(inference, self._work.seed, design.refinement(self.recipe)),
            signals=state.signals,
            truths=[truth_or_none(one.calibrated(lines), scan.reference(0)) for scan, one in known],
            callback=partial(self._work.progress.show, "checking predictions"),
        )


def concluded(request: DesignRequest, designed: Designed, work: Work) -> DesignResult:
    """The image from the lines that a design chose, and what the run came to, without predictions that were checked."""
    recipe, state = designed.recipe, designed.state
    trace, stop = state.trace, request.stop
    unit = designed.slices[0].candidates.unit
    ended = extent.how_it_ended(trace, stop, designed.most, unit)
    if ended and recipe.design.until_error is not None and len(designed.slices) > 1:
        count = len(designed.slices)
        ended += f" (of {min(count, design.MOST_SLICES)} of {count} slices together)"
    if ended:
        work.progress.say(ended)
    overruled = contradicted(trace, unit)
    if overruled:
        work.progress.say(overruled)
    slice_model, warm = design.final_model(designed.slices[0], state, recipe)
    slice_model = replace(slice_model, companions=designed.companions)
    calibrated = designed.slices[0].calibrated(trace.lines)
    signal = design.final_signal(calibrated, state)
    options = reconstruction.InferenceOptions(
        warm_start=warm,
        signal=signal,
        callback=reconstruction.loops_shown(partial(work.progress.show, "reconstructing"), recipe, slice_model),
    )
    method, rng = recipe.reconstruction.method, reconstruction.image_rng(work.seed)
    result = designed.image if method == "mean" else None
    if result is None:
        result = reconstruction.reconstruct_prepared(slice_model, trace.lines, method, recipe, rng, options=options)
    if result.left_out:
        work.progress.say(f"The non-local block of the prior is left out: {result.left_out}")
    if result.companions is not None:
        work.progress.say(f"other images: {result.companions}")
    known = KnownSlice.of(designed.data, designed.scan, calibrated, signal)
    return DesignResult(
        request=request,
        status=_status(trace, stop, result.convergence, unit),
        known=known,
        trace=trace,
        ended=ended,
        model=f"phase-aware {recipe.phase.imaginary_ratios[0]:g}"
        if recipe.phase.model == "aware" and warm is not None
        else "",
        images=known.judged(method, result.times(known.image_unit), trace.lines),
        account=predictions.DesignAccount(trace, ()),
    )


def _status(trace: DesignTrace, rule: StopRule | None, reconstruction: Convergence, unit: str) -> str:
    missed_goal = extent.what_was_missed(trace, rule, unit)
    if missed_goal:
        return missed_goal
    if not reconstruction.converged:
        return f"not converged ({reconstruction.status.value})"
    missed = sum(not step.cost.converged for step in trace.steps)
    return f"not converged ({missed} of {len(trace.steps)} design steps)" if missed else Status.CONVERGED.value
