"""Masks that are learnt from complete scans, for other scans: one mask (`protocol`), or an order of lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from mri_design.design.engine import Amount
from mri_design.design.trace import DesignTrace, StopRule
from mri_design.design.training import (
    LBCS,
    Exchange,
    ExchangeRules,
    OrderTraining,
    ReferenceSlice,
    Refinement,
    TrainedDesign,
    TrainingResidual,
    TrainingRule,
    begin_refinement,
    begin_training,
    refine,
    shared_lines,
    train,
    with_exchanges,
)
from mri_design.errors import InputError, UnknownNameError, UsageError
from mri_design.evaluation.page import Page, worded
from mri_design.evaluation.plots.pictures import Frame, layout_of
from mri_design.evaluation.predictions import DesignAccount
from mri_design.evaluation.run_folder import (
    CHECKPOINT,
    LOCK_NAME,
    PROGRESS_NAME,
    FolderLock,
    RunFolder,
    RunProgress,
    require_same_run,
)
from mri_design.evaluation.tables import Row
from mri_design.experiment import extent
from mri_design.experiment.design import DesignOptions, ImageErrors, design_engine, require_room
from mri_design.experiment.extent import Acquisition
from mri_design.experiment.inputs import ScanSource
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import Image, reconstruct_by_recipe
from mri_design.experiment.regions import NO_REGIONS, Regions, WantedRegions
from mri_design.experiment.stored_designs import load_trained, save_trained
from mri_design.experiment.strategies import (
    ORACLES,
    TRAINING_RULES,
    explained,
    make_strategy,
    strategy_label,
    strategy_named,
)
from mri_design.kinds import KINDS
from mri_design.readouts.base import refusal
from mri_design.runs.design_report import acquisition_facts, design_facts
from mri_design.runs.error_tables import StudyErrors, best_other
from mri_design.runs.image_sections import companion_pictures
from mri_design.runs.known_slice import facts_of_all, knowing_rule, load_images, require_apart
from mri_design.runs.provenance import simulation_summary, tell_calibration
from mri_design.runs.region_report import region_facts
from mri_design.runs.store import Record, Report, Run, carry_out, require_resume
from mri_design.runs.stored_run import Stored, StoredRun
from mri_design.runs.study import Material, Study, StudyRequest, trial_outcome
from mri_design.runs.work import Keep, Work
from mri_design.runs.workers import Workers, design_among
from mri_design.scan.data import Orientation
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.atomic import require_folder_of
from mri_design.status import Status

DEFAULT_STRATEGY = "residual-greedy"
"""Strategy by default."""
PROTOCOL = "protocol"
"""Name of the mask in tables."""
REFINEMENT, TESTED = "exchanges.json", "test-progress.json"
CHECKPOINTS = (CHECKPOINT, REFINEMENT, TESTED)
"""Files that an unfinished protocol leaves in its folder."""


@dataclass(frozen=True, kw_only=True)
class ProtocolRequest(StudyRequest):
    """Request for a mask or, with a ``rule``, for an order of lines.

    Parameters
    ----------
    sources : sequence of ScanSource
        Training inputs: the mask is designed on all their slices together.
    recipe : Recipe
        Start, constraints, inference, and the reconstruction behind every error; its strategy is used if it is not the
        default one for single scans.
    lines : int, optional
        Lines, or samples of a plane, in the end.
    acceleration : float, optional
        Instead of ``lines``: the grid divided by this, rounded.
    rule : TrainingRule, optional
        Learn an order by `training_rule`; the following are those of a mask.
    test : sequence of ScanSource
        Test inputs, of other subjects.
    against : sequence of str
        Strategies to compare with on the test scans; densities are tuned on the training scans.
    swaps : int
        Exchanges of lines to try at the end (`design.training.refine`).
    seeds : int
        Draws of random competitors.
    strategy : str
        Decides which line comes next; by default the recipe's, or ``residual-greedy``, which looks at the truth of the
        training inputs.
    regions : WantedRegions
        What is to be known of every training image that has it, where the recipe has ``until_interval``; ``lines`` are
        then the most.

    Raises
    ------
    UsageError
        For an unknown strategy or an oracle, spokes or spirals, exchanges with a maximum jump or in a plane, or of a
        mask that ends when regions are known, and a rule that tries the samples of a plane one by one.
    """

    lines: int | None = None
    acceleration: float | None = None
    rule: TrainingRule | None = None
    test: Sequence[ScanSource] = ()
    against: Sequence[str] = ("low-pass", "vd-polynomial")
    swaps: int = 0
    seeds: int = 5
    strategy: str = ""
    regions: WantedRegions = NO_REGIONS

    def __post_init__(self) -> None:
        recipe, encoding = self.recipe, self.recipe.design.encoding
        extent.refuse_shots(recipe, "protocol")
        if not self.regions or self.acceleration is not None:
            extent.require_amount(self.lines, self.acceleration, recipe)
        plane = KINDS[encoding].axes != 1
        if self.rule is not None:
            if plane and not isinstance(self.rule, TrainingResidual):
                raise UsageError(
                    f"rule {self.rule.name!r} tries what can be measured one by one, and what a single sample of a "
                    "plane changes is too little to be seen: take residual-greedy"
                )
            return
        every = replace(recipe, design=replace(recipe.design, until_interval=None))
        extent.require_number_only(every, "a protocol has as many lines as are requested, or until regions are known")
        if self.regions and self.swaps:
            raise UsageError("exchanges change the lines by which regions were known: leave out --swaps")
        object.__setattr__(self, "recipe", self.regions.recipe(recipe))
        named = DEFAULT_STRATEGY if recipe.design.strategy == Recipe().design.strategy else recipe.design.strategy
        object.__setattr__(self, "strategy", strategy_named(self.strategy or named, encoding))
        object.__setattr__(self, "against", [strategy_named(name, encoding) for name in self.against])
        for name in (self.strategy, *self.against):
            make_strategy(name, encoding, but=ORACLES)
        if self.strategy in ORACLES:
            raise UsageError(
                f"{self.strategy} is no protocol; mri-design protocol --rule learns from the truth of training scans"
            )
        if self.swaps and plane:
            raise UsageError("an exchange of one sample of a plane changes next to nothing: leave out --swaps")
        if self.swaps and recipe.rules().max_jump is not None:
            raise UsageError("exchanges change the order of lines: leave out --swaps, or the maximum jump")
        _ = self.stop  # refuses what cannot end

    @property
    def stop(self) -> StopRule | None:
        """The rule that ends the mask; it waits for no predictions where the strategy makes none."""
        if not self.regions:
            return None
        strategy = make_strategy(self.strategy, self.recipe.design.encoding)
        rule = extent.stop_rule(self.recipe, strategy)
        return rule if rule is None or strategy.predicts else replace(rule, fewest=0)

    def count(self, size: int) -> int:
        """Lines or samples in the end on a grid of ``size``."""
        return extent.amount_wanted(self.lines, self.acceleration, size)

    def record(self, work: Work) -> Record:
        """See `StudyRequest.recorded`."""
        choices: dict[str, object] = {"lines": self.lines, **self.regions.named}
        if self.acceleration is not None:
            choices["acceleration_wanted"] = self.acceleration
        if self.rule is not None:
            order = {"rule": repr(self.rule), "start": self.recipe.design.start, "recipe": self.recipe.as_settings()}
            return self.recorded("training", work, choices | order)
        mask = {"against": [strategy_label(other) for other in self.against], "swaps": self.swaps, "seeds": self.seeds}
        settings = self.recipe.replacing("design", strategy=strategy_label(self.strategy)).as_settings()
        names = (self.strategy, *self.against)
        return self.recorded("protocol", work, choices | mask | settings, names, test=self.test)


@dataclass(frozen=True, kw_only=True)
class ProtocolResult:
    """Result of a protocol.

    Parameters
    ----------
    study : Study
        The images that the mask was designed on, and it and its competitors on those that it was tried on, if any.
    strategy : str
        That decided which line comes next.
    designed : DesignTrace
        The mask before exchanges, and what was expected of its lines.
    refined : Refinement or None
        Exchanges, where there were any to try.
    orientation : {"ky-rows", "ky-columns"}
        How the first test input, or without any the first training input, lays images.
    regions : Regions, optional
        Those that were to be known, on the training images.
    seen : mapping of int to Image
        The training images that have a region, from the lines of the mask.
    """

    study: Study
    strategy: str
    designed: DesignTrace
    refined: Refinement | None
    orientation: Orientation
    regions: Regions | None = None
    seen: Mapping[int, Image] = field(default_factory=dict)

    @property
    def trace(self) -> DesignTrace:
        """The final mask."""
        return self.designed if self.refined is None else with_exchanges(self.designed, self.refined)

    @property
    def acquisition(self) -> Acquisition | None:
        """The mask in the order of measurement; None where that is as it was chosen."""
        readouts = self.study.training[0].slice_model.candidates
        return extent.in_acquisition_order(self.trace.lines, readouts, self.study.recipe)

    def stored(self) -> StoredRun:
        """The run as its folder has it, without an image."""
        trace, made, readouts = self.trace, self.acquisition, self.study.training[0].slice_model.candidates
        return StoredRun(
            mask=trace.mask().reshape(readouts.shape),
            chosen=trace.lines,
            readouts=readouts.name,
            status=self.status,
            acquired=() if made is None else made.trains,
            trace=trace,
            ended=self.status,
            acceleration=trace.n_lines / len(trace.lines),
        )

    @property
    def status(self) -> str:
        """ "converged", or what did not."""
        missed, refined = sum(not step.converged for step in self.designed.steps), self.refined
        status = [f"{missed} of {len(self.designed.steps)} design steps not converged"] if missed else []
        if refined is not None and refined.unconverged:
            counts = f"{refined.unconverged} of {refined.reconstructions}"
            status.append(f"{counts} reconstructions of exchanges not converged")
        within = self.study.recipe.design.within
        if self.regions is not None and within is not None:
            longest = within.lengths(self.regions.intervals(self.regions.measured(self.seen))).max()
            status += [] if longest <= within.length else [f"regions are not known as well as wanted: {longest:.3g}"]
        tested = self.study.pieces.status
        status += [tested] if tested != Status.CONVERGED.value else []
        return "; ".join(status) or Status.CONVERGED.value

    @cached_property
    def tested(self) -> StudyErrors | None:
        """How wrong the test images are with the mask and with its competitors; None without test scans."""
        return self.study.errors() if self.study.tests else None

    @property
    def image(self) -> ReferenceSlice:
        """The first test image, or the first training image where there is no other."""
        return [*self.study.tests, *self.study.training][0]

    @cached_property
    def shown(self) -> Image:
        """`image` through the mask, computed on first access, with error bars where its method knows them."""
        seen, study = self.image.as_measured.calibrated(self.trace.lines), self.study
        made = reconstruct_by_recipe(seen, self.trace.lines, study.recipe, study.seed, with_std=True)
        return made.times(self.image.unit_of(seen))


def design_protocol(request: ProtocolRequest, work: Work, keep: Keep) -> ProtocolResult:
    """Design one mask on all training slices together, try exchanges, and compare it on other scans.

    It is kept after every line, exchange and error.

    Raises
    ------
    UsageError
        For an image that is used for training and testing, or where what is kept is another run's.
    InputError
        Where an input or what an interrupted run left cannot be used, or grids differ.
    """
    training, orientation = load_images(request.sources, request.recipe, work, request.count)
    tests, of_tests = load_images(request.test, request.recipe, work, request.count)
    require_apart(training, tests)
    readouts = training[0].slice_model.candidates
    lines = request.count(readouts.size)
    if request.lines is None and request.acceleration is None:  # as many as may be measured
        allowed = request.recipe.rules(readouts).allowed(readouts.size)
        lines = int(np.count_nonzero(shared_lines([*training, *tests]) & allowed))
    recipe, calibration = _calibrated(request, [*training, *tests], work, lines)
    strategy = make_strategy(request.strategy, recipe.design.encoding)
    if request.strategy in TRAINING_RULES:
        strategy = knowing_rule(request.strategy, training, recipe, work.seed)
    n_coils = min(image.slice_model.n_coils for image in training)
    require_room(readouts, n_coils, lines, recipe, slices=len(training))
    images: dict[str, Any] = {"tests": tests, "training": training, "recipe": recipe, "seed": work.seed}
    study = Study(**images, strategies=request.against, lines=[lines], seeds=request.seeds)  # refuses other grids
    forced = calibration if KINDS[recipe.design.encoding].centre_first else 0  # a plane's is among the constraints
    plan = extent.DesignPlan.of(strategy, recipe, readouts)
    first = plan.start_lines(shared_lines(training), lines, forced, n_coils)
    regions = _regions(request, training, first)
    looks = ImageErrors(recipe, work.seed, (), regions)
    as_measured = [image.as_measured for image in training]
    engine = design_engine(plan, recipe, extent.design_seed(work.seed))
    keep.begin()
    checkpoint = keep.checkpoint({}, lines, readouts.unit)

    def show(done: int) -> None:
        work.progress.show("designing", done - len(first), lines - len(first))

    with Workers(study, work.jobs, work.executor) as workers:
        if checkpoint is None or not checkpoint.path.exists():
            show(len(first))
        slices = [image.slice_model for image in training]
        options = DesignOptions(
            checkpoint=checkpoint,
            callback=lambda s: show(len(s.trace.lines)),
            stop=request.stop,
            amount=Amount(lines, len(first) + readouts.kind.fewest_tested),
            intervals=None if regions is None else lambda _, state: looks.intervals(as_measured, state),
            closing=regions is not None,
        )
        state = design_among(workers, engine, slices, first, lines, options)
        designed, seen = state.trace, looks.images(as_measured, state)
        refined = _refined(designed, request.swaps, workers, keep, work) if request.swaps else None
        trace = designed if refined is None else with_exchanges(designed, refined)
        study = replace(study, given={PROTOCOL: trace.lines}, lines=[len(trace.lines)])
        if tests:
            study.run(work, keep, workers, TESTED)
    return ProtocolResult(
        study=study,
        strategy=request.strategy,
        designed=designed,
        refined=refined,
        orientation=of_tests if tests else orientation,
        regions=regions,
        seen=seen,
    )


def _regions(request: ProtocolRequest, images: Sequence[ReferenceSlice], start: Sequence[int]) -> Regions | None:
    """The regions on the training images, as their first lines show them; None where none are to be known."""
    within = request.recipe.design.within
    if within is None:
        return None
    placed = [(one.name, one.place if isinstance(one.place, SliceGeometry) else None, *one.number) for one in images]
    found = request.regions.over_each(placed, images[0].slice_model.shape, request.recipe.design.level)
    found.require([one.as_measured for one in images], start, within)
    return found


def _calibrated(
    request: ProtocolRequest, images: Sequence[ReferenceSlice], work: Work, lines: int
) -> tuple[Recipe, int]:
    """The recipe in force, and the lines that coil calibration takes, once they are known to be there."""
    recipe, readouts = request.recipe, images[0].slice_model.candidates
    calibration, source = max(image.calibration_lines for image in images), ""
    if any(image.own_maps is not None for image in images):
        strategy = make_strategy(request.strategy, recipe.design.encoding)
        coils = min(image.slice_model.n_coils for image in images)
        calibration = extent.centre_for_maps(strategy, recipe, lines, calibration, n_coils=coils)
        source = f"the lines of the mask, {calibration} of them at the centre, training scans apart"
    tell_calibration(calibration, lines, recipe, readouts, work.progress, source)
    recipe = extent.with_calibration(recipe, calibration)
    for image in images:
        extent.require_lines(image.slice_model.measured, lines, recipe.rules(readouts), readouts)
    return recipe, calibration


def _refined(trace: DesignTrace, swaps: int, workers: Workers[Study], keep: Keep, work: Work) -> Refinement:
    """The mask after exchanges that lower the mean error of the training images, from where they were interrupted."""
    scans, rules = workers.material.training, workers.material.recipe.rules()
    evaluate = partial(workers.map, trial_outcome)

    def after_exchange(state: Refinement) -> None:
        keep.keep_table(REFINEMENT, asdict(state))
        work.progress.show("exchanging", len(state.exchanges), swaps)

    def parse(stored: dict[str, Any]) -> Refinement:
        exchanges = tuple(Exchange(**exchange) for exchange in stored["exchanges"])
        counts = int(stored["reconstructions"]), int(stored["unconverged"])
        return Refinement(tuple(map(int, stored["lines"])), float(stored["error"]), exchanges, *counts)

    state = keep.table(REFINEMENT, "a protocol's exchanges", parse) or begin_refinement(scans, trace.lines, evaluate)
    kept = ExchangeRules(keep=trace.start, allowed=rules.allowed(trace.n_lines), importance=trace.innovation_energies)
    return refine(scans, state, swaps, evaluate, kept, after_exchange)


def run_protocol_of(request: ProtocolRequest, run: Run) -> Stored:
    """Make a protocol and report in a run's folder; see `carry_out`."""
    record, compute = request.record(run), partial(design_protocol, request, run)
    return carry_out(run, record, compute, report_protocol, checkpoint=CHECKPOINT, resumed="protocol")


