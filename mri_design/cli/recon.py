"""``mri-design recon``: an image with error bars from measured lines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mri_design.cli.flags import SERIES, Input, Maps, Override, SliceIndex, option
from mri_design.cli.terminal import Destination, verb
from mri_design.experiment.recipe import Recipe


@verb
def recon(
    source: Input,
    to: Destination,
    mask: Annotated[
        Path | None,
        option(
            "--mask",
            metavar="MASK",
            help="bool (ky,) or, of a plane, (ky, kz), in a .npy file, or a mask of BART (.cfl): use only these. "
            "[default: all measured]",
        ),
    ] = None,
    maps: Maps = None,
    index: SliceIndex = 0,
    *,
    recipe: Annotated[Recipe, Override(f"reconstruction.method input.matrix {SERIES}")],
) -> int:
    """Reconstruct INPUT from its measured lines, or from those of MASK; the posterior mean comes with error bars."""
    from mri_design.experiment.slice_choice import require_no_slices
    from mri_design.runs.recon.report import report_reconstruction
    from mri_design.runs.recon.run import ReconRequest, reconstruct_scan

    require_no_slices(source, "give {0} --slice {1}")
    request = ReconRequest(source, recipe, mask, maps, index)
    with to.opened() as run:
        ended = report_reconstruction(run, reconstruct_scan(request, run))
    return to.ended(recipe.reconstruction.method, ended.status)
