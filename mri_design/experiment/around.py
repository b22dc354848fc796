"""Slices of a volume and frames of a series as other images of the object for each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, UsageError, option
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.reconstruction import InferenceOptions, image_rng, reconstruct_prepared
from mri_design.experiment.volume import Frames
from mri_design.model.companion import Companion
from mri_design.model.mr_image import MRSlice
from mri_design.operators.base import Array
from mri_design.scan.geometry import SliceGeometry, around
from mri_design.whole_numbers import whole_number

WORDS = ("slices", "frames")
"""What stands in the place of a file: neighbours within the scan, the nearest on each side or, ``slices:2``, two."""
NEIGHBOURS = "neighbours"
"""Name of the stage in which images are made for their neighbours."""


def is_around(source: str) -> bool:
    """Whether a companion is named that is a neighbour within the scan."""
    return source.partition(":")[0] in WORDS


@dataclass(frozen=True)
class Around:
    """How many neighbours on each side are other images of a slice.

    Parameters
    ----------
    slices : int
        Of the same frame, above and below by their places where all have one, else by their numbers.
    frames : int
        Earlier and later frames of the same slice: contrasts, phases, repetitions or sets.
    """

    slices: int = 0
    frames: int = 0

    @classmethod
    def named(cls, sources: Sequence[str]) -> Around:
        """What ``slices``, ``slices:N``, ``frames`` and ``frames:N`` among companions ask for.

        Raises
        ------
        UsageError
            For another number than 1, 2, and so on.
        """
        found = dict.fromkeys(WORDS, 0)
        for source in filter(is_around, sources):
            word, colon, text = source.partition(":")
            number = whole_number(text) if colon else 1
            if number is None or number < 1:
                raise UsageError(f"{option('with', source)}: wanted {word}, or {word}:2 for two on each side")
            found[word] = number
        return cls(**found)

    def __bool__(self) -> bool:
        return bool(self.slices or self.frames)

    def require(self, numbering: Frames) -> None:
        """Refuse neighbours that a scan does not have.

        Raises
        ------
        InputError
            For slices of a scan of one, and frames of one frame.
        """
        if self.slices and numbering.n_slices < 2:
            raise InputError("companions", "a scan of one slice", "a scan of several", "Leave it out.")
        if self.frames and len(numbering.numbers) < 2:
            raise InputError(
                field="companions",
                got="one frame",
                wanted="several contrasts, phases, repetitions or sets, which are reconstructed together",
                cure=f"Give {', '.join(option(axis, 'all') for axis in ('contrast', 'phase', 'repetition'))} or "
                f"{option('set', 'all')} too, of raw data that have them.",
            )

    def of(
        self, image: int, numbering: Frames, places: Mapping[int, SliceGeometry | None]
    ) -> dict[str, dict[int, float]]:
        """What is offered to an image: by name the weights of the images that it is the sum of.

        Between the slices above and below it is interpolated: their mean is more like the slice than either.

        Parameters
        ----------
        image : int
            By its number.
        numbering : Frames
            How images are numbered.
        places : mapping of int to SliceGeometry or None
            Of the slices of a frame that there are, by number.
        """
        frame, number = divmod(image, numbering.n_slices)
        found: dict[str, dict[int, float]] = {}
        for pair in around(places, number, self.slices) if self.slices else []:
            name = f"{'mean of slices' if len(pair) > 1 else 'slice'} {' and '.join(map(str, sorted(pair)))}"
            found[name] = {frame * numbering.n_slices + other: weight for other, weight in pair.items()}
        for away in range(1, self.frames + 1):
            for other in (frame - away, frame + away):
                if 0 <= other < len(numbering.numbers):
                    found[f"{numbering.axis} {numbering.numbers[other]}"] = {other * numbering.n_slices + number: 1.0}
        return found


NOT_AROUND = Around()


def told_to_neighbours(one: MRSlice, lines: Sequence[int], recipe: Recipe, seed: int) -> Array:
    """Modulus of the posterior mean of some lines, (ky, kx), which neighbours are told; zero where it is of noise."""
    if not one.shows_signal(lines):
        return np.zeros(one.shape, dtype=np.float32)
    recipe = recipe.replacing("reconstruction", noise_map=False)
    options = InferenceOptions(signal=one.level(lines))
    made = reconstruct_prepared(one, lines, "mean", recipe, image_rng(seed), with_std=False, options=options)
    return np.abs(made.image).astype(np.float32)


def neighbours(
    near: Mapping[str, Mapping[int, float]], modulus: Callable[[int], NDArray[np.float32]], *, later: bool = False
) -> tuple[Companion, ...]:
    """Companions of what `Around.of` names, from the moduli of images by number; what shows nothing is none.

    They lie as the image lies, but where it was measured so much ``later`` that the object may have moved.
    """
    found = {name: sum(weight * modulus(n) for n, weight in weights.items()) for name, weights in near.items()}
    placed = "taken from the same scan" + ("" if later else ", as it lies")
    return tuple(
        Companion(name, np.asarray(image), placed, in_place=not later)
        for name, image in found.items()
        if np.percentile(image, 99.5) > 0
    )
