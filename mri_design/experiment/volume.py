"""The slices of a volume and the frames of a series: read one by one, calibrated together, companions of each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.calibration.coils import block_energies, coil_directions, inverse_root
from mri_design.calibration.noise import NoiseEstimate, median_noise
from mri_design.errors import InputError, UsageError, option, whole_number
from mri_design.experiment import calibration
from mri_design.experiment.inputs import PHANTOM_PREFIX, GivenMaps, load_scan, scan_of, slices_text, with_given
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import InferenceOptions, image_rng, reconstruct_prepared
from mri_design.model.slice import SliceModel
from mri_design.model.sparsity import Companion
from mri_design.operators.base import Array
from mri_design.scan.calibration import calibration_energies, measure_noise
from mri_design.scan.data import KSpaceData, TrajectoryData
from mri_design.scan.geometry import SliceGeometry, around
from mri_design.scan.io.formats import opened
from mri_design.scan.io.safe import errors_named
from mri_design.scan.io.source import ReadOptions, counter_option
from mri_design.scan.provenance import NoiseOrigin
from mri_design.scan.sampling import require_dynamic_range

AnySlice = KSpaceData | TrajectoryData


@dataclass(frozen=True)
class Slices:
    """The slices of an input, of several frames the images, which are numbered slice by slice, frame after frame.

    Parameters
    ----------
    count : int
        Slices of the input, of each frame where there are several.
    axis : str
        What the frames are: "contrast", "phase", "repetition" or "set"; empty where there is one, which has no number.
    numbers : tuple of int
        Of the frames, by the file's own counter.
    reader : function, optional
        The slice of a number, as `load_scan` and `select_slice` give it; of several frames the image of a number.
    series : mapping of str to tuple of int
        See `Source`.
    """

    count: int
    axis: str = ""
    numbers: tuple[int, ...] = ()
    reader: Callable[[int], AnySlice] | None = field(default=None, compare=False, repr=False)
    series: Mapping[str, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, scan: AnySlice) -> Slices:
        """The slices of a scan that is in memory."""
        return cls(scan.n_slices, reader=scan.select_slice)

    def read(self, number: int) -> AnySlice:
        """Read the image of a number, while the input is open."""
        assert self.reader is not None
        return self.reader(number)

    @property
    def numbering(self) -> Slices:
        """The numbering of images, without the reader."""
        return replace(self, reader=None)

    @property
    def unit(self) -> str:
        """Name of the numbered images: "slices", or "images" if there are several frames."""
        return "images" if self.axis else "slices"

    def images(self, slices: Sequence[int]) -> list[int]:
        """Numbers of the images of some slices in every frame."""
        return [frame * self.count + number for frame in range(max(1, len(self.numbers))) for number in slices]

    def place(self, image: int) -> dict[str, int]:
        """Frame, if there are several, and slice of an image, by name."""
        frame, number = divmod(image, self.count)
        return {self.axis: self.numbers[frame], "slice": number} if self.axis else {"slice": number}

    def name(self, image: int) -> str:
        """An image in words: "slice 3", or "repetition 1, slice 3"."""
        return ", ".join(f"{name} {number}" for name, number in self.place(image).items())

    def names(self, images: Sequence[int]) -> str:
        """Several images in words: "slices 0-9 and 12", frame by frame."""
        if not self.axis:
            return slices_text(images)
        parts = groupby(sorted(images), lambda image: image // self.count)
        listed = [
            f"{self.axis} {self.numbers[frame]}, {slices_text([image % self.count for image in found])}"
            for frame, found in parts
        ]
        return "; ".join(listed)

    def named(self, image: int, error: InputError) -> InputError:
        """An error with the slice that it is about in its field."""
        field = error.field
        for name, counter in reversed(self.place(image).items()):
            field = field if f"{name} {counter}" in field else f"{name} {counter}: {field}"
        cure = f"Leave the slice out with {option('slices')}."
        if self.axis and self.count == 1:
            cure = f"Choose one {self.axis}, with {counter_option(self.axis, 'N')}."
        return error.about(field, error.cure or cure)


@contextmanager
def opened_slices(source: str, recipe: Recipe, seed: int = 0, maps: GivenMaps | None = None) -> Iterator[Slices]:
    """The slices of an input, which are read one by one where its format allows.

    Where the recipe requests all numbers of a counter, the frames are opened one after the other, as they are read.

    Phantoms, images (from which k-space is simulated), samples along a trajectory, volumes whose readouts bring a
    sample to every plane, and scans with a file of coil maps are held in memory as a whole.

    Parameters
    ----------
    source, recipe, seed, maps
        As for `load_scan`.

    Raises
    ------
    InputError
        As `load_scan`; of a slice when it is read.
    """
    axis = recipe.input.axis
    if not axis:
        with _opened_frame(source, recipe, seed, maps) as found:
            yield found
        return

    with _opened_frame(source, recipe_of_frame(recipe, None), seed, None) as first:
        count, numbers = first.count, first.series.get(axis)
    if numbers is None:
        got, cure = "all numbers, and the input has none of this kind", f"Leave out {counter_option(axis)}."
        raise InputError(f"{source}: {axis}", got, "raw data whose readouts are numbered", cure)
    opened_frames = dict[int, Slices]()
    with ExitStack() as files:

        def read(image: int) -> AnySlice:
            frame, number = divmod(image, count)
            if frame not in opened_frames:  # one is open at a time
                opened_frames.clear()
                files.close()
                of_frame = recipe_of_frame(recipe, numbers[frame])
                slices = files.enter_context(_opened_frame(source, of_frame, seed, maps))
                if slices.count != count:
                    got, wanted = f"{slices.count} slices", f"{count}, as {axis} {numbers[0]} has"
                    cure = f"Reconstruct frames that are whole one by one, with {counter_option(axis, 'N')}."
                    raise InputError(f"{axis} {numbers[frame]}", got, wanted, cure)
                opened_frames[frame] = slices
            data = opened_frames[frame].read(number)
            series = data.provenance.series
            return data.known(series={name: taken for name, taken in series.items() if name != axis})

        yield Slices(count, axis, numbers, read, first.series)


def recipe_of_frame(recipe: Recipe, number: int | None) -> Recipe:
    """The recipe with one number of a counter instead of all; None is the first one."""
    series: Any = {name: each for name, each in (recipe.input.series or {}).items() if each != "all"}
    frame = {} if number is None else {recipe.input.axis: number}
    return replace(recipe, input=replace(recipe.input, series=series | frame))


@contextmanager
def _opened_frame(source: str, recipe: Recipe, seed: int, maps: GivenMaps | None) -> Iterator[Slices]:
    if source.startswith(PHANTOM_PREFIX) or maps is not None:
        yield Slices.of(load_scan(source, recipe, seed, maps))
        return
    options = ReadOptions(**recipe.input.reading)

    def checked(data: AnySlice) -> AnySlice:
        require_dynamic_range(data.kspace, f"{source}: kspace")
        return with_given(data, recipe)

    def read(number: int) -> AnySlice:
        with errors_named(Path(source)):
            data: Any = reader.read(number)
        return checked(data)

    with ExitStack() as files:
        reader = files.enter_context(files.enter_context(opened(source, options)).slice_reader())
        whole = None if reader.whole is None else checked(scan_of(reader.whole, recipe, seed))
        found = Slices(reader.count, reader=read) if whole is None else Slices.of(whole)
        found = replace(found, series=reader.series)
        opened_files = files.pop_all()
    try:
        yield found
    finally:
        opened_files.close()  # without what was raised meanwhile, which is no error of the file


class Shared:
    """Noise and coil directions that all slices of a volume share, so that they have one unit and a continuous phase.

    It is found by looking at each, and then settled. Slices along a trajectory share nothing: each has noise and maps
    of its own.

    Parameters
    ----------
    recipe : Recipe
        In force.
    seed : int
        Of the run.
    numbering : Slices
        How images are numbered.
    several : bool
        Whether there are several; a single one shares nothing.

    Attributes
    ----------
    covariance : complex array, shape (coil, coil), or None
        Noise of the coils as read, E[n n^H] / 2, estimated from the slices; None where file or recipe give it.
    directions : complex array, shape (coil, coil), or None
        `coil_directions` of the white coils of all slices; None where no maps are estimated.
    """

    def __init__(self, recipe: Recipe, seed: int, numbering: Slices, *, several: bool) -> None:
        self.recipe, self.seed, self.numbering, self.several = recipe, seed, numbering, several
        self._noise = list[NoiseEstimate]()
        self._refused: InputError | None = None
        self._energies: NDArray[np.complex128] | None = None
        self._given: NDArray[np.complex128] | None = None
        self.covariance: NDArray[np.complex128] | None = None
        self.directions: NDArray[np.complex128] | None = None

    def look(self, data: AnySlice, used: NDArray[np.bool_]) -> None:
        """Collect the noise of a slice, and the energies behind coil maps from its ``used`` lines or samples.

        Raises
        ------
        InputError
            Where there is not enough data to estimate coil maps.
        """
        if not (self.several and isinstance(data, KSpaceData)):
            return
        estimated = self.recipe.input.noise_variance is None
        if estimated and data.noise_covariance is not None:
            self._given = data.noise_covariance
        elif estimated and data.noise_variance is None:
            try:
                self._noise.append(measure_noise(data))
            except InputError as error:  # an empty rim: other slices may have some
                self._refused = error
        if data.n_coils > 1 and data.coil_maps is None:
            lines = calibration.calibration_count(None, self.recipe, data.grid_shape[0])
            seen = data.only(used)
            if calibration.takes_lines_with_gaps(seen, lines, self.recipe):
                energies = block_energies(seen.kspace[0], seen.samplings[0].samples)
            else:
                energies = calibration_energies(seen, lines)
            self._energies = energies if self._energies is None else self._energies + energies

    def settle(self) -> None:
        """Find the noise and the directions of coil space.

        Raises
        ------
        InputError
            Where the noise has to be estimated, and no slice holds any.
        """
        if self._refused is not None and not self._noise:
            raise self._refused
        white = self._given
        if self._noise:
            noise = median_noise(self._noise)
            doubt: Literal["", "signal"] = "signal" if noise.reason else ""
            slices = len(self._noise), self.numbering.unit
            self._origin = NoiseOrigin(source="slices", estimate=noise, slices=slices, doubt=doubt)
            self.covariance = white = noise.covariance
        if self._energies is not None:
            root = np.eye(len(self._energies)) if white is None else inverse_root(white)
            self.directions = coil_directions(root @ self._energies @ root.conj().T)

    def known_by(self, data: AnySlice) -> AnySlice:
        """A slice with the noise of the volume."""
        if self.covariance is None:
            return data
        return replace(data, noise_covariance=self.covariance).known(noise=self._origin)


WORDS = ("slices", "frames", "joint")
"""Words instead of a file: neighbours within the scan, the nearest on each side or, ``slices:2``, two.

