"""Verbs about files: info describes one, open shows a report, export writes another, measure reads off regions, recipe
prints settings.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from mri_design.cli import options, terminal
from mri_design.cli.options import SEQUENCE, Calibration, Settings, whole
from mri_design.errors import InputError, UnknownNameError, UsageError, described, probability

if TYPE_CHECKING:
    from mri_design.runs.export import SequenceRequest

_REQUESTED = ("sequence", "scanner", "resolution", "etl")
"""Options that are no settings of the sequence."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SequenceOptions:
    """The sequence of a Pulseq file: what is None is the scan's, or the default.

    Parameters
    ----------
    sequence : str
        Of a .seq: gradient echo or turbo spin echo. [default: tse where lines come in trains]
    scanner : str
        Of a .seq, limits: generic, low-field, siemens-skyra, siemens-prisma, or a file. [default: generic]
    echo_time : float
        Echo time; of tse the time between echoes. [default: the scan's; 0.010; tse: 0.016]
    repetition_time : float
        Repetition time. [default: the scan's; 0.030; tse: 3]
    flip_angle : float
        Flip angle; of tse that of the refocusing pulses. [default: the scan's; 15; tse: 180]
    bandwidth : float
        Bandwidth of a pixel of the readout. [default: 250; spirals: the largest]
    resolution : float
        Pixel size along the readout, metres. [default: as the run's image]
    slice_thickness : float
        Thickness of the slice, metres; of a plane (ky, kz) its extent along kz. [default: the scan's, or 0.005]
    etl : int
        Length of the echo trains of tse: N lines in their order after each excitation. [default: the run's]
    dummies : int
        Excitations before the first measurement. [default: 20; tse: 1]
    rf_spoiling : float
        Increment of the phase of excitations, gre only. [default: 117]
    """

    sequence: Annotated[Literal["gre", "tse"] | None, Parameter(metavar="NAME")] = None
    scanner: Annotated[str | None, Parameter(metavar="NAME|FILE.toml")] = None
    echo_time: Annotated[float | None, Parameter(name="--te", group=SEQUENCE, metavar="S")] = None
    repetition_time: Annotated[float | None, Parameter(name="--tr", group=SEQUENCE, metavar="S")] = None
    flip_angle: Annotated[float | None, Parameter(name="--flip", group=SEQUENCE, metavar="DEGREES")] = None
    bandwidth: Annotated[float | None, Parameter(group=SEQUENCE, metavar="HZ")] = None
    resolution: Annotated[float | None, Parameter(group=SEQUENCE, metavar="M")] = None
    slice_thickness: Annotated[float | None, Parameter(name="--thickness", group=SEQUENCE, metavar="M")] = None
    etl: Annotated[int | None, whole(1, 1024, group=SEQUENCE)] = None
    dummies: Annotated[int | None, whole(0, group=SEQUENCE)] = None
    rf_spoiling: Annotated[float | None, Parameter(group=SEQUENCE, metavar="DEGREES")] = None

    def request(self, wanted: bool) -> SequenceRequest | None:
        """The sequence where one is ``wanted``, whose other settings are the scan's or the defaults; else None.

        Raises
        ------
        InputError
            For an option of a sequence where none is wanted, and an unknown scanner.
        """
        given = {name: value for name, value in vars(self).items() if value is not None}
        if not wanted:
            for name, value in given.items():
                raise InputError(name, described(value), "none", "It is for a sequence, --out NAME.seq.")
            return None
        from mri_design.runs.export import SequenceRequest
        from mri_design.sequences.scanner import load_scanner

        settings = {name: value for name, value in given.items() if name not in _REQUESTED}
        scanner = load_scanner(self.scanner or "generic")
        return SequenceRequest(scanner, self.sequence, settings, self.resolution, self.etl)


def info(
    source: Annotated[str, Parameter(name="INPUT")],
    /,
    *,
    calibration: Calibration = Calibration(),
    settings: Settings = Settings(),
    as_json: options.Json = False,
) -> int:
    """Show matrix, field of view, coils, measured lines and samples, centre, noise and provenance of INPUT.

    Of raw data the samples of one slice are read; the rest is from headers. Images, masks, a Pulseq sequence (.seq) and
    the folder of a run are described as what they are: an unfinished run with its progress and the command that
    continues it, a folder of runs with each of them.

    Example: mri-design info scan.h5; mri-design info run

    Parameters
    ----------
    source : str
        A file, phantom:NAME, or the folder of a run.
    as_json : bool
        Print one JSON document: what INPUT is, its numbers by key (matrix, field_of_view_m, coils, lines, noise_sd and
        others), and the text of each label.

    Notes
    -----
    Input: {formats}; or phantom:NAME, one of {phantoms}.
    """
    from mri_design.experiment.inputs import require_no_slices
    from mri_design.runs.info import describe_input

    require_no_slices(source, "info tells about all slices of {0}")
    recipe = settings.made(**calibration.settings)
    found = describe_input(source, recipe, calibration.of_one())
    if as_json:
        terminal.print_json({"input": source, **found.values, "text": found.text})
        return terminal.DONE
    for label, text in found.text.items():
        terminal.say(f"{label:15s} {text}")
    return terminal.DONE


