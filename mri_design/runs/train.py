"""`train`: an order of lines, or of samples of a plane, is learnt from scans whose truth is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from mri_design.design.training import (
    LBCS,
    OrderTraining,
    ResidualGreedy,
    TrainedDesign,
    TrainingRule,
    begin_training,
    train,
)
from mri_design.design.trials import Outcome, Trial, shared_lines
from mri_design.errors import InputError, UnknownNameError, UsageError
from mri_design.evaluation.run_folder import LOCK_NAME, PROGRESS_NAME, FolderLock, ProgressFile, require_same_run
from mri_design.experiment.extent import amount_wanted, refuse_shots, require_amount, start_of_growing, with_calibration
from mri_design.experiment.stored_designs import load_trained, save_trained
from mri_design.runs.run import Ending, Record, Work, require_resume
from mri_design.runs.scan_facts import facts_of_all, load_images
from mri_design.runs.study import Material, StudyRequest, trial_outcome
from mri_design.runs.workers import Workers
from mri_design.scan.io.atomic import require_folder_of
from mri_design.status import Status

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
    return LBCS() if name == "lbcs" else ResidualGreedy()


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
        refuse_shots(self.recipe, "train")
        require_amount(self.lines, self.acceleration, self.recipe)
        if self.recipe.design.encoding == "plane" and not isinstance(self.rule, ResidualGreedy):
            raise UsageError(
                f"rule {self.rule.name!r} tries what can be measured one by one, and what a single sample of a plane "
                "changes is too little to tell: take residual-greedy"
            )

    def count(self, size: int) -> int:
        """Lines or samples in the end on a grid of ``size``."""
        return amount_wanted(self.lines, self.acceleration, size)

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
    scans, _ = load_images(request.sources, recipe, work, request.count)
    readouts = scans[0].slice_model.candidates
    lines = request.count(readouts.size)
    calibration = max(scan.calibration_lines for scan in scans)
    if any(scan.own_maps is not None for scan in scans):
        calibration = start_of_growing(recipe, calibration, lines)
    recipe = with_calibration(recipe, calibration)
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

        def evaluate(trials: Sequence[Trial]) -> Iterable[Outcome]:
            return workers.map(trial_outcome, trials)

        block = recipe.design.block_of(readouts) if readouts.thinned else 1
        training = OrderTraining(scans, request.rule, lines, evaluate, seed=work.seed, constraints=rules, block=block)
        design = file.unfinished(record.identity)
        if design is None:
            show("training", 0, lines - len(centre))
            begun = begin_training(training, centre)
            facts, _ = facts_of_all(scans)
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
