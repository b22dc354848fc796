"""One mask for many slices and subjects, from its training scans to its errors on other subjects."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from mri_design.design.trace import DesignTrace
from mri_design.design.training.exchanges import (
    Exchange,
    ExchangeRules,
    Refinement,
    begin_refinement,
    refine,
    with_exchanges,
)
from mri_design.design.trials import Outcome, TrainingScan, Trial, shared_lines
from mri_design.errors import InputError, UsageError
from mri_design.evaluation.output.identity import CHECKPOINT, finished_status, require_same_run
from mri_design.evaluation.output.manifest import InputFile, Manifest
from mri_design.evaluation.output.run_folder import RunFolder
from mri_design.experiment.checkpoint import Checkpoint, fingerprint
from mri_design.experiment.designing import DesignOptions, require_lines, run_design, start_lines
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.slice_choice import ScanSource, source_files
from mri_design.experiment.strategy_names import ORACLES, make_strategy, strategy_files, strategy_label
from mri_design.runs.held_out.comparison import Comparison
from mri_design.runs.held_out.jobs import Material, mask_error
from mri_design.runs.held_out.progress import ComparisonProgress
from mri_design.runs.protocol.report import PROTOCOL, save_protocol
from mri_design.runs.scans import TestImage, load_images
from mri_design.runs.sections.models import model_settings
from mri_design.runs.trials import TrainingMaterial, trial_outcome
from mri_design.runs.workers import Workers
from mri_design.scan.io.atomic import write_json
from mri_design.status import Status

__all__ = ["load_refinement", "protocol_into", "save_refinement"]


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
        found = stored["identity"]
        exchanges = tuple(Exchange(int(r), int(a), float(e), bool(kept)) for r, a, e, kept in stored["exchanges"])
        lines = tuple(int(line) for line in stored["lines"])
        counts = int(stored["reconstructions"]), int(stored["unconverged"])
        state = Refinement(lines, float(stored["error"]), exchanges, *counts)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            field=path.name, got=f"an unreadable file ({error})", wanted="a protocol's exchanges", cure="Delete it."
        ) from error
    require_same_run(path, found, identity, "the exchanges of another protocol")
    return state


REFINEMENT, TESTED = "exchanges.json", "test-progress.json"
Show = Callable[[str, int, int], None]


def protocol_into(
    folder: RunFolder,
    sources: Sequence[ScanSource],
    recipe: Recipe,
    lines: int,
    *,
    test: Sequence[ScanSource] = (),
    against: Sequence[str] = ("low-pass", "vd-polynomial"),
    swaps: int = 0,
    seeds: int = 5,
    seed: int = 0,
    jobs: int = 1,
    resume: bool = False,
    command: Sequence[str] = (),
    show: Show = lambda *_: None,
    say: Callable[[str], None] = lambda _: None,
) -> str:
    """Design one mask on all training slices together, try exchanges, and compare it on other scans.

    Parameters
    ----------
    folder : RunFolder
        Where to.
    sources, test : sequence of ScanSource
        Training and test inputs.
    recipe : Recipe
        Strategy, start, inference, and the reconstruction behind every error.
    lines : int
        Lines in the end.
    against : sequence of str
        What to compare with on the test scans; densities are tuned on the training scans.
    swaps : int
        Exchanges to try at the end (`design.refine`).
    seeds, seed, jobs : int
        Draws of random competitors; seed of everything; processes, on which nothing depends.
    resume : bool
        Whether to go on from what an interrupted run left in the folder.
    command, show, say
        As for `design_run.design_into`.

    Returns
    -------
    str
        "converged", or what did not.

    Raises
    ------
    UsageError
        For an unknown strategy or an oracle, exchanges beside a maximum jump, an image that is used for training and
        testing, an unfinished run without ``resume``, or another run's folder.
    InputError
        Where an input or what an interrupted run left cannot be used, or grids differ.
    """
    began = time.perf_counter()
    name = recipe.design.strategy
    if name in ORACLES:
        raise UsageError(f"{name} is no protocol; mri-design train learns from the truth of training scans")
    if swaps and recipe.constraints.rules().max_jump is not None:
        raise UsageError("exchanges change the order of lines: leave out --swaps, or the maximum jump")
    strategy = make_strategy(name)
    inputs = InputFile.of_all(source_files([*sources, *test]))
    inputs += InputFile.of_all(strategy_files([name, *against]))
    choices: dict[str, object] = {
        "sources": [source.label for source in sources],
        "test": [source.label for source in test],
        "against": [strategy_label(other) for other in against],
        "lines": lines,
        "swaps": swaps,
        "seeds": seeds,
        "seed": seed,
        **recipe.replacing("design", strategy=strategy_label(name)).as_settings(),
    }
    identity = fingerprint({"run": "protocol", **choices, "inputs": [i.sha256 for i in inputs]})
    training, _ = load_images(sources, recipe, seed)
    tests, _ = load_images(test, recipe, seed)
    _require_apart(training, tests)
    for image in (*training, *tests):
        require_lines(image.one.measured, lines, recipe)
    ended = finished_status(folder, identity, own=CHECKPOINT)
    unfinished = folder.existing(CHECKPOINT)
    if ended is not None and resume and unfinished is None:
        say("nothing to do")
        return ended
    if unfinished is not None and not (resume or folder.overwrite):
        raise UsageError(
            f"{folder.path.name} holds an unfinished protocol; add --resume, give another --out, or add --overwrite"
        )
    calibration = max(image.calibration_lines for image in (*training, *tests))
    scans = [TrainingScan(image.one, image.reference, image.name) for image in training]
    first = start_lines(shared_lines(scans), strategy, lines, recipe, calibration)
    folder.begin()
    files = {part: folder.output_path(part) for part in (CHECKPOINT, REFINEMENT, TESTED)}
    start = len(first)
    with Workers(TrainingMaterial(scans, recipe, seed), jobs) as workers:

        def mapping(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterable[Any]:
            return workers.map(_applied, [(function, item) for item in items])

        trace = run_design(
            [scan.one for scan in scans],
            strategy,
            lines,
            recipe,
            seed=seed,
            start=first,
            options=DesignOptions(
                checkpoint=Checkpoint(files[CHECKPOINT], identity),
                callback=lambda s: show("designing", len(s.trace.lines) - start, lines - start),
                mapping=mapping,
            ),
        ).trace
        refined = _refined(scans, trace, recipe, swaps, files[REFINEMENT], identity, workers, show) if swaps else None
    final = trace if refined is None else with_exchanges(trace, refined)
    tested = _tested(tests, training, final.lines, against, recipe, seeds, seed, jobs, files[TESTED], identity, show)
    manifest = Manifest(
        command=command,
        seed=seed,
        inputs=inputs,
        settings={
            **choices,
            "start": start,
            "identity": identity,
            **model_settings(trace, recipe.phase.names),
        },
        wall_seconds=time.perf_counter() - began,
        status=_status(trace, refined, tested),
        lines=final.lines,
    )
    save_protocol(folder, training, tests, final, refined, tested, recipe, manifest)
    for path in files.values():
        path.unlink(missing_ok=True)
    return manifest.status


def _applied(material: object, job: tuple[Callable[[Any], Any], Any]) -> Any:
    function, item = job
    return function(item)


def _require_apart(training: Sequence[TestImage], tests: Sequence[TestImage]) -> None:
    both = {t.name for t in tests} & {t.name for t in training}
    if both:
        raise UsageError(f"{sorted(both)[0]} is both a test and a training image")
    shapes = sorted({image.one.shape for image in training})
    if len(shapes) > 1:
        raise InputError(
            field="training scans",
            got=f"grids {shapes}",
            wanted="one grid for a shared mask",
            cure="Run one at a time.",
        )


def _refined(
    scans: Sequence[TrainingScan],
    trace: DesignTrace,
    recipe: Recipe,
    swaps: int,
    path: Path,
    identity: str,
    workers: Workers[TrainingMaterial],
    show: Show,
) -> Refinement:
    def evaluate(trials: Sequence[Trial]) -> Iterable[Outcome]:
        return workers.map(trial_outcome, trials)

    def after_attempt(state: Refinement) -> None:
        save_refinement(path, state, identity)
        show("exchanging", len(state.exchanges), swaps)

    state = load_refinement(path, identity) if path.exists() else begin_refinement(scans, trace.lines, evaluate)
    allowed = recipe.constraints.rules().allowed(trace.n_lines)
    rules = ExchangeRules(keep=trace.start, allowed=allowed, importance=trace.innovation_energies)
    return refine(scans, state, swaps, evaluate, rules, after_attempt)


def _tested(
    tests: Sequence[TestImage],
    training: Sequence[TestImage],
    lines: tuple[int, ...],
    against: Sequence[str],
    recipe: Recipe,
    seeds: int,
    seed: int,
    jobs: int,
    path: Path,
    identity: str,
    show: Show,
) -> ComparisonProgress:
    """Errors of the mask and its competitors on the test images."""
    progress = ComparisonProgress.open(path, identity)
    if not tests:
        return progress
    Comparison(tests, against, [len(lines)], recipe, training, seeds, seed, jobs).run(progress, show)
    left = [i for i in range(len(tests)) if f"{PROTOCOL}|{i}" not in progress.rows]
    with Workers(Material(tests, training, recipe, seed), jobs) as workers:
        for i, errors in zip(left, workers.map(mask_error, [(i, lines) for i in left]), strict=True):
            progress.rows[f"{PROTOCOL}|{i}"] = {
                "strategy": PROTOCOL,
                "lines": len(lines),
                "acceleration": tests[i].one.shape[0] / len(lines),
                "draw": 0,
                "image": tests[i].name,
                **errors,
                "mask_converged": True,
                "converged": errors["reconstruction_converged"],
            }
            progress.save()
    return progress


def _status(trace: DesignTrace, refined: Refinement | None, tested: ComparisonProgress) -> str:
    missed = sum(not step.cost.converged for step in trace.steps)
    parts = [f"{missed} of {len(trace.steps)} design steps not converged"] if missed else []
    if refined is not None and refined.unconverged:
        parts.append(f"{refined.unconverged} of {refined.reconstructions} reconstructions of exchanges not converged")
    if tested.status != Status.CONVERGED.value:
        parts.append(tested.status)
    return "; ".join(parts) or Status.CONVERGED.value
