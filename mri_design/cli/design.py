"""``mri-design design``: the order in which to measure phase-encode lines."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from mri_design.cli.flags import (
    COMPANION,
    CONSTRAINTS,
    ENDS,
    LINES,
    NOISE,
    PLANE,
    SERIES,
    SHOT_STRATEGIES,
    Acceleration,
    Angles,
    FirstSlice,
    Input,
    Maps,
    Override,
    StrategyName,
    WithOfDesign,
    check_angles,
    check_with,
    option,
    whole,
)
from mri_design.cli.terminal import Resumed, load_ahead, verb
from mri_design.errors import UsageError
from mri_design.experiment.recipe import Recipe
from mri_design.whole_numbers import whole_number

SETTINGS = (
    f"design.start {ENDS} {CONSTRAINTS} design.block design.order design.encoding {PLANE} {SERIES} {NOISE} {COMPANION}"
)
STRATEGIES = f"Strategies for a plane: <strategies: plane without>; {SHOT_STRATEGIES}"


@verb
def design(
    source: Input,
    to: Resumed,
    lines: Annotated[int | None, LINES] = None,
    *,
    strategy: StrategyName = None,
    slices: FirstSlice = None,
    maps: Maps,
    seen: Annotated[
        str | None,
        option(
            "--seen",
            metavar="EARLIER",
            help="Earlier scan of the same object: a frame, a repeat or a prescan on the same grid, its slice as "
            "scan.h5#3 if it is another number. With --positions, a slice for each, both in ascending order.",
        ),
    ] = None,
    companions: WithOfDesign = None,
    recipe: Annotated[Recipe, Override(SETTINGS, {"encoding": STRATEGIES})],
    acceleration: Acceleration = None,
    shots: Annotated[
        int | None,
        whole(
            "--shots",
            least=1,
            help="Spokes or arms in the end, those at the start included.",
            show_default=False,
            panel="Spokes and spirals",
        ),
    ] = None,
    angles: Angles = None,
    positions: Annotated[
        str | None,
        option(
            "--positions",
            metavar="0,3-5|all",
            help="Further slices that share the mask with that of --slices, whose image is made: readout positions of "
            "a 3-D scan.",
            panel="Samples of a plane (3-D scans)",
        ),
    ] = None,
) -> int:
    """Decide which LINES of INPUT to measure, in order, and reconstruct the image from them.

    With --encoding plane it decides which samples of the plane (ky, kz) to measure, and --block of them at once. With
    --encoding radial or spiral it chooses the angles of spokes, or of the arms of a spiral, whose data are made of
    INPUT by the non-uniform Fourier transform.

    Give --lines or --acceleration, or say when it is enough. A recipe can say all of this too, and more about
    constraints and trains.

    Of several slices (--slices 0-9) one mask is made, for all of them together; the image is that of the middle one.

    INPUT must hold data in every line that may be chosen: it is replayed as the scanner. --resume continues an
    interrupted run and gives the same lines as one that was not; a finished one is left as it is.

    With --seen the design begins with what an EARLIER scan of the same object shows, and is corrected by everything
    that it measures. With --with the image's prior knows another image, whatever its contrast.
    """
    several = positions is not None or (slices is not None and whole_number(slices.removeprefix("-")) is None)
    if several:
        load_ahead(to.jobs, to.executor, [source])
    from mri_design.evaluation.run_status import CHECKPOINT
    from mri_design.experiment.sources import SliceChoice, require_no_slices, scan_sources
    from mri_design.kinds import KINDS, count_text
    from mri_design.runs.design.report import report_design
    from mri_design.runs.design.run import DesignRequest, design_scan

    require_no_slices(source, "give {0} --slices {1}")
    kind = KINDS[recipe.design.encoding]
    if lines is not None and kind.shots:
        raise UsageError(f"--lines and --samples count other candidates than {kind.unit}s: give --shots {lines}")
    if shots is not None and not kind.shots:
        raise UsageError(f"--shots counts spokes and arms (--encoding radial, spiral): give --{kind.unit}s {shots}")
    if kind.shots and strategy is None and recipe.design.strategy == "calibrated":
        strategy = "information-gain"
    recipe = recipe.replacing("design", strategy=strategy).replacing("shots", angles=angles)
    check_angles(angles, recipe.design.encoding, [recipe.design.strategy])
    if positions is not None and slices is not None and whole_number(slices) is None:
        raise UsageError("--positions adds further slices to the one of --slices: give all of them with --slices alone")
    index = 0 if slices is None or (several and positions is None) else int(slices)
    shared = (slices or "0") if positions is None else positions if positions == "all" else f"{index},{positions}"
    recipe, given = maps.applied(recipe)
    earlier = None if seen is None else replace(scan_sources([seen], shared)[0], maps=given)
    request = DesignRequest(
        source,
        recipe,
        shots if kind.shots else lines,
        index,
        maps=given,
        seen=earlier,
        acceleration=acceleration,
        positions=None if positions is None else SliceChoice(positions),
        slices=SliceChoice(slices) if several and positions is None and slices is not None else None,
        companions=check_with(companions, recipe),
    )
    with to.opened(CHECKPOINT) as run:
        ended = report_design(run, design_scan(request, run))
    return to.ended(count_text(len(ended.lines), kind.unit), ended)