def report_protocol(folder: RunFolder, result: ProtocolResult) -> Report:
    """Write mask.npy, lines.csv, exchanges.csv, metrics.csv, and summary and paired tables into the run's folder."""
    study, trace, image, tested = result.study, result.trace, result.image, result.tested
    readouts, asked = study.training[0].slice_model.candidates, strategy_label(result.strategy)
    noise = float(np.mean([image.slice_model.noise_variance for image in study.training]))
    facts = design_facts(folder, DesignAccount(trace), readouts, noise)
    facts |= acquisition_facts(folder, result.acquisition)
    of_all = {place: (image, study.training[place].shown) for place, image in result.seen.items()}
    facts |= region_facts(folder, result.regions, study.recipe.design.within, trace, readouts.kind.counted, of_all)
    found, summary = facts_of_all(study.training, study.tests)
    rows: Sequence[Row] = []
    if tested is not None:
        tested.save(folder)
        found |= tested.facts()
        rows = tested.tables["summary"]
    exchanges = [asdict(tried) for tried in result.refined.exchanges] if result.refined is not None else []
    exchanges = [{"attempt": i, **tried} for i, tried in enumerate(exchanges, 1)]
    if exchanges:
        folder.write_table("exchanges.csv", exchanges)
    rival = best_other(rows, PROTOCOL)
    meanings = {asked: f"{readouts.unit}s {explained(result.strategy)}", **study.words}
    named = [asked, *(rival[:1] if rival else ())]
    mine = next((float(str(row["relative_l2"])) for row in rows if row["strategy"] == PROTOCOL), None)
    counts = len(trace.lines), len(study.training)
    facts |= {
        "result": result,
        "design": study.recipe.design,
        "frame": Frame(layout_of(readouts, result.orientation), image.pixel),
        "companions_of": companion_pictures,
        "mine": mine,
        "rival": rival,
        "meanings": {name: meanings[name] for name in named if name in meanings},
        "exchanges": exchanges,
        "by_posterior": study.rule(result.strategy).needs_posterior and result.strategy not in TRAINING_RULES,
        "strategy": strategy_label(trace.strategy),
        "acceleration": trace.n_lines / len(trace.lines),
        "summary": simulation_summary([image.simulated for image in study.training]) | summary,
    }
    return Report(
        page=Page("protocol", facts),
        found={"start": len(trace.start), **found},
        done=CHECKPOINTS,
        result=replace(result.stored(), verdict=worded("studies", "protocol_verdict", readouts, *counts, mine, rival)),
    )


