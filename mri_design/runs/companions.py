"""Other images of the object in a design: an earlier scan that steers the mask, slices and frames for its image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.design.calibrated import Calibrated, EarlierScan
from mri_design.design.greedy import expected_energies
from mri_design.design.strategy import Strategy
from mri_design.design.trace import DesignTrace
from mri_design.errors import InputError, UsageError, option
from mri_design.evidence.companions import register
from mri_design.experiment.calibration import calibrate
from mri_design.experiment.companion_images import CompanionImages
from mri_design.experiment.inputs import GivenMaps, names_file
from mri_design.experiment.recipe import EVERY, Recipe
from mri_design.experiment.volume import NEIGHBOURS, NeighbourCounts, neighbour_modulus, neighbours, opened_slices
from mri_design.inference.double_loop import DoubleLoop
from mri_design.kinds import KINDS
from mri_design.model.slice import SliceModel
from mri_design.model.sparsity import Companion
from mri_design.operators.base import Array
from mri_design.readouts import Readouts
from mri_design.runs.work import Work
from mri_design.scan.data import KSpaceData

DRAWS = 12
"""Posterior draws behind the energies of what the earlier scan did not measure."""
LITTLE = 0.25
"""An earlier scan with less weight than this at the end was overruled."""
AGREEMENT = 0.99
"""Least `agreement` of a repeat. Those of heads have .999, other contrasts and echoes of one object .98 at most."""


def steering_image(
    offered: Sequence[tuple[CompanionImages, Companion]],
    slices: Sequence[SliceModel],
    numbers: Sequence[int],
    count: int,
    start: Sequence[int],
    recipe: Recipe,
    seed: int,
) -> tuple[Strategy, str] | None:
    """The strategy ``calibrated``, informed by the other image of the object that is a repeat, and that image's name.

    Only a scan can be one, on the same grid and with the same slices (or one for one), whose lines are whole. Whether
    it shows the same object in the same contrast is decided by the lines that the design begins with (`agreement`).

    Parameters
    ----------
    offered : sequence of (CompanionImages, Companion)
        Those that were given, each as it lies over the slice of the image: what is refused there, as the scan itself,
        steers no mask either.
    slices : sequence of SliceModel
        Those that share the mask.
    numbers : sequence of int
        Of the slices in their scan.
    count : int
        Slices of that scan.
    start : sequence of int
        Lines or samples that the design begins with.
    recipe : Recipe
        Of the design.
    seed : int
        Of everything random.

    Returns
    -------
    (Strategy, str) or None
        None where no image agrees, and for another strategy than ``calibrated`` of lines or of samples of a plane.
    """
    kind = KINDS[recipe.design.encoding]
    if recipe.design.strategy != "calibrated" or kind.shots:
        return None
    best: tuple[float, list[tuple[Array, Array]], str] | None = None
    engine = recipe.inference.engine(extrapolated=False)
    for file, companion in offered:
        scan = file.scan
        if scan is None or companion.refused or scan.grid_shape != slices[0].shape:
            continue
        places = list(numbers) if scan.n_slices == count else [0]
        whole = kind.square or all(scan.samplings[place].whole_lines for place in places)
        if len(places) != len(slices) or not whole:
            continue
        wanted = places if kind.square else places[:1]  # of lines the first one has the say
        inferred = (_inferred(scan.select_slice(number), recipe, engine, seed) for number in wanted)
        first = next(inferred)
        agrees = agreement(first[0], slices[0], start)
        if agrees >= AGREEMENT and (best is None or agrees > best[0]):
            best = agrees, [first, *inferred], file.name
    if best is None:
        return None
    rng = np.random.default_rng([seed, 4])
    scans = list[EarlierScan]()
    for (image, unknown), slice_model in zip(best[1], slices, strict=False):
        made, truth = _measured_again(image, slice_model, start, rng)
        scans.append(EarlierScan(scan=made, image=truth, unknown=unknown, inference=engine, seed=seed))
    return Calibrated(side_information=tuple(scans)), best[2]


def _inferred(data: KSpaceData, recipe: Recipe, engine: DoubleLoop, seed: int) -> tuple[Array, Array]:
    """The image of an earlier scan from all that it measured, and how uncertain each of its candidates is.

    Returns
    -------
    complex array, shape (ky, kx) or (ky, kz)
        Posterior mean.
    float array, shape (candidates,)
        Energy of the image's error on every line that the earlier scan did not measure, as its posterior expects it,
        over the energy of the image; 0 on those it measured. Of a plane it is that on all samples: noise of its own may
        be all that a single sample of the image has.
    """
    recipe, rng = recipe.of_another_file(), np.random.default_rng([seed, 3])
    slice_model = calibrate(data, recipe, ordinary=True).slice_model(0, **recipe.slice_settings)
    measured = slice_model.measured
    model = slice_model.model(np.flatnonzero(measured).tolist())
    posterior = engine.infer(model, rng)
    unknown = expected_energies([posterior], slice_model.candidates, rng, DRAWS) / _energy(posterior.mean)
    return posterior.mean, unknown if slice_model.candidates.kind.square else np.where(measured, 0.0, unknown)


def _measured_again(
    image: Array, slice_model: SliceModel, start: Sequence[int], rng: np.random.Generator
) -> tuple[SliceModel, Array]:
    """A scan of an earlier image with the coils and the noise of a slice, as bright as that on its start; its truth."""
    slice_model = slice_model.calibrated(start, rough=True)
    every = slice_model.encoding()(image).reshape(slice_model.kspace.shape)
    brightness = np.sqrt(_energy(slice_model.acquire(start)) / _energy(slice_model.candidates.data(every, list(start))))
    parts = rng.standard_normal((2, *every.shape)) * np.sqrt(slice_model.noise_variance)
    kspace = (brightness * every + parts[0] + 1j * parts[1]).astype(np.complex64)
    return replace(slice_model, kspace=kspace), brightness * image


def agreement(image: Array, slice_model: SliceModel, start: Sequence[int]) -> float:
    """Correlation of two moduli as the start lines show them, after registration: near 1 for the same contrast."""
    slice_model = slice_model.calibrated(start, rough=True)
    shown, made = slice_model.central_image(start), slice_model.centrally(image, start)
    try:
        motion = register(shown, np.abs(made))
        made = slice_model.centrally(motion.applied(image).astype(np.complex64), start)
    except InputError:  # nothing to register
        pass
    norms = float(np.linalg.norm(shown) * np.linalg.norm(made))
    return float(np.abs(shown).ravel() @ np.abs(made).ravel() / norms) if norms else 0.0


def final_weight(trace: DesignTrace) -> float:
    """Weight of side information at the end of a design, 0 to 1; NaN where there was none."""
    end = trace.forecast(len(trace.lines))
    return float("nan") if end is None else end.side_information_weight


def _energy(values: Array) -> float:
    return float(np.sum(np.abs(values) ** 2, dtype=np.float64))


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

    def modulus(self, mask: NDArray[np.bool_], readouts: Readouts, recipe: Recipe, seed: int) -> NDArray[np.float32]:
        """Its modulus (ky, kx) in the input's units, from what had been measured when ``mask`` was."""
        held = readouts.measured_flags(self.data.samplings[0].samples)
        used = held if self.complete else held & mask
        scan = calibrate(self.data, recipe, measured=used.reshape(readouts.shape), ordinary=True)
        return in_units(scan.slice_model(0, **recipe.slice_settings), np.flatnonzero(used).tolist(), recipe, seed)


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
            f"{option('with', 'frames')}: which frames are they? Give the number of the one to design "
            f"({option('input.series', '{repetition = 1}')}: contrast, phase, repetition or set)"
        )
    (found,) = counters.items()
    return found


