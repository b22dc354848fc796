"""``mri-design recon``: an image with error bars from measured lines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mri_design.cli import flags
from mri_design.cli.terminal import Resumed, load_ahead, verb
from mri_design.errors import UsageError
from mri_design.experiment.recipe import Recipe


@verb
def recon(
    source: str,
    to: Resumed,
    mask: Path | None = None,
    slices: str | None = None,
    reference: Path | None = None,
    companions: list[str] | None = None,
    calibrated_on: Path | None = None,
    *,
    maps: flags.Maps,
    recipe: Annotated[
        Recipe,
        flags.Override(
            "reconstruction.method reconstruction.noise_map reconstruction.draws coils.compress_coils input.matrix "
            f"{flags.ENCODING} {flags.SERIES} {flags.NOISE} {flags.COMPANION}"
        ),
    ],
) -> int:
    """Reconstruct INPUT from its measured lines, or from those of MASK; the posterior mean comes with error bars.

    All slices are reconstructed, or those of --slices, with one noise and one basis of coil maps; --jobs slices at
    once. Slices that are finished are kept: --resume goes on with the others.

    Example: mri-design recon scan.h5 --mask run/mask.npy --out recon

    Parameters
    ----------
    mask : MASK
        bool (ky,) or, of a plane, (ky, kz), in a .npy file, a mask of BART (.cfl), or a table of lines as export writes
        it (.csv): use only these. [default: all measured]
    reference : FILE
        Errors against the images of FILE (.npy/.npz as recon.npy, NIfTI, DICOM, .cfl), each scaled to fit. [default:
        the scan's own, where it knows one]
    calibrated_on : FOLDER
        Complete scans of other subjects, each reconstructed from the same lines: within how many standard deviations
        50, 80 and 95 % of their pixels are.
    encoding : NAME
        lines, or plane where rows and columns are ky and kz: then every sample counts by itself, those of MASK too. A
        number is that of --encoding-space. [default: lines, and plane where MASK or the scan has single samples]
    slices : --slices --slice 0,3-5|all
        <own slices> [default: all]
    companions : --with FILE
        <another image> Of INPUT itself: slices, the mean of those above and below each (slices:2: two such), or frames,
        the earlier and later ones with --contrast all and the like.
    """
    load_ahead(to.jobs, to.executor, [source])
    from mri_design.evaluation.run_folder import PROGRESS
    from mri_design.experiment.sources import ALL_SLICES, SliceChoice, require_no_slices
    from mri_design.runs.recon.report import reconstruct_in_folder
    from mri_design.runs.recon.run import ReconRequest

    made = recipe.reconstruction
    if made.noise_map and made.method not in ("mean", "least-squares"):
        raise UsageError(
            f"only mean and least-squares have a map of noise: leave out --noise-map, or --method {made.method}"
        )
    require_no_slices(source, "give {0} --slices {1}")
    recipe, given = maps.applied(recipe)
    request = ReconRequest(
        source,
        recipe,
        mask,
        given,
        slices=ALL_SLICES if slices is None else SliceChoice(slices),
        reference=reference,
        companions=flags.check_with(companions, recipe),
        calibrated_on=calibrated_on,
    )
    with to.opened(PROGRESS) as run:
        ended = reconstruct_in_folder(request, run)
    return to.ended(recipe.reconstruction.method, ended)
