"""``mri-design design``: the order in which to measure phase-encode lines."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from mri_design.cli.options import Input, Out, Quiet, RecipeFile, Seed, SliceIndex, StrategyName
from mri_design.cli.terminal import ending, exits, progress, say

__all__ = ["design"]


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
    interrupted run and gives the same lines as one that was not; a finished one is left as it is.
    """
    from mri_design.evaluation import RunFolder
    from mri_design.evaluation.design_run import design_into
    from mri_design.experiment import load_recipe, make_strategy

    settings = load_recipe(recipe).replacing("design", strategy=strategy, start=start)
    make_strategy(settings.design.strategy)  # an unknown name is refused before there is a folder
    with RunFolder(out) as folder, progress(quiet) as bar:
        status = design_into(
            folder,
            source,
            settings,
            lines,
            index=index,
            seed=seed,
            resume=resume,
            command=sys.argv[1:],
            show=bar.update,
            say=lambda text: say(text, quiet),
        )
    say(f"{lines} lines, {status}: {out / 'report.html'}", quiet)
    return ending(status)
