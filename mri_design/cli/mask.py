"""``mri-design mask``: a mask without a scan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mri_design.cli import flags
from mri_design.cli.sequence_flags import SequenceFlags
from mri_design.cli.terminal import verb, written
from mri_design.errors import UnknownNameError
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.strategies import kinds_of_masks
from mri_design.kinds import designed_kinds

ENDINGS = (".npy", ".cfl", ".csv", ".seq")
_LARGEST = 4096
_MASKS = {encoding: ", ".join(kinds_of_masks(encoding)) for encoding in ("lines", "plane", "radial")}
_SEQUENCE_OF_A_MASK = {
    "echo_time": "Echo time; of tse the time between echoes. [default: 0.010; tse: 0.016]",
    "repetition_time": "Repetition time. [default: 0.030; tse: 3]",
    "flip_angle": "Flip angle; of tse that of the refocusing pulses. [default: 15; tse: 180]",
    "resolution": "Pixel size along the readout, metres. [default: the field of view over kx of --shape; of a plane "
    "over ky]",
    "slice_thickness": "Thickness of the slice, metres; of a plane (ky, kz) its extent along kz, which is needed. "
    "[default: 0.005]",
    "etl": "Length of the echo trains of tse: N lines in their order after each excitation. [default: --block]",
}
_ORDER_OF_A_MASK = {"block": "Lines of an echo train. [default: 1, or the recipe's]"}
"""In the words of a verb that has neither a scan nor a run."""


@verb
def mask(
    kind: Annotated[
        str,
        flags.option(
            "--kind",
            metavar="NAME",
            help=f"Of lines: {_MASKS['lines']}. Of a plane: {_MASKS['plane']}, and those of SigPy and "
            "BART, sigpy-poisson and bart-poisson. Of shots: radial and spiral, evenly over half a turn, or with a "
            f"set of angles behind a colon: {_MASKS['radial']}. A power or distance stands behind a colon, "
            "too: vd:3 (vd is vd-polynomial), regular:4, caipi:2x3.",
            show_default=False,
        ),
    ],
    shape: Annotated[
        str,
        flags.option(
            "--shape",
            metavar="N[xN]",
            help="Sides of k-space: ky x kx of lines, ky x kz of a plane, which two numbers mean where the kind knows "
            "planes; see --encoding.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        flags.option(
            "--out",
            metavar="FILE",
            help=f"The file; its ending is the format, one of {', '.join(ENDINGS)}: NumPy, BART, a table in the order "
            "of measurement, or a Pulseq sequence.",
            show_default=False,
        ),
    ],
    played: Annotated[SequenceFlags, _SEQUENCE_OF_A_MASK],
    acceleration: flags.Acceleration = None,
    lines: Annotated[
        int | None,
        flags.whole(
            "--lines",
            "--samples",
            "--shots",
            metavar="N",
            least=1,
            help="In the place of an acceleration: so many lines, samples or shots, those at the centre included.",
            show_default=False,
        ),
    ] = None,
    calibration: Annotated[
        int | None,
        flags.whole(
            "--calibration",
            metavar="N",
            least=0,
            help="Lines, or side of the square, at the centre without a gap; they count. 0 is none. [default: the "
            "strategy's]",
        ),
    ] = None,
    seed: flags.Seed = 0,
    encoding: Annotated[
        str | None,
        flags.option(
            "--encoding",
            metavar="NAME",
            help=f"What is chosen, where a kind knows several: {', '.join(designed_kinds())}.",
        ),
    ] = None,
    field_of_view: Annotated[
        flags.FieldOfView,
        {
            "field_of_view": "Field of view in metres, along phase encoding and readout where they differ; a sequence "
            "needs it."
        },
    ] = None,
    no_picture: Annotated[
        bool, flags.option("--no-picture", help="Only the file, without the picture beside it (.png).")
    ] = False,
    overwrite: flags.Replace = False,
    quiet: flags.Quiet = False,
    *,
    recipe: Annotated[
        Recipe,
        flags.Override("design.order design.block constraints.partial_fourier constraints.shutter"),
        _ORDER_OF_A_MASK,
    ],
) -> int:
    """Make a mask without a scan, with exactly the acceleration asked for, and a picture of it.

    The picture shows the mask and its point-spread function, what it makes of a point, whose largest side lobe is said
    as a number. The same seed gives the same mask, which is that of design with the same strategy. recon takes .npy and
    .cfl as --mask.

    Example: mri-design mask --kind poisson-disc --shape 256x180 --acceleration 8 --calibration 24 --seed 3 --out
    mask.npy
    """
    from mri_design.runs.mask import MaskRequest, make_mask

    if encoding is not None and encoding not in designed_kinds():
        raise UnknownNameError("encoding", encoding, designed_kinds())
    wanted = f"one or two whole numbers from 4 to {_LARGEST}, as 256 or 256x180"
    sides = shape.replace("x", ",")
    request = MaskRequest(
        kind,
        tuple(flags.numbers_of("--shape", sides, wanted, least=4, most=_LARGEST, count=(1, 2), whole=True)),
        out,
        recipe,
        encoding=encoding,
        count=lines,
        acceleration=acceleration,
        calibration=calibration,
        seed=seed,
        picture=not no_picture,
        field_of_view=flags.extents_of(field_of_view),
        sequence=played.asked_for(out.suffix == ".seq", "a sequence, --out NAME.seq"),
    )
    return written(make_mask(request), overwrite=overwrite, quiet=quiet)
