"""Verbs about files: info says what is in one, convert and export write another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.models import OptionInfo

from mri_design.cli.flags import SERIES, FieldOfView, Input, Maps, Override, Quiet, Replace, extents_of, option, whole
from mri_design.cli.terminal import DONE, say, verb, warn
from mri_design.errors import UsageError
from mri_design.experiment.recipe import Recipe

if TYPE_CHECKING:
    from mri_design.runs.export import SequenceRequest

CONVERTED = (".npz", ".npy", ".h5", ".mrd", ".cfl", ".nii.gz", ".nii", ".dcm")
FORMATS = ("nifti", "dicom", "cfl", "csv", "npy", "mrd", "seq")
SCANNERS = ("generic", "low-field", "siemens-skyra", "siemens-prisma")
SEQUENCES = ("gre", "tse")
_READING = f"input.matrix {SERIES}"
_SEQUENCE = "The sequence (--to seq)"
_SETTINGS = {
    "te": "echo_time",
    "tr": "repetition_time",
    "flip": "flip_angle",
    "bandwidth": "bandwidth",
    "thickness": "slice_thickness",
    "dummies": "dummies",
    "rf_spoiling": "rf_spoiling",
}
"""Options, and the names of the settings that they give."""


@verb
def info(source: Input, maps: Maps = None, *, recipe: Annotated[Recipe, Override(_READING)]) -> int:
    """Show matrix, field of view, coils, measured lines and samples, centre, noise and provenance of INPUT.

    Of raw data the samples of one slice are read, and headers tell the rest. Images, a Pulseq sequence (.seq) and the
    folder of a run are described as what they are.
    """
    from mri_design.experiment.slice_choice import require_no_slices
    from mri_design.runs.info import describe_input

    require_no_slices(source, "info tells about all slices of {0}")
    for label, text in describe_input(source, recipe, maps).items():
        say(f"{label:15s} {text}")
    return DONE


@verb
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
        option(
            "--encoding",
            metavar="NAME",
            help="What rows and columns of k-space are: lines, ky and kx; or plane, ky and kz of a 3-D scan, which "
            "BART has as 1 x ky x kz x coil. [default: lines, and of a volume planes]",
        ),
    ] = None,
    overwrite: Replace = False,
    quiet: Quiet = False,
    *,
    recipe: Annotated[Recipe, Override(_READING)],
) -> int:
    """Write what INPUT holds in another format.

    k-space goes to .npz and .npy (NumPy), .h5 and .mrd (ISMRMRD) and .cfl (BART, with .hdr and, where they are known,
    the coil maps as NAME_maps; a volume as kx, ky, kz, coil, and one plane of it as 1, ky, kz, coil); samples along a
    trajectory to .npz and .cfl (with NAME_traj); images to .nii.gz and .nii (NIfTI), .dcm (DICOM, one file for each
    slice), .npz and .npy. What a format cannot hold is named.

    All slices of INPUT are taken, or that of --slice; of several contrasts, phases, repetitions and sets of raw data
    the first, or those that are named.
    """
    from mri_design.runs.convert import convert_file
    from mri_design.runs.made_files import write_made_files

    if encoding not in (None, "lines", "plane"):
        raise UsageError(f"--encoding {encoding}: a conversion takes lines or plane")
    recipe = recipe.replacing("design", encoding=encoding)
    made = convert_file(source, out, recipe, field_of_view=extents_of(fov), index=index)
    write_made_files(made, overwrite=overwrite)
    if made.warning:
        warn(made.warning, quiet)
    for sentence in made.sentences:
        say(sentence, quiet)
    return DONE


def _played(name: str, metavar: str, text: str) -> OptionInfo:
    """An option of the sequence."""
    return option(name, metavar=metavar, help=text, panel=_SEQUENCE)


@dataclass(frozen=True, kw_only=True)
class _SequenceFlags:
    """The sequence of ``--to seq``: what is None is that of the scan, or the default."""

    sequence: Annotated[
        str | None,
        _played("--sequence", "NAME", f"One of: {', '.join(SEQUENCES)}. [default: tse where lines come in trains]"),
    ] = None
    scanner: Annotated[
        str | None,
        _played("--scanner", "NAME|FILE.toml", f"Limits: {', '.join(SCANNERS)}, or a file. [default: generic]"),
    ] = None
    te: Annotated[
        float | None,
        _played("--te", "S", "Echo time; of tse the time between echoes. [default: the scan's; 0.010; tse: 0.016]"),
    ] = None
    tr: Annotated[float | None, _played("--tr", "S", "Repetition time. [default: the scan's; 0.030; tse: 3]")] = None
    flip: Annotated[
        float | None,
        _played(
            "--flip", "DEGREES", "Flip angle; of tse that of the refocusing pulses. [default: the scan's; 15; tse: 180]"
        ),
    ] = None
    bandwidth: Annotated[
        float | None, _played("--bandwidth", "HZ", "Of each pixel of the readout. [default: 250; spirals: the largest]")
    ] = None
    resolution: Annotated[
        float | None,
        _played("--resolution", "M", "Pixel size along the readout, metres. [default: as the run's image]"),
    ] = None
    thickness: Annotated[
        float | None,
        _played(
            "--thickness",
            "M",
            "Thickness of the slice, metres; of a plane (ky, kz) its extent along kz. [default: the scan's, or 0.005]",
        ),
    ] = None
    etl: Annotated[
        int | None,
        whole(
            "--etl",
            metavar="N",
            least=1,
            most=1024,
            help="Length of the echo trains of tse: N lines in their order after each excitation. [default: the run's]",
            panel=_SEQUENCE,
        ),
    ] = None
    dummies: Annotated[
        int | None,
        whole(
            "--dummies",
            metavar="N",
            least=0,
            help="Excitations before the first measurement. [default: 20; tse: 1]",
            panel=_SEQUENCE,
        ),
    ] = None
    rf_spoiling: Annotated[
        float | None,
        _played("--rf-spoiling", "DEGREES", "Increment of the phase of excitations, gre only. [default: 117]"),
    ] = None

    def given(self) -> dict[str, Any]:
        """Values of the options that were given, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def asked(self) -> SequenceRequest:
        """The sequence that is asked for, whose other settings are the scan's or the defaults.

        Raises
        ------
        UsageError
            For an unknown kind of sequence.
        """
        from mri_design.runs.export import SequenceRequest
        from mri_design.sequences.scanner import load_scanner

        if self.sequence is not None and self.sequence not in SEQUENCES:
            raise UsageError(f"there is no sequence {self.sequence!r}; choose one of {', '.join(SEQUENCES)}")
        wanted = {_SETTINGS[name]: value for name, value in self.given().items() if name in _SETTINGS}
        scanner = load_scanner(self.scanner or "generic")
        return SequenceRequest(scanner, self.sequence, wanted, self.resolution, self.etl)  # type: ignore[arg-type]


