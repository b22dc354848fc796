"""``mri-design compare``: sampling strategies side by side on the same data."""

from __future__ import annotations

from typing import Annotated

import typer

from mri_design.cli.arguments import check_angles, names_of
from mri_design.cli.options import (
    JOBS,
    SHOT_STRATEGIES,
    Angles,
    Block,
    Calibration,
    ComparedEncoding,
    Contrast,
    Executor,
    Jobs,
    MapsOfInputs,
    MethodName,
    NoReport,
    Out,
    Overwrite,
    Phase,
    Png,
    Quiet,
    RecipeFile,
    Repetition,
    Seed,
    SetNumber,
    Shutter,
    Slices,
    whole,
)
from mri_design.cli.terminal import ending, exits, kept_on_interruption, load_ahead, run_into, say
from mri_design.errors import UsageError
from mri_design.whole_numbers import whole_number

LINE_STRATEGIES = "calibrated,information-gain,vd-polynomial,fastmri-random,low-pass"
PLANE_STRATEGIES = "calibrated,vd-polynomial,poisson-disc,low-pass"
SHOT_SETS = ",".join(SHOT_STRATEGIES)


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
    out: Out,
    lines: Annotated[
        str | None,
        typer.Option(
            "--lines",
            "--samples",
            "--shots",
            metavar="N,N,...",
            help="Counts of lines, of samples, or of shots.",
            show_default=False,
        ),
    ] = None,
    accelerations: Annotated[
        str | None,
        typer.Option(
            "--accelerations", metavar="R,R,...", help="In the place of counts, as 4,8,12.", show_default=False
        ),
    ] = None,
    strategies: Annotated[
        str | None,
        typer.Option(
            "--strategies",
            metavar="A,B,...",
            help=f"Names as for design. [default: {LINE_STRATEGIES}; in a plane: {PLANE_STRATEGIES}; of shots: all]",
        ),
    ] = None,
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
    seeds: Annotated[int, whole("--seeds", least=1, help="Draws of every random strategy.")] = 5,
    method: MethodName = None,
    seed: Seed = 0,
    recipe: RecipeFile = None,
    jobs: Jobs = JOBS,
    executor: Executor = "local",
    overwrite: Overwrite = False,
    no_report: NoReport = False,
    png: Png = False,
    quiet: Quiet = False,
    encoding: ComparedEncoding = None,
    block: Block = None,
    shutter: Shutter = None,
    calibration: Calibration = None,
    contrast: Contrast = None,
    phase: Phase = None,
    repetition: Repetition = None,
    set_: SetNumber = None,
    angles: Angles = None,
) -> int:
    """Compare sampling strategies: same slices, same reconstruction, several line counts.

    Finished pieces are kept in the run folder: the same command in the same folder goes on where it stopped.
    """
    load_ahead(jobs, executor, sources)
    from mri_design.evaluation.run_status import PROGRESS
    from mri_design.experiment.recipe import load_recipe
    from mri_design.experiment.slice_choice import scan_sources
    from mri_design.runs.compare import ComparisonRequest, compare_strategies, report_comparison

    counts = [] if lines is None else _counts(lines)
    factors = [] if accelerations is None else _factors(accelerations)
    settings = load_recipe(recipe).replacing("reconstruction", method=method).replacing("design", encoding=encoding)
    settings = settings.replacing("input", contrast=contrast, phase=phase, repetition=repetition, set=set_)
    settings = settings.replacing("constraints", shutter=shutter, calibration=calibration)
    encoded = settings.design.encoding
    settings = settings.replacing("shots", angles=angles)
    settings = settings.replacing("design", block=block)
    usual = {"lines": LINE_STRATEGIES, "plane": PLANE_STRATEGIES}.get(encoded, SHOT_SETS)
    names = names_of(strategies or usual)
    check_angles(angles, encoded, names)
    named = scan_sources([*sources, *(train or [])], slices, maps or [])
    tests, training = named[: len(sources)], named[len(sources) :]
    request = ComparisonRequest(
        sources=tests,
        recipe=settings,
        strategies=names,
        lines=counts,
        train=training,
        seeds=seeds,
        accelerations=factors,
    )
    with (
        kept_on_interruption(out / PROGRESS),
        run_into(
            out,
            seed=seed,
            overwrite=overwrite,
            quiet=quiet,
            reported=not no_report,
            png=png,
            jobs=jobs,
            executor=executor,
        ) as run,
    ):
        ended = report_comparison(run, compare_strategies(request, run))
    say(f"{ended.status}: {out if no_report else out / 'report.html'}", quiet)
    return ending(ended.status)


def _factors(text: str) -> list[float]:
    try:
        factors = [float(part) for part in text.split(",")]
    except ValueError:
        factors = []
    if not factors or not all(1 <= factor < 1e6 for factor in factors):
        raise UsageError(f"--accelerations {text!r}: give numbers of one or more, as 4,8,12")
    return factors


def _counts(text: str) -> list[int]:
    numbers = [whole_number(part.strip(" ")) for part in text.split(",")]
    counts = sorted({number for number in numbers if number is not None})
    if None in numbers or counts[0] < 1:
        raise UsageError(f"--lines {text!r}: give positive whole numbers, as 32,48,64")
    return counts