RULES = ("residual-greedy", "lbcs", "stochastic-lbcs")
START = 4
"""Centre lines an order begins with by default; reconstructions take the image's scale from them."""
STOCHASTIC_LINES, STOCHASTIC_SCANS = 16, 3
"""Lines and scans that stochastic LBCS tries at each step by default."""
UNFINISHED = ".unfinished"
"""Added to the name of the file while the order is being learnt."""


def training_rule(name: str, candidates: int | None = None, scans: int | None = None) -> TrainingRule:
    """The rule called ``name``; ``candidates`` and ``scans`` are what stochastic LBCS tries at each step.

    Raises
    ------
    UsageError
        For an unknown name, or subsets for a rule that takes none.
    """
    if name not in RULES:
        raise UnknownNameError("rule", name, RULES)
    if name == "stochastic-lbcs":
        return LBCS(candidates or STOCHASTIC_LINES, scans or STOCHASTIC_SCANS, name=name)
    if candidates is not None or scans is not None:
        raise UsageError(f"rule {name!r} tries everything; numbers behind a colon belong to stochastic-lbcs")
    return LBCS() if name == "lbcs" else TrainingResidual()


def beginning_of(path: Path) -> Path:
    """The file that an interrupted training leaves next to that of its order."""
    return path.with_name(path.name + UNFINISHED)


