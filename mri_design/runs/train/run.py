"""A training run: a line order is learnt from scans whose truth is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mri_design.design.other_scans.trained_design import TrainedDesign
from mri_design.design.training.rules import LBCS, OrderTraining, ResidualGreedy, TrainingRule, begin_training, train
from mri_design.design.trials import Outcome, ReferenceSlice, Trial, shared_lines
from mri_design.errors import InputError, UsageError, did_you_mean
from mri_design.evaluation.manifest import InputFile
from mri_design.experiment.ending import require_lines_only
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.slice_choice import ScanSource, source_files
from mri_design.runs.run import Ending, Record, Work
from mri_design.runs.scan_facts import doubts_of_all
from mri_design.runs.scans import load_images
from mri_design.runs.train.order_file import OrderFile, order_ending
from mri_design.runs.training_material import TrainingMaterial, trial_outcome
from mri_design.runs.workers import Workers

RULES = ("residual-greedy", "lbcs", "stochastic-lbcs")
START = 4
"""Centre lines an order begins with by default; reconstructions take the image's scale from them."""
STOCHASTIC_LINES, STOCHASTIC_SCANS = 16, 3
"""Lines and scans that stochastic LBCS tries at each step by default."""


def training_rule(name: str, candidates: int | None = None, scans: int | None = None) -> TrainingRule:
    """The rule called ``name``; ``candidates`` and ``scans`` are what stochastic LBCS tries at each step.

    Raises
    ------
    UsageError
        For an unknown name, or subsets for a rule that takes none.
    """
    if name not in RULES:
        near = did_you_mean(name, RULES)
        raise UsageError(f"--rule: unknown rule {name!r}; known are: {', '.join(RULES)}{'. ' if near else ''}{near}")
    if name == "stochastic-lbcs":
        return LBCS(candidates or STOCHASTIC_LINES, scans or STOCHASTIC_SCANS, name=name)
    if candidates is not None or scans is not None:
        raise UsageError(f"rule {name!r} tries everything; --candidates and --scans belong to stochastic-lbcs")
    return LBCS() if name == "lbcs" else ResidualGreedy()


@dataclass(frozen=True)
class TrainingRequest:
    """What a training is asked for.

    Parameters
    ----------
    sources : sequence of ScanSource
        Training inputs.
    recipe : Recipe
        Reconstruction, simulation, calibration, and what the sequence asks of the lines.
    rule : TrainingRule
        See `training_rule`.
    lines : int
        Lines in the end.
    start : int, optional
        Centre lines to begin with: four, and no fewer than coil calibration took.

    Raises
    ------
    UsageError
        For a recipe that chooses samples of a plane.
    """

    sources: Sequence[ScanSource]
    recipe: Recipe
    rule: TrainingRule
    lines: int
    start: int | None = None

    def __post_init__(self) -> None:
        require_lines_only(self.recipe, "train")

    def record(self, work: Work) -> Record:
        """What the file of the order says about it.

        Raises
        ------
        InputError
            Where a file cannot be read.
        """
        inputs = InputFile.of_all(source_files(self.sources))
        choices: dict[str, object] = {
            "rule": repr(self.rule),
            "lines": self.lines,
            "start": self.start,
            "sources": [source.label for source in self.sources],
            "seed": work.seed,
            "recipe": self.recipe.as_settings(),
            "inputs": {file.name: file.sha256 for file in inputs},
        }
        return Record(work.identity("training", choices), inputs, choices)


def learn_order(request: TrainingRequest, file: OrderFile, work: Work) -> TrainedDesign | Ending:
    """Learn an order on the scans; an interrupted training goes on where it stopped.

    The beginning of the order is kept beside the file after every line. Where the file holds this very order, finished,
    nothing is done.

    Returns
    -------
    TrainedDesign or Ending
        The order, with how many reconstructions did not converge; an `Ending` where it had been finished before.

    Raises
    ------
    UsageError
        Where the file is there already and holds something else, or the beginning of another training stands there.
    InputError
        Where an input cannot be used, or scans are on different grids.
    """
    record, recipe, lines = request.record(work), request.recipe, request.lines
    finished = file.finished(record.identity)
    if finished is not None:
        work.progress.say("nothing to do")
        return order_ending(finished)
    scans, _ = load_images(request.sources, recipe, work)
    rules = recipe.constraints.rules()
    first = _start(scans, request.start, lines)
    centre = rules.start(shared_lines(scans), first, max(scan.calibration_lines for scan in scans))

    with (
        file.begun(work.progress.say) as kept,
        Workers(TrainingMaterial(scans, recipe, work.seed), work.jobs, work.executor) as workers,
    ):
        show = work.progress.also(kept.show).show

        def after_line(design: TrainedDesign) -> None:
            file.save_unfinished(design)
            show("training", len(design.lines) - len(centre), lines - len(centre))

        def evaluate(trials: Sequence[Trial]) -> Iterable[Outcome]:
            return workers.map(trial_outcome, trials)

        training = OrderTraining(scans, request.rule, lines, evaluate, seed=work.seed, constraints=rules)
        design = file.unfinished(record.identity)
        if design is None:
            show("training", 0, lines - len(centre))
            begun = begin_training(training, centre)
            doubts, _ = doubts_of_all(scans)
            design = replace(begun, settings={**record.settings, **doubts, "identity": record.identity})
        return train(training, design, after_line)


def _start(images: Sequence[ReferenceSlice], start: int | None, lines: int) -> int:
    calibration = max(image.calibration_lines for image in images)
    first = max(start or min(START, lines), calibration)
    if first > lines:
        raise InputError(
            field="start lines",
            got=f"{first} (of which {calibration} for coil calibration)",
            wanted=f"at most the number of lines, {lines}",
            cure="Ask for more lines.",
        )
    return first
