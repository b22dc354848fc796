"""``mri-design convert``: a scan or images from one file format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mri_design.cli.arguments import extents_of, matrix_of
from mri_design.cli.options import (
    CONVERTED,
    Contrast,
    FieldOfView,
    Input,
    Matrix,
    Phase,
    Quiet,
    RecipeFile,
    Repetition,
    Replace,
    SetNumber,
    whole,
)
from mri_design.cli.terminal import DONE, exits, say, warn
from mri_design.errors import UsageError


@exits
def convert(
    source: Input,
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help=f"The file; its ending is the format, one of {', '.join(CONVERTED)}.",
            show_default=False,
        ),
    ],
    fov: FieldOfView = None,
    index: Annotated[
        int | None, whole("--slice", help="Only this slice; negative counts from the end. [default: all]")
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            "--encoding",
            metavar="NAME",
            help="What rows and columns of k-space are: lines, ky and kx; or plane, ky and kz of a 3-D scan, which "
            "BART has as 1 x ky x kz x coil. [default: lines, and of a volume planes]",
        ),
    ] = None,
    recipe: RecipeFile = None,
    overwrite: Replace = False,
    quiet: Quiet = False,
    contrast: Contrast = None,
    phase: Phase = None,
    repetition: Repetition = None,
    set_: SetNumber = None,
    matrix: Matrix = None,
) -> int:
    """Write what INPUT holds in another format.

    k-space goes to .npz and .npy (NumPy), .h5 and .mrd (ISMRMRD) and .cfl (BART, with .hdr and, where they are known,
    the coil maps as NAME_maps; a volume as kx, ky, kz, coil, and one plane of it as 1, ky, kz, coil); samples along a
    trajectory to .npz and .cfl (with NAME_traj); images to .nii.gz and .nii (NIfTI), .dcm (DICOM, one file for each
    slice), .npz and .npy. What a format cannot hold is named.

    All slices of INPUT are taken, or that of --slice; of several contrasts, phases, repetitions and sets of raw data
    the first, or those that are named.
    """
    from mri_design.experiment.recipe import load_recipe
    from mri_design.runs.convert import convert_file
    from mri_design.runs.made_files import write_made_files

    if encoding not in (None, "lines", "plane"):
        raise UsageError(f"--encoding {encoding}: a conversion takes lines or plane")
    settings = load_recipe(recipe).replacing("input", contrast=contrast, phase=phase, repetition=repetition, set=set_)
    settings = settings.replacing("input", matrix=matrix_of(matrix))
    settings = settings.replacing("design", encoding=encoding)
    made = convert_file(source, out, settings, field_of_view=extents_of(fov), index=index)
    write_made_files(made, overwrite=overwrite)
    if made.warning:
        warn(made.warning, quiet)
    for sentence in made.sentences:
        say(sentence, quiet)
    return DONE