``joint`` are frames that share the sites of their prior, all of a series or, ``joint:2``, two on each side.
"""
EVERY_FRAME = 1 << 16
"""More than a series has."""
NEIGHBOURS = "neighbours"
"""Name of the stage in which images are made for their neighbours."""


def names_neighbours(source: str) -> bool:
    """Whether a companion is named that is a neighbour within the scan."""
    return source.partition(":")[0] in WORDS


@dataclass(frozen=True)
class NeighbourCounts:
    """How many neighbours on each side are other images of a slice.

    Parameters
    ----------
    slices : int
        Of the same frame, above and below by their places where all have one, else by their numbers.
    frames : int
        Earlier and later frames of the same slice: contrasts, phases, repetitions or sets.
    joint : int
        As ``frames``, of frames that are no images to compare with, but share the sites of the prior (`SharedFrame`).
    """

    slices: int = 0
    frames: int = 0
    joint: int = 0

    @classmethod
    def named(cls, sources: Sequence[str]) -> NeighbourCounts:
        """Numbers of neighbours that words as ``slices``, ``slices:N`` or ``joint`` among companions request.

        Raises
        ------
        UsageError
            For another number than 1, 2, and so on.
        """
        found = dict.fromkeys(WORDS, 0)
        for source in filter(names_neighbours, sources):
            word, colon, text = source.partition(":")
            number = whole_number(text) if colon else EVERY_FRAME if word == "joint" else 1
            if number is None or number < 1:
                raise UsageError(f"{option('with', source)}: wanted {word}, or {word}:2 for two on each side")
            found[word] = number
        return cls(**found)

    def __bool__(self) -> bool:
        return bool(self.slices or self.frames or self.joint)

    def require(self, numbering: Slices) -> None:
        """Refuse neighbours that a scan does not have.

        Raises
        ------
        InputError
            For slices of a scan of one, and frames of one frame.
        """
        if self.slices and numbering.count < 2:
            raise InputError("companions", "a scan of one slice", "a scan of several", "Leave it out.")
        if (self.frames or self.joint) and len(numbering.numbers) < 2:
            wanted = "several contrasts, phases, repetitions or sets, which are reconstructed together"
            *some, last = (counter_option(axis, "all") for axis in ("contrast", "phase", "repetition", "set"))
            cure = f"Give {', '.join(some)} or {last} too, of raw data that have them."
            raise InputError("companions", "one frame", wanted, cure)

    def of(
        self, image: int, numbering: Slices, places: Mapping[int, SliceGeometry | None]
    ) -> dict[str, dict[int, float]]:
        """Neighbours offered to an image: by name, the weights of the images that are summed.

        Between the slices above and below it is interpolated: their mean is more like the slice than either.

        Parameters
        ----------
        image : int
            By its number.
        numbering : Slices
            How images are numbered.
        places : mapping of int to SliceGeometry or None
            Of the slices of a frame that there are, by number.
        """
        frame, number = divmod(image, numbering.count)
        found: dict[str, dict[int, float]] = {}
        for pair in around(places, number, self.slices) if self.slices else []:
            name = f"{'mean of slices' if len(pair) > 1 else 'slice'} {' and '.join(map(str, sorted(pair)))}"
            found[name] = {frame * numbering.count + other: weight for other, weight in pair.items()}
        for away in range(1, self.frames + 1):
            for other in (frame - away, frame + away):
                if 0 <= other < len(numbering.numbers):
                    found[f"{numbering.axis} {numbering.numbers[other]}"] = {other * numbering.count + number: 1.0}
        return found

    def sharing(self, image: int, numbering: Slices) -> list[int]:
        """Images of the same slice, by their numbers, that share the sites of an image's prior."""
        frame, number = divmod(image, numbering.count)
        others = range(max(0, frame - self.joint), min(frame + self.joint + 1, len(numbering.numbers)))
        return [other * numbering.count + number for other in others if other != frame]


