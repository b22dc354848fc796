"""Options that several verbs share, described once.

Names are written out here instead of asked for: the numerics that know them take seconds to import, and ``--help``
should not wait for them. Verbs import them when they run. The tests hold the names against the real ones.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mri_design.experiment.strategy_names import TRAINING_RULES, strategy_names
from mri_design.whole_numbers import whole_number

PHANTOMS = ("shepp-logan", "brain", "head-3d", "t2w", "t1w", "lf-gre")
CONVERTED = (".npz", ".npy", ".h5", ".mrd", ".cfl", ".nii.gz", ".nii", ".dcm")
FORMATS = ("nifti", "dicom", "cfl", "csv", "npy", "mrd", "seq")
SCANNERS = ("generic", "low-field", "siemens-skyra", "siemens-prisma")
SEQUENCES = ("gre", "tse")
RECIPES = ("default", "fast", "lanczos", "local", "tv-wavelet")
METHODS = ("mean", "map", "least-squares", "zero-filled")
ORDERS = ("as-chosen", "ascending", "centre-out", "interleaved")
STRATEGIES = tuple(name for name in strategy_names() if name not in TRAINING_RULES)
PLANE_STRATEGIES = strategy_names("plane")
SHOT_STRATEGIES = strategy_names("radial")


def whole(*names: str, least: int | None = None, most: int | None = None, **described: Any) -> typer.models.OptionInfo:
    """An option that takes one whole number, in digits, from ``least`` to ``most``.

    Parameters
    ----------
    names : str
        As it is written.
    least, most : int, optional
        Limits, included.
    described : Any
        What else `typer.Option` takes: help, metavar.
    """

    def parsed(text: str | int) -> int:
        number = whole_number(text) if isinstance(text, str) else text  # a default is a number already
        if number is None:
            raise typer.BadParameter(f"{text!r} is no whole number. Give one, in digits.")
        if (least is not None and number < least) or (most is not None and number > most):
            limits = f"{least} to {most}" if most is not None else f"{least} or more"
            raise typer.BadParameter(f"{number} is out of range. Give {limits}.")
        return number

    made: typer.models.OptionInfo = typer.Option(*names, min=least, max=most, parser=parsed, **described)
    return made


Input = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="k-space (.npy/.npz with optional JSON card, fastMRI or ISMRMRD HDF5, Siemens .dat, BART .cfl), images to "
        f"simulate it from (.npy/.npz, NIfTI, DICOM), or phantom:NAME ({', '.join(PHANTOMS)}).",
        show_default=False,
    ),
]
Out = Annotated[Path, typer.Option("--out", help="Run folder; made if it does not exist.", show_default=False)]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite", help="Begin anew in a folder that is not empty: another run there goes, files may be replaced."
    ),
]
Replace = Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")]
FieldOfView = Annotated[
    str | None,
    typer.Option(
        "--fov",
        metavar="M[,M]",
        help="Field of view in metres, along phase encoding and readout where they differ. [default: the scan's]",
    ),
]
LineCount = Annotated[
    int, whole("--lines", least=1, help="Lines in the end, start lines included.", show_default=False)
]
Start = Annotated[int | None, whole("--start", least=1, help="Centre lines to begin with. [default: the strategy's]")]
SliceIndex = Annotated[int, whole("--slice", help="Slice index; negative counts from the end.")]
_SERIES = "Which series of raw data"


def _counter(name: str) -> typer.models.OptionInfo:
    text = f"Number of the {name} to read, by the file's own numbers. [default: the recipe's, or the first there is]"
    return whole(f"--{name}", metavar="N", least=0, most=65535, help=text, rich_help_panel=_SERIES)


Contrast = Annotated[int | None, _counter("contrast")]
Phase = Annotated[int | None, _counter("phase")]
Repetition = Annotated[int | None, _counter("repetition")]
SetNumber = Annotated[int | None, _counter("set")]
Matrix = Annotated[
    str | None,
    typer.Option(
        "--matrix",
        metavar="N[,N]",
        help="Pixels (ky, kx) of the image of samples along a trajectory, in the place of what a NumPy or BART file "
        "says.",
    ),
]
Slices = Annotated[
    str, typer.Option("--slices", metavar="0,3-5|middle|all", help="Slices of inputs that do not name their own.")
]
JOBS = max(1, min(4, os.cpu_count() or 1))
Jobs = Annotated[int, whole("--jobs", least=1, help="Processes; results do not depend on it.")]
Executor = Annotated[
    str,
    typer.Option(
        "--executor",
        metavar="NAME",
        help="Who computes: local, --jobs processes; dask, a dask cluster of --jobs workers on this machine; or "
        "dask:ADDRESS, the workers of a scheduler. Results do not depend on it.",
    ),
]
Maps = Annotated[
    Path | None,
    typer.Option(
        "--maps",
        metavar="FILE",
        help="Coil maps (.npy, .npz, .cfl): (slice,) coil, rows, columns as in INPUT. [default: INPUT's, or estimated]",
    ),
]
MapsOfInputs = Annotated[
    list[str] | None,
    typer.Option(
        "--maps",
        metavar="INPUT=FILE",
        help="Coil maps of one of the inputs, as for design; may be repeated. [default: INPUT's, or estimated]",
    ),
]
Seed = Annotated[int, whole("--seed", least=0, help="Of everything random.")]
NoReport = Annotated[
    bool,
    typer.Option("--no-report", help="For batch work: arrays, tables and the manifest, without figures and report."),
]
Png = Annotated[bool, typer.Option("--png", help="Write every figure as PNG too, for slides.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress and no result lines.")]
RecipeFile = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        metavar="FILE.toml",
        help=f"Settings: a TOML file, or a shipped recipe ({', '.join(RECIPES)}).",
    ),
]


def _strategy(names: Sequence[str], default: str) -> typer.models.OptionInfo:
    files = "trained:FILE or calibrated:FILE with a file of mri-design train"
    choice = f"One of: {', '.join(names)}; {files}."
    return typer.Option("--strategy", metavar="NAME", help=f"{choice} [default: {default}]")


StrategyName = Annotated[str | None, _strategy(STRATEGIES, "the recipe's")]
ProtocolStrategy = Annotated[
    str | None,
    _strategy(
        [*TRAINING_RULES, *(name for name in STRATEGIES if not name.startswith("oracle"))],
        "residual-greedy, or the recipe's where it names another than calibrated",
    ),
]
MethodName = Annotated[
    str | None,
    typer.Option("--method", metavar="NAME", help=f"One of: {', '.join(METHODS)}. [default: the recipe's]"),
]

_ENOUGH, _CONSTRAINTS, _ORDER = "When it is enough", "What the sequence asks", "Echo trains and order"
UntilError = Annotated[
    float | None,
    typer.Option(
        "--until-error",
        metavar="E",
        help="End as soon as the predicted relative L2 error is E (0.05 is 5 %) or less; --lines is the most. It is "
        "the error, phase included, of the image that the design itself infers; the final image is usually better. "
        "Strategies other than calibrated predict errors that are too small.",
        rich_help_panel=_ENOUGH,
    ),
]
UntilGain = Annotated[
    float | None,
    typer.Option(
        "--until-gain",
        metavar="G",
        help="End as soon as no remaining line is expected to give G nats of information about the image; --lines is "
        "the most.",
        rich_help_panel=_ENOUGH,
    ),
]
Forbid = Annotated[
    str | None,
    typer.Option(
        "--forbid",
        metavar="0-9,250",
        help="Lines that must not be measured, numbered from 0.",
        rich_help_panel=_CONSTRAINTS,
    ),
]
Require = Annotated[
    str | None,
    typer.Option(
        "--require",
        metavar="16,48",
        help="Lines that must be; they are measured at the start.",
        rich_help_panel=_CONSTRAINTS,
    ),
]
PartialFourier = Annotated[
    float | None,
    typer.Option(
        "--partial-fourier",
        metavar="P",
        help="Keep this share of the grid, 0.5 to 1, with all lines of positive ky.",
        rich_help_panel=_CONSTRAINTS,
    ),
]
MaxJump = Annotated[
    int | None,
    whole(
        "--max-jump",
        metavar="J",
        least=1,
        help="Largest distance between consecutive lines. The target always stays within reach.",
        rich_help_panel=_CONSTRAINTS,
    ),
]
_PLANE = "Samples of a plane (3-D scans)"


def _encoding(planes: Sequence[str]) -> typer.models.OptionInfo:
    return typer.Option(
        "--encoding",
        metavar="NAME",
        help="What is chosen one by one: lines; plane, single samples (ky, kz), the image's rows and columns; radial, "
        f"spokes; or spiral, arms. Strategies for a plane: {', '.join(planes)}; for spokes and "
        f"spirals: {', '.join(SHOT_STRATEGIES)}. [default: the recipe's]",
        rich_help_panel=_PLANE,
    )


EncodingChoice = Annotated[str | None, _encoding([name for name in PLANE_STRATEGIES if name not in TRAINING_RULES])]
ComparedEncoding = Annotated[str | None, _encoding(PLANE_STRATEGIES)]
Acceleration = Annotated[
    float | None,
    typer.Option(
        "--acceleration",
        metavar="R",
        help="In the place of a number: measure one in R of the grid's lines, or samples.",
        rich_help_panel=_PLANE,
    ),
]
Angles = Annotated[
    int | None,
    whole(
        "--angles",
        metavar="N",
        least=1,
        help="Equispaced angles to choose from, over half a turn (radial) or a full one (spiral). Chosen ones lose to "
        "as many spread evenly over half a turn (--strategy half-turn): measured on heads, by 7 to 24 %. The "
        "recipe's table shots has the readouts and what gradients can do. [default: the recipe's, or four per shot]",
        rich_help_panel="Spokes and spirals",
    ),
]
Shutter = Annotated[
    bool | None,
    typer.Option(
        "--shutter/--no-shutter",
        help="Leave out the corners of the plane, outside of the ellipse that touches its edges. "
        "[default: the recipe's]",
        rich_help_panel=_PLANE,
    ),
]
Calibration = Annotated[
    int | None,
    whole(
        "--calibration",
        metavar="N",
        least=1,
        help="Side of the square around the centre of the plane that is always measured. [default: the recipe's]",
        rich_help_panel=_PLANE,
    ),
]
Block = Annotated[
    int | None,
    whole(
        "--block",
        metavar="K",
        least=1,
        help="Choose K lines after each inference: echo trains of K; or K samples of a plane, by default a 200th of "
        "it. [default: the recipe's]",
        rich_help_panel=_ORDER,
    ),
]
Order = Annotated[
    str | None,
    typer.Option(
        "--order",
        metavar="NAME",
        help=f"In which the chosen lines are measured: {', '.join(ORDERS)}. [default: the recipe's]",
        rich_help_panel=_ORDER,
    ),
]
