"""`protocol`: one mask for many slices and subjects, exchanges of its lines, and its errors on other subjects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mri_design.design.echo_trains import Acquisition
from mri_design.design.trace import DesignTrace
from mri_design.design.training import Exchange, ExchangeRules, Refinement, begin_refinement, refine, with_exchanges
from mri_design.design.trials import Outcome, ReferenceSlice, Trial, shared_lines
from mri_design.errors import UsageError
from mri_design.evaluation.page import FirstScreen, ReportTable, Section, sentence
from mri_design.evaluation.plots.panels import Frame
from mri_design.evaluation.predictions import DesignAccount
from mri_design.evaluation.run_folder import CHECKPOINT, read_kept
from mri_design.experiment import extent
from mri_design.experiment.design import DesignOptions, require_room, run_design
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import Reconstruction, reconstruct_by_recipe
from mri_design.experiment.sources import ScanSource
from mri_design.experiment.stored_designs import Checkpoint
from mri_design.experiment.strategies import (
    ORACLES,
    TRAINING_RULES,
    explained,
    make_strategy,
    strategy_label,
    strategy_named,
)
from mri_design.runs import scan_facts
from mri_design.runs.design.report import save_acquisition, save_design
from mri_design.runs.error_tables import StudyErrors, best_other
from mri_design.runs.image_sections import (
    companion_sections,
    facts_of,
    first_row,
    layout_of,
    measured_text,
    reading,
)
from mri_design.runs.resident import keeper_of
from mri_design.runs.run import Ending, Record, Run, Work
from mri_design.runs.study import (
    Material,
    Show,
    Study,
    StudyProgress,
    StudyRequest,
    trial_outcome,
)
from mri_design.runs.workers import Workers
from mri_design.scan.data import Orientation
from mri_design.scan.io.atomic import write_json
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
        if self.swaps and self.recipe.design.encoding == "plane":
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
    ending : Ending
        Status and lines.
    training, tests : sequence of ReferenceSlice
        Images that the mask was designed on, and those that it was tried on.
    account : DesignAccount
        The final mask, and what was expected of its lines.
    acquisition : Acquisition or None
        Its lines in the order and echo trains in which they are to be measured; None where that is as they were chosen.
    refined : Refinement or None
        Exchanges, where there were any to try.
    tested : StudyErrors or None
        How wrong the test images are with the mask and with its competitors; None without test scans.
    shown : Reconstruction or None
        The first test image through the mask, or the first training image where there is no other, with error bars;
        None where nobody wants to look.
    orientation : {"ky-rows", "ky-columns"}
        How its input lays images.
    words : mapping of str to str
        What the competitors choose.
    """

    request: ProtocolRequest
    record: Record
    ending: Ending
    training: Sequence[ReferenceSlice]
    tests: Sequence[ReferenceSlice]
    account: DesignAccount
    acquisition: Acquisition | None
    refined: Refinement | None
    tested: StudyErrors | None
    shown: Reconstruction | None
    orientation: Orientation
    words: Mapping[str, str]


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
    forced = calibration if recipe.design.encoding == "lines" else 0  # a plane's is among the constraints
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
    return ProtocolResult(
        request=request,
        record=record,
        ending=Ending(_status(designed, refined, tested), trace.lines),
        training=training,
        tests=tests,
        account=DesignAccount(trace),
        acquisition=extent.in_acquisition_order(trace.lines, readouts, recipe),
        refined=refined,
        tested=study.errors(tested) if study else None,
        shown=shown,
        orientation=of_tests if tests else orientation,
        words=study.words if study else {},
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

    def evaluate(trials: Sequence[Trial]) -> Iterable[Outcome]:
        return workers.map(trial_outcome, trials)

    def after_exchange(state: Refinement) -> None:
        write_json(path, {"identity": identity, **asdict(state)})
        show("exchanging", len(state.exchanges), swaps)

    begun = path.exists() and load_refinement(path, identity)
    state = begun or begin_refinement(scans, trace.lines, evaluate)
    kept = ExchangeRules(keep=trace.start, allowed=rules.allowed(trace.n_lines), importance=trace.innovation_energies)
    return refine(scans, state, swaps, evaluate, kept, after_exchange)


def load_refinement(path: Path, identity: str) -> Refinement:
    """Read back a state that was written as JSON; raises as `read_kept`."""

    def parse(stored: dict[str, Any]) -> Refinement:
        exchanges = tuple(Exchange(**exchange) for exchange in stored["exchanges"])
        counts = int(stored["reconstructions"]), int(stored["unconverged"])
        return Refinement(tuple(map(int, stored["lines"])), float(stored["error"]), exchanges, *counts)

    return read_kept(path, identity, "a protocol's exchanges", "the exchanges of another protocol", parse)


def _status(trace: DesignTrace, refined: Refinement | None, tested: StudyProgress) -> str:
    missed = sum(not step.cost.converged for step in trace.steps)
    parts = [f"{missed} of {len(trace.steps)} design steps not converged"] if missed else []
    if refined is not None and refined.unconverged:
        parts.append(f"{refined.unconverged} of {refined.reconstructions} reconstructions of exchanges not converged")
    if tested.status != Status.CONVERGED.value:
        parts.append(tested.status)
    return "; ".join(parts) or Status.CONVERGED.value


def report_protocol(run: Run, result: ProtocolResult | Ending) -> Ending:
    """Write mask.npy, lines.csv, exchanges.csv, metrics.csv, summary and paired tables, manifest and page.

    A protocol that was finished before stays as it is.
    """
    if isinstance(result, Ending):
        return result
    folder, trace, training, recipe = run.folder, result.account.trace, result.training, result.request.recipe
    readouts = training[0].slice_model.candidates
    noise = float(np.mean([image.slice_model.noise_variance for image in training]))
    mask = save_design(folder, result.account, readouts, noise)
    acquisition = save_acquisition(folder, result.acquisition, recipe)
    facts, told = scan_facts.facts_of_all(training, result.tests)
    tested = list[Section]()
    if result.tested is not None:
        result.tested.save(folder)
        facts |= result.tested.facts()
        levels = [image.noise for image in result.tests]
        tested = [Section("On other scans", result.tested.blocks(result.words, levels))]
    tried = () if result.refined is None else result.refined.exchanges
    rows = [
        {"attempt": i, "removed": e.removed, "added": e.added, "error": e.error, "accepted": e.accepted}
        for i, e in enumerate(tried, 1)
    ]
    refined = list[Section]()
    if rows:
        folder.write_table("exchanges.csv", rows)
        refined = [Section("Exchanges", [ReportTable(rows, sentence("exchanges_table"), {"error": ".5f"})])]
    sections = [*tested, *mask[:1], *acquisition, *refined, *mask[1:]]
    if result.shown is not None:
        frame = Frame(layout_of(readouts, result.orientation), [*result.tests, *training][0].pixel)
        sections += companion_sections(folder, result.shown, frame)
    names = [image.name for image in training]
    summary: dict[str, object] = {
        f"{readouts.unit}s": f"{len(trace.lines)} of {trace.n_lines}",
        "acceleration": trace.n_lines / len(trace.lines),
        f"start {readouts.unit}s": len(trace.start),
        "strategy": strategy_label(trace.strategy),
        "training images": f"{len(names)}: {', '.join(names)}",
        "test images": len(result.tests),
        **scan_facts.simulation_summary([image.simulated for image in training]),
        **told,
    }
    record = replace(result.record, settings={**result.record.settings, "start": len(trace.start), **facts})
    title = "One mask for many scans"
    return run.finish(result.ending, record, title, lambda: _first_screen(result), summary, sections, CHECKPOINTS)


def _first_screen(result: ProtocolResult) -> FirstScreen:
    """What the mask came to, and an image through it."""
    trace, shown = result.account.trace, result.shown
    assert shown is not None
    image = [*result.tests, *result.training][0]
    readouts, strategy = image.slice_model.candidates, result.request.strategy
    rows = [] if result.tested is None else result.tested.tables["summary"]
    mine = next((float(str(row["relative_l2"])) for row in rows if row["strategy"] == PROTOCOL), None)
    rival = best_other(rows, PROTOCOL)
    words = {strategy_label(strategy): f"{readouts.unit}s {explained(strategy)}", **result.words}
    named = [strategy_label(strategy), *([rival[0]] if rival else [])]
    acceleration, role = trace.n_lines / len(trace.lines), "test" if result.tests else "training"
    return FirstScreen(
        sentence("protocol_verdict", measured_text(readouts, len(trace.lines)), len(result.training), mine, rival),
        first_row(
            readouts,
            trace.mask().reshape(readouts.shape),
            shown,
            Frame(layout_of(readouts, result.orientation), image.pixel),
        ),
        facts_of(readouts, image.pixel, image.slice_model.n_coils, acceleration, f"{role} image {image.name}"),
        {name: words[name] for name in named if name in words},
        reading("error", "error_bars", "acceleration", "arrays_of_protocol"),
    )