@contextmanager
def _only_training(path: Path, progress: RunProgress) -> Iterator[None]:
    """Within this no other training makes the same file; its progress stays only where it is interrupted.

    Raises
    ------
    UsageError
        For links.
    InputError
        For a folder that does not exist, and where another training is making the file.
    """
    require_folder_of(path)
    for file in (path, beginning_of(path)):
        if file.is_symlink():
            raise UsageError(f"{file} is a symbolic link, and nothing is written through links; give another --out")
    lock = FolderLock(path.parent, f".{path.name}{LOCK_NAME}")
    try:
        yield
        progress.remove()
    except BaseException:
        progress.write()
        raise
    finally:
        lock.release()


def _stored_order(path: Path, identity: str, another: str) -> TrainedDesign | None:
    """The order in a file if it is that of this very training; None where there is no file.

    Raises
    ------
    UsageError
        For other people's files, and the order of another training.
    """
    if not path.exists():
        return None
    try:
        design = load_trained(path)
    except InputError as error:
        raise UsageError(f"{path.name} is no trained design; give another --out, or add --overwrite") from error
    require_same_run(path, design.settings.get("identity"), identity, another)
    return design


def run_training_of(
    request: ProtocolRequest,
    path: Path,
    work: Work,
    *,
    overwrite: bool = False,
    command: Sequence[str] = (),
    resume: bool = False,
) -> TrainedDesign:
    """Learn an order and write its file; a finished one stays as it is, and an interrupted one goes on.

    Until it is complete it is kept in `beginning_of` the file, with its inputs and settings.

    Raises
    ------
    UsageError
        Where the file is there already and holds something else, or the beginning of another training stands there.
    InputError
        Where an input cannot be used, or scans are on different grids.
    """
    record, unfinished = request.record(work), beginning_of(path)
    progress = RunProgress(path.with_name(f".{path.name}{PROGRESS_NAME}"), command)
    inputs = {file.name: file.sha256 for file in record.inputs}

    def begun() -> TrainedDesign | None:
        if overwrite:
            unfinished.unlink(missing_ok=True)
            return None
        design = _stored_order(unfinished, record.identity, "the beginning of another training")
        if design is not None:
            require_resume(path.name, "an unfinished training", resume)
        return design

    def keep(design: TrainedDesign, file: Path = unfinished) -> None:
        settings = {**record.settings, "inputs": inputs, **design.settings, "identity": record.identity}
        save_trained(file, replace(design, settings=settings))

    with _only_training(path, progress):
        design = None if overwrite else _stored_order(path, record.identity, "another trained design")
        if design is not None:
            work.progress.say("nothing to do: this training is finished (--overwrite makes it again)")
            return design
        design = _learn_order(request, replace(work, progress=work.progress.also(progress.show)), begun, keep)
        keep(design, path)
        unfinished.unlink(missing_ok=True)
    return design


