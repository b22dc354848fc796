"""Gradient echoes: one line after each excitation, spoiled, in any order."""

from __future__ import annotations

import math
from typing import Any

from mri_design.sequences.events import Events
from mri_design.sequences.settings import LineOrder
from mri_design.sequences.timing import Interval, fill, require_time

__all__ = ["gradient_echo"]

_SPOILER = 2.0
"""Cycles of phase across a pixel of the readout at the end of a repetition."""
_SLICE_SPOILER = 4.0
"""The same across the slice."""


def gradient_echo(events: Events, order: LineOrder) -> Any:
    """A spoiled gradient-echo sequence.

    Each repetition has four blocks: the pulse; prephasing, phase encoding and rephasing of the slice; the readout;
    spoiling and rewinding of the phase encoding.

    Parameters
    ----------
    events : Events
        Scanner and settings.
    order : LineOrder
        The lines; trains do not matter.

    Returns
    -------
    pypulseq.Sequence

    Raises
    ------
    InputError
        For an echo time or repetition time that is too short, or what `Events` refuses.
    """
    pp, settings = events.pp, events.settings
    pulse = events.pulse(settings.flip_angle, "excitation")
    readout = events.readout()
    step = 1 / settings.field_of_view[0]
    encode = events.trapezoids("y", step * (order.n_lines // 2))
    prephase = events.trapezoid("x", -readout.area_before)
    rephase = events.trapezoid("z", -pulse.area_after)
    spoil = events.trapezoid("x", _SPOILER * settings.samples / settings.field_of_view[1])
    spoil_slice = events.trapezoid("z", _SLICE_SPOILER / settings.slice_thickness)
    echo = Interval(pulse.after + readout.centre, events.duration(prephase, rephase, encode(0.0)))
    cure = f"Take a longer echo time, a larger bandwidth or a faster scanner than {events.scanner.name}."
    (before_readout,) = fill("echo time", settings.echo_time, [echo], cure=cure)
    spent = pulse.before + pulse.after + before_readout + readout.duration
    repetition = Interval(spent, events.duration(spoil, spoil_slice, encode(0.0)))
    (after_readout,) = fill("repetition time", settings.repetition_time, [repetition])
    require_time(settings.repetition_time * (len(order.lines) + settings.dummies))

    sequence = pp.Sequence(system=events.recorded)
    middle = order.n_lines // 2
    for number, line in enumerate([*[None] * settings.dummies, *order.lines]):
        phase = math.radians(settings.rf_spoiling * number * (number + 1) / 2 % 360)
        pulse.rf.phase_offset = readout.adc.phase_offset = phase
        area = 0.0 if line is None else step * (line - middle)
        sequence.add_block(pulse.rf, pulse.gradient, pp.make_delay(pulse.before + pulse.after))
        sequence.add_block(prephase, encode(area), rephase, pp.make_delay(before_readout))
        if line is None:
            sequence.add_block(readout.gradient, pp.make_delay(readout.duration))
        else:
            label = pp.make_label("LIN", "SET", line)
            sequence.add_block(readout.gradient, readout.adc, label, pp.make_delay(readout.duration))
        sequence.add_block(spoil, encode(-area), spoil_slice, pp.make_delay(after_readout))
    return sequence
