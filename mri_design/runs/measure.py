"""Measuring in the image of a run: means of regions and their differences, with the errors that draws give them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, UsageError, option
from mri_design.evaluation import plots
from mri_design.evaluation.plots.pictures import Frame
from mri_design.evaluation.run_folder import RunFolder
from mri_design.evaluation.tables import Row
from mri_design.evidence.regions import RegionMean, free_name, named_regions, region_means
from mri_design.experiment.companion_images import RegionMask
from mri_design.operators.base import Array
from mri_design.runs.provenance import sentences
from mri_design.runs.stored_run import StoredRun, read_run

_MOST_PAIRS = 10
"""Regions, at most, of which all differences are reported."""
LEVELS, LEVEL = (0.5, 0.8, 0.9, 0.95), 0.9
"""Levels of the intervals that are reported whatever is asked for, and by default: the one by which designs end."""


def row_of(mean: RegionMean, levels: Sequence[float] = LEVELS) -> Row:
    """For a table: value, sd, ends of the intervals and, where the truth is known, the error over the sd."""
    ends = {
        f"{word} {100 * level:g} %": end
        for level in levels
        for word, end in zip(("from", "to"), mean.interval(level), strict=True)
    }
    row = {"region": mean.name, "pixels": mean.pixels, "mean": mean.value, "sd": mean.sd, **ends}
    if mean.true is not None:
        row |= {"true": mean.true, "error / sd": (mean.value - mean.true) / mean.sd if mean.sd else None}
    return row | {"draws": min(map(len, mean.deviations))}


def facts_of(mean: RegionMean, levels: Sequence[float] = LEVELS) -> dict[str, object]:
    """Name, mean, sd, intervals and draws of the region, in full precision, as `--json` prints them."""
    intervals = {f"interval_{100 * level:g}": list(mean.interval(level)) for level in levels}
    found = {"region": mean.name, "pixels": mean.pixels, "mean": mean.value, "sd": mean.sd}
    return {**found, **intervals, "true": mean.true, "draws": min(map(len, mean.deviations))}


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
    level : float
        Of intervals that are reported besides `LEVELS`.
    """

    means: tuple[RegionMean, ...]
    image: Array
    outlines: Mapping[str, NDArray[np.bool_]]
    pixel: tuple[float, float] | None
    sentences: tuple[str, ...]
    level: float = LEVEL

    @property
    def levels(self) -> list[float]:
        """Of all intervals."""
        return sorted({*LEVELS, self.level})

    @property
    def rows(self) -> list[Row]:
        """Of measures.csv."""
        return [row_of(mean, self.levels) for mean in self.means]

    @property
    def formats(self) -> dict[str, str]:
        """How numbers are shown: with three digits of the smallest standard deviation."""
        sizes = [mean.sd for mean in self.means if mean.sd > 0]
        decimals = 2 - math.floor(math.log10(min(sizes))) if sizes else 3
        form = f".{max(decimals, 0)}f" if decimals < 9 else ".6e"
        named = {name for row in self.rows for name in row if name.startswith(("from ", "to "))}
        return dict.fromkeys(named | {"mean", "sd", "true"}, form) | {"error / sd": ".2f"}


def regions_of(
    run: StoredRun, masks: Sequence[RegionMask], against: RegionMask | None = None
) -> dict[str, NDArray[np.bool_]]:
    """The regions of masks on the slices of a run (`slices_of`), and one of all those of ``against``, by their names.

    Of a map they have the pixels that are identified. A name that another region has gets a number.

    Raises
    ------
    InputError
        For a mask that does not lie on the image, and a region without a pixel that is identified.
    """
    assert run.image is not None
    slices, rows, columns = run.image.shape
    places, finite = run.places or [None] * slices, np.isfinite(run.image)
    laid = [(mask.region, mask.over(places, (slices, rows, columns))) for mask in masks]
    if against is not None:
        laid.append((against.region, np.minimum(against.over(places, (slices, rows, columns)), 1)))
    found = dict[str, NDArray[np.bool_]]()
    for word, labels in laid:
        for name, inside in named_regions(labels, word).items():
            if not (inside & finite).any():
                cure = f"Draw it elsewhere; {option('fit')} without {option('region')} maps where echoes identify it."
                raise InputError(name, "no pixel whose quantity is identified", "one or more", cure)
            found[free_name(name, found)] = inside & finite
    return found


