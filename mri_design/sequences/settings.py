"""Settings of a sequence: geometry, times, flip angle, bandwidth, each within bounds, in SI units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from mri_design.errors import InputError, described, require_choice, require_counts

SequenceKind = Literal["gre", "tse"]
KINDS = ("gre", "tse")
"""Gradient echoes, one line after each excitation; trains of spin echoes (turbo spin echo)."""
_MOST_SAMPLES = 8192
"""That receivers take at once."""


@dataclass(frozen=True, kw_only=True)
class SequenceSettings:
    """A sequence of one slice, in SI units; angles in degrees.

    Parameters
    ----------
    kind : {"gre", "tse"}
        Gradient echoes or trains of spin echoes.
    field_of_view : tuple of float
        Along phase encoding and readout (ky, kx), metres.
    samples : int
        Samples of a readout, without oversampling.
    echo_time : float
        Seconds from the middle of the excitation to the sample at the centre of the readout. Of ``tse`` it is the time
        between echoes; the effective echo time is that of the echo which measures the zero frequency.
    repetition_time : float
        Seconds between excitations.
    flip_angle : float
        Degrees: of the excitation, or of the refocusing pulses of ``tse``, whose excitation has 90.
    bandwidth : float
        Hz for each pixel of the readout: one over the time in which a line is sampled.
    slice_thickness : float
        Metres.
    dummies : int
        Excitations at the beginning without measurement.
    rf_spoiling : float
        Increment of the phase of excitations, degrees, which grows by it each time (``gre`` only); 0 is none.

    Raises
    ------
    InputError
        For a value out of its range.
    """

    kind: SequenceKind
    field_of_view: tuple[float, float]
    samples: int
    echo_time: float
    repetition_time: float
    flip_angle: float
    bandwidth: float
    slice_thickness: float = 5e-3
    dummies: int = 0
    rf_spoiling: float = 117.0

    def __post_init__(self) -> None:
        require_choice(KINDS, sequence=self.kind)
        require_counts(least=4, most=_MOST_SAMPLES, **{"samples of a readout": self.samples})
        require_counts(least=0, most=10_000, **{"dummies": self.dummies})
        for extent in self.field_of_view:
            _within("field of view", extent, 0.005, 1.0, "m")
        _within("slice thickness", self.slice_thickness, 0.0005, 0.5, "m")
        _within("echo time", self.echo_time, 0.0005, 1.0, "s")
        _within("repetition time", self.repetition_time, 0.001, 60.0, "s")
        _within("flip angle", self.flip_angle, 0.5, 90.0 if self.kind == "gre" else 180.0, "degrees")
        _within("bandwidth", self.bandwidth, 10.0, 20_000.0, "Hz for each pixel")
        _within("RF spoiling", self.rf_spoiling, 0.0, 360.0, "degrees")


def _within(field: str, value: object, least: float, most: float, unit: str) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not (number and least <= value <= most):  # type: ignore[operator]
        cure = "Lengths are in metres." if unit == "m" else "Times are in seconds." if unit == "s" else ""
        raise InputError(field, described(value), f"{least:g} to {most:g} {unit}", cure)
