"""Regions of the image of a scan whose means, or whose differences, are to be known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.design.trace import Within
from mri_design.errors import InputError
from mri_design.evidence.regions import Distances, RegionMean, named_regions, region_means
from mri_design.experiment.companion_images import RegionMask
from mri_design.experiment.reconstruction import Image
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.scan.geometry import SliceGeometry

GivenRegion = Path | NDArray[np.generic]
"""File or array of regions (`RegionMask`)."""
DARK = 0.05
"""A region is in air, or holds nothing, below this part of the brightness of the object."""
BRIGHT = 95.0
"""Percentile of the pixels that is the brightness of the object."""
FAR = 0.75
"""Part of what noise alone leaves in the interval, below which a shorter one is refused."""


@briefly
@dataclass(frozen=True)
class WantedRegions:
    """What is to be known about an image, before it is laid over a slice.

    Parameters
    ----------
    means : tuple of Path or array
        Masks (`RegionMask`): the mean of every region of each.
    differences : tuple of pairs
        Of masks of one region each.
    """

    means: tuple[GivenRegion, ...] = ()
    differences: tuple[tuple[GivenRegion, GivenRegion], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.means or self.differences)

    @property
    def files(self) -> list[str]:
        """The files among them."""
        given = [*self.means, *(one for pair in self.differences for one in pair)]
        return [str(one) for one in given if isinstance(one, Path)]

    @property
    def named(self) -> dict[str, object]:
        """Their names for a manifest, if any."""
        pairs = [[_name(one) for one in pair] for pair in self.differences]
        found = {"regions": [_name(one) for one in self.means], "differences": pairs}
        return {name: value for name, value in found.items() if value}

    def over(self, place: SliceGeometry | None, shape: tuple[int, int], level: float) -> Regions:
        """The regions on a slice at a place, with a grid of this shape; ``level`` is that of the intervals.

        Raises
        ------
        InputError
            For a file that is no mask, lies elsewhere, has another grid, or several regions where one is wanted.
        """
        masks, names = dict[str, NDArray[np.bool_]](), list[str]()
        for number, given in enumerate(self.means, 1):
            found = _over(given, place, shape, f"region {number}" if len(self.means) > 1 else "region")
            names += _joined(masks, found)
        pairs = list[tuple[str, str]]()
        for number, pair in enumerate(self.differences, 1):
            sides = list[str]()
            for word, given in zip(("first", "second"), pair, strict=True):
                found = _over(given, place, shape, word if len(self.differences) == 1 else f"{word} {number}")
                if len(found) > 1:
                    wanted = "one region on each side of a difference"
                    raise InputError(next(iter(found)), f"{len(found)} regions", wanted, "Give a mask of one label.")
                sides += _joined(masks, found)
            if sides[0] == sides[1]:
                wanted, cure = "two regions that differ", "Give two masks."
                raise InputError("difference", f"{sides[0]} less itself", wanted, cure)
            pairs.append((sides[0], sides[1]))
        return Regions(masks, tuple(dict.fromkeys(names)), tuple(pairs), level)


NO_REGIONS = WantedRegions()


@briefly
@dataclass(frozen=True)
class Regions:
    """Regions on the grid of one slice.

    Parameters
    ----------
    masks : mapping of str to bool array, shape (ky, kx)
        By name.
    means : tuple of str
        Regions whose mean is to be known.
    differences : tuple of (str, str)
        Pairs of regions whose difference is.
    level : float
        Of the intervals.
    distances : Distances, optional
        Of regions like these; by default those that are shipped.
    """

    masks: Mapping[str, NDArray[np.bool_]]
    means: tuple[str, ...] = ()
    differences: tuple[tuple[str, str], ...] = ()
    level: float = 0.9
    distances: Distances | None = None

    def measured(self, image: Image, truth: Array | None = None) -> list[RegionMean]:
        """Means and differences that are to be known, of an image with draws; ``truth`` has its modulus."""
        assert image.draws is not None
        stacked = {name: inside[np.newaxis] for name, inside in self.masks.items()}
        truths = None if truth is None else truth[np.newaxis]
        found = region_means(stacked, image.image[np.newaxis], image.draws[np.newaxis], truths)
        found = [replace(one, distances=self.distances) for one in found]
        by_name = {one.name: one for one in found}
        pairs = [by_name[a].minus(by_name[b], f"{a} - {b}", together=True) for a, b in self.differences]
        return [*(by_name[name] for name in self.means), *pairs]

    def intervals(self, means: Sequence[RegionMean]) -> NDArray[np.float64]:
        """`Forecast.intervals` of what was `measured`: middle, half of the length, brightness; (region, 3)."""
        return np.array([(one.middle, one.half_length(self.level), one.relative_to) for one in means])

    @property
    def names(self) -> tuple[str, ...]:
        """Of what is to be known, in the order of `intervals`."""
        return (*self.means, *(f"{a} - {b}" for a, b in self.differences))

    def shortest(self, slice_model: SliceModel, image: Array) -> NDArray[np.float64]:
        """`Forecast.intervals` that noise alone would leave, if all lines were measured, and nothing else were known.

        Parameters
        ----------
        slice_model : SliceModel
            The slice with coil maps.
        image : complex array, shape (ky, kx)
            What the first lines show, in the same units: the brightness of regions.
        """
        squares = 1.0 if slice_model.maps is None else np.sum(np.abs(slice_model.maps) ** 2, axis=0)
        squares = np.broadcast_to(squares, image.shape)
        variances = slice_model.noise_variance / np.maximum(squares, np.finfo(np.float32).tiny)
        far = NormalDist().inv_cdf((1 + self.level) / 2)
        known = {
            name: (float(np.abs(image[inside]).mean()), float(variances[inside].sum()) / np.count_nonzero(inside) ** 2)
            for name, inside in self.masks.items()
        }
        rows = [(known[name][0], far * np.sqrt(known[name][1]), known[name][0]) for name in self.means]
        for a, b in self.differences:
            (one, noise), (other, more) = known[a], known[b]
            rows.append((one - other, far * np.sqrt(noise + more), max(one, other)))
        return np.array(rows)

    def require(self, slice_model: SliceModel, image: Array, within: Within) -> None:
        """Refuse regions that hold no signal, and intervals that noise forbids.

        Raises
        ------
        InputError
            Naming the region, or the interval with the shortest possible one.
        """
        bright = float(np.percentile(np.abs(image), BRIGHT))
        for name, inside in self.masks.items():
            mean = float(np.abs(image[inside]).mean())
            if mean < DARK * bright:
                got = f"a region in air, or one without signal: {mean / bright:.1%} of the object's brightness"
                cure = "Draw it on the image of the scan; see that its axes are (ky, kx)."
                raise InputError(name, got, f"{DARK:.0%} or more, as the first lines show it", cure)
        lengths = within.lengths(self.shortest(slice_model, image))
        place = int(np.argmax(lengths))
        if within.length < FAR * lengths[place]:
            shown = "{:.2%}" if within.relative else "{:.3g} units"
            unit = 1.0 if within.relative else float(np.median(np.abs(slice_model.image_unit)))
            got, least = (shown.format(each * unit) for each in (within.length, lengths[place]))
            wanted = f"{least} or more: noise alone leaves {self.names[place]} so uncertain, even in a complete scan"
            raise InputError("until_interval", got, wanted, "Ask for a longer interval, a larger region, or average.")


def _over(
    given: GivenRegion, place: SliceGeometry | None, shape: tuple[int, int], name: str
) -> dict[str, NDArray[np.bool_]]:
    """Regions by the names that people know: of files their own."""
    name = _name(given) if isinstance(given, Path) else name
    found = named_regions(RegionMask.given(given, name).over([place], (1, *shape)), name)
    return {each: inside[0] for each, inside in found.items()}


def _joined(masks: dict[str, NDArray[np.bool_]], found: Mapping[str, NDArray[np.bool_]]) -> list[str]:
    """Add regions, and return their names: one that another region has gets a number, and the same region is itself."""
    names = list[str]()
    for name, inside in found.items():
        same = [known for known, mask in masks.items() if np.array_equal(mask, inside)]
        free = next(
            each for n in range(1, len(masks) + 2) if (each := name if n == 1 else f"{name} ({n})") not in masks
        )
        names += same or [free]
        masks[names[-1]] = inside
    return names


def _name(given: GivenRegion) -> str:
    return re.sub(r"\.[a-zA-Z0-9]+(\.gz)?$", "", given.name) if isinstance(given, Path) else "array"
