"""Other images of the object for the image of a design, from the scan itself: slices of the mask, and other frames.

What has been measured before that image is made may have a say, and nothing else. Slices that share the mask are
measured together, and so are contrasts, phases and sets, line by line: of these the lines of the mask count. A
repetition is over before the next one begins: all counts of the earlier ones, which are registered, and nothing of the
later ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, UsageError, option
from mri_design.experiment.calibration import PreparedScan, prepare
from mri_design.experiment.inputs import names_file
from mri_design.experiment.recipe import EVERY, Recipe
from mri_design.experiment.sources import GivenMaps
from mri_design.experiment.volume import NEIGHBOURS, Around, neighbours, opened_slices, told_to_neighbours
from mri_design.model.companion import Companion
from mri_design.model.mr_image import MRSlice
from mri_design.readouts import Readouts
from mri_design.runs.run import Run
from mri_design.scan.data import KSpaceData

SUCCESSIVE = "repetition"
"""Frames that are measured one after the other."""


@dataclass(frozen=True)
class OtherFrame:
    """The same slice in another frame.

    Parameters
    ----------
    name : str
        Of the frame, for messages.
    data : KSpaceData
        As read.
    complete : bool
        Whether all that it holds was measured before, else only what the mask measures.
    """

    name: str
    data: KSpaceData
    complete: bool

    def told(self, mask: NDArray[np.bool_], readouts: Readouts, recipe: Recipe, seed: int) -> NDArray[np.float32]:
        """Its modulus (ky, kx) in the input's units, from what had been measured when ``mask`` was."""
        held = readouts.measured_flags(self.data.samplings[0].samples)
        used = held if self.complete else held & mask
        scan = prepare(self.data, recipe, measured=used.reshape(readouts.shape), ordinary=True)
        return in_units(scan, scan.slice_model(0, recipe), np.flatnonzero(used).tolist(), recipe, seed)


def frame_of_design(recipe: Recipe) -> tuple[str, int]:
    """The counter along which frames lie, and its number of the one that is designed.

    Raises
    ------
    UsageError
        Where not just one counter is given.
    """
    counters = recipe.input.counters
    if len(counters) != 1:
        raise UsageError(
            f"{option('with', 'frames')}: which frames are they? Give the number of the one to design as one of "
            f"{', '.join(option(axis, 0) for axis in ('contrast', 'phase', 'repetition'))} and {option('set', 0)}"
        )
    (found,) = counters.items()
    return found


def other_frames(
    source: str, recipe: Recipe, maps: GivenMaps | None, number: int, around: Around, seed: int
) -> list[OtherFrame]:
    """The frames around that of a design, as its recipe numbers it, of one slice.

    Raises
    ------
    UsageError
        Where it is not said along which counter frames lie.
    InputError
        For a scan that has no other frames to offer, or is no file.
    """
    if not around.frames:
        return []
    axis, frame = frame_of_design(recipe)
    if not names_file(source):
        raise InputError("companions", "a scan that is in no file", "raw data that hold several frames")
    every: dict[str, Any] = {axis: EVERY}
    with opened_slices(source, replace(recipe, input=replace(recipe.input, **every)), seed, maps) as slices:
        numbering = slices.numbering
        here = numbering.numbers.index(frame) * numbering.n_slices + number
        near = Around(frames=around.frames).of(here, numbering, {})
        places = {name: image for name, weights in near.items() for image in weights}
        found = {name: slices.read(image) for name, image in places.items() if axis != SUCCESSIVE or image < here}
    if not found:
        wanted = "an earlier repetition" if axis == SUCCESSIVE else f"another {axis}"
        raise InputError("companions", f"{axis} {frame}", f"a file with {wanted}", "Leave it out.")
    return [OtherFrame(name, data, axis == SUCCESSIVE) for name, data in found.items() if isinstance(data, KSpaceData)]


def in_units(scan: PreparedScan, one: MRSlice, lines: Sequence[int], recipe: Recipe, seed: int) -> NDArray[np.float32]:
    """What neighbours are told of a slice, in the units of the input."""
    told = told_to_neighbours(one.calibrated(lines), lines, recipe, seed)
    return np.asarray(told * scan.image_unit(0), dtype=np.float32)


def companions_within(
    near: Mapping[str, Mapping[int, float]],
    slices: Mapping[int, tuple[PreparedScan, MRSlice]],
    frames: Sequence[OtherFrame],
    lines: Sequence[int],
    recipe: Recipe,
    run: Run,
) -> tuple[Companion, ...]:
    """Companions of the image of a design, once its lines are measured.

    Parameters
    ----------
    near : mapping
        Slices around that of the image (`Around.of`).
    slices : mapping of int to (PreparedScan, MRSlice)
        Those that share the mask, by number, that of the image first.
    frames : sequence of OtherFrame
        Of the slice of the image.
    lines : sequence of int
        Of the mask.
    recipe : Recipe
        In force.
    run : Run
        Shows how far it is.
    """
    readouts = next(iter(slices.values()))[1].candidates
    mask = np.isin(np.arange(readouts.size), lines)
    asked = [number for weights in near.values() for number in weights]

    def of_slice(number: int) -> NDArray[np.float32]:
        run.progress.show(NEIGHBOURS, asked.index(number), len(asked) + len(frames))
        return in_units(*slices[number], lines, recipe, run.seed)

    def of_frame(place: int) -> NDArray[np.float32]:
        run.progress.show(NEIGHBOURS, len(asked) + place, len(asked) + len(frames))
        try:
            return frames[place].told(mask, readouts, recipe, run.seed)
        except InputError as error:  # the lines of the design are measured, and its image can do without
            run.progress.warn(f"{frames[place].name} is left out: {error}")
            return np.zeros(readouts.grid, dtype=np.float32)

    others = {frame.name: {place: 1.0} for place, frame in enumerate(frames)}
    later = any(frame.complete for frame in frames)
    return (*neighbours(near, of_slice), *neighbours(others, of_frame, later=later))
