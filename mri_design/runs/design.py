"""A design of a scan: its request, its calibrated slices, the choice of lines, the image and its checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from mri_design.brief import briefly
from mri_design.design import DesignState, DesignTrace
from mri_design.design.engine import DesignEngine
from mri_design.design.strategy import Strategy
from mri_design.design.trace import StopRule
from mri_design.design.training import truth_or_none
from mri_design.errors import InputError, UsageError, option, require_numbers
from mri_design.evaluation import predictions
from mri_design.evaluation.run_folder import InputFile
from mri_design.experiment import design, extent, reconstruction
from mri_design.experiment.calibration import calibrate, estimates_own_maps, truth_of, with_measured_maps
from mri_design.experiment.companion_images import CompanionImages, companion_file, companions_over
from mri_design.experiment.design import design_engine, require_room
from mri_design.experiment.extent import candidates_of, slice_of
from mri_design.experiment.inputs import FIRST_SLICE, GivenMaps, SliceChoice, load_scan, require_grid_data, slices_text
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.strategies import ORACLES, TRAINING_RULES, make_strategy, strategy_files, strategy_label
from mri_design.experiment.volume import NeighbourCounts, Slices, names_neighbours
from mri_design.kinds import KINDS
from mri_design.model.slice import SliceModel
from mri_design.model.sparsity import IMAGINARY_RATIO, Companion
from mri_design.operators.base import Array
from mri_design.operators.nonuniform import require_finufft
from mri_design.readouts import Readouts
from mri_design.runs.companions import (
    LITTLE,
    OtherFrame,
    companions_within,
    final_weight,
    other_frames,
    steering_image,
)
from mri_design.runs.image_sections import StoredImage, run_of
from mri_design.runs.known_slice import KnownSlice, NamedImage, knowing_oracle
from mri_design.runs.provenance import phrase, tell_calibration, tell_part, warn_of_maps, warn_of_noise
from mri_design.runs.store import Record
from mri_design.runs.work import Keep, Progress, Work
from mri_design.runs.workers import LOCAL, Workers, design_among
from mri_design.scan.data import KSpaceData
from mri_design.scan.sampling import require_whole_lines

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
    maps : Path or MapsOfScan, optional
        File of coil maps, or a scan to estimate them from.
    acceleration : float, optional
        Instead of ``lines``: the grid divided by this, rounded; of shots one for so many lines of the grid.
    slices : SliceChoice
        The slice, or those that share the mask: the image is that of the one in their middle.
    companions : tuple of str
        Files of other images of the object, which the prior of the image may know (`CompanionImages.read`) and of which
        a repeat steers the mask (`steering_image`); and ``slices``, those around the image's among the slices that
        share the mask, or ``frames`` (`NeighbourCounts`).

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
    _: KW_ONLY
    maps: GivenMaps | None = None
    acceleration: float | None = None
    slices: SliceChoice = FIRST_SLICE
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
                "mri-design compare --train and mri-design protocol make a mask by it, and protocol --rule an order "
                "(--strategy trained:FILE)"
            )
        _ = self.stop  # refuses what cannot end, and settings that contradict each other
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

    @cached_property
    def stop(self) -> StopRule | None:
        """The rule that ends the design early; `checked_end` says what is refused."""
        return extent.checked_end(self.recipe, self.strategy, self.lines if self.acceleration is None else 1)

    def count(self, size: int) -> int | None:
        """Lines or samples in the end on a grid of ``size``; None where only a rule ends the design."""
        return self.lines if self.acceleration is None else extent.readouts_wanted(size, self.acceleration)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The recipe's, without the folders of a strategy's file."""
        settings = self.recipe.as_settings()
        settings["design"]["strategy"] = strategy_label(self.recipe.design.strategy)
        return settings

    def record(self, work: Work) -> Record:
        """Inputs and settings for the manifest, before anything is computed.

        Raises
        ------
        InputError
            Where a file cannot be read.
        """
        scan, beside = InputFile.of_all([self.source]), InputFile.of_all(self.files)
        asked = {"slice": self.slices.named, **self.named_companions}
        checksums, of_files = ([file.sha256 for file in files] for files in (scan, beside))
        choices = {"recipe": self.settings, "input": checksums or self.source, "files": of_files, **asked}
        number = {"lines": self.lines, "acceleration": self.acceleration}
        wanted = {} if self.acceleration is None else {"acceleration_wanted": self.acceleration}
        settings = {"source": self.source, **wanted, **asked, **self.settings}
        identity, beginning = (work.identity("design", choices | more) for more in (number, {}))
        return Record(identity, [*scan, *beside], settings, beginning)

    @property
    def files(self) -> list[str]:
        """The other files: coil maps, a strategy's, and other images of the object."""
        maps = [] if self.maps is None else [str(self.maps)]
        others = [companion_file(source) for source in self.companions if not names_neighbours(source)]
        return [*maps, *strategy_files([self.recipe.design.strategy]), *others]

    @cached_property
    def around(self) -> NeighbourCounts:
        """Which slices and frames of the scan itself are other images of the object.

        Raises
        ------
        UsageError
            See `NeighbourCounts.named`.
        """
        return NeighbourCounts.named(self.companions)

    @property
    def named_companions(self) -> dict[str, object]:
        """Their names for a manifest, if any."""
        return {"with": [Path(source).name for source in self.companions]} if self.companions else {}

    def read_companions(self, seed: int) -> list[CompanionImages]:
        """The other images of the object.

        Raises
        ------
        InputError
            Where a file cannot be used.
        """
        return [
            CompanionImages.read(source, self.recipe, seed)
            for source in self.companions
            if not names_neighbours(source)
        ]

    def numbers(self, count: int) -> list[int]:
        """The slices that share the mask, of ``count``; first that of the image.

        Raises
        ------
        InputError
            Where the scan has no such slice.
        UsageError
            For several slices of shots.
        """
        chosen = self.slices.indices(count)
        middle = chosen[len(chosen) // 2]
        if len(chosen) > 1 and self.of_shots:
            raise UsageError(f"{_OF_ONE_SLICE}: give {option('slices', middle)}")
        return [middle, *(number for number in chosen if number != middle)]


@dataclass(frozen=True, kw_only=True)
class DesignInput:
    """The data of a design, as read, and the lines, samples or shots that it chooses from.

    Parameters
    ----------
    scan : KSpaceData
        All slices; it is replayed as the scanner.
    numbers : sequence of int
        Of the slices that share the mask, that of the image first.
    slices : sequence of KSpaceData
        These slices.
    plan : DesignPlan
        What is chosen from, and within which constraints.
    lines : int or None
        Lines, samples or shots in the end; None where only a rule ends the design.
    frames : sequence of OtherFrame
        The slice of the image in other frames of the same file.
    companions : sequence of CompanionImages
        Files of other images of the object.
    """

    scan: KSpaceData
    numbers: Sequence[int]
    slices: Sequence[KSpaceData]
    plan: extent.DesignPlan
    lines: int | None
    frames: Sequence[OtherFrame] = ()
    companions: Sequence[CompanionImages] = ()

    @classmethod
    def read(cls, request: DesignRequest, work: Work, scan: KSpaceData | None = None) -> DesignInput:
        """Read the files of a request, but for a scan that is there already.

        Raises
        ------
        UsageError, InputError
            Where a file cannot be used, or the scan cannot be designed by the request.
        """
        if request.of_shots:
            require_finufft()
        recipe, maps, seed = request.recipe, request.maps, work.seed
        scan = require_grid_data(scan or load_scan(request.source, recipe, seed, maps), request.source)
        numbers = request.numbers(scan.n_slices)
        slices = [scan.select_slice(number) for number in numbers]
        data, kind = slices[0], KINDS[recipe.design.encoding]
        if request.around.slices and len(slices) == 1:
            raise UsageError(
                f"{option('with', 'slices')}: the mask is for one slice alone, and no other is measured with it; "
                f"give several with {option('slices')}, or leave it out"
            )
        if data.reference is not None and not np.any(data.reference):
            cure = f"Give a slice that shows the object with {option('slices', 'N')}."
            raise InputError("reference", f"nothing but zeros in slice {numbers[0]}", "an image with signal", cure)
        tell_part(data, recipe, work.progress)
        for each in slices if not kind.square else ():
            require_whole_lines(each.name, each.samplings[0])  # before the calibration, which would ask for less
        lines = request.count(kind.whole(data.grid_shape))
        readouts = candidates_of(recipe, request.strategy, data.grid_shape, lines, data.n_coils)
        plan = extent.DesignPlan.of(request.strategy, recipe, readouts)
        extent.require_lines(readouts.measured_flags(data.samplings[0].samples), lines, plan.rules, readouts)
        require_room(readouts, data.n_coils, lines, recipe, slices=len(slices))
        return cls(
            scan=scan,
            numbers=numbers,
            slices=slices,
            plan=plan,
            lines=lines,
            frames=other_frames(request.source, recipe, maps, numbers[0], request.around, seed),
            companions=request.read_companions(seed),
        )


@dataclass(frozen=True, kw_only=True)
class DesignSlices:
    """Calibrated slices that share a mask, that of the image first, and what is known before a line is chosen.

    Parameters
    ----------
    recipe : Recipe
        Of the design.
    plan : DesignPlan
        The strategy, the candidates and their constraints.
    engine : DesignEngine, optional
        Of the design, with the strategy as it is informed by an earlier scan or, an oracle, by the truth.
    numbers : sequence of int
        Of the slices in their scan.
    scans, slices : sequences of KSpaceData and of SliceModel
        Calibrated, and as models take them.
    shown : sequence of SliceModel
        As the strategy sees them: an oracle with the coil maps of all lines.
    start : tuple of int
        Lines that the design begins with.
    most : int
        Lines that it can have in the end.
    calibration : int or None
        Requested number of centre lines for coil maps; None is the usual number.
    noise_only : sequence of int
        Numbers of slices that have no say in the mask, as their start shows noise only.
    companions : tuple of Companion
        Other images of the object over the slice of the image.
    near : mapping
        Slices around that of the image among those that share the mask (`NeighbourCounts.of`).
    steered_by : str
        The other image of the object that has a say in the mask; empty where none has.
    """

    recipe: Recipe
    plan: extent.DesignPlan
    engine: DesignEngine | None = None
    numbers: Sequence[int] = (0,)
    scans: Sequence[KSpaceData]
    slices: Sequence[SliceModel]
    shown: Sequence[SliceModel] = ()
    start: tuple[int, ...] = ()
    most: int
    calibration: int | None = None
    noise_only: Sequence[int] = ()
    companions: tuple[Companion, ...] = ()
    near: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    steered_by: str = ""

    @property
    def readouts(self) -> Readouts:
        """What there is to choose from."""
        return self.plan.readouts

    def depends_on(self, request: DesignRequest) -> dict[str, object]:
        """Values that have to be equal for a design to be resumed, as well as input and settings."""
        most, unseen, strategy, rules = self.most, 0, self.plan.strategy, self.plan.rules
        if self.readouts.thinned and request.stop is None:
            unseen = strategy.unseen(self.readouts, most, min(one.n_coils for one in self.slices))
        limited = rules.max_jump is not None
        foreseen = most if request.of_shots or not strategy.needs_posterior or limited else None
        return {"start": self.start, "calibration": self.calibration, "unseen": unseen, "most": foreseen}

    def measured(self, lines: Sequence[int], progress: Progress) -> DesignSlices:
        """The slices with the coil maps that ``lines`` show, where these had to be estimated."""
        known = zip(self.scans, self.slices, strict=True)
        scans = [with_measured_maps(scan, one.coil_map_estimate(lines)) for scan, one in known]
        warn_of_maps(scans[0], progress)
        return replace(self, scans=scans)

    def truths(self, lines: Sequence[int]) -> list[Array | None]:
        """What is known of the image behind each slice (`truth_or_none`), with the maps of these lines."""
        known = zip(self.scans, self.slices, strict=True)
        return [truth_or_none(one.calibrated(lines), truth_of(scan)) for scan, one in known]


def prepared(given: DesignInput, request: DesignRequest, work: Work) -> DesignSlices:
    """The slices of a design and its plan, with the other images of the object that steer it or serve its image.

    Raises
    ------
    InputError
        Where the scan cannot be calibrated, or contradicts the constraints.
    """
    all_slices, recipe, seed, count = _calibrated(given, request, work), request.recipe, work.seed, given.scan.n_slices
    start, later = all_slices.start, all_slices.slices[1:]
    shows = [one.calibrated(start, rough=True).shows_signal(start) for one in later]
    with_signal = [0, *(place for place, signal in enumerate(shows, 1) if signal)]
    numbers = [given.numbers[place] for place in with_signal]
    scans = [all_slices.scans[place] for place in with_signal]
    slices = [all_slices.slices[place] for place in with_signal]
    empty = sorted(set(given.numbers).difference(numbers))
    if empty:
        work.progress.warn(f"{slices_text(empty)}: noise only, and so no say in the mask")
    geometry = given.scan.geometry
    places = {number: None if geometry is None else geometry[number] for number in numbers}
    companions = companions_over(given.companions, given.slices[0], numbers[0], count)
    strategy, shown, steered_by = request.strategy, slices, ""
    if recipe.design.strategy in ORACLES:
        shown, known = [one.calibrated(one.measured) for one in slices], zip(scans, slices, strict=True)
        truths = [truth_of(with_measured_maps(scan, one.coil_map_estimate(one.measured))) for scan, one in known]
        strategy = knowing_oracle(strategy, shown, truths, recipe, seed)
    offered = list(zip(given.companions, companions, strict=True))
    steered = steering_image(offered, slices, numbers, count, start, recipe, seed)
    if steered is not None:
        strategy, steered_by = steered
        unit = all_slices.readouts.unit
        work.progress.say(f"{steered_by} shows the same as the first {unit}s: it has a say in the mask")
    plan = replace(all_slices.plan, strategy=strategy)
    return replace(
        all_slices,
        plan=plan,
        engine=design_engine(plan, recipe, extent.design_seed(seed)),
        numbers=numbers,
        scans=scans,
        slices=slices,
        shown=shown,
        noise_only=empty,
        companions=companions,
        near=request.around.of(numbers[0], Slices(count), places),
        steered_by=steered_by,
    )


def _calibrated(given: DesignInput, request: DesignRequest, work: Work) -> DesignSlices:
    """All slices with noise and coil maps, and with them the lines that the design begins with."""
    recipe, plan, progress, lines = request.recipe, given.plan, work.progress, given.lines
    data, readouts, kind = given.slices[0], plan.readouts, plan.readouts.kind
    grows = kind.centre_first and estimates_own_maps(data)
    asked = extent.centre_for_maps(plan.strategy, recipe, lines) if grows else extent.calibration_for(recipe, lines)
    scans = list[KSpaceData]()
    for each in given.slices:
        scans.append(calibrate(each, recipe, calibration_lines=asked, ordinary=True, growing=grows))
        if each is data:
            warn_of_noise(scans[0], progress)
    slices = list[SliceModel]()
    for scan in scans:
        on_grid, truth = scan.slice_model(0, **recipe.slice_settings), partial(truth_of, scan)
        slices.append(slice_of(on_grid, readouts, request.source, truth, recipe, work.seed))
    measurable = np.logical_and.reduce([each.measured for each in slices])
    # A plane's is among the constraints, and shots take the maps of the scan that they are simulated from.
    calibration = scans[0].provenance.maps.calibration_lines
    plan = replace(plan, rules=plan.rules.with_calibration(calibration))
    start = plan.start_lines(measurable, lines, calibration if kind.centre_first else 0, slices[0].n_coils)
    most = lines or plan.rules.most_lines(measurable, start)
    if kind.square and calibration:
        side = plan.rules.calibration
        progress.say(
            f"{side} x {side} samples at the centre are measured first, for the coil maps, of {most} "
            f"altogether; {option('start')} sets how many"
        )
    growing = f"the lines as they are measured, beginning with {len(start)} at the centre" if grows else ""
    tell_calibration(calibration, most, recipe, readouts, progress, growing)
    return DesignSlices(
        recipe=recipe,
        plan=plan,
        numbers=given.numbers,
        scans=scans,
        slices=slices,
        start=start,
        most=most,
        calibration=asked,
    )


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
    numbers: Sequence[int] = ()
    noise_only: Sequence[int] = ()
    steered_by: str = ""

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
    slices = prepared(data, request, work)
    keep.begin()
    looks = design.ImageErrors(slices.recipe, work.seed, slices.companions)
    state = _choose_lines(slices, request, looks, work, keep)
    lines = state.trace.lines
    measured = slices.measured(lines, work.progress)
    by_number = dict(zip(slices.numbers, slices.slices, strict=True))
    within = companions_within(slices.near, by_number, data.frames, lines, slices.recipe, work)
    image = looks.image_of(lines) if slices.shown is slices.slices and not within else None
    measured = replace(measured, companions=(*slices.companions, *within))
    result = concluded(request, measured, state, image, work)
    assert slices.engine is not None
    checks = predictions.check_predictions(
        slices.shown,
        state.trace,
        replace(slices.engine, seed=work.seed),
        signals=state.signals,
        truths=measured.truths(lines),
        callback=partial(work.progress.show, "checking predictions"),
    )
    return replace(
        result,
        account=predictions.DesignAccount(state.trace, checks),
        acquisition=extent.in_acquisition_order(lines, slices.readouts, slices.recipe),
        noise_only=slices.noise_only,
        steered_by=slices.steered_by,
    )


def _choose_lines(
    slices: DesignSlices, request: DesignRequest, looks: design.ImageErrors, work: Work, keep: Keep
) -> DesignState:
    """Choose the lines, and measure each in the scan; several slices are shared out among processes."""
    start, most, stop, shown = len(slices.start), slices.most, request.stop, slices.shown
    checkpoint = keep.checkpoint(slices.depends_on(request), most, slices.readouts.unit)
    show = partial(work.progress.show, "designing")
    if checkpoint is None or not checkpoint.path.exists():
        show(0, most - start)

    def after_line(state: DesignState) -> None:
        show(len(state.trace.lines) - start, extent.lines_expected(state.trace, stop, most) - start)

    assert slices.engine is not None
    options = design.DesignOptions(
        stop=stop, checkpoint=checkpoint, callback=after_line, closing=True, image_error=looks
    )
    with Workers(None, min(work.jobs, len(shown)), work.executor if len(shown) > 1 else LOCAL) as workers:
        state = design_among(workers, slices.engine, shown, slices.start, most, options)
    chosen = len(state.trace.lines) - start
    show(chosen, chosen)
    return state


def concluded(
    request: DesignRequest,
    slices: DesignSlices,
    state: DesignState,
    image: reconstruction.Image | None,
    work: Work,
) -> DesignResult:
    """The image from the lines that a design chose, and what the run came to, without predictions that were checked.

    ``image`` is the posterior mean of these lines, where the design has made it to look at its error.
    """
    recipe, trace, stop = slices.recipe, state.trace, request.stop
    unit, count = slices.readouts.unit, len(slices.slices)
    end = extent.DesignEnd.of(trace, stop, slices.most, slices.readouts)
    if recipe.design.until_error is not None:
        end = replace(end, slices=(min(count, design.MOST_SLICES), count))
    measured = slices.slices[0].calibrated(trace.lines)
    method = recipe.reconstruction.method
    slice_model, signal, options = design.final_model(measured, state, recipe)
    slice_model = replace(slice_model, companions=slices.companions)
    result = image if method == "mean" else None
    if end.how:
        work.progress.say(_phrase("ended", end, unit))
    if result is None:
        show = reconstruction.loops_shown(partial(work.progress.show, "reconstructing"), recipe, slice_model)
        options, rng = replace(options, callback=show), reconstruction.image_rng(work.seed)
        result = reconstruction.reconstruct_prepared(slice_model, trace.lines, method, recipe, rng, options=options)
    if result.left_out:
        work.progress.say(f"The non-local block of the prior is left out: {result.left_out}")
    if (weight := final_weight(trace)) < LITTLE:
        work.progress.say(_phrase("overruled", weight, unit))
    if result.companions is not None:
        work.progress.say(f"other images: {phrase('companions', result.companions, template='image')}")
    known = KnownSlice(scan=slices.scans[0], slice_model=measured, signal=signal, lines=trace.lines)
    known, images = known.judged(method, result.times(known.image_unit))
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
        numbers=slices.numbers,
    )
