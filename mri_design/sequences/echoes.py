"""Gradient echoes, one spoiled readout after each excitation, and trains of spin echoes; lines in any order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mri_design.sequences.events import Events, Readout, SlicePulse, fill, played_arms, require_time
from mri_design.sequences.orders import GridOrder, Order, SpiralOrder, SpokeOrder

_SPOILER = 2.0
"""Cycles of phase across a pixel of the readout at the end of a repetition."""
_SLICE_SPOILER = 4.0
"""Cycles of phase at the end of a repetition across the slice, or across a partition of a slab."""


Gradients = tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]
"""Of three blocks, which are equally long in all repetitions: between pulse and readout, during it, and after it."""
Repetitions = tuple[Readout, Callable[[int | None], Gradients]]
"""The readout of all repetitions; and a function that takes the number of a readout, or None for one that is not
measured, and gives its gradients."""


def encoded_repetitions(events: Events, order: GridOrder, pulse: SlicePulse) -> Repetitions:
    """Readouts along x after phase encoding along y and, of a plane, along z.

    Parameters
    ----------
    events : Events
        Scanner and settings; a plane's field of view along kz is the thickness of the slice.
    order : GridOrder
        What is measured.
    pulse : SlicePulse
        Of every repetition.
    """
    settings, offsets, readout = events.settings, order.offsets, events.readout()
    rows, partitions = order.matrix
    steps = np.array([1 / settings.field_of_view[0], 1 / settings.slice_thickness])
    farthest = np.array([rows // 2, partitions // 2]) * steps
    encode = events.trapezoids("y", farthest[0])
    prephase = events.trapezoid("x", -readout.area_before)
    rephase = events.trapezoids("z", pulse.area_after + farthest[1])
    spoil = events.trapezoid("x", _SPOILER * settings.samples / settings.field_of_view[1])
    spoiler = _SLICE_SPOILER * partitions / settings.slice_thickness
    spoil_slice = events.trapezoids("z", spoiler + farthest[1])

    def make(number: int | None) -> Gradients:
        along_y, along_z = (0.0, 0.0) if number is None else (offsets[number] * steps).tolist()
        before = (prephase, encode(along_y), rephase(along_z - pulse.area_after))
        return before, (readout.gradient,), (spoil, encode(-along_y), spoil_slice(spoiler - along_z))

    return readout, make


def spoke_repetitions(events: Events, order: SpokeOrder, pulse: SlicePulse) -> Repetitions:
    """Readouts through the centre of k-space at the angles of the spokes.

    The readout gradient is shared out to x and y, as is what comes before it. After it the spoke is rewound, so that
    all repetitions end at the same place, and spoiled along x and across the slice.

    Parameters
    ----------
    events, order, pulse
        As for `encoded_repetitions`; the settings' field of view is that of the readout.
    """
    readout = events.readout()
    whole = readout.gradient
    flat = whole.flat_time + (whole.rise_time + whole.fall_time) / 2
    area_after = whole.amplitude * flat - readout.area_before
    prephase = {axis: events.trapezoids(axis, readout.area_before) for axis in "xy"}
    rephase, end = _rewinding(events, pulse, events.settings.samples, area_after)

    def make(number: int | None) -> Gradients:
        angle = order.angles[number or 0]
        shares = ("x", math.cos(angle)), ("y", math.sin(angle))
        during = tuple(events.like(whole, axis, share * whole.amplitude) for axis, share in shares)
        along = {axis: played.amplitude / whole.amplitude for axis, played in zip("xy", during, strict=True)}
        before = (prephase[axis](-exact * readout.area_before) for axis, exact in along.items())  # as it is written
        return (*before, rephase), during, end(*(0.0 - exact * area_after for exact in along.values()))

    return readout, make


def arm_repetitions(events: Events, order: SpiralOrder, pulse: SlicePulse) -> Repetitions:
    """Readouts along arms from the centre of k-space, which are rewound and spoiled as spokes are.

    Parameters
    ----------
    events, order, pulse
        As for `encoded_repetitions`.
    """
    arms = played_arms(order, events.settings, events.scanner)
    rephase, end = _rewinding(events, pulse, order.grid[1], float(np.abs(arms.areas).max()))

    def make(number: int | None) -> Gradients:
        along_y, along_x = arms.areas[number or 0].tolist()
        return (rephase,), events.along(arms, number or 0), end(-along_x, -along_y)

    return events.arm_readout(arms), make


def _rewinding(
    events: Events, pulse: SlicePulse, across: int, largest: float
) -> tuple[Any, Callable[[float, float], tuple[Any, ...]]]:
    """What rephases the slice; and gradients of two areas, along x and y, which rewind, with spoilers of the pixels."""
    spoiler = _SPOILER * across / events.settings.field_of_view[1]
    along_x, along_y = (events.trapezoids(axis, largest + spoiler) for axis in "xy")
    spoil_slice = events.trapezoid("z", _SLICE_SPOILER / events.settings.slice_thickness)
    rephase = events.trapezoid("z", -pulse.area_after)
    return rephase, lambda x, y: (along_x(spoiler + x), along_y(y), spoil_slice)


_REPETITIONS: dict[type[Order], Callable[..., Repetitions]] = {
    GridOrder: encoded_repetitions,
    SpokeOrder: spoke_repetitions,
    SpiralOrder: arm_repetitions,
}


def gradient_echo(events: Events, order: Order) -> Any:
    """A spoiled gradient-echo sequence.

    Each repetition has four blocks: the pulse; prephasing, phase encoding and rephasing of the slice; the readout;
    spoiling and rewinding of what was encoded. The first block sets all labels to 0, so that they are known from the
    beginning on, also where excitations without measurement come first.

    Parameters
    ----------
    events : Events
        Scanner and settings.
    order : GridOrder, SpokeOrder or SpiralOrder
        What is measured; trains do not matter.

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
    readout, repetition_of = _REPETITIONS[type(order)](events, order, pulse)
    silent = repetition_of(None)
    echo = (pulse.after + readout.centre, events.duration(*silent[0]))
    cure = f"Take a longer echo time, a larger bandwidth or a faster scanner than {events.scanner.name}."
    (before_readout,) = fill("echo time", settings.echo_time, [echo], cure=cure)
    spent = pulse.before + pulse.after + before_readout + readout.duration
    (after_readout,) = fill("repetition time", settings.repetition_time, [(spent, events.duration(*silent[2]))])
    require_time(settings.repetition_time * (order.count + settings.dummies))

    sequence, labels = pp.Sequence(system=events.recorded), order.labels
    begin = events.labels(**dict.fromkeys(labels, 0))
    for number in range(-settings.dummies, order.count):
        pulse.rf.phase_offset = readout.adc.phase_offset = settings.spoiling_phase(number + settings.dummies)
        before, during, after = silent if number < 0 else repetition_of(number)
        sequence.add_block(pulse.rf, pulse.gradient, *begin, pp.make_delay(pulse.before + pulse.after))
        begin = []
        sequence.add_block(*before, pp.make_delay(before_readout))
        named = {name: values[number] for name, values in labels.items()} if number >= 0 else {}
        measured = () if number < 0 else (readout.adc, *events.labels(**named))
        sequence.add_block(*during, *measured, pp.make_delay(readout.duration))
        sequence.add_block(*after, pp.make_delay(after_readout))
    return sequence


