"""Masks that are learnt from scans whose truth is known, for others: one for all (`protocol`), an order (`train`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mri_design.design.trace import DesignTrace
from mri_design.design.training import (
    LBCS,
    Exchange,
    ExchangeRules,
    OrderTraining,
    Refinement,
    TrainedDesign,
    TrainingRule,
    begin_refinement,
    begin_training,
    refine,
    train,
    with_exchanges,
)
from mri_design.design.trials import ReferenceSlice, TrainingResidual, shared_lines
from mri_design.errors import InputError, UnknownNameError, UsageError
from mri_design.evaluation.page import FirstScreen, ReportTable, Section, sentence
from mri_design.evaluation.plots.panels import Frame
from mri_design.evaluation.predictions import DesignAccount
from mri_design.evaluation.run_folder import (
    CHECKPOINT,
    LOCK_NAME,
    PROGRESS_NAME,
    FolderLock,
    ProgressFile,
    read_kept,
    require_same_run,
)
from mri_design.experiment import extent
from mri_design.experiment.design import DesignOptions, require_room, run_design
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import Image, reconstruct_by_recipe
from mri_design.experiment.sources import ScanSource
from mri_design.experiment.stored_designs import Checkpoint, load_trained, save_trained
from mri_design.experiment.strategies import (
    ORACLES,
    TRAINING_RULES,
    explained,
    make_strategy,
    strategy_label,
    strategy_named,
)
from mri_design.kinds import KINDS
from mri_design.runs import scan_facts
from mri_design.runs.design.report import save_acquisition, save_design
from mri_design.runs.error_tables import StudyErrors, best_other
from mri_design.runs.image_sections import companion_sections, facts_of, first_row, layout_of, measured_text, reading
from mri_design.runs.resident import keeper_of
from mri_design.runs.store import Ending, Record, Run, require_resume
from mri_design.runs.study import Material, Show, Study, StudyProgress, StudyRequest, trial_outcome
from mri_design.runs.work import Work
from mri_design.runs.workers import Workers
from mri_design.scan.data import Orientation
from mri_design.scan.io.atomic import require_folder_of, write_json
from mri_design.status import Status

DEFAULT_STRATEGY = "residual-greedy"
"""Strategy where nobody names one."""
PROTOCOL = "protocol"
"""Name of the mask in tables."""
REFINEMENT, TESTED = "exchanges.json", "test-progress.json"
CHECKPOINTS = (CHECKPOINT, REFINEMENT, TESTED)
"""Files that an unfinished protocol leaves in its folder."""


@dataclass(frozen=True, kw_only=True)
class ProtocolRequest(StudyRequest):
    """Request for a protocol.

    Parameters
    ----------
    sources : sequence of ScanSource
        Training inputs: the mask is designed on all their slices together.
    recipe : Recipe
        Start, inference, and the reconstruction behind every error; not the strategy.
    lines : int, optional
        Lines, or samples of a plane, in the end.
    acceleration : float, optional
        In their place: the grid divided by this, rounded.
    test : sequence of ScanSource
        Test inputs, of other subjects.
    against : sequence of str
        Strategies to compare with on the test scans; densities are tuned on the training scans.
    swaps : int
        Exchanges of lines to try at the end (`design.training.refine`).
    seeds : int
        Draws of random competitors.
    strategy : str
        Decides which line comes next. ``residual-greedy`` looks at the truth of the training inputs.

    Raises
    ------
    UsageError
        For an unknown strategy or an oracle, spokes or spirals, or exchanges beside a maximum jump or in a plane.
    """

    lines: int | None = None
    acceleration: float | None = None
    test: Sequence[ScanSource] = ()
    against: Sequence[str] = ("low-pass", "vd-polynomial")
    swaps: int = 0
    seeds: int = 5
    strategy: str = DEFAULT_STRATEGY

    def __post_init__(self) -> None:
        extent.refuse_shots(self.recipe, "protocol")
        extent.require_number_only(self.recipe, "a protocol has as many lines as are asked for")
        extent.require_amount(self.lines, self.acceleration, self.recipe)
        encoding = self.recipe.design.encoding
        object.__setattr__(self, "strategy", strategy_named(self.strategy, encoding))
        object.__setattr__(self, "against", [strategy_named(name, encoding) for name in self.against])
        for name in (self.strategy, *self.against):
            make_strategy(name, encoding, but=ORACLES)
        if self.strategy in ORACLES:
            raise UsageError(
                f"{self.strategy} is no protocol; mri-design train learns from the truth of training scans"
            )
        if self.swaps and KINDS[self.recipe.design.encoding].axes != 1:
            raise UsageError("an exchange of one sample of a plane changes next to nothing: leave out --swaps")
        if self.swaps and self.recipe.constraints.rules().max_jump is not None:
            raise UsageError("exchanges change the order of lines: leave out --swaps, or the maximum jump")

    def count(self, size: int) -> int:
        """Lines or samples in the end on a grid of ``size``."""
        return extent.amount_wanted(self.lines, self.acceleration, size)

    def record(self, work: Work) -> Record:
        """See `StudyRequest.recorded`."""
        choices = {
            "against": [strategy_label(other) for other in self.against],
            "lines": self.lines,
            **({} if self.acceleration is None else {"acceleration_wanted": self.acceleration}),
            "swaps": self.swaps,
            "seeds": self.seeds,
            **self.recipe.replacing("design", strategy=strategy_label(self.strategy)).as_settings(),
        }
        return self.recorded("protocol", work, choices, (self.strategy, *self.against), test=self.test)


@dataclass(frozen=True, kw_only=True)
class ProtocolResult:
    """Result of a protocol.

    Parameters
    ----------
    request : ProtocolRequest
        Its request.
    record : Record
        For the manifest.
    status : str
        "converged", or what did not.
    training, tests : sequence of ReferenceSlice
        Images that the mask was designed on, and those that it was tried on.
    trace : DesignTrace
        The final mask, and what was expected of its lines.
    refined : Refinement or None
        Exchanges, where there were any to try.
    tested : StudyErrors or None
        How wrong the test images are with the mask and with its competitors; None without test scans.
    words : mapping of str to str
        What the competitors choose.
    shown : Image or None
        The first test image through the mask, or the first training image where there is no other, with error bars;
        None where nobody wants to look.
    orientation : {"ky-rows", "ky-columns"}
        How its input lays images.
    """

    request: ProtocolRequest
    record: Record
    status: str
    training: Sequence[ReferenceSlice]
    tests: Sequence[ReferenceSlice]
    trace: DesignTrace
    refined: Refinement | None
    tested: StudyErrors | None
    words: Mapping[str, str]
    shown: Image | None
    orientation: Orientation


def design_protocol(request: ProtocolRequest, run: Run) -> ProtocolResult | Ending:
    """Design one mask on all training slices together, try exchanges, and compare it on other scans.

    Checkpoints in the run's folder are written after every line, exchange and error.

    Returns
    -------
    ProtocolResult or Ending
        An `Ending` where the run's folder holds this very protocol, finished, and the run was to resume it.

    Raises
    ------
    UsageError
        For an image that is used for training and testing, an unfinished run without ``run.resume``, or another run's
        folder.
    InputError
        Where an input or what an interrupted run left cannot be used, or grids differ.
    """
    recipe, show = request.recipe, run.progress.show
    record = request.record(run)
    training, orientation = scan_facts.load_images(request.sources, recipe, run, request.count)
    tests, of_tests = scan_facts.load_images(request.test, recipe, run, request.count)
    scan_facts.require_apart(training, tests)
    measurable, readouts = shared_lines(training), training[0].slice_model.candidates
    lines = request.count(readouts.size)
    calibration = max(image.calibration_lines for image in (*training, *tests))
    strategy = make_strategy(request.strategy, recipe.design.encoding)
    growing = any(image.own_maps is not None for image in (*training, *tests))
    if growing:
        calibration = extent.centre_for_maps(strategy, recipe, lines, calibration)
    told = f"the lines of the mask, {calibration} of them at the centre, training scans apart" if growing else ""
    scan_facts.tell_calibration(calibration, lines, recipe, readouts, run.progress, told)
    recipe = extent.with_calibration(recipe, calibration)
    for image in (*training, *tests):
        extent.require_lines(image.slice_model.measured, lines, recipe, readouts)
    n_coils = min(image.slice_model.n_coils for image in training)
    require_room(readouts, n_coils, lines, recipe, slices=len(training))
    study = tests and Study(
        tests=tests,
        training=training,
        recipe=recipe,
        seed=run.seed,
        strategies=request.against,
        lines=[lines],
        seeds=request.seeds,
    )
    before = run.finished(record.identity, checkpoint=CHECKPOINT, resumed="protocol")
    if before is not None:
        return before
    if request.strategy in TRAINING_RULES:
        strategy = scan_facts.knowing_rule(request.strategy, training, recipe, run.seed)
    forced = calibration if KINDS[recipe.design.encoding].centre_first else 0  # a plane's is among the constraints
    first = extent.start_lines(measurable, strategy, lines, recipe, forced, n_coils, readouts)
    run.begin()
    files = {name: run.folder.output_path(name) for name in CHECKPOINTS}
    material = Material(tests=tests, training=training, recipe=recipe, seed=run.seed)
    with Workers(material, run.jobs, run.executor) as workers:
        if not files[CHECKPOINT].exists():
            show("designing", 0, lines - len(first))
        with keeper_of(workers, len(training)) as keeper:
            designed = run_design(
                [image.slice_model for image in training],
                strategy,
                lines,
                recipe,
                seed=run.seed,
                start=first,
                options=DesignOptions(
                    checkpoint=Checkpoint(files[CHECKPOINT], record.identity),
                    callback=lambda s: show("designing", len(s.trace.lines) - len(first), lines - len(first)),
                    keeper=keeper,
                ),
            ).trace
        trace, refined = designed, None
        if request.swaps:
            refined = _refined(designed, request.swaps, workers, files[REFINEMENT], record.identity, show)
            trace = with_exchanges(designed, refined)
        tested = StudyProgress.open(files[TESTED], record.identity)
        if study:
            study = replace(study, given={PROTOCOL: trace.lines})
            study.run(tested, run, workers)
    shown, image = None, [*tests, *training][0]
    if run.folder.reported:  # with error bars where its method knows them
        seen = image.as_measured.calibrated(trace.lines)
        shown = reconstruct_by_recipe(seen, trace.lines, recipe, run.seed, with_std=True).times(image.unit_of(seen))
    missed = sum(not step.cost.converged for step in designed.steps)
    status = [f"{missed} of {len(designed.steps)} design steps not converged"] if missed else []
    if refined is not None and refined.unconverged:
        status.append(f"{refined.unconverged} of {refined.reconstructions} reconstructions of exchanges not converged")
    status += [tested.status] if tested.status != Status.CONVERGED.value else []
    return ProtocolResult(
        request=request,
        record=record,
        status="; ".join(status) or Status.CONVERGED.value,
        training=training,
        tests=tests,
        trace=trace,
        refined=refined,
        tested=study.errors(tested) if study else None,
        words=study.words if study else {},
        shown=shown,
        orientation=of_tests if tests else orientation,
    )


def protocol_strategy(recipe: Recipe) -> str:
    """The recipe's strategy where it names another than the default one for single scans, else `DEFAULT_STRATEGY`."""
    named = recipe.design.strategy
    return DEFAULT_STRATEGY if named == Recipe().design.strategy else named