def other_frames(
    source: str, recipe: Recipe, maps: GivenMaps | None, number: int, around: NeighbourCounts, seed: int
) -> list[OtherFrame]:
    """The frames around that of a design, as its recipe numbers it, of one slice.

    Raises
    ------
    UsageError
        Where no counter is given along which frames lie.
    InputError
        For a scan that has no other frames to offer, or is no file.
    """
    if not around.frames:
        return []
    axis, frame = frame_of_design(recipe)
    if not names_file(source):
        raise InputError("companions", "a scan that is in no file", "raw data that hold several frames")
    with opened_slices(source, recipe.replacing("input", series={axis: EVERY}), seed, maps) as slices:
        numbering = slices.numbering
        here = numbering.numbers.index(frame) * numbering.count + number
        near = NeighbourCounts(frames=around.frames).of(here, numbering, {})
        places = {name: image for name, weights in near.items() for image in weights}
        found = {name: slices.read(image) for name, image in places.items() if axis != SUCCESSIVE or image < here}
    if not found:
        wanted = "an earlier repetition" if axis == SUCCESSIVE else f"another {axis}"
        raise InputError("companions", f"{axis} {frame}", f"a file with {wanted}", "Leave it out.")
    return [OtherFrame(name, data, axis == SUCCESSIVE) for name, data in found.items() if isinstance(data, KSpaceData)]


def in_units(one: SliceModel, lines: Sequence[int], recipe: Recipe, seed: int) -> NDArray[np.float32]:
    """The modulus of a slice that its neighbours know, in the units of the input."""
    known = one.calibrated(lines)
    return np.asarray(neighbour_modulus(known, lines, recipe, seed) * known.image_unit, dtype=np.float32)


def companions_within(
    near: Mapping[str, Mapping[int, float]],
    slices: Mapping[int, SliceModel],
    frames: Sequence[OtherFrame],
    lines: Sequence[int],
    recipe: Recipe,
    work: Work,
) -> tuple[Companion, ...]:
    """Companions of the image of a design, once its lines are measured.

    Parameters
    ----------
    near : mapping
        Slices around that of the image (`NeighbourCounts.of`).
    slices : mapping of int to SliceModel
        Those that share the mask, by number, that of the image first.
    frames : sequence of OtherFrame
        Of the slice of the image.
    lines : sequence of int
        Of the mask.
    recipe : Recipe
        In force.
    work : Work
        Shows how far it is.
    """
    readouts = next(iter(slices.values())).candidates
    mask = np.isin(np.arange(readouts.size), lines)
    asked = [number for weights in near.values() for number in weights]

    def of_slice(number: int) -> NDArray[np.float32]:
        work.progress.show(NEIGHBOURS, asked.index(number), len(asked) + len(frames))
        return in_units(slices[number], lines, recipe, work.seed)

    def of_frame(place: int) -> NDArray[np.float32]:
        work.progress.show(NEIGHBOURS, len(asked) + place, len(asked) + len(frames))
        try:
            return frames[place].modulus(mask, readouts, recipe, work.seed)
        except InputError as error:  # the lines of the design are measured, and its image can do without
            work.progress.warn(f"{frames[place].name} is left out: {error}")
            return np.zeros(readouts.grid, dtype=np.float32)

    others = {frame.name: {place: 1.0} for place, frame in enumerate(frames)}
    later = any(frame.complete for frame in frames)
    return (*neighbours(near, of_slice), *neighbours(others, of_frame, later=later))
