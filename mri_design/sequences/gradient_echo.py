"""Gradient echoes: one readout after each excitation, spoiled, in any order."""

from __future__ import annotations

import math
from typing import Any

from mri_design.sequences.arms import played_arms
from mri_design.sequences.events import Events
from mri_design.sequences.orders import LineOrder, Order, PlaneOrder, SpiralOrder, SpokeOrder
from mri_design.sequences.repetitions import arm_repetitions, encoded_repetitions, spoke_repetitions
from mri_design.sequences.timing import Interval, fill, require_time


def gradient_echo(events: Events, order: Order) -> Any:
    """A spoiled gradient-echo sequence.

    Each repetition has four blocks: the pulse; prephasing, phase encoding and rephasing of the slice; the readout;
    spoiling and rewinding of what was encoded. The first block sets all labels to 0, so that they are known from the
    beginning on, also where excitations without measurement come first.

    Parameters
    ----------
    events : Events
        Scanner and settings.
    order : LineOrder, PlaneOrder, SpokeOrder or SpiralOrder
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
    if isinstance(order, SpiralOrder):
        arms = played_arms(order, settings, events.scanner)
        readout = events.arm_readout(arms)
        repetition_of = arm_repetitions(events, order, pulse, arms)
    elif isinstance(order, SpokeOrder):
        readout = events.readout()
        repetition_of = spoke_repetitions(events, order, pulse, readout)
    else:
        assert isinstance(order, LineOrder | PlaneOrder)
        readout = events.readout()
        repetition_of = encoded_repetitions(events, order, pulse, readout)
    silent = repetition_of(None)
    echo = Interval(pulse.after + readout.centre, events.duration(*silent.before))
    cure = f"Take a longer echo time, a larger bandwidth or a faster scanner than {events.scanner.name}."
    (before_readout,) = fill("echo time", settings.echo_time, [echo], cure=cure)
    spent = pulse.before + pulse.after + before_readout + readout.duration
    repetition = Interval(spent, events.duration(*silent.after))
    (after_readout,) = fill("repetition time", settings.repetition_time, [repetition])
    require_time(settings.repetition_time * (order.count + settings.dummies))

    sequence, labels = pp.Sequence(system=events.recorded), order.labels
    begin = events.labels(**dict.fromkeys(labels, 0))
    for number in range(-settings.dummies, order.count):
        shot = number + settings.dummies
        phase = math.radians(settings.rf_spoiling * shot * (shot + 1) / 2 % 360)
        pulse.rf.phase_offset = readout.adc.phase_offset = phase
        played = silent if number < 0 else repetition_of(number)
        sequence.add_block(pulse.rf, pulse.gradient, *begin, pp.make_delay(pulse.before + pulse.after))
        begin = []
        sequence.add_block(*played.before, pp.make_delay(before_readout))
        if number < 0:
            sequence.add_block(*played.readout, pp.make_delay(readout.duration))
        else:
            named = events.labels(**{name: values[number] for name, values in labels.items()})
            sequence.add_block(*played.readout, readout.adc, *named, pp.make_delay(readout.duration))
        sequence.add_block(*played.after, pp.make_delay(after_readout))
    return sequence