def _refined(
    trace: DesignTrace, swaps: int, workers: Workers[Material], path: Path, identity: str, show: Show
) -> Refinement:
    """The mask after exchanges that lower the mean error of the training images, from where they were interrupted."""
    scans, rules = workers.material.training, workers.material.recipe.constraints.rules()
    evaluate = partial(workers.map, trial_outcome)

    def after_exchange(state: Refinement) -> None:
        write_json(path, {"identity": identity, **asdict(state)})
        show("exchanging", len(state.exchanges), swaps)

    def parse(stored: dict[str, Any]) -> Refinement:
        exchanges = tuple(Exchange(**exchange) for exchange in stored["exchanges"])
        counts = int(stored["reconstructions"]), int(stored["unconverged"])
        return Refinement(tuple(map(int, stored["lines"])), float(stored["error"]), exchanges, *counts)

    if path.exists():
        state = read_kept(path, identity, "a protocol's exchanges", "the exchanges of another protocol", parse)
    else:
        state = begin_refinement(scans, trace.lines, evaluate)
    kept = ExchangeRules(keep=trace.start, allowed=rules.allowed(trace.n_lines), importance=trace.innovation_energies)
    return refine(scans, state, swaps, evaluate, kept, after_exchange)


def report_protocol(run: Run, result: ProtocolResult | Ending) -> Ending:
    """Write mask.npy, lines.csv, exchanges.csv, metrics.csv, summary and paired tables, manifest and page.

    A protocol that was finished before stays as it is.
    """
    if isinstance(result, Ending):
        return result
    folder, trace, training, recipe = run.folder, result.trace, result.training, result.request.recipe
    readouts, image, tested = training[0].slice_model.candidates, [*result.tests, *training][0], result.tested
    noise = float(np.mean([image.slice_model.noise_variance for image in training]))
    mask = save_design(folder, DesignAccount(trace), readouts, noise)
    acquisition = save_acquisition(folder, extent.in_acquisition_order(trace.lines, readouts, recipe), recipe)
    facts, told = scan_facts.facts_of_all(training, result.tests)
    sections = [*mask[:1], *acquisition]
    if tested is not None:
        tested.save(folder)
        facts |= tested.facts()
        levels = [image.noise for image in result.tests]
        sections.insert(0, Section("On other scans", tested.blocks(result.words, levels)))
    if result.refined is not None and result.refined.exchanges:
        rows = [{"attempt": i, **asdict(tried)} for i, tried in enumerate(result.refined.exchanges, 1)]
        folder.write_table("exchanges.csv", rows)
        table = ReportTable(rows, sentence("exchanges_table"), {"error": ".5f"})
        sections.append(Section("Exchanges", [table]))
    sections += mask[1:]
    frame = Frame(layout_of(readouts, result.orientation), image.pixel)
    if result.shown is not None:
        sections += companion_sections(folder, result.shown, frame)
    names, strategy = [image.name for image in training], strategy_label(trace.strategy)
    acceleration = trace.n_lines / len(trace.lines)
    summary: dict[str, object] = {
        f"{readouts.unit}s": f"{len(trace.lines)} of {trace.n_lines}",
        "acceleration": acceleration,
        f"start {readouts.unit}s": len(trace.start),
        "strategy": strategy,
        "training images": f"{len(names)}: {', '.join(names)}",
        "test images": len(result.tests),
        **scan_facts.simulation_summary([image.simulated for image in training]),
        **told,
    }

    def screen() -> FirstScreen:
        """What the mask came to, and an image through it."""
        assert result.shown is not None
        rows = [] if tested is None else tested.tables["summary"]
        mine = next((float(str(row["relative_l2"])) for row in rows if row["strategy"] == PROTOCOL), None)
        rival, asked = best_other(rows, PROTOCOL), strategy_label(result.request.strategy)
        words = {asked: f"{readouts.unit}s {explained(result.request.strategy)}", **result.words}
        named, role = [asked, *(rival[:1] if rival else ())], "test" if result.tests else "training"
        return FirstScreen(
            sentence("protocol_verdict", measured_text(readouts, len(trace.lines)), len(training), mine, rival),
            first_row(readouts, trace.mask().reshape(readouts.shape), result.shown, frame),
            facts_of(readouts, image.pixel, image.slice_model.n_coils, acceleration, f"{role} image {image.name}"),
            {name: words[name] for name in named if name in words},
            reading("error", "error_bars", "acceleration", "arrays_of_protocol"),
        )

    record = replace(result.record, settings={**result.record.settings, "start": len(trace.start), **facts})
    ending = Ending(result.status, trace.lines)
    return run.finish(ending, record, "One mask for many scans", screen, summary, sections, CHECKPOINTS)


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
        raise UsageError(f"rule {name!r} tries everything; --candidates and --scans belong to stochastic-lbcs")
    return LBCS() if name == "lbcs" else TrainingResidual()


