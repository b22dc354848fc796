"""Verbs about files: info says what is in one, convert and export write another, measure reads off regions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mri_design.cli import flags
from mri_design.cli.sequence_flags import SequenceFlags
from mri_design.cli.terminal import DONE, say, verb, written
from mri_design.errors import UsageError
from mri_design.experiment.recipe import Recipe

CONVERTED = (".npz", ".npy", ".h5", ".mrd", ".cfl", ".nii.gz", ".nii", ".dcm")
FORMATS = ("nifti", "dicom", "cfl", "csv", "npy", "mrd", "seq")
_READING = f"input.matrix {flags.SERIES}"
_ENCODING_OF_A_FILE = (
    "What rows and columns of k-space are: lines, ky and kx; or plane, ky and kz of a 3-D scan, which BART has as "
    "1 x ky x kz x coil. A number is that of --encoding-space. [default: lines, and of a volume planes]"
)


@verb
def info(
    source: flags.Input, maps: flags.Maps, *, recipe: Annotated[Recipe, flags.Override(f"{_READING} {flags.NOISE}")]
) -> int:
    """Show matrix, field of view, coils, measured lines and samples, centre, noise and provenance of INPUT.

    Of raw data the samples of one slice are read, and headers tell the rest. Images, a Pulseq sequence (.seq) and the
    folder of a run are described as what they are: of a run that is not finished how far it is and how to go on, of a
    folder of runs each.

    Example: mri-design info scan.h5; mri-design info run
    """
    from mri_design.experiment.sources import require_no_slices
    from mri_design.runs.info import describe_input

    require_no_slices(source, "info tells about all slices of {0}")
    for label, text in describe_input(source, *maps.applied(recipe)).items():
        say(f"{label:15s} {text}")
    return DONE


@verb
def convert(
    source: flags.Input,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUT",
            help=f"The file; its ending is the format, one of {', '.join(CONVERTED)}.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, flags.option("--out", metavar="FILE", help="The file, as OUT.", show_default=False)
    ] = None,
    field_of_view: flags.FieldOfView = None,
    slices: flags.AllSlices = None,
    overwrite: flags.Replace = False,
    quiet: flags.Quiet = False,
    *,
    recipe: Annotated[
        Recipe,
        flags.Override(f"{_READING} noise.samples {flags.ENCODING}"),
        {"encoding": _ENCODING_OF_A_FILE},
    ],
) -> int:
    """Write what INPUT holds in another format.

    k-space goes to .npz and .npy (NumPy), .h5 and .mrd (ISMRMRD) and .cfl (BART, with .hdr and, where they are known,
    the coil maps as NAME_maps; a volume as kx, ky, kz, coil, and one plane of it as 1, ky, kz, coil); samples along a
    trajectory to .npz and .cfl (with NAME_traj); images to .nii.gz and .nii (NIfTI), .dcm (DICOM, one file for each
    slice), .npz and .npy. What a format cannot hold is named.

    All slices of INPUT are taken, or those of --slices; of several contrasts, phases, repetitions and sets of raw data
    the first, or those that are named.

    Example: mri-design convert scan.h5 scan.cfl; mri-design convert head.npy head.nii.gz --fov 0.24
    """
    from mri_design.experiment.sources import ALL_SLICES, SliceChoice
    from mri_design.runs.convert import convert_file

    if recipe.design.encoding not in ("lines", "plane"):
        raise UsageError(
            f"--encoding {recipe.design.encoding}, or that of the recipe: a conversion takes lines or plane"
        )
    chosen = ALL_SLICES if slices is None else SliceChoice(slices)
    target = out or file
    if target is None or file not in (None, target):
        raise UsageError("which file is to be written? Give its name once, as OUT or as --out")
    made = convert_file(source, target, recipe, field_of_view=flags.extents_of(field_of_view), slices=chosen)
    return written(made, overwrite=overwrite, quiet=quiet)


@verb
def export(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="Folder of a design, a reconstruction or a protocol.", show_default=False),
    ],
    to: Annotated[str, flags.option("--to", metavar="FORMAT", help=f"One of: {', '.join(FORMATS)}.")],
    out: Annotated[Path, flags.option("--out", metavar="FILE", help="The file.", show_default=False)],
    played: SequenceFlags,
    field_of_view: flags.FieldOfView = None,
    overwrite: flags.Replace = False,
    quiet: flags.Quiet = False,
) -> int:
    """Write what RUN left in another format: its image and error bars, its lines, or the sequence that measures them.

    nifti and dicom: magnitude, and beside it NAME_std with the error bars. cfl: the mask for BART. csv and npy: the
    lines in the order of measurement. mrd: a file for every line's label, without samples. seq: a Pulseq sequence, kept
    only where the file, read back, plays exactly what was designed within the scanner's limits; of designs over a plane
    (ky, kz), spokes and spirals, too.

    Example: mri-design export run --to seq --fov 0.24 --scanner siemens-skyra --out lines.seq; mri-design export
    run --to nifti --out image.nii.gz
    """
    from mri_design.runs.export import export_run

    sequence = played.asked_for(to == "seq", "--to seq")
    made = export_run(run, to, out, field_of_view=flags.extents_of(field_of_view), sequence=sequence)
    return written(made, overwrite=overwrite, quiet=quiet)


_IN_THE_FILE = ("from 50 %", "to 50 %", "from 80 %", "to 80 %", "draws")
"""Columns of measures.csv that are left out on the terminal, which is not as wide."""


@verb
def measure(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="Folder of a reconstruction with draws, as recon --draws 32.", show_default=False
        ),
    ],
    region: Annotated[
        Path,
        flags.option(
            "--region",
            metavar="MASK",
            help="Flags, or whole numbers from 1 for several regions, on the grid of the image (.npy with the axes of "
            "recon.npy), or a file whose header says where it lies (NIfTI, DICOM).",
            show_default=False,
        ),
    ],
    against: Annotated[
        Path | None,
        flags.option(
            "--against", metavar="MASK", help="Differences to this region, in the place of those of all pairs."
        ),
    ] = None,
    other: Annotated[
        Path | None,
        flags.option("--and", metavar="RUN", help="The same regions in another run, and differences of both images."),
    ] = None,
    number: Annotated[int | None, flags.whole("--slice", help="Of a volume, the slice of the mask.")] = None,
    frame: Annotated[int | None, flags.whole("--frame", help="Of several repetitions or echoes, one.")] = None,
    out: Annotated[
        Path | None, flags.option("--out", metavar="DIR", help="Where measures.csv goes. [default: RUN itself]")
    ] = None,
    no_report: flags.NoReport = False,
    quiet: flags.Quiet = False,
) -> int:
    """Mean modulus of regions of RUN's image, and their differences, with standard deviations and intervals.

    Errors come from the draws of the image, over which pixels vary together as their errors do; no map of error bars
    tells that. Where the run has a reference, the true value and the error over the standard deviation stand
    beside. measures.csv has the table, with intervals of 50, 80 and 95 %, figures/regions.svg the regions on the image.

    Example: mri-design measure recon --region lesion.nii.gz --against muscle.nii.gz; the run was made with
    mri-design recon scan.h5 --draws 32 --out recon
    """
    from mri_design.evaluation.run_folder import RunFolder
    from mri_design.evaluation.tables import column_names, shown_texts
    from mri_design.runs.measure import measure_run, report_measures

    measured = measure_run(run, region, against=against, other=other, slice_number=number, frame=frame)
    with RunFolder(run if out is None else out, reported=not no_report) as folder:
        report_measures(folder, measured)
    names = [name for name in column_names(measured.rows) if name not in _IN_THE_FILE]
    table = [names, *shown_texts(measured.rows, names, measured.formats)]
    first, *others = (max(map(len, column)) for column in zip(*table, strict=True))
    for name, *numbers in table:
        cells = (f"{number:>{width}}" for number, width in zip(numbers, others, strict=True))
        say("  ".join([f"{name:<{first}}", *cells]).rstrip(), quiet)
    for sentence in measured.sentences:
        say(sentence, quiet)
    return DONE
