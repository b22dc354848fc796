"""A design run from its input to its folder: lines, image, error bars, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from mri_design.design.stopping import NamedRule
from mri_design.design.trace import DesignTrace
from mri_design.errors import UsageError
from mri_design.evaluation.output.identity import CHECKPOINT, finished_status
from mri_design.evaluation.output.manifest import InputFile, Manifest
from mri_design.evaluation.output.run_folder import RunFolder
from mri_design.evaluation.predictions.check import check_predictions, truth_or_none
from mri_design.evaluation.reference_noise import reference_noise
from mri_design.experiment.checkpoint import Checkpoint, fingerprint
from mri_design.experiment.designing import DesignOptions, require_lines, run_design, start_lines
from mri_design.experiment.ending import checked_end, most_lines
from mri_design.experiment.inputs import load_input, prepare
from mri_design.experiment.phase_choice import candidate_models, final_models
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import reconstruct
from mri_design.experiment.strategy_names import ORACLES, make_strategy, strategy_files, strategy_label
from mri_design.runs.oracles import ORACLE_NOTE, knowing_oracle
from mri_design.runs.scan_facts import (
    calibration_settings,
    calibration_summary,
    level_settings,
    level_summary,
    simulated_from,
    simulation_summary,
)
from mri_design.runs.sections.images import (
    NamedImage,
    image_sections,
    metric_rows,
    save_design,
    save_images,
    save_report,
    with_zero_filled,
)
from mri_design.runs.sections.models import model_sections, model_settings
from mri_design.runs.sections.sequence import how_it_ended, save_acquisition, what_was_missed
from mri_design.scan.sampling import require_whole_lines
from mri_design.status import Convergence, Status

__all__ = ["design_into"]


def design_into(
    folder: RunFolder,
    source: str,
    recipe: Recipe,
    lines: int | None,
    *,
    index: int = 0,
    maps: Path | None = None,
    seed: int = 0,
    resume: bool = False,
    command: Sequence[str] = (),
    show: Callable[[str, int, int], None] = lambda *_: None,
    say: Callable[[str], None] = lambda _: None,
) -> str:
    """Run a design and leave everything in ``folder``.

    Parameters
    ----------
    folder : RunFolder
        Where to.
    source : str
        File or phantom; it is replayed as the scanner.
    recipe : Recipe
        Strategy, start, stop rules, constraints, order, inference and reconstruction.
    lines : int or None
        Lines in the end, at most where the recipe has a stop rule; None is as many as can be measured then.
    index, seed : int
        Slice, and seed of everything random.
    maps : Path, optional
        File of coil maps.
    resume : bool
        Whether to go on from a checkpoint in the folder; where this very design is finished there, nothing is done.
    command : sequence of str
        For the manifest.
    show : callable
        Progress: what, done, of how many.
    say : callable
        Takes a line of text that people should see.

    Returns
    -------
    str
        "converged", or what did not.

    Raises
    ------
    UsageError
        For an unknown strategy, no end, a stop rule that the strategy cannot answer, a checkpoint in the folder without
        ``resume``, or another run's folder.
    InputError
        Where the input or the checkpoint cannot be used, or constraints contradict each other or the scan.
    """
    began = time.perf_counter()
    name = recipe.design.strategy
    strategy = make_strategy(name)
    beside = [*([] if maps is None else [str(maps)]), *strategy_files([name])]
    inputs = InputFile.of_all([source, *beside])
    stop = checked_end(recipe, strategy, lines)
    identity = fingerprint(
        {
            "run": "design",
            "recipe": recipe.replacing("design", strategy=strategy_label(name)).as_settings(),
            "input": [i.sha256 for i in InputFile.of_all([source])] or source,
            "files": [i.sha256 for i in InputFile.of_all(beside)],
            "slice": index,
            "seed": seed,
            "lines": lines,
        }
    )
    data = load_input(source, recipe, seed, maps).select_slice(index)
    require_whole_lines(data.name, data.samplings[0])  # before the calibration, which would ask for less
    require_lines(data.measured, lines, recipe)
    before = finished_status(folder, identity, own=CHECKPOINT)
    unfinished = folder.existing(CHECKPOINT)
    if before is not None and resume and unfinished is None:
        say("nothing to do")
        return before
    if unfinished is not None and not (resume or folder.overwrite):
        raise UsageError(
            f"{folder.path.name} holds an unfinished design; add --resume, give another --out, or add --overwrite"
        )
    scan = prepare(data, recipe, calibration_lines=recipe.design.start)
    one = scan.slice_model(0, recipe)
    if name in ORACLES:
        strategy = knowing_oracle(name, [one], [scan.reference(0)], recipe, seed)
    if simulated_from(data):
        say(f"simulated k-space {simulated_from(data)}")
    first = start_lines(one.measured, strategy, lines, recipe, scan.calibration_lines)
    folder.begin()
    checkpoint = folder.output_path(CHECKPOINT)
    most, start = lines or most_lines(one.measured, first, recipe), len(first)
    state = run_design(
        [one],
        strategy,
        most,
        recipe,
        seed=seed,
        start=first,
        options=DesignOptions(
            stop=stop,
            checkpoint=Checkpoint(checkpoint, identity),
            callback=lambda s: show("designing", len(s.trace.lines) - start, most - start),
            closing=True,
        ),
    )
    trace = state.trace
    ended = how_it_ended(trace, stop, most)
    if ended:
        say(ended)
    method = recipe.reconstruction.method
    final = final_models([one], state, recipe)[0]
    reconstructed = "" if final.number is None else recipe.phase.names[final.number]
    result = reconstruct(
        final.one,
        trace.lines,
        method,
        final.recipe,
        np.random.default_rng([seed, 2]),
        warm_start=final.warm,
        signal=state.signals[0],
        callback=lambda s: show("reconstructing", s.loop, recipe.inference.loops),
    )
    reference = scan.reference(0)
    checks = check_predictions(
        [one],
        trace,
        recipe.inference.engine(),
        signals=state.signals,
        truths=[truth_or_none(one, reference)],
        first_loops=recipe.design.first_loops,
        loops=recipe.design.step_loops,
        seed=seed,
        models=candidate_models(recipe),
        callback=lambda done, of: show("checking predictions", done, of),
    )
    images = with_zero_filled([NamedImage(method, result)], one, trace.lines)
    rows = metric_rows(images, reference, len(trace.lines), one.shape[0])
    noise = None if reference is None else reference_noise(scan.data, reference)
    sections = [
        *save_design(folder, trace, one.noise_variance, checks),
        *model_sections(folder, trace, recipe.phase.names),
        *save_acquisition(folder, trace, recipe),
        *image_sections(folder, images, reference, data.orientation, rows, noise),
    ]
    save_images(folder, result, rows, scan.unit)
    manifest = Manifest(
        command=command,
        seed=seed,
        inputs=inputs,
        settings={
            "source": source,
            "slice": index,
            "start": start,
            "identity": identity,
            **({"ended": ended} if ended else {}),
            **({"reconstructed_under": reconstructed} if reconstructed else {}),
            **model_settings(trace, recipe.phase.names),
            **calibration_settings(scan),
            **({} if noise is None else {"reference_noise": noise}),
            **level_settings(one.noise_variance, state.signals[0], scan.unit),
            **recipe.replacing("design", strategy=strategy_label(name)).as_settings(),
        },
        wall_seconds=time.perf_counter() - began,
        status=_status(trace, stop, result.convergence),
        lines=trace.lines,
    )
    summary: dict[str, object] = {
        "lines": f"{len(trace.lines)} of {one.shape[0]}",
        "acceleration": one.shape[0] / len(trace.lines),
        "start lines": start,
        "strategy": strategy_label(name) + (ORACLE_NOTE if name in ORACLES else ""),
        **({"ended": ended} if ended else {}),
        **simulation_summary([simulated_from(data)]),
        **({"model of the image": reconstructed} if reconstructed else {}),
        **calibration_summary(scan),
        **level_summary(one.noise_variance, state.signals[0], scan.unit),
        "multiplications with A": sum(s.cost.matvecs for s in trace.steps),
        "seconds": round(manifest.wall_seconds, 1),
        "status": manifest.status,
    }
    title = "Oracle, not a design" if name in ORACLES else "Line design"
    save_report(folder, f"{title}: {data.name}", summary, sections, manifest)
    checkpoint.unlink(missing_ok=True)
    return manifest.status


def _status(trace: DesignTrace, rule: NamedRule | None, reconstruction: Convergence) -> str:
    missed_goal = what_was_missed(trace, rule)
    if missed_goal:
        return missed_goal
    if not reconstruction.converged:
        return f"not converged ({reconstruction.status.value})"
    missed = sum(not step.cost.converged for step in trace.steps)
    return f"not converged ({missed} of {len(trace.steps)} design steps)" if missed else Status.CONVERGED.value