@dataclass(frozen=True, kw_only=True)
class TrainingRequest(StudyRequest):
    """Request for a training.

    Parameters
    ----------
    sources : sequence of ScanSource
        Training inputs.
    recipe : Recipe
        Reconstruction, simulation, calibration, and what the sequence asks of the lines.
    rule : TrainingRule
        See `training_rule`.
    lines : int, optional
        Lines, or samples of a plane, in the end.
    acceleration : float, optional
        In their place: the grid divided by this, rounded.
    start : int, optional
        How many around DC to begin with: four lines, and no fewer than coil calibration took; or a 128th of a plane.

    Raises
    ------
    UsageError
        For spokes and spirals, and in a plane for a rule that tries candidates one by one.
    """

    rule: TrainingRule
    lines: int | None = None
    acceleration: float | None = None
    start: int | None = None

    def __post_init__(self) -> None:
        extent.refuse_shots(self.recipe, "train")
        extent.require_amount(self.lines, self.acceleration, self.recipe)
        if KINDS[self.recipe.design.encoding].axes != 1 and not isinstance(self.rule, TrainingResidual):
            raise UsageError(
                f"rule {self.rule.name!r} tries what can be measured one by one, and what a single sample of a plane "
                "changes is too little to tell: take residual-greedy"
            )

    def count(self, size: int) -> int:
        """Lines or samples in the end on a grid of ``size``."""
        return extent.amount_wanted(self.lines, self.acceleration, size)

    def record(self, work: Work) -> Record:
        """See `StudyRequest.recorded`."""
        choices = {
            "rule": repr(self.rule),
            "lines": self.lines,
            **({} if self.acceleration is None else {"acceleration_wanted": self.acceleration}),
            "start": self.start,
            "recipe": self.recipe.as_settings(),
        }
        return self.recorded("training", work, choices)


