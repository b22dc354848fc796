"""``mri-design design``: the order in which to measure phase-encode lines."""

from __future__ import annotations

from typing import Annotated

from mri_design.cli import flags
from mri_design.cli.terminal import Resumed, load_ahead, verb
from mri_design.errors import UsageError
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.strategies import TRAINING_RULES
from mri_design.whole_numbers import whole_number

SETTINGS = (
    f"design.start {flags.ENDS} {flags.CONSTRAINTS} design.block design.order design.encoding {flags.PLANE} "
    f"{flags.SERIES} {flags.NOISE} {flags.COMPANION}"
)
STRATEGIES = f"Strategies for a plane: {flags.names_in_help('plane', TRAINING_RULES)}; {flags.SHOT_STRATEGIES}"


@verb
def design(
    source: str,
    to: Resumed,
    lines: flags.LineCount = None,
    *,
    strategy: str | None = None,
    slices: str = "0",
    maps: flags.Maps,
    companions: list[str] | None = None,
    recipe: Annotated[Recipe, flags.Override(SETTINGS, {"encoding": STRATEGIES})],
    acceleration: float | None = None,
    shots: Annotated[int | None, flags.Within(1), flags.Panel("Spokes and spirals")] = None,
    angles: flags.Angles = None,
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

    With --with the image's prior knows another image of the object, whatever its contrast, and a repeat, which shows
    what the first lines show, steers the mask; either is corrected by everything that is measured.

    Example: mri-design design scan.h5 --lines 64 --out run. Trains of eight lines, as many as are needed:
    mri-design design scan.h5 --until-error 0.05 --partial-fourier 0.75 --block 8 --order interleaved --out run

    Parameters
    ----------
    shots : N
        Spokes or arms in the end, those at the start included.
    slices : --slices --slice 0,3-5|all
        <own slices> [default: 0]
    companions : --with FILE
        <another image> Of several --slices that share the mask: slices, the mean of those above and below that of the
        image; and frames: around --contrast, --phase or --set N what the same lines measure of others, before
        --repetition N the earlier.
    """
    if whole_number(slices.removeprefix("-")) is None:
        load_ahead(to.jobs, to.executor, [source])
    from mri_design.evaluation.run_folder import CHECKPOINT
    from mri_design.experiment.sources import SliceChoice, require_no_slices
    from mri_design.kinds import KINDS, count_text
    from mri_design.runs.design.report import run_design_of
    from mri_design.runs.design.run import DesignRequest

    require_no_slices(source, "give {0} --slices {1}")
    kind = KINDS[recipe.design.encoding]
    if lines is not None and kind.shots:
        raise UsageError(f"--lines and --samples count other candidates than {kind.unit}s: give --shots {lines}")
    if shots is not None and not kind.shots:
        raise UsageError(f"--shots counts spokes and arms (--encoding radial, spiral): give --{kind.unit}s {shots}")
    if kind.shots and strategy is None and recipe.design.strategy == "calibrated":
        strategy = "information-gain"
    recipe = recipe.replacing("design", strategy=strategy).replacing("shots", angles=angles)
    flags.check_angles(angles, recipe.design.encoding, [recipe.design.strategy])
    recipe, given = maps.applied(recipe)
    request = DesignRequest(
        source,
        recipe,
        shots if kind.shots else lines,
        maps=given,
        acceleration=acceleration,
        slices=SliceChoice(slices),
        companions=flags.check_with(companions, recipe),
    )
    with to.opened(CHECKPOINT) as run:
        ended = run_design_of(request, run)
    return to.ended(count_text(len(ended.lines), kind.unit), ended)
