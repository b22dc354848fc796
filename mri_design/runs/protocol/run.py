"""A protocol run: one mask for many slices and subjects, exchanges of its lines, and its errors on other subjects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from mri_design.design.echo_trains import Acquisition
from mri_design.design.trace import DesignTrace
from mri_design.design.training.exchanges import (
    Exchange,
    ExchangeRules,
    Refinement,
    begin_refinement,
    refine,
    with_exchanges,
)
from mri_design.design.trials import Outcome, ReferenceSlice, Trial, shared_lines
from mri_design.errors import InputError, UsageError
from mri_design.evaluation.account import DesignAccount, account_of
from mri_design.evaluation.manifest import InputFile
from mri_design.evaluation.run_folder import require_same_run
from mri_design.evaluation.run_status import CHECKPOINT
from mri_design.evaluation.tables import Row
from mri_design.experiment.checkpoint import Checkpoint
from mri_design.experiment.designing import DesignOptions, require_lines, run_design, start_lines
from mri_design.experiment.ending import in_acquisition_order, require_lines_only, require_number_only
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.slice_choice import ScanSource, source_files
from mri_design.experiment.strategy_names import (
    ORACLES,
    TRAINING_RULES,
    make_strategy,
    strategy_files,
    strategy_label,
)
from mri_design.runs.held_out.comparison import Comparison
from mri_design.runs.held_out.jobs import mask_error
from mri_design.runs.held_out.progress import ComparisonProgress
from mri_design.runs.held_out.tables import paired_table, summary_table
from mri_design.runs.oracles import knowing_rule
from mri_design.runs.resident import keeper_of
from mri_design.runs.run import Ending, Record, Run
from mri_design.runs.scans import load_images, require_apart
from mri_design.runs.training_material import TrainingMaterial, trial_outcome
from mri_design.runs.workers import Workers
from mri_design.scan.io.atomic import write_json
from mri_design.status import Status

DEFAULT_STRATEGY = "residual-greedy"
"""What decides where nobody names a strategy."""
PROTOCOL = "protocol"
"""Name of the mask in tables."""
REFINEMENT, TESTED = "exchanges.json", "test-progress.json"
CHECKPOINTS = (CHECKPOINT, REFINEMENT, TESTED)
"""What an unfinished protocol leaves in its folder."""
Show = Callable[[str, int, int], None]


def save_refinement(path: Path, state: Refinement, identity: str) -> None:
    """Write the state; an older file is replaced in one step or not at all."""
    tried = [[e.removed, e.added, e.error, e.accepted] for e in state.exchanges]
    counts = {"reconstructions": state.reconstructions, "unconverged": state.unconverged}
    write_json(
        path, {"identity": identity, "lines": list(state.lines), "error": state.error, "exchanges": tried} | counts
    )


def load_refinement(path: Path, identity: str) -> Refinement:
    """Read a state back.

    Raises
    ------
    InputError
        For a damaged file, or one of another protocol.
    """
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        stored_identity = stored["identity"]
        exchanges = tuple(Exchange(int(r), int(a), float(e), bool(kept)) for r, a, e, kept in stored["exchanges"])
        lines = tuple(int(line) for line in stored["lines"])
        counts = int(stored["reconstructions"]), int(stored["unconverged"])
        state = Refinement(lines, float(stored["error"]), exchanges, *counts)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            field=path.name, got=f"an unreadable file ({error})", wanted="a protocol's exchanges", cure="Delete it."
        ) from error
    require_same_run(path, stored_identity, identity, "the exchanges of another protocol")
    return state


@dataclass(frozen=True)
class ProtocolRequest:
    """What a protocol is asked for.

    Parameters
    ----------
    sources : sequence of ScanSource
        Training inputs: the mask is designed on all their slices together.
    recipe : Recipe
        Start, inference, and the reconstruction behind every error; not the strategy.
    lines : int
        Lines in the end.
    test : sequence of ScanSource
        Test inputs, of other subjects.
    against : sequence of str
        What to compare with on the test scans; densities are tuned on the training scans.
    swaps : int
        Exchanges of lines to try at the end (`design.training.exchanges.refine`).
    seeds : int
        Draws of random competitors.
    strategy : str
        Decides which line comes next. ``residual-greedy`` looks at the truth of the training inputs.

    Raises
    ------
    UsageError
        For an unknown strategy or an oracle, or exchanges beside a maximum jump.
    """

    sources: Sequence[ScanSource]
    recipe: Recipe
    lines: int
    test: Sequence[ScanSource] = ()
    _: KW_ONLY
    against: Sequence[str] = ("low-pass", "vd-polynomial")
    swaps: int = 0
    seeds: int = 5
    strategy: str = DEFAULT_STRATEGY

    def __post_init__(self) -> None:
        require_lines_only(self.recipe, "protocol")
        require_number_only(self.recipe, "a protocol has as many lines as are asked for")
        for name in (self.strategy, *self.against):
            make_strategy(name)
        if self.strategy in ORACLES:
            raise UsageError(
                f"{self.strategy} is no protocol; mri-design train learns from the truth of training scans"
            )
        if self.swaps and self.recipe.constraints.rules().max_jump is not None:
            raise UsageError("exchanges change the order of lines: leave out --swaps, or the maximum jump")

    def record(self, run: Run) -> Record:
        """What a manifest says about it before anything is computed.

        Raises
        ------
        InputError
            Where a file cannot be read.
        """
        inputs = InputFile.of_all(source_files([*self.sources, *self.test]))
        inputs += InputFile.of_all(strategy_files([self.strategy, *self.against]))
        choices: dict[str, object] = {
            "sources": [source.label for source in self.sources],
            "test": [source.label for source in self.test],
            "against": [strategy_label(other) for other in self.against],
            "lines": self.lines,
            "swaps": self.swaps,
            "seeds": self.seeds,
            "seed": run.seed,
            **self.recipe.replacing("design", strategy=strategy_label(self.strategy)).as_settings(),
        }
        identity = run.identity("protocol", {**choices, "inputs": [file.sha256 for file in inputs]})
        return Record(identity, inputs, choices)


@dataclass(frozen=True)
class HeldOutErrors:
    """Errors on scans that the mask has not seen, its own and its competitors'.

    Parameters
    ----------
    rows : sequence of mappings
        One for each mask, draw and test image; those of the protocol first.
    summary : sequence of mappings
        Their `summary_table`.
    paired : sequence of mappings
        The `paired_table` of the protocol against its competitors; empty without competitors.
    """

    rows: Sequence[Row]
    summary: Sequence[Row]
    paired: Sequence[Row]

    @classmethod
    def of(cls, tested: ComparisonProgress, lines: int) -> HeldOutErrors | None:
        """The errors of a finished test with this many lines; None where nothing was tested."""
        rows: list[Row] = [
            {**row, "strategy": strategy_label(str(row["strategy"]))}
            for _, row in sorted(tested.rows.items(), key=lambda entry: not entry[0].startswith(f"{PROTOCOL}|"))
        ]
        if not rows:
            return None
        names = list(dict.fromkeys(str(row["strategy"]) for row in rows))
        paired = paired_table(rows, [PROTOCOL], names[1:], [lines]) if len(names) > 1 else ()
        return cls(rows, summary_table(rows, names, [lines]), paired)


@dataclass(frozen=True, kw_only=True)
class ProtocolResult:
    """What a protocol came to.

    Parameters
    ----------
    request : ProtocolRequest
        What was asked.
    record : Record
        For the manifest.
    ending : Ending
        Status and lines.
    training, tests : sequence of ReferenceSlice
        What the mask was designed on, and what it was tried on.
    designed : DesignAccount
        The mask before exchanges, and what was expected of its lines.
    account : DesignAccount
        The same of the final mask.
    acquisition : Acquisition or None
        Its lines in the order and echo trains in which they are to be measured; None where that is as they were chosen.
    refined : Refinement or None
        Exchanges, where there were any to try.
    tested : HeldOutErrors or None
        How wrong the test images are; None without test scans.
    """

    request: ProtocolRequest
    record: Record
    ending: Ending
    training: Sequence[ReferenceSlice]
    tests: Sequence[ReferenceSlice]
    designed: DesignAccount
    account: DesignAccount
    acquisition: Acquisition | None
    refined: Refinement | None
    tested: HeldOutErrors | None


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
    recipe, lines, show = request.recipe, request.lines, run.progress.show
    record = request.record(run)
    training, _ = load_images(request.sources, recipe, run)
    tests, _ = load_images(request.test, recipe, run)
    require_apart(training, tests)
    _require_one_grid(training)
    for image in (*training, *tests):
        require_lines(image.slice_model.measured, lines, recipe)
    before = run.finished(record.identity, checkpoint=CHECKPOINT, resumed="protocol")
    if before is not None:
        return before
    strategy = make_strategy(request.strategy)
    if request.strategy in TRAINING_RULES:
        strategy = knowing_rule(request.strategy, training, recipe, run.seed)
    calibration = max(image.calibration_lines for image in (*training, *tests))
    n_coils = min(image.slice_model.n_coils for image in training)
    first = start_lines(shared_lines(training), strategy, lines, recipe, calibration, n_coils)
    run.begin()
    files = {name: run.folder.output_path(name) for name in CHECKPOINTS}
    with Workers(TrainingMaterial(training, recipe, run.seed), run.jobs, run.executor) as workers:
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

        def after_exchange(state: Refinement) -> None:
            save_refinement(files[REFINEMENT], state, record.identity)
            show("exchanging", len(state.exchanges), request.swaps)

        refined = None
        if request.swaps:
            path = files[REFINEMENT]
            begun = load_refinement(path, record.identity) if path.exists() else None
            refined = _refined(designed, request.swaps, workers, begun, after_exchange)
    trace = designed if refined is None else with_exchanges(designed, refined)
    tested = ComparisonProgress.open(files[TESTED], record.identity)
    if tests:
        comparison = Comparison(
            tests=tests,
            strategies=request.against,
            lines=[len(trace.lines)],
            recipe=recipe,
            training=training,
            seeds=request.seeds,
            seed=run.seed,
            jobs=run.jobs,
            executor=run.executor,
        )
        _test(trace.lines, comparison, tested, show)
    ending = Ending(_status(designed, refined, tested), trace.lines)
    return ProtocolResult(
        request=request,
        record=record,
        ending=ending,
        training=training,
        tests=tests,
        designed=account_of(designed, models=recipe.phase.names),
        account=account_of(trace, models=recipe.phase.names),
        acquisition=in_acquisition_order(trace.lines, training[0].slice_model.candidates, recipe),
        refined=refined,
        tested=HeldOutErrors.of(tested, len(trace.lines)),
    )


def protocol_strategy(recipe: Recipe) -> str:
    """The recipe's strategy where it names another than the default one for single scans, else `DEFAULT_STRATEGY`."""
    named = recipe.design.strategy
    return DEFAULT_STRATEGY if named == Recipe().design.strategy else named


