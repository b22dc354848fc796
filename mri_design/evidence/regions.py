"""Means of regions and their differences, with errors that draws of the image give them.

A posterior mean is too dark: what is not known of it averages out, and its modulus lacks it. Draws have it, so the
truth is expected where the draws are on average. How many standard deviations of the draws it is away from there has
been measured on regions of images whose truth is known, of many subjects, encodings, coils and noises. The quantiles of
these distances make intervals that hold for images of the same kinds: split conformal prediction (V. Vovk, A.
Gammerman, G. Shafer, Algorithmic learning in a random world, 2005; J. Lei et al., J. Am. Stat. Assoc. 113, 2018), by
``benchmarks/regions.py learn``; results/regions/README.md has what they hold of subjects that were left out.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from importlib import resources
from itertools import count
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.errors import InputError, option, probability
from mri_design.operators.base import Array

FEWEST_DRAWS = 4
"""Draws behind a standard deviation: of fewer it is worth nothing."""
USUAL_DRAWS = 32
"""Draws behind the images of which distances are known."""


PIXELS, SIZES, LEAST = 100.0, (10.0, 400.0), 1e-3
"""Size of a usual region, sizes between which distances depend on it, and what shorter distances count as in that."""


@briefly
@dataclass(frozen=True)
class Distances:
    """How many standard deviations of its draws (`RegionMean.spread`) the truth of a region is away from their mean.

    Parameters
    ----------
    levels : tuple of float
        Shares of regions, rising.
    quantiles : tuple of float
        Standard deviations within which that share of the regions of `PIXELS` has its truth.
    power : float
        Of the size of a region: standard deviations are too small for small regions, where it is below 0.
    shift : float
        Median of the distance from the truth to the mean of the draws, in standard deviations, by which the middle of
        an interval is moved: above 0, since sites do not pull on all pixels alike. It cancels in differences.
    towards : float
        Where the middle lies before that: 0 is the value of the image, 1 the mean of the draws.
    """

    levels: tuple[float, ...]
    quantiles: tuple[float, ...]
    power: float = 0.0
    shift: float = 0.0
    towards: float = 1.0

    def within(self, level: float, pixels: float | NDArray[np.float64] = PIXELS) -> NDArray[np.float64]:
        """The quantile of a level for regions of a size, shape of ``pixels``.

        Between two levels it is linear, and beyond the last in proportion to a Gaussian's.
        """
        gaussian = scipy.stats.norm.ppf((1 + np.array([*self.levels, level])) / 2)
        usual = gaussian[-1] * np.interp(level, self.levels, np.array(self.quantiles) / gaussian[:-1])
        return np.asarray(usual * (np.clip(pixels, *SIZES) / PIXELS) ** self.power)

    @classmethod
    def kept(cls, stored: Mapping[str, Any]) -> Distances:
        """From the table of a file."""
        levels, quantiles = (tuple(map(float, stored[name])) for name in ("levels", "quantiles"))
        return cls(levels, quantiles, float(stored["power"]), float(stored["shift"]))

    @classmethod
    def of(
        cls,
        distances: NDArray[np.float64],
        pixels: NDArray[np.float64],
        weights: NDArray[np.float64] | None = None,
        means: NDArray[np.bool_] | None = None,
    ) -> Distances:
        """The quantiles of some regions' distances, of their sizes and weights, (region,) each.

        The power is that of a straight line through the logarithms of distances, the shift the median of ``means``,
        which all are that are no differences.
        """
        weights = np.ones(len(distances)) if weights is None else weights
        means = np.ones(len(distances), dtype=bool) if means is None else means
        shift = _quantiles(distances[means], weights[means], (0.5,))[0] if means.any() else 0.0
        away = np.abs(distances - shift * means)
        size = np.log(np.clip(pixels, *SIZES) / PIXELS)
        known = np.log(np.maximum(away, LEAST))
        power = np.polyfit(size, known, 1, w=np.sqrt(weights))[0] if np.ptp(size) else 0.0
        away = away / np.exp(power * size)
        return cls(LEARNT_LEVELS, _quantiles(away, weights, LEARNT_LEVELS), float(power), shift)


def _quantiles(values: NDArray[np.float64], weights: NDArray[np.float64], levels: Sequence[float]) -> tuple[float, ...]:
    """Quantiles of values that count with weights."""
    order = np.argsort(values)
    found = np.interp(levels, np.cumsum(weights[order]) / weights.sum(), values[order])
    return tuple(found.tolist())


LEARNT_LEVELS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98)
"""Levels of which quantiles are kept."""


@cache
def student_distances() -> Distances:
    """Those of errors around the value that are Gaussian, of `USUAL_DRAWS`: the quantiles of Student's t."""
    quantiles = scipy.stats.t.ppf((1 + np.array(LEARNT_LEVELS)) / 2, USUAL_DRAWS - 1)
    return Distances(LEARNT_LEVELS, tuple(quantiles.tolist()), towards=0.0)


@cache
def shipped_distances() -> Distances:
    """Those that ``benchmarks/regions.py learn`` found."""
    text = resources.files("mri_design.evidence").joinpath("region_distances.json").read_text("utf-8")
    return Distances.kept(json.loads(text))


