"""``mri-design train``: a line order learnt from scans with ground truth."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mri_design.cli.options import (
    JOBS,
    Contrast,
    Executor,
    Jobs,
    LineCount,
    MapsOfInputs,
    MethodName,
    Overwrite,
    Phase,
    Quiet,
    RecipeFile,
    Repetition,
    Seed,
    SetNumber,
    Slices,
    whole,
)
from mri_design.cli.terminal import ending, exits, kept_on_interruption, load_ahead, progress, say, warn

RULES = ("residual-greedy", "lbcs", "stochastic-lbcs")


@exits
def train(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="Fully sampled training scans: files or phantom:NAME, each with its slices as scan.h5#0,3-5 if "
            "wanted.",
            show_default=False,
        ),
    ],
    lines: LineCount,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File of the order (.npz).", show_default=False)],
    rule: Annotated[str, typer.Option("--rule", metavar="NAME", help=f"One of: {', '.join(RULES)}.")] = RULES[0],
    start: Annotated[int | None, whole("--start", least=1, help="Centre lines to begin with. [default: 4]")] = None,
    candidates: Annotated[
        int | None,
        whole("--candidates", least=1, help="stochastic-lbcs: lines to try at each step. [default: 16]"),
    ] = None,
    scans: Annotated[
        int | None, whole("--scans", least=1, help="stochastic-lbcs: images to try them on. [default: 3]")
    ] = None,
    slices: Slices = "middle",
    maps: MapsOfInputs = None,
    method: MethodName = None,
    seed: Seed = 0,
    recipe: RecipeFile = None,
    jobs: Jobs = JOBS,
    executor: Executor = "local",
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    contrast: Contrast = None,
    phase: Phase = None,
    repetition: Repetition = None,
    set_: SetNumber = None,
) -> int:
    """Learn from INPUTs in which order to measure lines, for scans like them.

    residual-greedy adds the line on which the reconstructions are most wrong, one reconstruction per image and line;
    lbcs tries every line on every image; stochastic-lbcs some of both. Use the file as `--strategy trained:FILE`, which
    measures in this order; or as `calibrated:FILE`, which lets the training scans have a say beside the scan's own
    posterior for as long as they predict its lines well. The same command goes on where it was interrupted.
    """
    load_ahead(jobs, executor, sources)
    from mri_design.experiment.recipe import load_recipe
    from mri_design.experiment.slice_choice import scan_sources
    from mri_design.runs.run import Progress, Work
    from mri_design.runs.train import OrderFile, TrainingRequest, learn_order, report_order, training_rule

    settings = load_recipe(recipe).replacing("reconstruction", method=method)
    settings = settings.replacing("input", contrast=contrast, phase=phase, repetition=repetition, set=set_)
    chosen = training_rule(rule, candidates, scans)
    request = TrainingRequest(
        sources=scan_sources(sources, slices, maps or []), recipe=settings, rule=chosen, lines=lines, start=start
    )
    file = OrderFile(out, overwrite, sys.argv[1:])
    with kept_on_interruption(file.beginning), progress(quiet) as bar:
        watching = Progress(bar.update, lambda text: say(text, quiet), lambda text: warn(text, quiet))
        work = Work(seed=seed, jobs=jobs, executor=executor, progress=watching)
        ended = report_order(file, learn_order(request, file, work))
    say(f"{lines} lines by {rule}, {ended.status}: {out}", quiet)
    return ending(ended.status)