_CRUSHER = 4.0
"""Cycles of phase across the slice on either side of a refocusing pulse."""
_TRAIN_SPOILER = 8.0
"""Cycles of phase across the slice at the end of a train."""
_SYMMETRIC = 2e-6
"""Raster of the dwell time on which readouts are exactly symmetric."""


def turbo_spin_echo(events: Events, order: GridOrder) -> Any:
    """A turbo spin echo sequence whose echoes meet the conditions of Carr, Purcell, Meiboom and Gill.

    The readout gradient is symmetric about the sample at the centre of k-space, so that odd and even echoes sample the
    same places; every echo's phase encoding is rewound before the next refocusing pulse. Trains that are shorter than
    the longest one have all refocusing pulses, so that the magnetisation is the same in all. The first block sets the
    label to 0.

    Parameters
    ----------
    events : Events
        Scanner and settings.
    order : GridOrder
        Lines, of one partition, and echo trains.

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
    step, middle = 1 / settings.field_of_view[0], order.rows // 2
    encode = events.trapezoids("y", step * middle)
    prephase = events.trapezoid("x", readout.area_before)
    crusher = _CRUSHER / settings.slice_thickness
    crush, rephase = events.trapezoid("z", crusher), events.trapezoid("z", crusher - excite.area_after)
    spoil = events.trapezoid("z", _TRAIN_SPOILER / settings.slice_thickness)
    between = events.duration(crush, encode(0.0))
    intervals = [
        (excite.after + refocus.before, events.duration(prephase, rephase)),
        (refocus.after + readout.centre, between),
        (readout.duration - readout.centre + refocus.before, between),
    ]
    cure = f"Take a longer echo time, a larger bandwidth or a faster scanner than {events.scanner.name}."
    first, before, after = fill("echo time", settings.echo_time, intervals, share=2, cure=cure)
    train = refocus.before + refocus.after + before + readout.duration + after
    spent = excite.before + excite.after + first + order.echoes * train
    (last,) = fill("repetition time", settings.repetition_time, [(spent, events.duration(spoil))])
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
            measured = () if line is None else (readout.adc, *events.labels(LIN=line))
            sequence.add_block(readout.gradient, *measured, pp.make_delay(readout.duration))
            sequence.add_block(crush, encode(-area), pp.make_delay(after))
        sequence.add_block(spoil, pp.make_delay(last))
    return sequence
