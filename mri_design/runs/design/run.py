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
from mri_design.design.stopping import NamedRule
from mri_design.design.strategy import Strategy
from mri_design.design.trace import DesignTrace
from mri_design.errors import UsageError, option, require_numbers
from mri_design.evaluation import predictions
from mri_design.evaluation.manifest import InputFile
from mri_design.evaluation.run_folder import CHECKPOINT, STATE
from mri_design.experiment import design, extent, reconstruction
from mri_design.experiment.calibration import PreparedScan, estimates_own_maps, prepare
from mri_design.experiment.companion_images import CompanionImages, companion_file, companions_over
from mri_design.experiment.inputs import load_input
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.shots import closed_form_samples, shot_candidates, shot_slice
from mri_design.experiment.sources import GivenMaps, SliceChoice, slices_text
from mri_design.experiment.stored_designs import Checkpoint, fingerprint, has_identity, load_state
from mri_design.experiment.strategies import ORACLES, TRAINING_RULES, make_strategy, strategy_files, strategy_label
from mri_design.experiment.volume import Around, Frames, is_around
from mri_design.kinds import KINDS, count_text
from mri_design.model.companion import Companion
from mri_design.model.mr_image import MRSlice
from mri_design.operators.nonuniform import require_finufft
from mri_design.readouts import PlaneReadouts, Readouts, ShotReadouts, readouts_named
from mri_design.runs import scan_facts
from mri_design.runs.design.companions import companions_within, contradicted, other_frames, steering_image
from mri_design.runs.resident import keeper_of
from mri_design.runs.run import Ending, Record, Run
from mri_design.runs.scan_facts import KnownScan, NamedImage
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
            kind = KINDS[self.recipe.design.encoding]
            extent.require_one_amount(self.lines, self.acceleration, "shot" if kind.shots else kind.unit)
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
    def stop(self) -> NamedRule | None:
        """The rule that ends the design early."""
        return extent.checked_end(self.recipe, self.strategy, self.lines if self.acceleration is None else 1)

    def count(self, size: int) -> int | None:
        """Lines or samples in the end on a grid of ``size``; None where only a rule ends the design."""
        return self.lines if self.acceleration is None else extent.readouts_wanted(size, self.acceleration)

    @property
    def settings(self) -> dict[str, object]:
        """The recipe's, without the folders of a strategy's file."""
        return self.recipe.replacing("design", strategy=strategy_label(self.recipe.design.strategy)).as_settings()

    def record(self, run: Run) -> Record:
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
        identity, beginning = (run.identity("design", choices | more) for more in (number, {}))
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
    record : Record
        For the manifest.
    ending : Ending
        Status and lines.
    known : KnownScan
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
    steered_by : str
        The other image of the object that had a say in the mask; empty where none had.
    """

    request: DesignRequest
    record: Record
    ending: Ending
    known: KnownScan
    trace: DesignTrace
    ended: str
    model: str
    images: Sequence[NamedImage]
    account: predictions.DesignAccount
    acquisition: Acquisition | None = None
    numbers: Sequence[int] = ()
    steered_by: str = ""


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
    slices : sequence of MRSlice
        Those that share the lines, that of the image first.
    state : DesignState
        Where the design ended.
    most : int
        Lines it could have had.
    companions : tuple of Companion
        Other images of the object, over the slice that the image is of.
    image : Reconstruction, optional
        The posterior mean of these lines, where the design has made it to look at its error.
    """

    recipe: Recipe
    data: KSpaceData
    scan: PreparedScan
    slices: Sequence[MRSlice]
    state: DesignState
    most: int
    companions: tuple[Companion, ...] = ()
    image: reconstruction.Reconstruction | None = None


