"""A Pulseq file: made twice, read back and verified, or not made at all."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mri_design.errors import InputError, require_counts
from mri_design.sequences.echoes import gradient_echo, turbo_spin_echo
from mri_design.sequences.events import Events
from mri_design.sequences.orders import LineOrder, Order
from mri_design.sequences.scanner import Scanner, SequenceSettings
from mri_design.sequences.verification import SequenceError, Verified, verify

_MOST_LINES = 1024
"""The six digits of a file's amplitudes hold the lines of larger grids too coarsely."""


@dataclass(frozen=True)
class PulseqFile:
    """A sequence that was verified.

    Parameters
    ----------
    content : bytes
        Of the ``.seq`` file.
    verified : Verified
        What was found when it was read back.
    """

    content: bytes
    verified: Verified


def pulseq_file(order: Order, settings: SequenceSettings, scanner: Scanner, name: str = "lines") -> PulseqFile:
    """The Pulseq file of an order of readouts, which plays exactly what was designed.

    It is written to a temporary place, read back and verified, and made a second time: the bytes must be the same.

    Parameters
    ----------
    order : Order
        Lines and echo trains, samples of a plane, spokes or arms of spirals; ``gre`` takes them one by one, and ``tse``
        takes lines.
    settings : SequenceSettings
        Geometry and times.
    scanner : Scanner
        Whose limits hold.
    name : str
        Of the sequence: letters, digits and underscores.

    Raises
    ------
    InputError
        Where what is asked cannot be had on the scanner: with what could be.
    SequenceError
        Where the file is not as designed, with the block.
    MissingPackageError
        Where pypulseq is not installed.

    Notes
    -----
    pypulseq 1.5 checks neither gradient amplitude nor slew rate of what it writes; `verify` does.
    """
    if order.matrix is not None:
        require_counts(least=4, most=_MOST_LINES, **{"lines of the grid": order.matrix[0]})
    if settings.kind == "tse" and not isinstance(order, LineOrder):
        raise InputError("sequence", "tse", "gre for planes, spokes and spirals, which have no echo trains")
    along_y, along_x = settings.field_of_view
    rows, partitions = order.matrix or (settings.samples, 1)
    definitions = {
        "Name": name,
        "FOV": [along_x, along_y, settings.slice_thickness],
        "Matrix": [settings.samples, rows, partitions],
        "TE": settings.echo_time,
        "TR": settings.repetition_time,
        "FlipAngle": settings.flip_angle,
        "EchoTrainLength": order.echoes if settings.kind == "tse" else 1,
        **order.definitions,
        "SliceThickness": settings.slice_thickness,
    }
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")  # pypulseq warns where it changes what it was asked for
        first, second = (Path(folder) / f"{place}.seq" for place in ("first", "second"))
        make: Callable[[Events, Any], Any] = turbo_spin_echo if settings.kind == "tse" else gradient_echo
        for path in (first, second):
            sequence = make(Events(scanner, settings), order)
            for key, value in definitions.items():
                sequence.set_definition(key, value)
            sequence.write(str(path))
        content = first.read_bytes()
        if content != second.read_bytes():
            raise SequenceError("the same sequence written twice gives different files")
        return PulseqFile(content, verify(first, order, settings, scanner))
