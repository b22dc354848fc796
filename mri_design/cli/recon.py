"""``mri-design recon``: an image with error bars from measured lines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mri_design.cli.arguments import matrix_of
from mri_design.cli.options import (
    Contrast,
    Input,
    Maps,
    Matrix,
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
    SliceIndex,
)
from mri_design.cli.terminal import ending, exits, run_into, say


@exits
def recon(
    source: Input,
    out: Out,
    mask: Annotated[
        Path | None,
        typer.Option(
            "--mask",
            metavar="MASK",
            help="bool (ky,) or, of a plane, (ky, kz), in a .npy file, or a mask of BART (.cfl): use only these. "
            "[default: all measured]",
        ),
    ] = None,
    maps: Maps = None,
    method: MethodName = None,
    index: SliceIndex = 0,
    seed: Seed = 0,
    recipe: RecipeFile = None,
    overwrite: Overwrite = False,
    no_report: NoReport = False,
    png: Png = False,
    quiet: Quiet = False,
    contrast: Contrast = None,
    phase: Phase = None,
    repetition: Repetition = None,
    set_: SetNumber = None,
    matrix: Matrix = None,
) -> int:
    """Reconstruct INPUT from its measured lines, or from those of MASK; the posterior mean comes with error bars."""
    from mri_design.experiment.recipe import load_recipe
    from mri_design.experiment.slice_choice import require_no_slices
    from mri_design.runs.recon.report import report_reconstruction
    from mri_design.runs.recon.run import ReconRequest, reconstruct_scan

    require_no_slices(source, "give {0} --slice {1}")
    settings = load_recipe(recipe).replacing("reconstruction", method=method)
    settings = settings.replacing("input", contrast=contrast, phase=phase, repetition=repetition, set=set_)
    settings = settings.replacing("input", matrix=matrix_of(matrix))
    request = ReconRequest(source, settings, mask, maps, index)
    with run_into(out, seed=seed, overwrite=overwrite, quiet=quiet, reported=not no_report, png=png) as run:
        ended = report_reconstruction(run, reconstruct_scan(request, run))
    say(f"{settings.reconstruction.method}, {ended.status}: {out if no_report else out / 'report.html'}", quiet)
    return ending(ended.status)