def design_scan(request: DesignRequest, run: Run) -> DesignResult | Ending:
    """Choose the lines of a scan, reconstruct from them, and hold the design's predictions against the errors.

    A checkpoint in the run's folder is written every few seconds, and where the design is interrupted.

    Returns
    -------
    DesignResult or Ending
        An `Ending` where the run's folder holds this very design, finished, and the run was to resume it.

    Raises
    ------
    UsageError
        For a checkpoint in the folder without ``run.resume``, or another run's folder.
    InputError
        Where the input or the checkpoint cannot be used, or constraints contradict the scan.
    """
    if request.of_shots:
        require_finufft()
    recipe, show = request.recipe, run.progress.show
    record = request.record(run)
    whole = request.loaded or load_input(request.source, recipe, run.seed, request.maps)
    numbers = request.numbers(whole.n_slices)
    every = [whole.select_slice(number) for number in numbers]
    data = every[0]
    if request.around.slices and len(numbers) == 1:
        raise UsageError(
            f"{option('with', 'slices')}: the mask is for one slice alone, and no other is measured with it; "
            f"give several with {option('slices')}, or leave it out"
        )
    scan_facts.tell_part(data, recipe, run.progress)
    frames = other_frames(request.source, recipe, request.maps, numbers[0], request.around, run.seed)
    files = request.read_companions(run.seed)
    companions = companions_over(files, data, numbers[0], whole.n_slices)
    readouts = _candidates(request, data)
    for each in every if recipe.design.encoding != "plane" else ():
        require_whole_lines(each.name, each.samplings[0])  # before the calibration, which would ask for less
    lines = request.count(data.grid_shape[0] if request.of_shots else readouts.size)
    extent.require_lines(readouts.measured_flags(data.samplings[0].samples), lines, recipe, readouts)
    design.require_room(readouts, data.n_coils, lines, recipe, slices=len(numbers))
    before = run.finished(record.identity, checkpoint=CHECKPOINT, resumed="design", beginning=record.beginning)
    if before is not None:
        return before

    strategy, stop = request.strategy, request.stop
    grows = recipe.design.encoding == "lines" and estimates_own_maps(data)
    calibrating = extent.centre_for_maps(strategy, recipe, lines) if grows else extent.calibration_for(recipe, lines)
    scan = prepare(data, recipe, calibration_lines=calibrating, ordinary=True, growing=grows)
    scan_facts.warn_of_noise(scan, run.progress)
    recipe = extent.with_calibration(recipe, scan.calibration_lines)
    further = [prepare(each, recipe, calibration_lines=calibrating, ordinary=True, growing=grows) for each in every[1:]]
    own = _slice_of_shots(request, scan, readouts, run) if request.of_shots else scan.slice_model(0, recipe)
    scans, slices = [scan, *further], [own, *(one.slice_model(0, recipe) for one in further)]
    measurable = np.logical_and.reduce([each.measured for each in slices])
    # A plane's is among the constraints, and shots take the maps of the scan that they are made of.
    calibration = scan.calibration_lines if recipe.design.encoding == "lines" else 0
    first = extent.start_lines(measurable, strategy, lines, recipe, calibration, own.n_coils, readouts)
    most = lines or recipe.constraints.rules(readouts).most_lines(measurable, first)
    if isinstance(readouts, PlaneReadouts) and scan.calibration_lines:
        side = recipe.constraints.calibration or 0
        run.progress.say(
            f"{side} x {side} samples at the centre are measured first, for the coil maps, of {most} altogether; "
            f"{option('calibration')} sets how many"
        )
    growing = f"the lines as they are measured, beginning with {len(first)} at the centre" if grows else ""
    scan_facts.tell_calibration(scan.calibration_lines, most, recipe, readouts, run.progress, growing)

    shown = [place for place, one in enumerate(slices) if not place or _shows_signal(one, first)]
    if empty := sorted(set(numbers).difference(numbers[place] for place in shown)):
        record = replace(record, settings={**record.settings, "positions_without_signal": empty})
        run.progress.warn(f"{slices_text(empty)}: noise only, and so no say in the mask")
        numbers, slices = [numbers[place] for place in shown], [slices[place] for place in shown]
        scans = [scans[place] for place in shown]
    seen = slices
    if recipe.design.strategy in ORACLES:  # which see the truth, and with it the maps of all lines
        known = [each.reference(0) for each in _knowing(scans, slices)]
        seen = [one.calibrated(one.measured) for one in slices]
        strategy = scan_facts.knowing_oracle(recipe.design.strategy, seen, known, recipe, run.seed)
    steered_by, offered = "", list(zip(files, companions, strict=True))
    if steered := steering_image(offered, slices, numbers, whole.n_slices, first, recipe, run.seed):
        strategy, steered_by = steered
        run.progress.say(f"{steered_by} shows the same as the first {readouts.unit}s: it has a say in the mask")
    run.begin()
    unseen = 0
    if readouts.thinned and stop is None:
        unseen = strategy.unseen(readouts, most, min(one.n_coils for one in slices))
    foreseen = request.of_shots or not strategy.needs_posterior or recipe.constraints.max_jump is not None
    depends_on = {"start": first, "calibration": calibrating, "unseen": unseen, "most": most if foreseen else None}
    checkpoint = Checkpoint(
        run.folder.output_path(CHECKPOINT), fingerprint({"beginning": record.beginning, **depends_on})
    )
    _take_up(checkpoint, most, readouts.unit, run)
    if not checkpoint.path.exists():
        show("designing", 0, most - len(first))
    looks = design.ImageErrors(recipe, run.seed, companions)
    shared = len(slices) > 1  # of one slice, lines are chosen one after the other: there is nothing to share out

    def after_line(state: DesignState) -> None:
        expected = extent.lines_expected(state.trace, stop, most)
        show("designing", len(state.trace.lines) - len(first), expected - len(first))

    with (
        Workers(None, min(run.jobs, len(slices)), run.executor if shared else LOCAL) as workers,
        keeper_of(workers, len(slices)) as keeper,
    ):
        state = design.run_design(
            seen,
            strategy,
            most,
            recipe,
            seed=run.seed,
            start=first,
            options=design.DesignOptions(
                stop=stop,
                checkpoint=checkpoint,
                callback=after_line,
                keeper=keeper,
                closing=True,
                image_error=looks,
            ),
        )
    lines_chosen = state.trace.lines
    show("designing", len(lines_chosen) - len(first), len(lines_chosen) - len(first))
    scans = _knowing(scans, slices, lines_chosen)
    scan_facts.warn_of_maps(scans[0], run.progress)
    truths = [
        predictions.truth_or_none(one.calibrated(lines_chosen), each.reference(0))
        for each, one in zip(scans, slices, strict=True)
    ]
    checks = predictions.check_predictions(
        seen,
        state.trace,
        predictions.Replay(design.design_inference(strategy, recipe), run.seed, design.refinement(recipe)),
        signals=state.signals,
        truths=truths,
        callback=partial(show, "checking predictions"),
    )
    places = {number: None if whole.geometry is None else whole.geometry[number] for number in numbers}
    near = request.around.of(numbers[0], Frames("", (), whole.n_slices), places)
    measured = dict(zip(numbers, zip(scans, slices, strict=True), strict=True))
    within = companions_within(near, measured, frames, lines_chosen, recipe, run)
    designed = Designed(
        recipe=recipe,
        data=data,
        scan=scans[0],
        slices=slices,
        state=state,
        most=most,
        companions=(*companions, *within),
        image=looks.image_of(lines_chosen) if seen is slices and not within else None,
    )
    return replace(
        concluded(request, record, designed, run),
        account=predictions.DesignAccount(state.trace, checks),
        acquisition=extent.in_acquisition_order(lines_chosen, readouts, recipe),
        numbers=numbers,
        steered_by=steered_by,
    )