def means_of(run: StoredRun, masks: Sequence[RegionMask], against: RegionMask | None = None) -> list[RegionMean]:
    """Means of all regions of slices (`slices_of`), and differences: to the other mask, or of all pairs."""
    assert run.draws is not None and run.image is not None
    regions = regions_of(run, masks, against)
    known = None if run.coverage is None else run.coverage.regions
    found = region_means(regions, run.image, run.draws, run.reference, run.pull)
    means = [replace(mean, distances=mean.distances or known) for mean in found]
    pairs = combinations(means, 2) if len(means) <= _MOST_PAIRS else ()
    apart = pairs if against is None else ((one, means[-1]) for one in means[:-1])
    return [*means, *(a.minus(b, f"{a.name} - {b.name}", together=True) for a, b in apart)]


def measure_run(
    folder: Path,
    regions: Sequence[Path],
    *,
    against: Path | None = None,
    other: Path | None = None,
    slice_number: int | None = None,
    frame: int | None = None,
    level: float = LEVEL,
) -> Measured:
    """Means of regions; nothing is written.

    Parameters
    ----------
    folder : Path
        Of the run, which has draws.
    regions : sequence of Path
        Files of masks; see `RegionMask`.
    against : Path, optional
        File of another mask, all of whose regions are one: every region is held against it.
    other : Path, optional
        Folder of another run: every region is held against the same one of its image.
    slice_number, frame : int, optional
        The one that is measured, by its number in the scan, of a run of several.
    level : float
        Of the intervals that are reported besides `LEVELS`.

    Raises
    ------
    UsageError
        Where the folder holds no finished run with an image and draws, or not which slice is meant.
    InputError
        Where a file cannot be used, or a mask does not lie on the image.
    """
    one = slices_of(read_run(folder), slice_number, frame)
    masks, beside = RegionMask.all_given(regions), None if against is None else RegionMask.read(against)
    means, outlines = means_of(one, masks, beside), regions_of(one, masks, beside)
    assert one.draws is not None and one.image is not None
    if other is not None:
        second = slices_of(read_run(other), slice_number, frame)
        names = ("this", "other") if one.name == second.name else (one.name, second.name)
        for mine, theirs in zip(list(means), means_of(second, masks, beside), strict=True):
            means.append(replace(theirs, name=f"{theirs.name} of {names[1]}"))
            means.append(mine.minus(theirs, f"{mine.name}: {names[0]} - {names[1]}", together=False))
    shown = int(np.argmax(sum(inside.sum(axis=(1, 2)) for inside in outlines.values())))
    place = one.places[shown] if one.places else None
    said = sentences("measure", "said", one, 0 if against else len(outlines), _MOST_PAIRS, other)
    return Measured(
        tuple(means),
        one.image[shown],
        {name: inside[shown] for name, inside in outlines.items()},
        None if place is None else place.pixel,
        tuple(said),
        level,
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
        which = f"choose one of {numbers} with {option('frame')}, or fit all of them ({option('fit', 'T2')})"
        raise UsageError(f"{run.name} holds {len(run.frames)} {run.axis}s: {which}")
    if not run.frames and frame is not None:
        raise UsageError(f"{option('frame', frame)}: {run.name} holds one image of every slice, leave it out")
    if number is not None and number not in run.numbers:
        numbers = ", ".join(map(str, run.numbers))
        there = f"its slices are {numbers}" if numbers else "it is of one slice, leave it out"
        raise UsageError(f"{option('slice', number)}: {run.name} does not hold it: {there}")
    at = run.frames.index(frame) if frame is not None else 0
    slices = max(len(run.numbers), 1)
    chosen = slice(None) if number is None else slice(place := run.numbers.index(number), place + 1)

    def of_frame(values: Array) -> Array:
        of_slices = values[at] if run.frames else values
        return (of_slices if run.numbers else of_slices[np.newaxis])[chosen]

    return replace(
        run,
        image=of_frame(run.image),
        draws=of_frame(run.draws),
        reference=None if run.reference is None else of_frame(run.reference),
        pull=None if run.pull is None else of_frame(run.pull),
        places=run.places[at * slices : (at + 1) * slices][chosen],
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
    if run.std is None:
        cure = f"reconstruct with the mean and {option('draws', '32')}"
        raise UsageError(f"{run.name} was made by a method that has no intervals: {cure}")
    if run.draws is None:
        raise UsageError(
            f"{run.name} has no draws, and errors of pixels are correlated, so that they do not give that of a region: "
            f"reconstruct with {option('draws', '32')}"
        )
