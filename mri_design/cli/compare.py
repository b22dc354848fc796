"""``mri-design compare``: sampling strategies side by side on the same data."""

from __future__ import annotations

from typing import Annotated

import typer

from mri_design.cli.arguments import names_of
from mri_design.cli.options import JOBS, Jobs, MapsOfInputs, MethodName, Out, Overwrite, Quiet, RecipeFile, Seed, Slices
from mri_design.cli.terminal import ending, exits, kept_on_interruption, run_into, say
from mri_design.errors import UsageError

__all__ = ["compare"]


@exits
def compare(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="Test scans: files or phantom:NAME, each with its slices as scan.h5#0,3-5 if wanted.",
            show_default=False,
        ),
    ],
    lines: Annotated[str, typer.Option("--lines", metavar="N,N,...", help="Line counts.", show_default=False)],
    out: Out,
    strategies: Annotated[
        str, typer.Option("--strategies", metavar="A,B,...", help="Names as for design.")
    ] = "calibrated,information-gain,vd-polynomial,fastmri-random,low-pass",
    train: Annotated[
        list[str] | None,
        typer.Option(
            "--train",
            metavar="INPUT",
            help="Training scan, may be repeated: densities are tuned on them, and posterior strategies also design "
            "one fixed mask on them.",
        ),
    ] = None,
    slices: Slices = "middle",
    maps: MapsOfInputs = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Draws of every random strategy.")] = 5,
    method: MethodName = None,
    seed: Seed = 0,
    recipe: RecipeFile = None,
    jobs: Jobs = JOBS,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> int:
    """Compare sampling strategies: same slices, same reconstruction, several line counts.

    Finished pieces are kept in the run folder: the same command in the same folder goes on where it stopped.
    """
    from mri_design.evaluation.output.identity import PROGRESS
    from mri_design.experiment.recipe import load_recipe
    from mri_design.experiment.slice_choice import scan_sources
    from mri_design.runs.compare.report import report_comparison
    from mri_design.runs.compare.run import ComparisonRequest, compare_strategies

    counts = _counts(lines)
    settings = load_recipe(recipe).replacing("reconstruction", method=method)
    named = scan_sources([*sources, *(train or [])], slices, maps or [])
    tests, training = named[: len(sources)], named[len(sources) :]
    request = ComparisonRequest(tests, settings, names_of(strategies), counts, training, seeds)
    with (
        kept_on_interruption(out / PROGRESS),
        run_into(out, seed=seed, overwrite=overwrite, quiet=quiet, jobs=jobs) as run,
    ):
        ended = report_comparison(run, compare_strategies(request, run))
    say(f"{ended.status}: {out / 'report.html'}", quiet)
    return ending(ended.status)


def _counts(text: str) -> list[int]:
    try:
        counts = sorted({int(part) for part in text.split(",")})
    except ValueError:
        counts = []
    if not counts or counts[0] < 1:
        raise UsageError(f"--lines {text!r}: give positive whole numbers, as 32,48,64")
    return counts
