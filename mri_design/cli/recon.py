"""``mri-design recon``: an image with error bars from measured lines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mri_design.cli.options import Input, Maps, MethodName, Out, Overwrite, Quiet, RecipeFile, Seed, SliceIndex
from mri_design.cli.terminal import ending, exits, progress, say

__all__ = ["recon"]


@exits
def recon(
    source: Input,
    out: Out,
    mask: Annotated[
        Path | None,
        typer.Option("--mask", metavar="MASK.npy", help="bool (ky,): use only these lines. [default: all measured]"),
    ] = None,
    maps: Maps = None,
    method: MethodName = None,
    index: SliceIndex = 0,
    seed: Seed = 0,
    recipe: RecipeFile = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> int:
    """Reconstruct INPUT from its measured lines, or from those of MASK; the posterior mean comes with error bars."""
    from mri_design.evaluation.output.run_folder import RunFolder
    from mri_design.experiment.recipe import load_recipe
    from mri_design.experiment.reconstruction import check_method
    from mri_design.experiment.slice_choice import require_no_slices
    from mri_design.runs.recon.run import reconstruct_into

    require_no_slices(source, "give {0} --slice {1}")
    settings = load_recipe(recipe).replacing("reconstruction", method=method)
    chosen = settings.reconstruction.method
    check_method(chosen)
    with RunFolder(out, overwrite=overwrite) as folder, progress(quiet) as bar:
        status = reconstruct_into(
            folder,
            source,
            settings,
            mask=mask,
            maps=maps,
            index=index,
            seed=seed,
            command=sys.argv[1:],
            show=bar.update,
            say=lambda text: say(text, quiet),
        )
    say(f"{chosen}, {status}: {out / 'report.html'}", quiet)
    return ending(status)
