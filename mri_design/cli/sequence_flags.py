"""Flags of the sequence that a Pulseq file plays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from typer.models import OptionInfo

from mri_design.cli import flags
from mri_design.errors import InputError, UnknownNameError, described

if TYPE_CHECKING:
    from mri_design.runs.export import SequenceRequest

SCANNERS = ("generic", "low-field", "siemens-skyra", "siemens-prisma")
SEQUENCES = ("gre", "tse")
SEQUENCE_PANEL = "The sequence (.seq)"
_REQUESTED = ("sequence", "scanner", "resolution", "etl")
"""Options that are no settings of the sequence."""


def _played(name: str, metavar: str, text: str) -> OptionInfo:
    """An option of the sequence."""
    return flags.option(name, metavar=metavar, help=text, panel=SEQUENCE_PANEL)


@dataclass(frozen=True, kw_only=True)
class SequenceFlags:
    """The sequence of a Pulseq file: what is None is that of the scan, or the default."""

    sequence: Annotated[
        str | None,
        _played("--sequence", "NAME", f"One of: {', '.join(SEQUENCES)}. [default: tse where lines come in trains]"),
    ] = None
    scanner: Annotated[
        str | None,
        _played("--scanner", "NAME|FILE.toml", f"Limits: {', '.join(SCANNERS)}, or a file. [default: generic]"),
    ] = None
    echo_time: Annotated[
        float | None,
        _played("--te", "S", "Echo time; of tse the time between echoes. [default: the scan's; 0.010; tse: 0.016]"),
    ] = None
    repetition_time: Annotated[
        float | None, _played("--tr", "S", "Repetition time. [default: the scan's; 0.030; tse: 3]")
    ] = None
    flip_angle: Annotated[
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
    slice_thickness: Annotated[
        float | None,
        _played(
            "--thickness",
            "M",
            "Thickness of the slice, metres; of a plane (ky, kz) its extent along kz. [default: the scan's, or 0.005]",
        ),
    ] = None
    etl: Annotated[
        int | None,
        flags.whole(
            "--etl",
            metavar="N",
            least=1,
            most=1024,
            help="Length of the echo trains of tse: N lines in their order after each excitation. [default: the run's]",
            panel=SEQUENCE_PANEL,
        ),
    ] = None
    dummies: Annotated[
        int | None,
        flags.whole(
            "--dummies",
            metavar="N",
            least=0,
            help="Excitations before the first measurement. [default: 20; tse: 1]",
            panel=SEQUENCE_PANEL,
        ),
    ] = None
    rf_spoiling: Annotated[
        float | None,
        _played("--rf-spoiling", "DEGREES", "Increment of the phase of excitations, gre only. [default: 117]"),
    ] = None

    def asked_for(self, wanted: bool, what: str) -> SequenceRequest | None:
        """The sequence where one is ``wanted``, whose other settings are the scan's or the defaults; else None.

        Raises
        ------
        UsageError, InputError
            For an unknown kind of sequence, and for an option of a sequence where ``what`` would want one.
        """
        given = {name: value for name, value in vars(self).items() if value is not None}
        if not wanted:
            for name, value in given.items():
                raise InputError(name, described(value), "none", f"It is for {what}.")
            return None
        from mri_design.runs.export import SequenceRequest
        from mri_design.sequences.scanner import load_scanner

        if self.sequence is not None and self.sequence not in SEQUENCES:
            raise UnknownNameError("sequence", self.sequence, SEQUENCES)
        settings = {name: value for name, value in given.items() if name not in _REQUESTED}
        scanner = load_scanner(self.scanner or "generic")
        return SequenceRequest(scanner, self.sequence, settings, self.resolution, self.etl)  # type: ignore[arg-type]
