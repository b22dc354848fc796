"""``mri-design export``: what a run left, for other programs and for the scanner."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mri_design.cli.arguments import extents_of
from mri_design.cli.options import FORMATS, SCANNERS, SEQUENCES, FieldOfView, Quiet, Replace, whole
from mri_design.cli.terminal import DONE, exits, say, warn
from mri_design.errors import UsageError

_SEQUENCE = "The sequence (--to seq)"
_DEFAULTS: dict[str, dict[str, Any]] = {
    "gre": {"echo_time": 0.010, "repetition_time": 0.030, "flip_angle": 15.0, "bandwidth": 250.0, "dummies": 20},
    "tse": {"echo_time": 0.016, "repetition_time": 3.0, "flip_angle": 180.0, "bandwidth": 250.0, "dummies": 1},
}
"""In SI units, angles in degrees; within the limits of the scanner `generic` up to 256 lines and samples."""


def _option(name: str, metavar: str, text: str) -> typer.models.OptionInfo:
    return typer.Option(name, metavar=metavar, help=text, rich_help_panel=_SEQUENCE)


@exits
def export(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="Folder of a design, a reconstruction or a protocol.", show_default=False),
    ],
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help=f"One of: {', '.join(FORMATS)}.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file.", show_default=False)],
    fov: FieldOfView = None,
    overwrite: Replace = False,
    quiet: Quiet = False,
    sequence: Annotated[
        str | None,
        _option("--sequence", "NAME", f"One of: {', '.join(SEQUENCES)}. [default: tse where lines come in trains]"),
    ] = None,
    scanner: Annotated[
        str | None,
        _option("--scanner", "NAME|FILE.toml", f"Limits: {', '.join(SCANNERS)}, or a file. [default: generic]"),
    ] = None,
    te: Annotated[
        float | None,
        _option("--te", "S", "Echo time; of tse the time between echoes. [default: the scan's; 0.010; tse: 0.016]"),
    ] = None,
    tr: Annotated[float | None, _option("--tr", "S", "Repetition time. [default: the scan's; 0.030; tse: 3]")] = None,
    flip: Annotated[
        float | None,
        _option(
            "--flip", "DEGREES", "Flip angle; of tse that of the refocusing pulses. [default: the scan's; 15; tse: 180]"
        ),
    ] = None,
    bandwidth: Annotated[
        float | None, _option("--bandwidth", "HZ", "Of each pixel of the readout. [default: 250; spirals: the largest]")
    ] = None,
    resolution: Annotated[
        float | None,
        _option("--resolution", "M", "Pixel size along the readout, metres. [default: as the run's image]"),
    ] = None,
    thickness: Annotated[
        float | None,
        _option(
            "--thickness",
            "M",
            "Thickness of the slice, metres; of a plane (ky, kz) its extent along kz. [default: the scan's, or 0.005]",
        ),
    ] = None,
    formerly: Annotated[float | None, typer.Option("--slice", metavar="M", hidden=True)] = None,
    etl: Annotated[
        int | None,
        whole(
            "--etl",
            metavar="N",
            least=1,
            most=1024,
            help="Length of the echo trains of tse: N lines in their order after each excitation. [default: the run's]",
            rich_help_panel=_SEQUENCE,
        ),
    ] = None,
    dummies: Annotated[
        int | None,
        whole(
            "--dummies",
            metavar="N",
            least=0,
            help="Excitations before the first measurement. [default: 20; tse: 1]",
            rich_help_panel=_SEQUENCE,
        ),
    ] = None,
    spoiling: Annotated[
        float | None,
        _option("--rf-spoiling", "DEGREES", "Increment of the phase of excitations, gre only. [default: 117]"),
    ] = None,
) -> int:
    """Write what RUN left in another format: its image and error bars, its lines, or the sequence that measures them.

    nifti and dicom: magnitude, and beside it NAME_std with the error bars. cfl: the mask for BART. csv and npy: the
    lines in the order of measurement. mrd: a file for every line's label, without samples. seq: a Pulseq sequence, kept
    only where the file, read back, plays exactly what was designed within the scanner's limits; of designs over a plane
    (ky, kz), spokes and spirals, too.
    """
    from mri_design.runs.export import ExportRequest, ScanParameters, SequenceRequest, export_run
    from mri_design.runs.made_files import write_made_files
    from mri_design.sequences.scanner import load_scanner
    from mri_design.sequences.settings import SequenceKind, SequenceSettings

    if formerly is not None:
        if thickness is not None:
            raise UsageError("--slice is the older name of --thickness: give one of them")
        warn(f"--slice {formerly:g}, a thickness in metres here, is now called --thickness", quiet)
        thickness = formerly
    times = {"--te": ("echo_time", te), "--tr": ("repetition_time", tr), "--flip": ("flip_angle", flip)}
    others = {
        "--bandwidth": ("bandwidth", bandwidth),
        "--thickness": ("slice_thickness", thickness),
        "--dummies": ("dummies", dummies),
        "--rf-spoiling": ("rf_spoiling", spoiling),
    }
    wanted = {option: pair for option, pair in (times | others).items() if pair[1] is not None}
    rest = {"--sequence": sequence, "--scanner": scanner, "--resolution": resolution, "--etl": etl}
    for option in (*wanted, *(name for name, value in rest.items() if value is not None)):
        if to != "seq":
            raise UsageError(f"{option} is for --to seq")
    if sequence is not None and sequence not in SEQUENCES:
        raise UsageError(f"there is no sequence {sequence!r}; choose one of {', '.join(SEQUENCES)}")

    def settings(extents: tuple[float, float], samples: int, in_trains: bool, scan: ScanParameters) -> SequenceSettings:
        kind: SequenceKind = "tse" if (in_trains if sequence is None else sequence == "tse") else "gre"
        chosen: dict[str, Any] = {**_DEFAULTS[kind], **scan.defaults(kind), **dict(wanted.values())}
        return SequenceSettings(kind=kind, field_of_view=extents, samples=samples, **chosen)

    asked = (
        SequenceRequest(load_scanner(scanner or "generic"), settings, resolution, thickness, bandwidth, etl)
        if to == "seq"
        else None
    )
    request = ExportRequest(run, to, out, field_of_view=extents_of(fov), sequence=asked)
    made = export_run(request)
    write_made_files(made, overwrite=overwrite)
    for sentence in made.sentences:
        say(sentence, quiet)
    return DONE
