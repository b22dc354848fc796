"""Regions of the image of a scan, or of a map of its echoes, whose means or differences are to be known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.design.trace import Within
from mri_design.errors import InputError, UsageError, option
from mri_design.evidence.regions import (
    FEWEST_DRAWS,
    USUAL_DRAWS,
    Distances,
    RegionMean,
    free_name,
    region_means,
    shipped_distances,
)
from mri_design.experiment.companion_images import RegionMask, region_of_file
from mri_design.experiment.inputs import slices_text
from mri_design.experiment.recipe import Recipe, unit_of_interval
from mri_design.experiment.reconstruction import Image
from mri_design.model.slice import SliceModel
from mri_design.operators.base import Array
from mri_design.scan.geometry import SliceGeometry
from mri_design.signals.maps import SignalMap, fit_map
from mri_design.signals.models import SignalModel
from mri_design.status import Convergence, Status

GivenRegion = Path | NDArray[np.generic]
"""File or array of regions (`RegionMask`)."""
DARK = 0.05
"""A region is in air, or holds nothing, below this part of the brightness of the object."""
BRIGHT = 95.0
"""Percentile of the pixels that is the brightness of the object."""
LEAST_IDENTIFIED = 0.9
"""Share of a region's pixels in which the echoes have to determine a quantity, for its mean to be known."""
FAR = 0.75
"""Part of what noise alone leaves in the interval, below which a shorter one is refused."""


PlacedSlice = tuple[str, SliceGeometry | None, int, int]
"""Name of a slice, its place, its number in its scan, and how many slices that has."""


@briefly
@dataclass(frozen=True)
class WantedRegions:
    """What is to be known about an image or a map, before it is laid over a slice.

    Parameters
    ----------
    means : tuple of Path or array
        Masks (`RegionMask`): the mean of every region of each.
    differences : tuple of pairs
        Of masks of one region each.
    fit : SignalModel, optional
        What is fitted to the frames of a series that share the lines: the regions are those of its map.
    times : str or sequence of float
        What the frames differ by (`SignalModel.times`).
    """

    means: tuple[GivenRegion, ...] = ()
    differences: tuple[tuple[GivenRegion, GivenRegion], ...] = ()
    fit: SignalModel | None = None
    times: str | Sequence[float] = ""

    def __bool__(self) -> bool:
        return bool(self.means or self.differences)

    def recipe(self, recipe: Recipe) -> Recipe:
        """A recipe that requests draws where regions are to be known.

        Raises
        ------
        UsageError
            For regions without an interval that is wanted, or the other way round, and for a method of reconstruction
            that has no draws.
        InputError
            For a length in another unit than that of the map.
        """
        if bool(self) != (recipe.design.until_interval is not None):
            both = f"{option('region')} or {option('difference')}, and {option('until-interval')}"
            raise UsageError(f"until what is known, and how well? Give both: {both}")
        if not self:
            return recipe
        if (method := recipe.reconstruction.method) != "mean":
            raise UsageError(f"the method {method} has no intervals, by which regions are known: leave it out")
        unit, known = unit_of_interval(recipe.design.until_interval or ""), self.fit.unit if self.fit else ""
        if unit not in ("", "units", known):
            wanted = f"a length in {known}" if known else "a length in the units of the image"
            cure = f"Write '3.5 {known or 'units'}', or per cent."
            raise InputError("until_interval", repr(recipe.design.until_interval), wanted, cure)
        few = {"draws": USUAL_DRAWS} if recipe.reconstruction.draws < FEWEST_DRAWS else {}
        return recipe.replacing("reconstruction", **few)

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
        if self.fit is not None:
            found |= {"fit": self.fit.name, "times": self.times if isinstance(self.times, str) else [*self.times]}
        return {name: value for name, value in found.items() if value}

    def over(
        self,
        places: Sequence[SliceGeometry | None],
        shape: tuple[int, int],
        level: float,
        numbers: Sequence[int] = (0,),
        count: int = 1,
        *,
        whole: bool = True,
    ) -> Regions:
        """The regions on the slices that share a mask.

        Parameters
        ----------
        places : sequence of SliceGeometry or None
            Of the slices; first that of the image.
        shape : tuple of int
            Their grid, (ky, kx).
        level : float
            Of the intervals.
        numbers, count : sequence of int, int
            Of the slices in the scan, and how many that has (`RegionMask.over`).
        whole : bool
            Whether all regions have to lie on these slices; else differences count where both of their regions do.

        Raises
        ------
        InputError
            For a file that is no mask, lies elsewhere, has another grid, or several regions where one is wanted.
        """
        over = partial(_over, places=places, shape=shape, numbers=numbers, count=count, whole=whole)
        masks, names = dict[str, NDArray[np.bool_]](), list[str]()
        for number, given in enumerate(self.means, 1):
            names += _joined(masks, over(given, f"region {number}" if len(self.means) > 1 else "region"))
        pairs = list[tuple[str, str]]()
        for number, pair in enumerate(self.differences, 1):
            sides = list[str]()
            for word, given in zip(("first", "second"), pair, strict=True):
                found = over(given, word if len(self.differences) == 1 else f"{word} {number}")
                if len(found) > 1:
                    wanted = "one region on each side of a difference"
                    field = given.name if isinstance(given, Path) else word
                    raise InputError(field, f"{len(found)} regions", wanted, "Give a mask of one label.")
                sides += _joined(masks, found)
            if len(sides) < 2:
                continue
            if sides[0] == sides[1]:
                wanted, cure = "two regions that differ", "Give two masks."
                raise InputError("difference", f"{sides[0]} less itself", wanted, cure)
            pairs.append((sides[0], sides[1]))
        return Regions(masks, tuple(dict.fromkeys(names)), tuple(pairs), level)

    def over_each(self, slices: Sequence[PlacedSlice], shape: tuple[int, int], level: float) -> Regions:
        """The regions on each of several slices by itself, which may be of different scans, where they lie on it.

        Every region has to be known in every slice that has it. Of a mask that is no volume and has no place the
        regions lie on all slices.

        Raises
        ------
        InputError
            As `over`; for a region that lies on no slice.
        """
        masks, means, pairs = dict[str, NDArray[np.bool_]](), list[str](), list[tuple[str, str]]()
        for at, (whose, place, number, count) in enumerate(slices):
            found = self.over([place], shape, level, [number], count, whole=False)
            named = {each: f"{each} of {whose}" for each in found.masks}
            for each, inside in found.masks.items():
                masks[named[each]] = np.zeros((len(slices), *shape), dtype=bool)
                masks[named[each]][at] = inside[0]
            means += [named[each] for each in found.means]
            pairs += [(named[a], named[b]) for a, b in found.differences]
        for given in (*self.means, *(one for pair in self.differences for one in pair)):
            mask = RegionMask.given(given)
            laid = [mask.over([place], (1, *shape), [n], count, whole=False) for _, place, n, count in slices]
            _require_all(mask, np.concatenate(laid), "the training slices")
        return Regions(masks, tuple(means), tuple(pairs), level)


