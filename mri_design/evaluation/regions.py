"""Means of an image over regions, and differences of two, with the error that draws of the image give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.errors import InputError, option
from mri_design.evaluation.tables import Row
from mri_design.operators.base import Array

LEVELS = (0.5, 0.8, 0.95)
"""Of the intervals that are told."""
FEWEST_DRAWS = 4
"""Draws behind a standard deviation: of fewer it is worth nothing."""


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
        Of the same over draws, from ``value``; what they deviate by together is their sum. Entries are independent of
        each other (slices, images), within one the draws of two regions belong together.
    true : float, optional
        The same of the reference.
    """

    name: str
    pixels: int
    value: float
    deviations: tuple[NDArray[np.float64], ...]
    true: float | None = None

    @property
    def sd(self) -> float:
        """Root mean square of the deviations: how far the value is expected to be from the truth.

        Both the scatter of the draws is in it and the modulus of noise, by which they are brighter than the image.
        """
        return float(np.sqrt(sum(one.mean() for one in self.deviations) ** 2 + sum(self._scatter)))

    def interval(self, level: float) -> tuple[float, float]:
        """Ends of the interval around the value that holds the truth with this probability, if errors are Gaussian.

        By Student's t, whose degrees of freedom are those of the draws (Welch and Satterthwaite for several parts).
        """
        scatter = self._scatter
        weighted = sum(part**2 / (len(one) - 1) for part, one in zip(scatter, self.deviations, strict=True))
        freedom = sum(scatter) ** 2 / weighted if weighted else np.inf
        half = float(scipy.stats.t.ppf((1 + level) / 2, freedom)) * self.sd
        return self.value - half, self.value + half

    def minus(self, other: RegionMean, name: str, *, together: bool) -> RegionMean:
        """The difference to another mean, of the same draws (``together``) or of an image that is independent."""
        if together:
            parts = tuple(a - b for a, b in zip(self.deviations, other.deviations, strict=True))
        else:
            parts = (*self.deviations, *(-part for part in other.deviations))
        true = None if self.true is None or other.true is None else self.true - other.true
        return RegionMean(name, self.pixels + other.pixels, self.value - other.value, parts, true)

    def row(self) -> Row:
        """For a table: value, sd, ends of the intervals and, where the truth is known, the error over the sd."""
        ends = {
            f"{word} {100 * level:.0f} %": end
            for level in LEVELS
            for word, end in zip(("from", "to"), self.interval(level), strict=True)
        }
        said = {"region": self.name, "pixels": self.pixels, "mean": self.value, "sd": self.sd, **ends}
        if self.true is not None:
            said |= {"true": self.true, "error / sd": (self.value - self.true) / self.sd if self.sd else None}
        return said | {"draws": min(map(len, self.deviations))}

    @property
    def _scatter(self) -> list[float]:
        return [float(one.var(ddof=1)) for one in self.deviations]


def named_regions(labels: NDArray[np.int64], word: str = "region") -> dict[str, NDArray[np.bool_]]:
    """Flags of every region by its name: the word alone where there is one, else with the label behind it."""
    found = [int(label) for label in np.unique(labels) if label]
    return {f"{word} {label}" if len(found) > 1 else word: labels == label for label in found}


def region_means(
    regions: Mapping[str, NDArray[np.bool_]],
    images: Array,
    draws: Callable[[int], Array],
    truths: Array | None = None,
) -> list[RegionMean]:
    """Mean moduli of regions.

    Parameters
    ----------
    regions : mapping of str to bool array, shape (slice, ky, kx)
        By name; they may overlap.
    images : complex array, shape (slice, ky, kx)
        The image.
    draws : callable
        Takes the place of a slice, and returns its draws (draw, ky, kx); those of different slices are independent.
    truths : complex array, shape (slice, ky, kx), optional
        What errors are measured against.

    Raises
    ------
    InputError
        For a region of another shape or without a pixel, or fewer draws than `FEWEST_DRAWS`.
    """
    for name, inside in regions.items():
        if inside.shape != images.shape:
            raise InputError(name, f"a mask of shape {inside.shape}", f"{images.shape}, as the image")
        if not inside.any():
            raise InputError(name, "no pixel", "one or more", "Draw it on the image of the run.")
    deviations: dict[str, list[NDArray[np.float64]]] = {name: [] for name in regions}
    touched = np.logical_or.reduce([inside.any(axis=(1, 2)) for inside in regions.values()])
    for place in np.flatnonzero(touched).tolist():
        drawn = draws(place)
        if len(drawn) < FEWEST_DRAWS:
            cure = f"Reconstruct with more, as {option('draws', '32')}."
            raise InputError("draws", f"{len(drawn)} of the image", f"{FEWEST_DRAWS} or more", cure)
        for name, inside in regions.items():
            own = np.abs(images[place][inside[place]]).sum(dtype=np.float64)
            over = np.abs(drawn[:, inside[place]]).sum(axis=1, dtype=np.float64)
            deviations[name].append((over - own) / np.count_nonzero(inside))
    return [
        RegionMean(
            name,
            int(np.count_nonzero(inside)),
            _mean(images, inside),
            tuple(deviations[name]),
            None if truths is None else _mean(truths, inside),
        )
        for name, inside in regions.items()
    ]


def _mean(images: Array, inside: NDArray[np.bool_]) -> float:
    return float(np.mean(np.abs(images[inside]), dtype=np.float64))


def differences(means: Sequence[RegionMean]) -> list[RegionMean]:
    """Differences of all pairs of regions of one image, the first less the second."""
    return [
        one.minus(other, f"{one.name} - {other.name}", together=True)
        for place, one in enumerate(means)
        for other in means[place + 1 :]
    ]
