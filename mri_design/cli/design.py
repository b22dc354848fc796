"""``mri-design design``: the order in which to measure phase-encode lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Annotated

import numpy as np
import typer

from mri_design.cli.options import Input, Out, Quiet, RecipeFile, Seed, SliceIndex, StrategyName
from mri_design.cli.terminal import DONE, NOT_CONVERGED, exits, progress, say
from mri_design.errors import UsageError
from mri_design.evaluation import InputFile, Manifest, RunFolder
from mri_design.evaluation.run_outputs import (
    NamedImage,
    image_sections,
    metric_rows,
    save_design,
    save_report,
    with_zero_filled,
)
from mri_design.experiment import (
    Recipe,
    fingerprint,
    load_input,
    load_recipe,
    make_strategy,
    prepare,
    reconstruct,
    run_design,
    start_count,
)

__all__ = ["design", "design_into"]


@exits
def design(
    source: Input,
    lines: Annotated[int, typer.Option("--lines", min=1, help="Lines in the end, start lines included.")],
    out: Out,
    start: Annotated[
        int | None, typer.Option("--start", min=1, help="Centre lines to begin with. [default: the strategy's]")
    ] = None,
    strategy: StrategyName = None,
    index: SliceIndex = 0,
    seed: Seed = 0,
    recipe: RecipeFile = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the run folder's checkpoint.")] = False,
    quiet: Quiet = False,
) -> int:
    """Decide which LINES of INPUT to measure, in order, and reconstruct the image from them.

    INPUT must hold data in every line that may be chosen: it is replayed as the scanner. --resume continues an
    interrupted run and gives the same lines as one that was not.
    """
    settings = load_recipe(recipe)
    update: dict[str, object] = {}
    if strategy is not None:
        update["strategy"] = strategy
    if start is not None:
        update["start"] = start
    settings = settings.model_copy(update={"design": settings.design.model_copy(update=update)})
    with RunFolder(out) as folder, progress(quiet) as bar:
        status, converged = design_into(folder, source, settings, lines, index, seed, resume, bar.update)
    say(f"{lines} lines, {status}: {out / 'report.html'}", quiet)
    return DONE if converged else NOT_CONVERGED


def design_into(
    folder: RunFolder,
    source: str,
    recipe: Recipe,
    lines: int,
    index: int,
    seed: int,
    resume: bool,
    show: Callable[[str, int, int], None] = lambda *_: None,
) -> tuple[str, bool]:
    """Run a design and leave everything in ``folder``; returns the status in words and whether it converged."""
    began = time.perf_counter()
    strategy = make_strategy(recipe.design.strategy)
    inputs = InputFile.of_all([source])
    identity = fingerprint(
        {"recipe": recipe.as_settings(), "input": [i.sha256 for i in inputs] or source, "slice": index, "seed": seed}
    )
    checkpoint = folder.output_path("checkpoint.npz")
    if checkpoint.exists() and not resume:
        raise UsageError(f"{checkpoint.parent.name} holds an unfinished design; add --resume, or give another --out")
    data = load_input(source, recipe, seed).select_slice(index)
    scan = prepare(data, recipe, calibration_lines=recipe.design.start)
    one = scan.slice_model(0, recipe)
    start = start_count(strategy, one.shape[0], lines, recipe, scan.calibration_lines)
    state = run_design(
        [one],
        strategy,
        lines,
        recipe,
        seed=seed,
        start=start,
        checkpoint=checkpoint,
        identity=identity,
        callback=lambda s: show("designing", len(s.trace.lines) - start, lines - start),
    )
    trace = state.trace
    result = reconstruct(
        one,
        trace.lines,
        recipe.reconstruction.method,
        recipe,
        np.random.default_rng([seed, 2]),
        warm_start=state.warm[0] if state.warm else None,
        signal=state.signals[0],
        callback=lambda s: show("reconstructing", s.loop, recipe.inference.loops),
    )
    reference = scan.reference(0)
    images = with_zero_filled([NamedImage(recipe.reconstruction.method, result)], one, trace.lines)
    rows = metric_rows(images, reference, lines, one.shape[0])
    sections = [
        *save_design(folder, trace, one.noise_variance),
        *image_sections(folder, images, reference, data.orientation, rows),
    ]
    folder.write_image("recon.npy", result.image)
    if result.std is not None:
        folder.write_std("std.npy", result.std)
    folder.write_metrics(rows)
    converged = result.convergence.converged and trace.converged
    status = "converged" if converged else f"not converged ({result.convergence.status.value})"
    manifest = Manifest(
        command=sys.argv[1:],
        seed=seed,
        inputs=inputs,
        settings={"source": source, "slice": index, "start": start, **recipe.as_settings()},
        wall_seconds=time.perf_counter() - began,
        status=status,
        lines=trace.lines,
    )
    summary: dict[str, object] = {
        "lines": lines,
        "of": one.shape[0],
        "acceleration": one.shape[0] / lines,
        "start lines": start,
        "multiplications with A": sum(s.mvms for s in trace.steps),
        "seconds": round(manifest.wall_seconds, 1),
        "status": status,
    }
    warnings = [] if converged else [f"Not converged: {result.convergence.status.value}."]
    save_report(folder, f"Line design: {data.name}", summary, sections, manifest, warnings)
    checkpoint.unlink(missing_ok=True)
    return status, converged
