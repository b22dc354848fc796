"""``mri-design measure``: means of regions of an image, and their differences, with errors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mri_design.cli.flags import NoReport, Quiet, option, whole
from mri_design.cli.terminal import DONE, say, verb

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
        option(
            "--region",
            metavar="MASK",
            help="Flags, or whole numbers from 1 for several regions, on the grid of the image (.npy with the axes of "
            "recon.npy), or a file whose header says where it lies (NIfTI, DICOM).",
            show_default=False,
        ),
    ],
    against: Annotated[
        Path | None,
        option("--against", metavar="MASK", help="Differences to this region, in the place of those of all pairs."),
    ] = None,
    other: Annotated[
        Path | None,
        option("--and", metavar="RUN", help="The same regions in another run, and differences of both images."),
    ] = None,
    number: Annotated[int | None, whole("--slice", help="Of a volume, the slice of the mask.")] = None,
    frame: Annotated[int | None, whole("--frame", help="Of several repetitions or echoes, one.")] = None,
    out: Annotated[
        Path | None, option("--out", metavar="DIR", help="Where measures.csv goes. [default: RUN itself]")
    ] = None,
    no_report: NoReport = False,
    quiet: Quiet = False,
) -> int:
    """Mean modulus of regions of RUN's image, and their differences, with standard deviations and intervals.

    Errors come from the draws of the image, over which pixels vary together as their errors do; no map of error bars
    tells that. Where the run has a reference, the true value and the error over the standard deviation stand
    beside. measures.csv has the table, with intervals of 50, 80 and 95 %, figures/regions.svg the regions on the image.
    """
    from mri_design.evaluation.run_folder import RunFolder
    from mri_design.evaluation.tables import column_names, shown_texts
    from mri_design.runs.measure import MeasureRequest, measure_run, report_measures

    request = MeasureRequest(run, region, against=against, other=other, slice_number=number, frame=frame)
    measured = measure_run(request)
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
