"""``mri-design design``: the order in which to measure phase-encode lines."""

from __future__ import annotations

from typing import Annotated

import typer

from mri_design.cli.arguments import check_angles
from mri_design.cli.options import (
    JOBS,
    SHOT_STRATEGIES,
    Acceleration,
    Angles,
    Block,
    Calibration,
    Contrast,
    EncodingChoice,
    Executor,
    Forbid,
    Input,
    Jobs,
    Maps,
    MaxJump,
    NoReport,
    Order,
    Out,
    Overwrite,
    PartialFourier,
    Phase,
    Png,
    Quiet,
    RecipeFile,
    Repetition,
    Require,
    Seed,
    SetNumber,
    Shutter,
    SliceIndex,
    Start,
    StrategyName,
    UntilError,
    UntilGain,
    whole,
)
from mri_design.cli.terminal import ending, exits, kept_on_interruption, load_ahead, run_into, say
from mri_design.errors import UsageError


@exits
def design(
    source: Input,
    out: Out,
    lines: Annotated[
        int | None,
        whole(
            "--lines",
            "--samples",
            least=1,
            help="Lines, or samples of a plane, in the end, those at the start included.",
            show_default=False,
        ),
    ] = None,
    start: Start = None,
    strategy: StrategyName = None,
    index: SliceIndex = 0,
    maps: Maps = None,
    seen: Annotated[
        str | None,
        typer.Option(
            "--seen",
            metavar="EARLIER",
            help="Earlier scan of the same object: a frame, a repeat or a prescan on the same grid, its slice as "
            "scan.h5#3 if it is another number. With --positions, a slice for each, both in ascending order.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    recipe: RecipeFile = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the run folder's checkpoint.")] = False,
    jobs: Jobs = JOBS,
    executor: Executor = "local",
    overwrite: Overwrite = False,
    no_report: NoReport = False,
    png: Png = False,
    quiet: Quiet = False,
    until_error: UntilError = None,
    until_gain: UntilGain = None,
    forbid: Forbid = None,
    require: Require = None,
    partial_fourier: PartialFourier = None,
    max_jump: MaxJump = None,
    block: Block = None,
    order: Order = None,
    encoding: EncodingChoice = None,
    acceleration: Acceleration = None,
    shots: Annotated[
        int | None,
        whole(
            "--shots",
            least=1,
            help="Spokes or arms in the end, those at the start included.",
            show_default=False,
            rich_help_panel="Spokes and spirals",
        ),
    ] = None,
    angles: Angles = None,
    shutter: Shutter = None,
    calibration: Calibration = None,
    positions: Annotated[
        str | None,
        typer.Option(
            "--positions",
            metavar="0,3-5|all",
            help="Further slices that share the mask: readout positions of a 3-D scan. The image is that of --slice.",
            rich_help_panel="Samples of a plane (3-D scans)",
        ),
    ] = None,
    contrast: Contrast = None,
    phase: Phase = None,
    repetition: Repetition = None,
    set_: SetNumber = None,
) -> int:
    """Decide which LINES of INPUT to measure, in order, and reconstruct the image from them.

    With --encoding plane it decides which samples of the plane (ky, kz) to measure, and --block of them at once. With
    --encoding radial or spiral it chooses the angles of spokes, or of the arms of a spiral, whose data are made of
    INPUT by the non-uniform Fourier transform.

    Give --lines or --acceleration, or say when it is enough. A recipe can say all of this too, and more about
    constraints and trains.

    INPUT must hold data in every line that may be chosen: it is replayed as the scanner. --resume continues an
    interrupted run and gives the same lines as one that was not; a finished one is left as it is.

    With --seen the design begins with what an EARLIER scan of the same object shows, and is corrected by everything
    that it measures.
    """
    if positions is not None:
        load_ahead(jobs, executor, [source])
    from mri_design.evaluation.run_status import CHECKPOINT
    from mri_design.experiment.recipe import load_recipe
    from mri_design.experiment.slice_choice import SliceChoice, require_no_slices, scan_sources
    from mri_design.kinds import KINDS, count_text
    from mri_design.runs.design.report import report_design
    from mri_design.runs.design.run import DesignRequest, design_scan

    require_no_slices(source, "give {0} --slice {1}")
    settings = (
        load_recipe(recipe)
        .replacing("input", contrast=contrast, phase=phase, repetition=repetition, set=set_)
        .replacing("design", strategy=strategy, start=start, order=order, encoding=encoding)
        .replacing("design", until_error=until_error, until_gain=until_gain)
        .replacing("constraints", forbid=forbid, require=require, partial_fourier=partial_fourier, max_jump=max_jump)
        .replacing("constraints", shutter=shutter, calibration=calibration)
        .replacing("shots", angles=angles)
    )
    kind = KINDS[settings.design.encoding]
    if lines is not None and kind.shots:
        raise UsageError(f"--lines and --samples count other candidates than {kind.unit}s: give --shots {lines}")
    if shots is not None and not kind.shots:
        raise UsageError(f"--shots counts spokes and arms (--encoding radial, spiral): give --{kind.unit}s {shots}")
    if kind.shots and strategy is None and settings.design.strategy == "calibrated":
        settings = settings.replacing("design", strategy=SHOT_STRATEGIES[0])
    check_angles(angles, settings.design.encoding, [settings.design.strategy])
    settings = settings.replacing("design", block=block)
    shared = str(index) if positions is None else positions if positions == "all" else f"{index},{positions}"
    earlier = None if seen is None else scan_sources([seen], shared, [] if maps is None else [str(maps)])[0]
    further = None if positions is None else SliceChoice(positions)
    request = DesignRequest(
        source,
        settings,
        shots if kind.shots else lines,
        index,
        maps=maps,
        seen=earlier,
        acceleration=acceleration,
        positions=further,
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
            resume=resume,
            jobs=jobs,
            executor=executor,
        ) as run,
    ):
        ended = report_design(run, design_scan(request, run))
    say(
        f"{count_text(len(ended.lines), kind.unit)}, {ended.status}: {out if no_report else out / 'report.html'}", quiet
    )
    return ending(ended.status)