def open_report(run: Annotated[Path, Parameter(name="RUN")], /) -> int:
    """Print where the report of RUN is, and show it in the browser where there is a display.

    Example: mri-design open run

    Parameters
    ----------
    run : Path
        Folder of a run, or its report.html.
    """
    report = run / "report.html" if run.is_dir() else run
    if not report.is_file():
        raise UsageError(
            f"RUN: {run} is no folder with a report.html; a run with --no-report has none, and the same command "
            "without it makes it"
        )
    terminal.say(str(report))
    displays = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    if sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in displays):
        import webbrowser

        webbrowser.open(report.resolve().as_uri())
    return terminal.DONE


def export(
    source: Annotated[str, Parameter(name="INPUT")],
    /,
    out: Annotated[Path, Parameter(name="--out")],
    *,
    field_of_view: options.Extents = None,
    slices: options.Slices = None,
    encoding: options.Name = None,
    settings: Settings = Settings(),
    played: SequenceOptions = SequenceOptions(),
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
) -> int:
    """Write a run, a scan or an image in another format: the ending of OUT says which.

    Of the folder of a RUN: its image and error bars (.nii.gz, .dcm), its mask (.cfl, .csv, .npy), a file for every
    line's label (.h5, .mrd), or the sequence that measures its lines (.seq). Of a scan or an image what it holds.

    Example: mri-design export run lines.seq --fov 0.24 --scanner siemens-skyra; mri-design export scan.h5 scan.cfl

    Parameters
    ----------
    source : str
        Folder of a design, a reconstruction or a protocol; or a file, or phantom:NAME.
    out : Path
        The file.
    field_of_view : str
        Field of view in metres, along phase encoding and readout where they differ. [default: the scan's]
    slices : str
        Of a file: slices by number from 0, or middle; a negative number counts from the end. [default: all]
    encoding : str
        Of a file: what rows and columns of k-space are, lines (ky and kx) or plane (ky and kz of a 3-D scan, which BART
        has as 1 x ky x kz x coil). [default: lines, and of a volume planes]
    overwrite : bool
        Replace files that are there.
    quiet : bool
        No result lines.

    Notes
    -----
    Image of a run: magnitude, and in NAME_std the error bars. csv and npy of a run: the lines in the order of
    measurement. seq: kept only where the file, read back, plays exactly what was designed within the scanner's limits.

    k-space of a file goes to .npz and .npy (NumPy), .h5 and .mrd (ISMRMRD) and .cfl (BART, with .hdr and, where they
    are known, the coil maps as NAME_maps); samples along a trajectory to .npz and .cfl (with NAME_traj); images to
    .nii.gz and .nii (NIfTI), .dcm (DICOM, one file for each slice), .npz and .npy. What a format cannot hold is named.
    """
    from mri_design.runs.export import convert_file, export_run

    extents = options.extents_of(field_of_view)
    if Path(source).is_dir():
        if spare := [name for name, value in {"slices": slices, "encoding": encoding}.items() if value is not None]:
            raise UsageError(f"--{spare[0]} is for a file, and {source} is the folder of a run: leave it out")
        sequence = played.request(out.suffix == ".seq")
        made = export_run(Path(source), out, field_of_view=extents, sequence=sequence)
        return terminal.written(made, overwrite=overwrite, quiet=quiet)
    from mri_design.experiment.inputs import ALL_SLICES, SliceChoice
    from mri_design.kinds import gridded_kinds

    recipe = settings.made(design={"encoding": encoding})
    if recipe.design.encoding not in gridded_kinds():
        raise UsageError(f"--encoding {recipe.design.encoding}, or that of the recipe: a file has lines or plane")
    played.request(wanted=False)
    chosen = ALL_SLICES if slices is None else SliceChoice(slices)
    made = convert_file(source, out, recipe, field_of_view=extents, slices=chosen)
    return terminal.written(made, overwrite=overwrite, quiet=quiet)