def neighbour_modulus(one: SliceModel, lines: Sequence[int], recipe: Recipe, seed: int) -> Array:
    """Modulus of the posterior mean of some lines, (ky, kx), for its neighbours; zero where it is of noise."""
    if not one.shows_signal(lines):
        return np.zeros(one.shape, dtype=np.float32)
    recipe = recipe.replacing("reconstruction", noise_map=False)
    options = InferenceOptions(signal=one.level(lines))
    made = reconstruct_prepared(one, lines, "mean", recipe, image_rng(seed), with_std=False, options=options)
    return np.abs(made.image).astype(np.float32)


def neighbours(
    near: Mapping[str, Mapping[int, float]], modulus: Callable[[int], NDArray[np.float32]], *, later: bool = False
) -> tuple[Companion, ...]:
    """Companions from the moduli of neighbouring images, as `NeighbourCounts.of` names them; without empty images.

    They lie as the image lies, but where it was measured so much ``later`` that the object may have moved.
    """
    found = {name: sum(weight * modulus(n) for n, weight in weights.items()) for name, weights in near.items()}
    placed = "taken from the same scan" + ("" if later else ", as it lies")
    return tuple(
        Companion(name, np.asarray(image), placed, in_place=not later)
        for name, image in found.items()
        if np.percentile(image, 99.5) > 0
    )