def _shows_signal(one: MRSlice, first: Sequence[int]) -> bool:
    return one.calibrated(first, rough=True).shows_signal(first)


def _knowing(
    scans: Sequence[PreparedScan], slices: Sequence[MRSlice], lines: Sequence[int] | None = None
) -> list[PreparedScan]:
    """Scans with the coil maps of some lines, by default of all that were measured, where they estimate their own."""
    used = [one.measured if lines is None else lines for one in slices]
    return [scan.knowing(one.map_estimate(own)) for scan, one, own in zip(scans, slices, used, strict=True)]


def _take_up(checkpoint: Checkpoint, most: int, unit: str, run: Run) -> None:
    """Make the checkpoint of what a finished design left, where this one begins as it did.

    Raises
    ------
    UsageError
        Where what is there has more lines already.
    """
    state = None if checkpoint.path.exists() else run.folder.existing(STATE)
    alike = state is not None and has_identity(replace(checkpoint, path=state))
    if state is not None and not alike:
        run.progress.say(f"begins anew: as one of {count_text(most, unit)} the design does not begin as it did")
    begun = state if state is not None and alike else checkpoint.path
    if begun.exists() and (held := len(load_state(replace(checkpoint, path=begun)).trace.lines)) > most:
        raise UsageError(
            f"{run.folder.path.name} holds a design of {count_text(held, unit)}, more than {most}: give {held} or "
            "more, another --out, or --overwrite"
        )
    if alike:
        run.folder.rename(STATE, CHECKPOINT)


