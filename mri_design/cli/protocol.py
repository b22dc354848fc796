"""``mri-design protocol``: one mask for many slices and subjects."""

from __future__ import annotations

from typing import Annotated

import typer

from mri_design.cli.arguments import names_of
from mri_design.cli.options import (
    JOBS,
    Contrast,
    Executor,
    Jobs,
    LineCount,
    MapsOfInputs,
    MethodName,
    NoReport,
    Out,
    Overwrite,
    Phase,
    Png,
    ProtocolStrategy,
    Quiet,
    RecipeFile,
    Repetition,
    Seed,
    SetNumber,
    Slices,
    Start,
    whole,
)
from mri_design.cli.terminal import ending, exits, kept_on_interruption, load_ahead, run_into, say


@exits
def protocol(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="Fully sampled scans to design on: files or phantom:NAME, each with its slices as scan.h5#0,3-5 if "
            "wanted.",
            show_default=False,
        ),
    ],
    lines: LineCount,
    out: Out,
    test: Annotated[
        list[str] | None,
        typer.Option("--test", metavar="INPUT", help="Scan of another subject to judge the mask on; may be repeated."),
    ] = None,
    against: Annotated[
        str,
        typer.Option(
            "--against", metavar="A,B,...", help="Competitors on the test scans; densities are tuned on INPUTS."
        ),
    ] = "low-pass,vd-polynomial",
    swaps: Annotated[
        int, whole("--swaps", least=0, help="Exchanges of lines to try at the end, against the truth of INPUTS.")
    ] = 0,
    start: Start = None,
    strategy: ProtocolStrategy = None,
    slices: Slices = "middle",
    maps: MapsOfInputs = None,
    seeds: Annotated[int, whole("--seeds", least=1, help="Draws of every random competitor.")] = 5,
    method: MethodName = None,
    seed: Seed = 0,
    recipe: RecipeFile = None,
    jobs: Jobs = JOBS,
    executor: Executor = "local",
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the run folder's checkpoint.")] = False,
    overwrite: Overwrite = False,
    no_report: NoReport = False,
    png: Png = False,
    quiet: Quiet = False,
    contrast: Contrast = None,
    phase: Phase = None,
    repetition: Repetition = None,
    set_: SetNumber = None,
) -> int:
    """Design one mask for all slices of all INPUTS together, and judge it on other subjects.

    INPUTS are fully sampled, so the lines come next on and around which their reconstructions are most wrong
    (residual-greedy). Other strategies add a line's score over the slices, as if INPUTS were measured now. --swaps then
    tries to exchange lines, and keeps an exchange only where the mean error over INPUTS falls. For a mask that follows
    one scan, see `mri-design design`.
    """
    load_ahead(jobs, executor, [*sources, *(test or [])])
    from mri_design.evaluation.run_status import CHECKPOINT
    from mri_design.experiment.recipe import load_recipe
    from mri_design.experiment.slice_choice import scan_sources
    from mri_design.runs.protocol import ProtocolRequest, design_protocol, protocol_strategy, report_protocol

    settings = load_recipe(recipe).replacing("design", start=start)
    settings = settings.replacing("input", contrast=contrast, phase=phase, repetition=repetition, set=set_)
    settings = settings.replacing("reconstruction", method=method)
    named = scan_sources([*sources, *(test or [])], slices, maps or [])
    training, tests = named[: len(sources)], named[len(sources) :]
    rule = strategy or protocol_strategy(settings)
    request = ProtocolRequest(
        sources=training,
        recipe=settings,
        lines=lines,
        test=tests,
        against=names_of(against),
        swaps=swaps,
        seeds=seeds,
        strategy=rule,
    )
    with (
        kept_on_interruption(out / CHECKPOINT, resume=True),
        run_into(
            out,
            seed=seed,
            overwrite=overwrite,
            quiet=quiet,
            reported=not no_report,
            png=png,
            jobs=jobs,
            executor=executor,
            resume=resume,
        ) as run,
    ):
        ended = report_protocol(run, design_protocol(request, run))
    say(f"{lines} lines, {ended.status}: {out if no_report else out / 'report.html'}", quiet)
    return ending(ended.status)
