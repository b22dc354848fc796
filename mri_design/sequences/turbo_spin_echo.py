"""Trains of spin echoes (turbo spin echo): several lines after each excitation, in any order."""

from __future__ import annotations

import math
from typing import Any

from mri_design.sequences.events import Events, Interval, fill, require_time
from mri_design.sequences.orders import LineOrder

_CRUSHER = 4.0
"""Cycles of phase across the slice on either side of a refocusing pulse."""
_SPOILER = 8.0
"""Cycles of phase across the slice at the end of a train."""
_SYMMETRIC = 2e-6
"""Raster of the dwell time on which readouts are exactly symmetric."""


def turbo_spin_echo(events: Events, order: LineOrder) -> Any:
    """A turbo spin echo sequence whose echoes meet the conditions of Carr, Purcell, Meiboom and Gill.

    The readout gradient is symmetric about the sample at the centre of k-space, so that odd and even echoes sample the
    same places; every echo's phase encoding is rewound before the next refocusing pulse. Trains that are shorter than
    the longest one have all refocusing pulses, so that the magnetisation is the same in all. The first block sets the
    label to 0.

    Parameters
    ----------
    events : Events
        Scanner and settings.
    order : LineOrder
        Lines and echo trains.

    Returns
    -------
    pypulseq.Sequence

    Raises
    ------
    InputError
        For an echo time or repetition time that is too short, or what `Events` refuses.
    """
    pp, settings = events.pp, events.settings
    excite = events.pulse(90.0, "excitation", phase=math.pi / 2)
    refocus = events.pulse(settings.flip_angle, "refocusing")
    readout = events.readout(_SYMMETRIC)
    step, middle = 1 / settings.field_of_view[0], order.n_lines // 2
    encode = events.trapezoids("y", step * middle)
    prephase = events.trapezoid("x", readout.area_before)
    crusher = _CRUSHER / settings.slice_thickness
    crush, rephase = events.trapezoid("z", crusher), events.trapezoid("z", crusher - excite.area_after)
    spoil = events.trapezoid("z", _SPOILER / settings.slice_thickness)
    between = events.duration(crush, encode(0.0))
    intervals = [
        Interval(excite.after + refocus.before, events.duration(prephase, rephase)),
        Interval(refocus.after + readout.centre, between),
        Interval(readout.duration - readout.centre + refocus.before, between),
    ]
    cure = f"Take a longer echo time, a larger bandwidth or a faster scanner than {events.scanner.name}."
    first, before, after = fill("echo time", settings.echo_time, intervals, share=2, cure=cure)
    train = refocus.before + refocus.after + before + readout.duration + after
    spent = excite.before + excite.after + first + order.echoes * train
    (last,) = fill("repetition time", settings.repetition_time, [Interval(spent, events.duration(spoil))])
    require_time(settings.repetition_time * (len(order.trains) + settings.dummies))

    sequence = pp.Sequence(system=events.recorded)
    silent: tuple[int, ...] = ()
    begin = events.labels(LIN=0)
    for lines in [*[silent] * settings.dummies, *order.trains]:
        sequence.add_block(excite.rf, excite.gradient, *begin, pp.make_delay(excite.before + excite.after))
        begin = []
        sequence.add_block(prephase, rephase, pp.make_delay(first))
        for echo in range(order.echoes):
            line = lines[echo] if echo < len(lines) else None
            area = 0.0 if line is None else step * (line - middle)
            sequence.add_block(refocus.rf, refocus.gradient, pp.make_delay(refocus.before + refocus.after))
            sequence.add_block(crush, encode(area), pp.make_delay(before))
            if line is None:
                sequence.add_block(readout.gradient, pp.make_delay(readout.duration))
            else:
                label = events.labels(LIN=line)
                sequence.add_block(readout.gradient, readout.adc, *label, pp.make_delay(readout.duration))
            sequence.add_block(crush, encode(-area), pp.make_delay(after))
        sequence.add_block(spoil, pp.make_delay(last))
    return sequence