def _candidates(request: DesignRequest, data: KSpaceData) -> Readouts:
    """The candidates: lines or samples of the grid, or shots."""
    if not request.of_shots:
        return readouts_named(request.recipe.design.encoding, data.grid_shape)
    count = request.count(data.grid_shape[0])
    assert count is not None
    return shot_candidates(request.recipe, request.strategy, data.grid_shape, count, data.n_coils)


def _slice_of_shots(request: DesignRequest, scan: PreparedScan, readouts: Readouts, run: Run) -> MRSlice:
    """The slice as shots measure it: in closed form where that is known, else from the image behind the scan."""
    assert isinstance(readouts, ShotReadouts)
    on_grid = scan.slice_model(0, request.recipe.replacing("design", encoding="lines"))
    known = closed_form_samples(request.source, readouts, on_grid.n_coils, request.recipe, run.seed)
    truth = predictions.truth_or_none(on_grid, scan.reference(0)) if known is None else None
    return shot_slice(on_grid, readouts, np.random.default_rng([run.seed, 1, 1]), truth=truth, known=known)


def concluded(request: DesignRequest, record: Record, designed: Designed, run: Run) -> DesignResult:
    """The image from the lines that a design chose, and what the run came to, without predictions that were checked."""
    recipe, state = designed.recipe, designed.state
    trace, stop = state.trace, request.stop
    unit = designed.slices[0].candidates.unit
    ended = extent.how_it_ended(trace, stop, designed.most, unit)
    if ended and recipe.design.until_error is not None and len(designed.slices) > 1:
        count = len(designed.slices)
        ended += f" (of {min(count, design.MOST_SLICES)} of {count} slices together)"
    if ended:
        run.progress.say(ended)
    overruled = contradicted(trace, unit)
    if overruled:
        run.progress.say(overruled)
    slice_model, warm = design.final_model(designed.slices[0], state, recipe)
    slice_model = replace(slice_model, companions=designed.companions)
    calibrated = designed.slices[0].calibrated(trace.lines)
    signal = design.final_signal(calibrated, state)
    options = reconstruction.InferenceOptions(
        warm_start=warm,
        signal=signal,
        callback=reconstruction.loops_shown(partial(run.progress.show, "reconstructing"), recipe, slice_model),
    )
    method, rng = recipe.reconstruction.method, reconstruction.image_rng(run.seed)
    result = designed.image if method == "mean" else None
    if result is None:
        result = reconstruction.reconstruct_prepared(slice_model, trace.lines, method, recipe, rng, options=options)
    if result.left_out:
        run.progress.say(result.left_out)
    if result.companions is not None:
        run.progress.say(f"other images: {result.companions}")
    known = KnownScan.of(designed.data, designed.scan, calibrated, signal)
    return DesignResult(
        request=request,
        record=record,
        ending=Ending(_status(trace, stop, result.convergence, unit), trace.lines),
        known=known,
        trace=trace,
        ended=ended,
        model=f"phase-aware {recipe.phase.imaginary_ratios[0]:g}"
        if recipe.phase.model == "aware" and warm is not None
        else "",
        images=known.judged(method, result.times(known.image_unit), trace.lines),
        account=predictions.DesignAccount(trace, ()),
    )


def _status(trace: DesignTrace, rule: NamedRule | None, reconstruction: Convergence, unit: str) -> str:
    missed_goal = extent.what_was_missed(trace, rule, unit)
    if missed_goal:
        return missed_goal
    if not reconstruction.converged:
        return f"not converged ({reconstruction.status.value})"
    missed = sum(not step.cost.converged for step in trace.steps)
    return f"not converged ({missed} of {len(trace.steps)} design steps)" if missed else Status.CONVERGED.value