NO_REGIONS = WantedRegions()


@briefly
@dataclass(frozen=True)
class EchoFit:
    """A fit to echoes of one slice that share the lines.

    Parameters
    ----------
    model : SignalModel
        What is fitted.
    times : float array, shape (echo,)
        In its unit.
    """

    model: SignalModel
    times: NDArray[np.float64]

    def mapped(self, echoes: Sequence[Image], inside: NDArray[np.bool_]) -> SignalMap:
        """The map of the pixels (ky, kx) ``inside``, of images with draws; raises as `fit_map`."""
        parts = (np.stack([getattr(one, name) for one in echoes]) * inside for name in ("image", "draws", "std"))
        pulls = [one.pull for one in echoes if one.pull is not None]
        pull = np.stack(pulls) if len(pulls) == len(echoes) else None
        return fit_map(self.model, self.times, *parts, pull=pull)


@briefly
@dataclass(frozen=True)
class Regions:
    """Regions on the slices that share a mask, or on a map of one slice whose echoes do.

    Parameters
    ----------
    masks : mapping of str to bool array, shape (slice, ky, kx)
        By name; a region may go through several slices.
    means : tuple of str
        Regions whose mean is to be known.
    differences : tuple of (str, str)
        Pairs of regions whose difference is.
    level : float
        Of the intervals.
    distances : Distances, optional
        Of regions like these in images; by default those that are shipped.
    fit : EchoFit, optional
        The regions are those of its map, instead of images: what shares the lines are the echoes of one slice.
    """

    masks: Mapping[str, NDArray[np.bool_]]
    means: tuple[str, ...] = ()
    differences: tuple[tuple[str, str], ...] = ()
    level: float = 0.9
    distances: Distances | None = None
    fit: EchoFit | None = None

    @property
    def places(self) -> list[int]:
        """The images that are looked at, by their places among those that share the mask: of slices with a region."""
        if self.fit is not None:
            return list(range(len(self.fit.times)))
        return np.flatnonzero(np.any(list(self.masks.values()), axis=(0, 2, 3))).tolist()

    def among(self, shows: Sequence[bool], numbers: Sequence[int]) -> Regions:
        """These regions on the slices that show signal, of those with such ``numbers``.

        Raises
        ------
        InputError
            For a region that goes through a slice of noise only.
        """
        for name, inside in self.masks.items():
            if empty := sorted(numbers[n] for n, one in enumerate(inside) if one.any() and not shows[n]):
                got, wanted = f"a region that goes through {slices_text(empty)}", "slices that show more than noise"
                raise InputError(name, got, wanted, f"Leave these slices out of it, or out of {option('slices')}.")
        return replace(self, masks={name: inside[list(shows)] for name, inside in self.masks.items()})

    def measured(
        self, images: Mapping[int, Image], truths: Mapping[int, Array | None] | None = None
    ) -> list[RegionMean]:
        """Means and differences that are to be known; NaN where the echoes do not determine them.

        Parameters
        ----------
        images : mapping of int to Image
            With draws, of the `places`.
        truths : mapping of int to complex array (ky, kx), optional
            Of the same, as far as they are known; their moduli count.
        """
        found = self._of_images(images, truths) if self.fit is None else self._of_map(self.fit, images)
        by_name = {one.name: one for one in found}
        pairs = [by_name[a].minus(by_name[b], f"{a} - {b}", together=True) for a, b in self.differences]
        return [*(by_name[name] for name in self.means), *pairs]

    def _of_images(self, images: Mapping[int, Image], truths: Mapping[int, Array | None] | None) -> list[RegionMean]:
        places, drawn = self.places, [images[place].draws for place in self.places]
        assert all(one is not None for one in drawn)
        known = [None if truths is None else truths.get(place) for place in places]
        stacked = {name: inside[places] for name, inside in self.masks.items()}
        made = np.stack([images[place].image for place in places])
        true = None if any(one is None for one in known) else np.stack(known)  # type: ignore[arg-type]
        pulls = [images[place].pull for place in places]
        found = region_means(stacked, made, drawn, true, pulls)  # type: ignore[arg-type]
        return [replace(one, distances=self.distances) for one in found]

    def _of_map(self, fit: EchoFit, images: Mapping[int, Image]) -> list[RegionMean]:
        everywhere, means = np.any([*self.masks.values()], axis=0)[0], list[RegionMean]()
        with suppress(InputError):  # echoes of few lines do not determine it yet
            made = fit.mapped([images[place] for place in self.places], everywhere)
            found = {name: inside & made.identified for name, inside in self.masks.items()}
            known = {name: one for name, one in found.items() if one.sum() >= LEAST_IDENTIFIED * self.masks[name].sum()}
            means = region_means(known, made.value[np.newaxis], [made.draws])
        unknown = (np.full(len(np.asarray(images[0].draws)), np.nan),)
        others = self.masks.keys() - {one.name for one in means}
        return [*means, *(RegionMean(name, 0, np.nan, unknown) for name in others)]

    def intervals(self, means: Sequence[RegionMean]) -> NDArray[np.float64]:
        """`Forecast.intervals` of what was `measured`: middle, half of the length, brightness; (region, 3).

        The length is infinite where nothing is known.
        """
        rows = np.array([(one.middle, one.half_length(self.level), one.relative_to) for one in means])
        rows[:, 1] = np.where(np.isfinite(rows[:, 1]), rows[:, 1], np.inf)
        return rows

    @property
    def names(self) -> tuple[str, ...]:
        """Of what is to be known, in the order of `intervals`."""
        return (*self.means, *(f"{a} - {b}" for a, b in self.differences))

    def shortest(self, seen: Mapping[int, Seen]) -> NDArray[np.float64]:
        """`Forecast.intervals` that noise alone would leave, if all lines were measured, and nothing else were known.

        ``seen`` has the slices of `places`.
        """
        if self.fit is not None:
            rng, ended = np.random.default_rng(0), Convergence(Status.CONVERGED, 0, 0.0)
            complete = dict[int, Image]()
            for place, (image, variance) in seen.items():
                noise = np.sqrt(variance) * rng.normal(size=(2, USUAL_DRAWS, *image.shape))
                drawn = image + noise[0] + 1j * noise[1]
                complete[place] = Image(image, np.sqrt(2 * variance), ended, draws=drawn)
            return self.intervals(self.measured(complete))
        places, distances = self.places, self.distances or shipped_distances()
        sizes, variances = (np.stack([np.abs(seen[place][part]) for place in places]) for part in (0, 1))
        known = dict[str, tuple[float, float, float]]()
        for name, everywhere in self.masks.items():
            inside, pixels = everywhere[places], float(everywhere[places].sum())
            known[name] = float(sizes[inside].mean()), float(variances[inside].sum()) / pixels**2, pixels

        def half(variance: float, pixels: float) -> float:
            return float(distances.within(self.level, pixels) * np.sqrt(variance))

        rows = [(known[name][0], half(*known[name][1:]), known[name][0]) for name in self.means]
        for a, b in self.differences:
            (one, own, pixels), (other, more, others) = known[a], known[b]
            rows.append((one - other, half(own + more, (pixels + others) / 2), max(one, other)))
        return np.array(rows)

    def require(self, slices: Sequence[SliceModel], start: Sequence[int], within: Within) -> None:
        """Refuse regions that hold no signal, and intervals that noise forbids, as the first lines show them.

        Of echoes the first one has to show signal.

        Raises
        ------
        InputError
            Naming the region, or the interval with the shortest possible one.
        """
        seen = {place: first_seen(slices[place], start) for place in self.places}
        shown = self.places if self.fit is None else [0]
        sizes = np.stack([np.abs(seen[place][0]) for place in shown])
        bright = float(np.percentile(sizes, BRIGHT))
        for name, inside in self.masks.items():
            mean = float(sizes[inside[shown]].mean())
            if mean < DARK * bright:
                got = f"a region in air, or one without signal: {mean / bright:.1%} of the object's brightness"
                cure = "Draw it on the image of the scan; see that its axes are (ky, kx)."
                raise InputError(name, got, f"{DARK:.0%} or more, as the first lines show it", cure)
        lengths = within.lengths(self.shortest(seen))
        lengths[~np.isfinite(lengths)] = 0.0  # the first lines of echoes do not say it
        place = int(np.argmax(lengths))
        if within.length < FAR * lengths[place]:
            unit = "units" if self.fit is None else self.fit.model.unit or "units"
            text = "{:.2%}" if within.relative else f"{{:.3g}} {unit}"
            got, least = map(text.format, (within.length, lengths[place]))
            wanted = f"{least} or more: noise alone leaves {self.names[place]} so uncertain, even in a complete scan"
            raise InputError("until_interval", got, wanted, "Ask for a longer interval, a larger region, or average.")


