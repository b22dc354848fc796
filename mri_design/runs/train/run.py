"""Training a line order, from its scans to its file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from mri_design.design.trained_design import TrainedDesign
from mri_design.design.training.rules import LBCS, OrderTraining, ResidualGreedy, TrainingRule, begin_training, train
from mri_design.design.trials import Outcome, TrainingScan, Trial, shared_lines
from mri_design.errors import InputError, UsageError
from mri_design.evaluation.output.identity import require_same_run
from mri_design.evaluation.output.manifest import InputFile
from mri_design.experiment.checkpoint import fingerprint
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.slice_choice import ScanSource, source_files
from mri_design.experiment.trained_file import load_trained, save_trained
from mri_design.runs.scans import TestImage, load_images
from mri_design.runs.trials import TrainingMaterial, trial_outcome
from mri_design.runs.workers import Workers
from mri_design.status import Status

__all__ = ["RULES", "train_into", "training_rule"]

RULES = ("residual-greedy", "lbcs", "stochastic-lbcs")
UNFINISHED = ".unfinished"
"""Added to the name of the file while it is being learnt."""
START = 4
"""Centre lines an order begins with unless told otherwise; reconstructions take the image's scale from them."""
STOCHASTIC_LINES, STOCHASTIC_SCANS = 16, 3
"""What stochastic LBCS tries at each step unless told otherwise."""


def training_rule(name: str, candidates: int | None = None, scans: int | None = None) -> TrainingRule:
    """The rule called ``name``; ``candidates`` and ``scans`` are what stochastic LBCS tries at each step.

    Raises
    ------
    UsageError
        For an unknown name, or subsets for a rule that takes none.
    """
    if name not in RULES:
        raise UsageError(f"unknown rule {name!r}; known are: {', '.join(RULES)}")
    if name == "stochastic-lbcs":
        return LBCS(candidates or STOCHASTIC_LINES, scans or STOCHASTIC_SCANS, name=name)
    if candidates is not None or scans is not None:
        raise UsageError(f"rule {name!r} tries everything; --candidates and --scans belong to stochastic-lbcs")
    return LBCS() if name == "lbcs" else ResidualGreedy()


def train_into(
    path: Path,
    sources: Sequence[ScanSource],
    recipe: Recipe,
    rule: TrainingRule,
    lines: int,
    *,
    start: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    overwrite: bool = False,
    show: Callable[[str, int, int], None] = lambda *_: None,
    say: Callable[[str], None] = lambda _: None,
) -> str:
    """Learn an order on the scans and write it to ``path``; an interrupted run goes on where it stopped.

    Parameters
    ----------
    path : Path
        The file; beside it stands NAME.unfinished until the order is complete.
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
    seed, jobs : int
        Of everything random; processes, on which the order does not depend.
    overwrite : bool
        Whether another file at ``path``, or the beginning of another run, may be replaced.
    show : callable
        Progress: what, done, of how many.
    say : callable
        Takes a line of text that people should see.

    Returns
    -------
    str
        "converged", or how many reconstructions did not.

    Raises
    ------
    UsageError
        Where the file is there already and holds something else.
    InputError
        Where an input cannot be used, scans are on different grids, or the beginning of another run stands there.
    """
    inputs = InputFile.of_all(source_files(sources))
    settings: dict[str, object] = {
        "rule": repr(rule),
        "lines": lines,
        "start": start,
        "sources": [source.label for source in sources],
        "seed": seed,
        "recipe": recipe.as_settings(),
    }
    settings["inputs"] = {i.name: i.sha256 for i in inputs}
    settings["identity"] = fingerprint({"run": "training", **settings})
    unfinished = path.with_name(path.name + UNFINISHED)
    _require_own(path, unfinished, overwrite)
    if path.exists():
        finished = load_trained(path)
        if finished.settings.get("identity") != settings["identity"]:
            raise UsageError(f"{path.name} holds another trained design; give another --out, or add --overwrite")
        say("nothing to do")
        return _status(finished)
    path.parent.mkdir(parents=True, exist_ok=True)
    images, _ = load_images(sources, recipe, seed)
    scans = [TrainingScan(image.one, image.reference, image.name) for image in images]
    first = _start(images, start, lines)
    rules = recipe.constraints.rules()
    centre = rules.start(shared_lines(scans), first, max(image.calibration_lines for image in images))
    first = len(centre)

    def after_line(design: TrainedDesign) -> None:
        save_trained(unfinished, design)
        show("training", len(design.lines) - first, lines - first)

    with Workers(TrainingMaterial(scans, recipe, seed), jobs) as workers:

        def evaluate(trials: Sequence[Trial]) -> Iterable[Outcome]:
            return workers.map(trial_outcome, trials)

        training = OrderTraining(scans, rule, lines, evaluate, seed=seed, constraints=rules)
        if unfinished.exists():
            design = _resumed(unfinished, settings["identity"])
        else:
            design = replace(begin_training(training, centre), settings=settings)
        design = train(training, design, after_line)
    save_trained(path, design)
    unfinished.unlink(missing_ok=True)
    return _status(design)


def _require_own(path: Path, unfinished: Path, overwrite: bool) -> None:
    """Refuse links and other people's files; where they may be overwritten, remove what is there."""
    for file in (path, unfinished):
        if file.is_symlink():
            raise UsageError(f"{file} is a symbolic link, and nothing is written through links; give another --out")
        if overwrite:
            file.unlink(missing_ok=True)
        elif file.exists():
            try:
                load_trained(file)
            except InputError as error:
                raise UsageError(f"{file.name} is no trained design; give another --out, or add --overwrite") from error


def _start(images: Sequence[TestImage], start: int | None, lines: int) -> int:
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


def _resumed(path: Path, identity: object) -> TrainedDesign:
    design = load_trained(path)
    require_same_run(path, design.settings.get("identity"), identity, "the beginning of another training")
    return design


def _status(design: TrainedDesign) -> str:
    if not design.unconverged:
        return Status.CONVERGED.value
    return f"{design.unconverged} of {design.reconstructions} reconstructions not converged"