def measure(
    run: Annotated[Path, Parameter(name="RUN")],
    /,
    *,
    region: Annotated[list[Path] | None, Parameter(metavar="MASK")] = None,
    against: Annotated[Path | None, Parameter(metavar="MASK")] = None,
    other: Annotated[Path | None, Parameter(name="--and", metavar="RUN")] = None,
    number: Annotated[int | None, whole(0, name="--slice")] = None,
    frame: Annotated[int | None, whole(0)] = None,
    level: Annotated[float, options.share("P")] = 0.9,
    fit: Annotated[str | None, Parameter(metavar="MODEL")] = None,
    times: Annotated[tuple[str, str] | None, options.times()] = None,
    complex_signals: Annotated[bool, Parameter(name="--complex")] = False,
    out: Annotated[Path | None, Parameter(metavar="DIR")] = None,
    no_report: Annotated[bool, Parameter(group=options.RUN)] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> int:
    """Mean modulus of regions of RUN's image, and their differences, with standard deviations and intervals.

    Errors come from the draws of the image, over which pixels vary together as their errors do. measures.csv has the
    table, with intervals of 50, 80, 90 and 95 %, figures/regions.svg the regions on the image. With --fit a map of what
    the echoes show, as T2, is measured instead, and written as map.nii.gz, map_std.nii.gz and others.

    Example: mri-design recon scan.h5 --draws 32 --out recon; mri-design measure recon --region lesion.npy --against
    muscle.npy

    Parameters
    ----------
    run : Path
        Folder of a reconstruction with draws, as recon --draws 32.
    region : list of Path
        Flags, or whole numbers from 1 for several regions, on the grid of the image (.npy with the axes of recon.npy),
        or a file whose header says where it lies (NIfTI, DICOM). May be repeated.
    against : Path
        Differences to this region instead of those of all pairs.
    other : Path
        The same regions in another run, and differences of both images.
    number : int
        Of a volume, the slice of the mask.
    frame : int
        Of several repetitions or echoes, one.
    level : float
        Probability with which the interval that is shown holds the truth, as 95, 95% or 0.95.
    fit : str
        What is fitted to the echoes (contrasts, frames) of RUN: T2, T2*, t1-inversion, t1-flip:TR, adc, or
        water-fat:HZ, with the repetition time in ms and the frequency of fat from water. REGION may then be left out.
    times : str
        Times of the echoes in ms, as 10,20,30, or with a unit, as 0.01s,0.02s; or inversion times, flip angles in
        degrees, b values in s/mm2.
    complex_signals : bool
        Fit complex signals, whose phase is the same in all echoes, instead of moduli.
    out : Path
        Where measures.csv goes. [default: RUN itself]
    no_report : bool
        Only the table, without the figure.
    quiet : bool
        No result lines.
    as_json : bool
        Print one JSON document: "regions", a list with region, pixels, mean, sd, interval_50, _80, _90, _95 and that
        of --level (in the units of the image), true where a reference is known, and draws; and "notes".
    """
    from mri_design.evaluation.run_folder import RunFolder
    from mri_design.evaluation.tables import column_names, shown_texts
    from mri_design.runs.measure import facts_of, measure_run, report_measures

    made, masks = None, region or []
    level = probability(level, least=0.5, most=0.99)
    model, values = options.fitted(fit, times)
    if model is not None:
        from mri_design.runs.maps import MAP, measure_map, report_map

        spare = {"and": other, "slice": number, "frame": frame}
        for name in (name for name, value in spare.items() if value is not None):
            raise UsageError(f"--{name} is for images, and a map takes all slices and frames of RUN: leave it out")
        made, measured = measure_map(
            run, model, values, regions=masks, against=against, complex_signals=complex_signals, level=level
        )
    elif not masks:
        raise UsageError("nothing to measure: give --region MASK, or --fit T2 --echo-times 10,20,30")
    else:
        measured = measure_run(run, masks, against=against, other=other, slice_number=number, frame=frame, level=level)
    with RunFolder(run if out is None else out, reported=not no_report) as folder:
        if made is None:
            report_measures(folder, measured)
        else:
            report_map(folder, made, measured)
    if as_json:
        regions = [facts_of(mean, measured.levels) for mean in measured.means]
        terminal.print_json({"run": str(run), "regions": regions, "notes": measured.sentences})
        return terminal.DONE
    ends = [f" {100 * each:g} %" for each in measured.levels if each != level]  # the terminal is not as wide
    names = [name for name in column_names(measured.rows) if not name.endswith((*ends, "draws"))]
    table = [names, *shown_texts(measured.rows, names, measured.formats)]
    first, *others = (max(map(len, column)) for column in zip(*table, strict=True))
    for name, *numbers in table:
        cells = (f"{number:>{width}}" for number, width in zip(numbers, others, strict=True))
        terminal.say("  ".join([f"{name:<{first}}", *cells]).rstrip(), quiet)
    for sentence in measured.sentences:
        terminal.say(sentence, quiet)
    if made is not None:
        terminal.say(str((run if out is None else out) / MAP), quiet)
    return terminal.DONE


def recipe(name: Annotated[str, Parameter(name="NAME")] = "default", /, *, schema: bool = False) -> int:
    """Print a recipe that comes with the program, to begin one's own with.

    Example: mri-design recipe fast > mine.toml; mri-design design scan.h5 --lines 64 --recipe mine.toml --out run

    Parameters
    ----------
    name : str
        Its name; default has every setting.
    schema : bool
        Print the JSON Schema of recipes instead, by which editors complete and check a TOML file.

    Notes
    -----
    Recipes: {recipes}.
    """
    from mri_design.experiment.recipe import SHIPPED, recipe_schema, shipped_recipes

    if schema:
        terminal.print_json(recipe_schema())
        return terminal.DONE
    if name not in shipped_recipes():
        raise UnknownNameError("recipe", name, shipped_recipes())
    terminal.say((SHIPPED / f"{name}.toml").read_text(encoding="utf-8").rstrip())
    return terminal.DONE