@verb
def export(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="Folder of a design, a reconstruction or a protocol.", show_default=False),
    ],
    to: Annotated[str, option("--to", metavar="FORMAT", help=f"One of: {', '.join(FORMATS)}.")],
    out: Annotated[Path, option("--out", metavar="FILE", help="The file.", show_default=False)],
    played: _SequenceFlags,
    fov: FieldOfView = None,
    overwrite: Replace = False,
    quiet: Quiet = False,
    formerly: Annotated[float | None, option("--slice", metavar="M", hidden=True)] = None,
) -> int:
    """Write what RUN left in another format: its image and error bars, its lines, or the sequence that measures them.

    nifti and dicom: magnitude, and beside it NAME_std with the error bars. cfl: the mask for BART. csv and npy: the
    lines in the order of measurement. mrd: a file for every line's label, without samples. seq: a Pulseq sequence, kept
    only where the file, read back, plays exactly what was designed within the scanner's limits; of designs over a plane
    (ky, kz), spokes and spirals, too.
    """
    from mri_design.runs.export import ExportRequest, export_run
    from mri_design.runs.made_files import write_made_files

    if formerly is not None:
        if played.thickness is not None:
            raise UsageError("--slice is the older name of --thickness: give one of them")
        warn(f"--slice {formerly:g}, a thickness in metres here, is now called --thickness", quiet)
        played = replace(played, thickness=formerly)
    for name in played.given() if to != "seq" else ():
        raise UsageError(f"--{name.replace('_', '-')} is for --to seq")
    sequence = played.asked() if to == "seq" else None
    made = export_run(ExportRequest(run, to, out, field_of_view=extents_of(fov), sequence=sequence))
    write_made_files(made, overwrite=overwrite)
    for sentence in made.sentences:
        say(sentence, quiet)
    return DONE