@briefly
@dataclass(frozen=True)
class RegionMean:
    """Mean modulus of a region, or the difference of two.

    Parameters
    ----------
    name : str
        Of the region, or of both.
    pixels : int
        In it, or in both.
    value : float
        In the image's units.
    deviations : tuple of float arrays, shape (draw,)
        Of the same over draws, from ``value``, with the pull of the prior taken off; what they deviate by together is
        their sum. Entries are independent of each other (slices, images), within one the draws of two regions belong
        together.
    true : float, optional
        The same of the reference.
    brightness : float, optional
        Mean modulus that relative numbers refer to: by default the value; of a difference that of the brighter region.
    distances : Distances, optional
        Of regions like this one; by default those that are shipped.
    regions : int
        Behind it: two of a difference.
    """

    name: str
    pixels: int
    value: float
    deviations: tuple[NDArray[np.float64], ...]
    true: float | None = None
    _: KW_ONLY
    brightness: float | None = None
    distances: Distances | None = None
    regions: int = 1

    @property
    def sd(self) -> float:
        """Root mean square of the deviations: how far the value is expected to be from the truth.

        In it are the scatter of the draws, the modulus of noise, by which they are brighter than the image, and the
        pull of the prior.
        """
        return float(np.sqrt(self._shift**2 + sum(self._scatter)))

    @property
    def spread(self) -> float:
        """Standard deviation of the draws around the middle of intervals, which has what they deviate by together."""
        apart = 1 - (self.distances or shipped_distances()).towards
        return float(np.sqrt((apart * self._shift) ** 2 + sum(self._scatter)))

    def interval(self, level: float) -> tuple[float, float]:
        """Ends of the interval that holds the truth with this probability.

        It lies around the mean of the draws, and is as wide as regions of known truth had to have it (`Distances`). Of
        fewer draws than these had it is wider by Student's t, whose degrees of freedom are those of the draws (Welch
        and Satterthwaite for several parts).
        """
        half = self.half_length(level)
        return self.middle - half, self.middle + half

    @property
    def relative_to(self) -> float:
        """``brightness``, by default the value."""
        return self.value if self.brightness is None else self.brightness

    @property
    def middle(self) -> float:
        """Where the truth is expected: at the mean of the draws, shifted by what regions of known truth had to be."""
        known = self.distances or shipped_distances()
        return self.value + known.towards * self._shift - (known.shift * self.spread if self.regions == 1 else 0.0)

    def half_length(self, level: float) -> float:
        """Half of the length of the interval of this level, a `probability`."""
        level = probability(level)
        scatter, tail = self._scatter, (1 + level) / 2
        weighted = sum(part**2 / (len(one) - 1) for part, one in zip(scatter, self.deviations, strict=True))
        freedom = sum(scatter) ** 2 / weighted if weighted else np.inf
        few = scipy.stats.t.ppf(tail, freedom) / scipy.stats.t.ppf(tail, USUAL_DRAWS - 1)
        usual = (self.distances or shipped_distances()).within(level, self.pixels / self.regions)
        return float(usual * max(few, 1) * self.spread)

    @property
    def distance(self) -> float:
        """Standard deviations from the mean of the draws to the truth; NaN where that is not known."""
        known = self.true is not None and self.spread > 0
        return (self.value + self._shift - float(self.true or 0)) / self.spread if known else float("nan")

    def minus(self, other: RegionMean, name: str, *, together: bool) -> RegionMean:
        """The difference to another mean, of the same draws (``together``) or of an image that is independent."""
        if together:
            parts = tuple(a - b for a, b in zip(self.deviations, other.deviations, strict=True))
        else:
            parts = (*self.deviations, *(-part for part in other.deviations))
        true = None if self.true is None or other.true is None else self.true - other.true
        return replace(
            self,
            name=name,
            pixels=self.pixels + other.pixels,
            value=self.value - other.value,
            deviations=parts,
            true=true,
            brightness=max(abs(self.value), abs(other.value)),
            regions=self.regions + other.regions,
        )

    @property
    def _shift(self) -> float:
        return float(sum(one.mean() for one in self.deviations))

    @property
    def _scatter(self) -> list[float]:
        return [float(one.var(ddof=1)) for one in self.deviations]


def named_regions(labels: NDArray[np.int64], word: str = "region") -> dict[str, NDArray[np.bool_]]:
    """Flags of every region by its name: the word alone where there is one, else with the label behind it."""
    found = [int(label) for label in np.unique(labels) if label]
    return {f"{word} {label}" if len(found) > 1 else word: labels == label for label in found}


def free_name(name: str, taken: Collection[str]) -> str:
    """A name that no other region has: with a number behind it, where one has it."""
    numbered = (name if number == 1 else f"{name} ({number})" for number in count(1))
    return next(each for each in numbered if each not in taken)


