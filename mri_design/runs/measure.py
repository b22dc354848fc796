"""Measuring in the image of a run: means of regions and their differences, with the errors that draws give them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.errors import InputError, UsageError, option
from mri_design.evaluation import plots
from mri_design.evaluation.plots.pictures import Frame
from mri_design.evaluation.run_folder import RunFolder
from mri_design.evaluation.tables import Row
from mri_design.experiment.companion_images import RegionMask
from mri_design.operators.base import Array
from mri_design.runs.provenance import sentences
from mri_design.runs.stored_run import StoredRun, read_run

_MOST_PAIRS = 10
"""Regions, at most, of which all differences are reported."""
LEVELS = (0.5, 0.8, 0.95)
"""Levels of the intervals that are reported."""
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
        row = {"region": self.name, "pixels": self.pixels, "mean": self.value, "sd": self.sd, **ends}
        if self.true is not None:
            row |= {"true": self.true, "error / sd": (self.value - self.true) / self.sd if self.sd else None}
        return row | {"draws": min(map(len, self.deviations))}

    @property
    def facts(self) -> dict[str, object]:
        """Name, mean, sd, intervals and draws of the region, in full precision, as `--json` prints them."""
        intervals = {f"interval_{100 * level:.0f}": list(self.interval(level)) for level in LEVELS}
        found = {"region": self.name, "pixels": self.pixels, "mean": self.value, "sd": self.sd}
        return {**found, **intervals, "true": self.true, "draws": min(map(len, self.deviations))}

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
    draws: Sequence[Array] | Array,
    truths: Array | None = None,
) -> list[RegionMean]:
    """Mean moduli of regions.

    Parameters
    ----------
    regions : mapping of str to bool array, shape (slice, ky, kx)
        By name; they may overlap.
    images : complex array, shape (slice, ky, kx)
        The image.
    draws : sequence of arrays, shape (draw, ky, kx)
        Of every slice, those of different slices being independent; only those with regions are used.
    truths : complex array, shape (slice, ky, kx), optional
        What errors are measured against.

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
            deviations[name].append((over - own) / np.count_nonzero(inside))

    def mean(pixels: Array) -> float:
        return float(np.mean(_size(pixels), dtype=np.float64))

    return [
        RegionMean(
            name,
            int(np.count_nonzero(inside)),
            mean(images[inside]),
            tuple(deviations[name]),
            None if truths is None else mean(truths[inside]),
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


@dataclass(frozen=True)
class Measured:
    """What was measured.

    Parameters
    ----------
    means : tuple of RegionMean
        Regions, then differences.
    image : complex array, shape (ky, kx)
        The slice with most pixels of regions.
    outlines : mapping of str to bool array, shape (ky, kx)
        The regions on it.
    pixel : tuple of float, optional
        Size of its pixels along (ky, kx), millimetres.
    sentences : tuple of str
        Remarks about them.
    """

    means: tuple[RegionMean, ...]
    image: Array
    outlines: Mapping[str, NDArray[np.bool_]]
    pixel: tuple[float, float] | None
    sentences: tuple[str, ...]

    @property
    def rows(self) -> list[Row]:
        """Of measures.csv."""
        return [mean.row() for mean in self.means]

    @property
    def formats(self) -> dict[str, str]:
        """How numbers are shown: with three digits of the smallest standard deviation."""
        sizes = [mean.sd for mean in self.means if mean.sd > 0]
        decimals = 2 - math.floor(math.log10(min(sizes))) if sizes else 3
        form = f".{max(decimals, 0)}f" if decimals < 9 else ".6e"
        named = {name for row in self.rows for name in row if name.startswith(("from ", "to "))}
        return dict.fromkeys(named | {"mean", "sd", "true"}, form) | {"error / sd": ".2f"}


def regions_of(run: StoredRun, mask: RegionMask, word: str = "region") -> dict[str, NDArray[np.bool_]]:
    """The regions of a mask on the slices of a run (`slices_of`), by their names; of a map what is identified."""
    assert run.image is not None
    slices, rows, columns = run.image.shape
    named = named_regions(mask.over(run.places or [None] * slices, (slices, rows, columns)), word)
    finite = np.isfinite(run.image)
    return {name: inside & finite for name, inside in named.items()}


def means_of(run: StoredRun, mask: RegionMask, against: RegionMask | None = None) -> list[RegionMean]:
    """Means of all regions of slices (`slices_of`), and differences: to the other mask, or of all pairs."""
    assert run.draws is not None and run.image is not None
    regions = regions_of(run, mask)
    if against is not None:
        regions["against"] = np.logical_or.reduce(list(regions_of(run, against).values()))
    means = region_means(regions, run.image, run.draws, run.reference)
    pairs = combinations(means, 2) if len(means) <= _MOST_PAIRS else ()
    apart = pairs if against is None else ((one, means[-1]) for one in means[:-1])
    return [*means, *(a.minus(b, f"{a.name} - {b.name}", together=True) for a, b in apart)]


def measure_run(
    folder: Path,
    region: Path,
    *,
    against: Path | None = None,
    other: Path | None = None,
    slice_number: int | None = None,
    frame: int | None = None,
) -> Measured:
    """Means of regions; nothing is written.

    Parameters
    ----------
    folder : Path
        Of the run, which has draws.
    region : Path
        File of a mask; see `RegionMask`.
    against : Path, optional
        File of another mask, all of whose regions are one: every region is held against it.
    other : Path, optional
        Folder of another run: every region is held against the same one of its image.
    slice_number, frame : int, optional
        The one that is measured, by its number in the scan, of a run of several.

    Raises
    ------
    UsageError
        Where the folder holds no finished run with an image and draws, or not which slice is meant.
    InputError
        Where a file cannot be used, or a mask does not lie on the image.
    """
    one = slices_of(read_run(folder), slice_number, frame)
    mask, beside = RegionMask.read(region), None if against is None else RegionMask.read(against)
    means, own = means_of(one, mask, beside), regions_of(one, mask)
    assert one.draws is not None and one.image is not None
    if other is not None:
        second = slices_of(read_run(other), slice_number, frame)
        names = ("this", "other") if one.name == second.name else (one.name, second.name)
        for mine, theirs in zip(list(means), means_of(second, mask, beside), strict=True):
            means.append(replace(theirs, name=f"{theirs.name} of {names[1]}"))
            means.append(mine.minus(theirs, f"{mine.name}: {names[0]} - {names[1]}", together=False))
    outlines = own | ({} if beside is None else regions_of(one, beside, "against"))
    shown = int(np.argmax(sum(inside.sum(axis=(1, 2)) for inside in outlines.values())))
    place = one.places[shown] if one.places else None
    said = sentences("measure", "said", one, 0 if against else len(own), _MOST_PAIRS, other)
    return Measured(
        tuple(means),
        one.image[shown],
        {name: inside[shown] for name, inside in outlines.items()},
        None if place is None else place.pixel,
        tuple(said),
    )


def report_measures(folder: RunFolder, measured: Measured) -> None:
    """Write the table and a picture of the regions."""
    folder.write_table("measures.csv", measured.rows)
    if folder.reported:
        shown = plots.image_with_regions(measured.image, measured.outlines, Frame(pixel=measured.pixel))
        folder.write_figure("regions", shown)


def slices_of(run: StoredRun, number: int | None = None, frame: int | None = None) -> StoredRun:
    """The slices of a run that has draws, of one frame, or one of them by its number in the scan.

    Arrays have an axis of slices before the others: draws are (slice, draw, ky, kx).

    Raises
    ------
    UsageError
        Where there is no image, or no draws, or not which one is meant.
    """
    require_draws(run)
    assert run.image is not None and run.draws is not None
    if run.frames and frame is None and len(run.frames) == 1:
        frame = run.frames[0]
    if run.frames and frame not in run.frames:
        numbers = ", ".join(map(str, run.frames))
        which = f"choose one of {numbers} with {option('frame')}"
        raise UsageError(f"{run.name} holds {len(run.frames)} {run.axis}s: {which}")
    if not run.frames and frame is not None:
        raise UsageError(f"{option('frame', frame)}: {run.name} holds one image of every slice, leave it out")
    if number is not None and number not in run.numbers:
        numbers = ", ".join(map(str, run.numbers))
        there = f"its slices are {numbers}" if numbers else "it is of one slice, leave it out"
        raise UsageError(f"{option('slice', number)}: {run.name} does not hold it: {there}")
    at = run.frames.index(frame) if frame is not None else 0
    count = max(len(run.numbers), 1)
    chosen = slice(None) if number is None else slice(place := run.numbers.index(number), place + 1)

    def of_frame(values: Array) -> Array:
        of_slices = values[at] if run.frames else values
        return (of_slices if run.numbers else of_slices[np.newaxis])[chosen]

    return replace(
        run,
        image=of_frame(run.image),
        draws=of_frame(run.draws),
        reference=None if run.reference is None else of_frame(run.reference),
        places=run.places[at * count : (at + 1) * count][chosen],
    )


def require_draws(run: StoredRun) -> None:
    """Refuse a run without an image, or without draws of it.

    Raises
    ------
    UsageError
        Saying how to have them.
    """
    if run.image is None:
        raise UsageError(f"{run.name} holds no image: regions are measured in runs of recon and design")
    if run.draws is None:
        raise UsageError(
            f"{run.name} has no draws, and errors of pixels are correlated, so that they do not give that of a region: "
            f"reconstruct with {option('draws', '32')}"
        )
