"""``mri-design protocol``: one mask for many slices and subjects."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from mri_design.cli.options import (
    JOBS,
    Jobs,
    LineCount,
    MapsOfInputs,
    MethodName,
    Out,
    Overwrite,
    PracticableName,
    Quiet,
    RecipeFile,
    Seed,
    Slices,
    Start,
)
from mri_design.cli.terminal import ending, exits, kept_on_interruption, progress, say

__all__ = ["protocol"]


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
        int, typer.Option("--swaps", min=0, help="Exchanges of lines to try at the end, against the truth of INPUTS.")
    ] = 0,
    start: Start = None,
    strategy: PracticableName = None,
    slices: Slices = "middle",
    maps: MapsOfInputs = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Draws of every random competitor.")] = 5,
    method: MethodName = None,
    seed: Seed = 0,
    recipe: RecipeFile = None,
    jobs: Jobs = JOBS,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the run folder's checkpoint.")] = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> int:
    """Design one mask for all slices of all INPUTS together, and judge it on other subjects.

    Every line's score is added over the slices. --swaps then tries to exchange lines, and keeps an exchange only where
    the mean error over INPUTS falls. For a mask that follows one scan, see `mri-design design`.
    """
    from mri_design.errors import UsageError
    from mri_design.evaluation.output.identity import CHECKPOINT
    from mri_design.evaluation.output.run_folder import RunFolder
    from mri_design.experiment.recipe import load_recipe
    from mri_design.experiment.reconstruction import check_method
    from mri_design.experiment.slice_choice import scan_sources
    from mri_design.experiment.strategy_names import make_strategy
    from mri_design.runs.protocol.run import protocol_into

    settings = load_recipe(recipe).replacing("design", strategy=strategy, start=start)
    settings = settings.replacing("reconstruction", method=method)
    check_method(settings.reconstruction.method)
    rivals = list(dict.fromkeys(name.strip() for name in against.split(",")))
    for name in (settings.design.strategy, *rivals):
        make_strategy(name)  # an unknown name is refused before there is a folder
    named = scan_sources([*sources, *(test or [])], slices, maps or [])
    if resume and overwrite:
        raise UsageError("--resume goes on with what is there, --overwrite begins anew: give one of them")
    with (
        kept_on_interruption(out / CHECKPOINT, resume=True),
        RunFolder(out, overwrite=overwrite) as folder,
        progress(quiet) as bar,
    ):
        status = protocol_into(
            folder,
            named[: len(sources)],
            settings,
            lines,
            test=named[len(sources) :],
            against=rivals,
            swaps=swaps,
            seeds=seeds,
            seed=seed,
            jobs=jobs,
            resume=resume,
            command=sys.argv[1:],
            show=bar.update,
            say=lambda text: say(text, quiet),
        )
    say(f"{lines} lines, {status}: {out / 'report.html'}", quiet)
    return ending(status)