def region_means(
    regions: Mapping[str, NDArray[np.bool_]],
    images: Array,
    draws: Sequence[Array] | Array,
    truths: Array | None = None,
    pulls: Sequence[Array | None] | Array | None = None,
) -> list[RegionMean]:
    """Mean moduli of regions of images, or means of maps, whose intervals are those of Student's t around the value.

    Parameters
    ----------
    regions : mapping of str to bool array, shape (slice, ky, kx)
        By name; they may overlap.
    images : complex array, or float array of a map, shape (slice, ky, kx)
        The image.
    draws : sequence of arrays, shape (draw, ky, kx)
        Of every slice, those of different slices being independent; only those with regions are used.
    truths : complex array, shape (slice, ky, kx), optional
        What errors are measured against.
    pulls : sequence of float arrays (ky, kx), optional
        Of every slice, or None: by how much the prior makes moduli too small (`error_bars.pull_of_prior`). The truth is
        expected that far above the draws.

    Raises
    ------
    InputError
        For a region without a pixel, fewer draws than `FEWEST_DRAWS`, or draws that are not finite.
    """
    for name, inside in regions.items():
        if not inside.any():
            raise InputError(name, "no pixel", "one or more", "Draw it on the image of the run.")
    deviations: dict[str, list[NDArray[np.float64]]] = {name: [] for name in regions}
    touched = np.logical_or.reduce([inside.any(axis=(1, 2)) for inside in regions.values()])
    for place in np.flatnonzero(touched).tolist():
        drawn = np.asarray(draws[place])
        require_several(drawn)
        for name, inside in regions.items():
            own = _size(images[place][inside[place]]).sum(dtype=np.float64)
            over = _size(drawn[:, inside[place]]).sum(axis=1, dtype=np.float64)
            if not np.isfinite(over).all():
                raise InputError("draws", "NaN or infinite values", "finite", "Reconstruct again.")
            pull = None if pulls is None else pulls[place]
            pulled = 0.0 if pull is None else pull[inside[place]].sum(dtype=np.float64)
            deviations[name].append((over - own + pulled) / np.count_nonzero(inside))

    def mean(pixels: Array) -> float:
        return float(np.mean(_size(pixels), dtype=np.float64))

    return [
        RegionMean(
            name,
            int(np.count_nonzero(inside)),
            mean(images[inside]),
            tuple(deviations[name]),
            None if truths is None else mean(truths[inside]),
            distances=None if np.iscomplexobj(images) else student_distances(),
        )
        for name, inside in regions.items()
    ]


def require_several(draws: Array) -> None:
    """Refuse fewer draws (draw, ...) than standard deviations take."""
    if len(draws) < FEWEST_DRAWS:
        cure = f"Reconstruct with more, as {option('draws', '32')}."
        raise InputError("draws", f"{len(draws)} of the image", f"{FEWEST_DRAWS} or more", cure)


def _size(pixels: Array) -> Array:
    """Moduli of an image, and values of a map as they are."""
    return np.abs(pixels) if np.iscomplexobj(pixels) else pixels


AREAS, DISCS, EDGE, BRIGHT, TRIALS = (20, 50, 100, 200), 8, 8, 0.15, 500
"""Pixels of discs, how many of each size, their distance from the image's edge in pixels, and their least brightness as
a part of the 99.5th percentile; places that are tried."""


def discs(truth: Array, area: int, rng: np.random.Generator) -> list[NDArray[np.bool_]]:
    """Discs of an area in pixels where an image (ky, kx) is bright, `DISCS` of them; fewer where hardly anything is."""
    found, size = list[NDArray[np.bool_]](), np.abs(truth)
    least, ends = BRIGHT * np.percentile(size, 99.5), np.array(truth.shape)
    rows, columns = np.ogrid[: truth.shape[0], : truth.shape[1]]
    for _ in range(TRIALS if (ends > 2 * EDGE).all() and area <= truth.size else 0):
        row, column = rng.uniform(EDGE, ends - EDGE)
        nearest = np.argsort(np.hypot(rows - row, columns - column), axis=None, kind="stable")[:area]
        inside = np.zeros(truth.shape, dtype=bool)
        inside.flat[nearest] = True
        if size[inside].mean() > least:
            found.append(inside)
        if len(found) == DISCS:
            break
    return found


def distances_of_discs(
    image: Array, draws: Array, truth: Array, rng: np.random.Generator, pull: Array | None = None
) -> NDArray[np.float64]:
    """Distances and sizes of discs of all `AREAS` in an image whose truth is known, (disc, 2).

    Parameters
    ----------
    image, truth : complex arrays, shape (ky, kx)
        In the same units.
    draws : complex array, shape (draw, ky, kx)
        Of the image.
    rng : numpy Generator
        Puts the discs.
    pull : float array, shape (ky, kx), optional
        As `region_means` has it of slices.
    """
    named = {f"{area} {n}": one for area in AREAS for n, one in enumerate(discs(truth, area, rng))}
    stacked = {name: inside[np.newaxis] for name, inside in named.items()}
    pulls = None if pull is None else pull[np.newaxis]
    found = region_means(stacked, image[np.newaxis], draws[np.newaxis], truth[np.newaxis], pulls)
    return np.array([(mean.distance, mean.pixels) for mean in found]).reshape(-1, 2)