def _learn_order(
    request: ProtocolRequest,
    work: Work,
    begun: Callable[[], TrainedDesign | None],
    keep: Callable[[TrainedDesign], None],
) -> TrainedDesign:
    """Learn an order on the scans, from where it was interrupted; it is kept after every line."""
    scans, _ = load_images(request.sources, request.recipe, work, request.count)
    readouts = scans[0].slice_model.candidates
    lines = request.count(readouts.size)
    recipe, centre = _start_of_order(request.recipe, scans, lines)
    design = begun()

    def after_line(design: TrainedDesign) -> None:
        keep(design)
        work.progress.show("training", len(design.lines) - len(centre), lines - len(centre))

    assert request.rule is not None
    with Workers(Material(training=scans, recipe=recipe, seed=work.seed), work.jobs, work.executor) as workers:
        training = OrderTraining(
            scans,
            request.rule,
            lines,
            partial(workers.map, trial_outcome),
            seed=work.seed,
            constraints=recipe.rules(readouts),
            block=recipe.design.block_of(readouts) if readouts.thinned else 1,
        )
        if design is None:
            work.progress.show("training", 0, lines - len(centre))
            design = replace(begin_training(training, centre), settings=facts_of_all(scans)[0])
        return train(training, design, after_line)


def _start_of_order(recipe: Recipe, scans: Sequence[ReferenceSlice], lines: int) -> tuple[Recipe, tuple[int, ...]]:
    """The recipe in force, and the lines that an order begins with."""
    readouts, calibration = scans[0].slice_model.candidates, max(scan.calibration_lines for scan in scans)
    start, measured = recipe.design.start, shared_lines(scans)
    if any(scan.own_maps is not None for scan in scans):
        calibration = extent.start_of_growing(recipe, calibration, lines)
    recipe = extent.with_calibration(recipe, calibration)
    rules = recipe.rules(readouts)
    if readouts.thinned:  # the calibration region is among the constraints
        calibration = len(rules.needed(measured))
    first, units = max(start or readouts.start(lines, START), calibration), f"{readouts.unit}s"
    if first > lines:
        got = f"{first} (of which {calibration} for coil calibration)"
        raise refusal(f"start {units}", got, f"at most the number of {units}, {lines}", f"Ask for more {units}.")
    return recipe, rules.start(measured, first, 0 if readouts.thinned else calibration)