Seen = tuple[Array, NDArray[np.float64]]
"""Image that the first lines of a slice show, and the variance per real component that noise alone would leave in that
of all lines, (ky, kx) each, in the units of the file."""


def first_seen(slice_model: SliceModel, start: Sequence[int]) -> Seen:
    """What the first lines of a slice show."""
    one = slice_model.calibrated(start, rough=True)
    image, unit = one.central_image(start), np.abs(one.image_unit)
    squares = 1.0 if one.maps is None else np.sum(np.abs(one.maps) ** 2, axis=0)
    variances = one.noise_variance * unit**2 / np.maximum(squares, np.finfo(np.float32).tiny)
    return np.asarray(image * unit), np.broadcast_to(variances, image.shape)


def _over(
    given: GivenRegion,
    name: str,
    places: Sequence[SliceGeometry | None],
    shape: tuple[int, int],
    numbers: Sequence[int],
    count: int,
    whole: bool,
) -> dict[str, NDArray[np.bool_]]:
    """Regions by the names that people know: of files their own."""
    name = _name(given) if isinstance(given, Path) else name
    mask = RegionMask.given(given, name)
    found = mask.over(places, (len(places), *shape), numbers, count, whole=whole)
    if whole:
        _require_all(replace(mask, name=name), found, slices_text(numbers))
    labels = np.unique(mask.labels[mask.labels > 0])
    several = len(labels) > 1
    return {f"{name} {n}" if several else name: found == n for n in labels.tolist() if whole or (found == n).any()}


def _require_all(mask: RegionMask, found: NDArray[np.int64], where: str) -> None:
    """Refuse a mask of which a region lies on no slice."""
    if lost := sorted({*np.unique(mask.labels).tolist()} - {*np.unique(found).tolist(), 0}):
        got, wanted = f"region {lost[0]} lies in none of the slices", f"a region in {where}"
        raise InputError(mask.name, got, wanted, f"Choose the slices that it goes through with {option('slices')}.")


def _joined(masks: dict[str, NDArray[np.bool_]], found: Mapping[str, NDArray[np.bool_]]) -> list[str]:
    """Add regions, and return their names: one that another region has gets a number, and the same region is itself."""
    names = list[str]()
    for name, inside in found.items():
        same = [known for known, mask in masks.items() if np.array_equal(mask, inside)]
        names += same or [free_name(name, masks)]
        masks[names[-1]] = inside
    return names


def _name(given: GivenRegion) -> str:
    return region_of_file(given.name) if isinstance(given, Path) else "array"
