"""The gradients of one repetition of a gradient echo: before, during and after its readout."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mri_design.sequences.arms import PlayedArms
from mri_design.sequences.events import Events, Readout, SlicePulse
from mri_design.sequences.orders import LineOrder, PlaneOrder, SpiralOrder, SpokeOrder

_SPOILER = 2.0
"""Cycles of phase across a pixel of the readout at the end of a repetition."""
_SLICE_SPOILER = 4.0
"""The same across the slice, or across a partition of a slab."""


@dataclass(frozen=True)
class Repetition:
    """Gradients of three blocks; all repetitions of a sequence have blocks of the same lengths.

    Parameters
    ----------
    before, readout, after : tuple of pypulseq gradients
        Between pulse and readout, during the readout, and between the readout and the end.
    """

    before: tuple[Any, ...]
    readout: tuple[Any, ...]
    after: tuple[Any, ...]


def encoded_repetitions(
    events: Events, order: LineOrder | PlaneOrder, pulse: SlicePulse, readout: Readout
) -> Callable[[int | None], Repetition]:
    """Readouts along x after phase encoding along y and, of a plane, along z.

    Parameters
    ----------
    events : Events
        Scanner and settings; a plane's field of view along kz is the thickness of the slice.
    order : LineOrder or PlaneOrder
        What is measured.
    pulse, readout
        Of every repetition.

    Returns
    -------
    callable
        Takes the number of a readout, or None for one without encoding, and gives its gradients.
    """
    settings, offsets = events.settings, order.offsets
    rows, partitions = order.matrix
    steps = np.array([1 / settings.field_of_view[0], 1 / settings.slice_thickness])
    farthest = np.array([rows // 2, partitions // 2]) * steps
    encode = events.trapezoids("y", farthest[0])
    prephase = events.trapezoid("x", -readout.area_before)
    rephase = events.trapezoids("z", pulse.area_after + farthest[1])
    spoil = events.trapezoid("x", _SPOILER * settings.samples / settings.field_of_view[1])
    spoiler = _SLICE_SPOILER * partitions / settings.slice_thickness
    spoil_slice = events.trapezoids("z", spoiler + farthest[1])

    def make(number: int | None) -> Repetition:
        along_y, along_z = (0.0, 0.0) if number is None else (offsets[number] * steps).tolist()
        return Repetition(
            (prephase, encode(along_y), rephase(along_z - pulse.area_after)),
            (readout.gradient,),
            (spoil, encode(-along_y), spoil_slice(spoiler - along_z)),
        )

    return make


def spoke_repetitions(
    events: Events, order: SpokeOrder, pulse: SlicePulse, readout: Readout
) -> Callable[[int | None], Repetition]:
    """Readouts through the centre of k-space at the angles of the spokes.

    The readout gradient is shared out to x and y, as is what comes before it. After it the spoke is rewound, so that
    all repetitions end at the same place, and spoiled along x and across the slice.

    Parameters
    ----------
    events, order, pulse, readout
        As for `encoded_repetitions`; the settings' field of view is that of the readout.

    Returns
    -------
    callable
        Takes the number of a spoke, or None for the first one's gradients, and gives its gradients.
    """
    settings, whole = events.settings, readout.gradient
    flat = whole.flat_time + (whole.rise_time + whole.fall_time) / 2
    area_after = whole.amplitude * flat - readout.area_before
    spoiler = _SPOILER * settings.samples / settings.field_of_view[1]
    prephase = {axis: events.trapezoids(axis, readout.area_before) for axis in "xy"}
    rewind = {axis: events.trapezoids(axis, area_after + spoiler) for axis in "xy"}
    rephase = events.trapezoid("z", -pulse.area_after)
    spoil_slice = events.trapezoid("z", _SLICE_SPOILER / settings.slice_thickness)

    def make(number: int | None) -> Repetition:
        angle = order.angles[number or 0]
        before, during, after = [], [], []
        for axis, share in (("x", math.cos(angle)), ("y", math.sin(angle))):
            played = events.like(whole, axis, share)
            exact = played.amplitude / whole.amplitude  # as it is written
            before.append(prephase[axis](-exact * readout.area_before))
            during.append(played)
            after.append(rewind[axis]((spoiler if axis == "x" else 0.0) - exact * area_after))
        return Repetition((*before, rephase), tuple(during), (*after, spoil_slice))

    return make


def arm_repetitions(
    events: Events, order: SpiralOrder, pulse: SlicePulse, arms: PlayedArms
) -> Callable[[int | None], Repetition]:
    """Readouts along arms from the centre of k-space, which are rewound and spoiled as spokes are.

    Parameters
    ----------
    events, order, pulse
        As for `encoded_repetitions`.
    arms : PlayedArms
        Their waveforms.

    Returns
    -------
    callable
        Takes the number of an arm, or None for the first one's gradients, and gives its gradients.
    """
    settings = events.settings
    spoiler = _SPOILER * order.grid[1] / settings.field_of_view[1]
    largest = float(np.abs(arms.areas).max())
    rewind = {axis: events.trapezoids(axis, largest + spoiler) for axis in "xy"}
    rephase = events.trapezoid("z", -pulse.area_after)
    spoil_slice = events.trapezoid("z", _SLICE_SPOILER / settings.slice_thickness)

    def make(number: int | None) -> Repetition:
        along_y, along_x = arms.areas[number or 0].tolist()
        back = (rewind["x"](spoiler - along_x), rewind["y"](-along_y))
        return Repetition((rephase,), events.along(arms, number or 0), (*back, spoil_slice))

    return make