def _require_one_grid(training: Sequence[ReferenceSlice]) -> None:
    shapes = sorted({image.slice_model.shape for image in training})
    if len(shapes) > 1:
        raise InputError(
            field="training scans",
            got=f"grids {shapes}",
            wanted="one grid for a shared mask",
            cure="Run one at a time.",
        )


def _refined(
    trace: DesignTrace,
    swaps: int,
    workers: Workers[TrainingMaterial],
    begun: Refinement | None,
    after_exchange: Callable[[Refinement], None],
) -> Refinement:
    """The mask after exchanges that lower the mean error of the training images, from where they ``begun``."""
    scans, rules = workers.material.scans, workers.material.recipe.constraints.rules()

    def evaluate(trials: Sequence[Trial]) -> Iterable[Outcome]:
        return workers.map(trial_outcome, trials)

    state = begun or begin_refinement(scans, trace.lines, evaluate)
    kept = ExchangeRules(keep=trace.start, allowed=rules.allowed(trace.n_lines), importance=trace.innovation_energies)
    return refine(scans, state, swaps, evaluate, kept, after_exchange)


def _test(lines: tuple[int, ...], comparison: Comparison, tested: ComparisonProgress, show: Show) -> None:
    """Errors of the mask and its competitors on the test images; ``tested`` is filled and saved as it goes."""
    tests = comparison.tests
    left = [i for i in range(len(tests)) if f"{PROTOCOL}|{i}" not in tested.rows]
    with comparison.workers() as workers:
        comparison.run_among(workers, tested, show)
        for place, errors in workers.finished(mask_error, [(i, lines) for i in left]):
            i = left[place]
            tested.rows[f"{PROTOCOL}|{i}"] = {
                "strategy": PROTOCOL,
                "lines": len(lines),
                "acceleration": tests[i].slice_model.shape[0] / len(lines),
                "draw": 0,
                "image": tests[i].name,
                **errors,
                "mask_converged": True,
                "converged": errors["reconstruction_converged"],
            }
            tested.save()


def _status(trace: DesignTrace, refined: Refinement | None, tested: ComparisonProgress) -> str:
    missed = sum(not step.cost.converged for step in trace.steps)
    parts = [f"{missed} of {len(trace.steps)} design steps not converged"] if missed else []
    if refined is not None and refined.unconverged:
        parts.append(f"{refined.unconverged} of {refined.reconstructions} reconstructions of exchanges not converged")
    if tested.status != Status.CONVERGED.value:
        parts.append(tested.status)
    return "; ".join(parts) or Status.CONVERGED.value