@dataclass(frozen=True)
class OrderFile:
    """Where an order goes.

    Parameters
    ----------
    path : Path
        The file; beside it stands NAME.unfinished until the order is complete.
    overwrite : bool
        Whether another file at ``path``, or the beginning of another training, may be replaced.
    command : sequence of str
        The arguments of the training, for those who look into the folder while it lasts.
    resume : bool
        Whether to go on from the beginning that an interrupted training left.
    """

    path: Path
    overwrite: bool = False
    command: Sequence[str] = ()
    resume: bool = False

    @property
    def beginning(self) -> Path:
        """The file that an interrupted training leaves."""
        return self.path.with_name(self.path.name + UNFINISHED)

    def finished(self, identity: str) -> TrainedDesign | None:
        """The order of this very training, where it is complete; None too where what is there may be overwritten.

        Raises
        ------
        UsageError
            For links, other people's files, and another training's order.
        InputError
            For a folder that does not exist.
        """
        require_folder_of(self.path)
        for file in (self.path, self.beginning):
            if file.is_symlink():
                raise UsageError(f"{file} is a symbolic link, and nothing is written through links; give another --out")
            if file.exists() and not self.overwrite:
                try:
                    load_trained(file)
                except InputError as error:
                    raise UsageError(
                        f"{file.name} is no trained design; give another --out, or add --overwrite"
                    ) from error
        return None if self.overwrite else self._stored(self.path, identity, "another trained design")

    @contextmanager
    def begun(self) -> Iterator[ProgressFile]:
        """Begin anew where that was asked for; a finished order stays until the next.

        Entered once everything that can be refused has been. Within it no other training makes the same file.

        Raises
        ------
        InputError
            Where another training is making the file.
        UsageError
            For the beginning of a training without ``resume``.
        """
        lock = FolderLock(self.path.parent, f".{self.path.name}{LOCK_NAME}")
        try:
            if self.overwrite:
                self.beginning.unlink(missing_ok=True)
            elif self.beginning.exists():
                require_resume(self.path.name, "an unfinished training", self.resume)
            progress = ProgressFile(self.path.with_name(f".{self.path.name}{PROGRESS_NAME}"), self.command)
            try:
                yield progress
            except BaseException:
                progress.write()
                raise
            progress.remove()
        finally:
            lock.release()

    def unfinished(self, identity: str) -> TrainedDesign | None:
        """The beginning of this very training; None where there is none.

        Raises
        ------
        UsageError
            Where it is the beginning of another one.
        """
        return self._stored(self.beginning, identity, "the beginning of another training")

    def _stored(self, path: Path, identity: str, another: str) -> TrainedDesign | None:
        if not path.exists():
            return None
        design = load_trained(path)
        require_same_run(path, design.settings.get("identity"), identity, another)
        return design


def learn_order(request: TrainingRequest, file: OrderFile, work: Work) -> Ending:
    """Learn an order on the scans; an interrupted training goes on where it stopped.

    The beginning of the order is kept beside the file after every line, and goes when the order is complete. Where the
    file holds this very order, finished, nothing is done.

    Raises
    ------
    UsageError
        Where the file is there already and holds something else, or the beginning of another training stands there.
    InputError
        Where an input cannot be used, or scans are on different grids.
    """
    record, recipe = request.record(work), request.recipe
    finished = file.finished(record.identity)
    if finished is not None:
        work.progress.say("nothing to do: this training is finished (--overwrite makes it again)")
        return order_ending(finished)
    scans, _ = scan_facts.load_images(request.sources, recipe, work, request.count)
    readouts = scans[0].slice_model.candidates
    lines = request.count(readouts.size)
    calibration = max(scan.calibration_lines for scan in scans)
    if any(scan.own_maps is not None for scan in scans):
        calibration = extent.start_of_growing(recipe, calibration, lines)
    recipe = extent.with_calibration(recipe, calibration)
    rules = recipe.constraints.rules(readouts)
    if readouts.thinned:  # the calibration region is among the constraints
        calibration = len(rules.needed(shared_lines(scans)))
    first = max(request.start or readouts.start(lines, START), calibration)
    if first > lines:
        raise InputError(
            field=f"start {readouts.unit}s",
            got=f"{first} (of which {calibration} for coil calibration)",
            wanted=f"at most the number of {readouts.unit}s, {lines}",
            cure=f"Ask for more {readouts.unit}s.",
        )
    centre = rules.start(shared_lines(scans), first, 0 if readouts.thinned else calibration)

    with (
        file.begun() as kept,
        Workers(Material(training=scans, recipe=recipe, seed=work.seed), work.jobs, work.executor) as workers,
    ):
        show = work.progress.also(kept.show).show

        def after_line(design: TrainedDesign) -> None:
            save_trained(file.beginning, design)
            show("training", len(design.lines) - len(centre), lines - len(centre))

        block = recipe.design.block_of(readouts) if readouts.thinned else 1
        evaluate = partial(workers.map, trial_outcome)
        training = OrderTraining(scans, request.rule, lines, evaluate, seed=work.seed, constraints=rules, block=block)
        design = file.unfinished(record.identity)
        if design is None:
            show("training", 0, lines - len(centre))
            begun = begin_training(training, centre)
            facts, _ = scan_facts.facts_of_all(scans)
            inputs = {file.name: file.sha256 for file in record.inputs}
            settings = {**record.settings, "inputs": inputs, **facts, "identity": record.identity}
            design = replace(begun, settings=settings)
        design = train(training, design, after_line)
        save_trained(file.path, design)
        file.beginning.unlink(missing_ok=True)
    return order_ending(design)


def order_ending(design: TrainedDesign) -> Ending:
    """How the training of an order ended: converged, or how many of its reconstructions did not."""
    if not design.unconverged:
        return Ending(Status.CONVERGED.value, design.lines)
    said = f"{design.unconverged} of {design.reconstructions} reconstructions not converged"
    return Ending(said, design.lines)
