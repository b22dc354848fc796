"""The centre of k-space, zero frequency: where the samples show it, and scans that are moved to have it at ``N // 2``.

Two measures that fail for different reasons are added, for every place that could be the centre: how much the samples
around it exceed the rest of their lines and columns, and how well the energy of all samples falls with the distance
from it (the correlation of its logarithm with that of the distance, by three convolutions, after lines and columns that
exceed both neighbours were held down). Both are of logarithms, so that a spike or a corrupted line decides nothing, and
look at measured samples alone, so that neither missing lines nor a dense block elsewhere does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.calibration.coils import measured_samples
from mri_design.errors import InputError
from mri_design.operators.conventions import to_image, to_kspace
from mri_design.scan.data import KSpaceData, ScanSummary
from mri_design.scan.provenance import SAMPLES, Centre, Place, tolerance
from mri_design.scan.sampling import Sampling, lines_of_noise

_SMALLEST = 12
"""Shorter axes show no centre."""
_CLEAR = ((0.1, 1.5), (0.03, 5.0))
"""By how much the sum of both measures, each at most about 1, has to be larger than near the place that was expected,
and how many times as strong the strongest sample: either of two pairs."""
_SMALL, _CLEAR_WHERE_FAINT = 24, ((1.0, 10.0),)
"""Shorter axes hardly show more than their centre: one that does not stand out there has to be that much better."""
_STANDS_OUT, _FALLS = 2.0, 0.1
"""By how much the logarithmic energy around the centre has to exceed the medians of its lines and columns, and the
share of the variance of all logarithms that the distance from it has to explain: noise has 1 and hardly any."""
_OUTLIER = 2.0
"""By so much, in logarithmic energy, may a line be stronger than both of its neighbours; the central one is."""


def find_centre(kspace: NDArray[np.complexfloating], samples: NDArray[np.bool_], given: Place | None = None) -> Centre:
    """Find the centre of k-space by the energy of all coils of a slice.

    Where the samples show it near enough (`SAMPLES`, `PART`) it stays where it is expected; near the first sample of an
    axis it is there, as the fast Fourier transform has it.

    Parameters
    ----------
    kspace : complex array, shape (coil, ky, kx)
        Of one slice or plane.
    samples : bool array, shape (ky, kx)
        Which of them were measured.
    given : tuple of int, optional
        Line and sample of the centre, if it is known.

    Raises
    ------
    InputError
        Where the given place is not on the grid.
    """
    ky, kx = samples.shape
    known = None if given is None else given_centre((ky, kx), given)
    expected = (ky // 2, kx // 2) if known is None else known.place
    shown = _shown(_energy(kspace), samples, expected)
    if known is not None:
        return known if shown == known.place else replace(known, shown=shown)
    steps = [_apart(int(line), expected[0], ky) for line in np.flatnonzero(samples.any(axis=1))]
    gap = min(steps, default=ky)
    if shown is None:
        return Centre((ky, kx), expected, "assumed", gap=gap)
    corner = [_apart(at, 0, size) <= tolerance(size) for at, size in zip(shown, (ky, kx), strict=True)]
    place = (0 if corner[0] else shown[0], 0 if corner[1] else shown[1])
    return Centre((ky, kx), place, "measured", gap=gap, turned=all(corner) and _split(kspace))


def given_centre(grid: Place, place: Place) -> Centre:
    """A centre that is known.

    Raises
    ------
    InputError
        Where it is not on the grid (ky, kx).
    """
    if not (0 <= place[0] < grid[0] and 0 <= place[1] < grid[1]):
        wanted = f"a line from 0 to {grid[0] - 1} and a sample from 0 to {grid[1] - 1}"
        raise InputError("centre", f"line {place[0]}, sample {place[1]}", wanted)
    return Centre(grid, (place[0], place[1]), "given")


def centred(scan: KSpaceData, centre: Centre) -> KSpaceData:
    """The scan with its centre of k-space at ``N // 2``, and in its provenance where it was.

    Images keep their magnitudes, pixel by pixel: what leaves the grid on one side comes in on the other.
    """
    earlier = scan.provenance.centre
    told = centre if earlier is None or centre.noticeable else earlier
    known = scan.known(centre=told, doubted_lines=_doubted_lines(scan, centre) or scan.provenance.doubted_lines)
    if centre.shift == (0, 0):
        return known
    turn = _turn(scan.grid_shape) if centre.turned else np.ones((1, 1), np.complex64)

    def move(kspace: NDArray[np.complex64]) -> NDArray[np.complex64]:
        return np.asarray(np.roll(kspace, centre.shift, (-2, -1)) * turn, np.complex64)

    reference = scan.reference
    if reference is not None and not centre.turned:  # else it has its origin at its first pixel, as the image has now
        reference = to_image(move(to_kspace(reference))).astype(np.complex64)
    return known.transformed(move, measured=np.roll(scan.measured, centre.shift[0]), reference=reference)


def _doubted_lines(scan: KSpaceData, centre: Centre) -> tuple[int, ...]:
    """Lines that were most likely not measured, numbered as they are after the move."""
    if scan.volume:
        return ()
    held = scan.kspace[scan.n_slices // 2]
    doubted = np.roll(lines_of_noise(held, held.any(axis=(0, 2))), centre.shift[0])
    return tuple(np.flatnonzero(doubted).tolist())


def with_its_centre(scan: KSpaceData, given: Place | None = None) -> KSpaceData:
    """The scan with its centre of k-space, as its middle slice shows it or as it is given, at ``N // 2``."""
    held = [number for number, stack in enumerate(scan.kspace) if stack.any()]
    number = min(held, key=lambda number: abs(number - scan.n_slices // 2))
    samples = scan.samplings[number].samples if scan.n_slices == 1 else measured_samples(scan.kspace[number])
    return centred(scan, find_centre(scan.kspace[number], samples, given))


def summary_with_its_centre(summary: ScanSummary, given: Place | None = None) -> ScanSummary:
    """The summary of the scan that `with_its_centre` makes, by the slice that was read."""
    if summary.part is None:
        return summary
    centre = find_centre(summary.part.kspace[0], summary.samplings[summary.index].samples, given)
    part = centred(summary.part, centre)
    samplings = tuple(Sampling(np.roll(one.samples, centre.shift, (0, 1))) for one in summary.samplings)
    found = part.provenance
    known = replace(summary.provenance, centre=found.centre, doubted_lines=found.doubted_lines)
    return replace(summary, part=part, samplings=samplings, provenance=known)


def strongest_of_lines(kspace: NDArray[np.complexfloating]) -> NDArray[np.float64]:
    """Largest energy of three neighbouring samples of each line of k-space (coil, ky, kx), of all coils together."""
    return np.asarray(_of_three(_energy(kspace)).max(axis=1))


def _energy(kspace: NDArray[np.complexfloating]) -> NDArray[np.float64]:
    return np.asarray(np.sum(np.abs(kspace).astype(np.float64) ** 2, axis=0))


def _of_three(energy: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(energy + np.roll(energy, 1, 1) + np.roll(energy, -1, 1))


def _turn(grid: Place) -> NDArray[np.complex64]:
    """Factors (ky, kx) that move the first pixel of an image to ``N // 2``."""
    along = [np.exp(2j * np.pi * (np.arange(size) - size // 2) * (size // 2) / size) for size in grid]
    return np.outer(*along).astype(np.complex64)


def _split(kspace: NDArray[np.complexfloating]) -> bool:
    """Whether most of the image of k-space (coil, ky, kx) lies around its edges: its neighbours have opposite signs."""
    return sum(float(np.vdot(kspace, np.roll(kspace, 1, axis)).real) for axis in (-2, -1)) < 0


def _apart(at: int, other: int, size: int) -> int:
    """Distance of two lines or samples on the circle that an axis of k-space is."""
    return min((at - other) % size, (other - at) % size)


def _around(place: Place, grid: Place, reach: int | None = None) -> tuple[NDArray[np.intp], ...]:
    """Index of the lines and samples within reach of a place, by default those that are as good."""
    sides = (min(int(tolerance(size)) if reach is None else reach, (size - 1) // 2) for size in grid)
    return np.ix_(*(np.arange(at - d, at + d + 1) % size for at, d, size in zip(place, sides, grid, strict=True)))


def _shown(energy: NDArray[np.float64], samples: NDArray[np.bool_], expected: Place) -> Place | None:
    """Line and sample of the centre that samples (ky, kx) show, the expected ones where these are near enough.

    None where they show none. It has to be clearly better than the place that was expected, and measured on both sides:
    energy that rises up to the edge of what was measured has its peak beyond.
    """
    ky, kx = grid = (energy.shape[0], energy.shape[1])
    held = energy[samples]
    if min(grid) < _SMALLEST or not held.any():
        return None
    floor = 0.1 * np.median(held) + 1e-12 * held.max()
    logarithm = np.where(samples, np.log(energy + floor), np.nan)
    falls = _fall(_without_outliers(logarithm))
    strength = _local_mean(logarithm - np.maximum(_medians(logarithm, 0), _medians(logarithm, 1)), 2)
    faint, near = strength.max() < _STANDS_OUT, _around(expected, grid)
    if falls[samples].max() < _FALLS or (faint and (min(grid) >= _SMALL or not samples[near].all())):
        return None
    both = np.where(samples, strength / max(strength.max(), 1e-12) + falls / falls[samples].max(), -np.inf)
    best = np.unravel_index(int(both.argmax()), grid)
    nearby = _around((int(best[0]), int(best[1])), grid, SAMPLES)
    smooth = np.where(samples, _of_three(energy), 0)
    peak = np.unravel_index(int(smooth[nearby].argmax()), both[nearby].shape)
    line, sample = int(nearby[0].ravel()[peak[0]]), int(nearby[1].ravel()[peak[1]])
    steps = np.flatnonzero(np.roll(samples.any(axis=1), -line))
    before, after = ky - int(steps.max(initial=0)), int(steps[steps > 0].min(initial=ky))
    unsure = (before + after) // 2 - 1  # the peak lies anywhere between the neighbours of its line
    off = _apart(line, expected[0], ky) > tolerance(ky) + unsure, _apart(sample, expected[1], kx) > tolerance(kx)
    if not any(off):
        return expected
    better, strong, nearby_strong = both.max() - both[near].max(), smooth[line, sample], smooth[near].max()
    clear = falls[best] >= _FALLS and any(
        better > least and strong > times * nearby_strong for least, times in (_CLEAR_WHERE_FAINT if faint else _CLEAR)
    )
    return (line, sample) if clear and max(before, after) <= max(SAMPLES, ky // 16) else None


def _local_mean(values: NDArray[np.float64], reach: int) -> NDArray[np.float64]:
    """Mean over the measured neighbours of every sample, those that were not measured being NaN; 0 without any."""
    known = np.isfinite(values)
    total, count = np.where(known, values, 0), known.astype(np.float64)
    for axis in (0, 1):
        steps = range(-reach, reach + 1)
        total, count = (np.sum([np.roll(a, step, axis) for step in steps], axis=0) for a in (total, count))
    return np.asarray(np.where(known, total / np.maximum(count, 1), 0))


def _without_outliers(logarithm: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms (ky, kx), NaN where not measured, with lines and columns held down that exceed both neighbours."""
    for axis in (1, 0):
        medians = _medians(logarithm, axis)
        there = np.isfinite(medians)
        beside = np.maximum(np.roll(medians[there], 1), np.roll(medians[there], -1))
        medians[there] = np.maximum(medians[there] - beside - _OUTLIER, 0)
        logarithm = logarithm - medians
    return logarithm


def _medians(logarithm: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Medians along an axis, which is kept, of what was measured; NaN where nothing was."""
    medians = np.full([1 if one == axis else size for one, size in enumerate(logarithm.shape)], np.nan)
    there = np.isfinite(logarithm).any(axis=axis, keepdims=True)
    medians[there] = np.nanmedian(logarithm.compress(there.ravel(), 1 - axis), axis=axis)
    return medians


def _fall(logarithm: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the variance of logarithms (ky, kx) that a fall with the distance from each sample explains, 0 to 1.

    A straight line in log(1 + r^2) is fitted around every sample at once: its moments are cyclic correlations.
    """
    known = np.isfinite(logarithm)
    values = np.where(known, logarithm - np.nanmean(logarithm), 0)
    squares = [np.minimum(np.arange(size), size - np.arange(size)) ** 2.0 for size in known.shape]
    slope = -np.log1p(squares[0][:, np.newaxis] + squares[1])

    def moment(weights: NDArray[Any], form: NDArray[np.float64]) -> NDArray[np.float64]:
        product = np.fft.rfft2(weights) * np.conj(np.fft.rfft2(form))
        return np.fft.irfft2(product, s=known.shape) / known.sum()

    spread = moment(known, slope**2) - moment(known, slope) ** 2
    together, variance = moment(values, slope), np.mean(values[known] ** 2)
    return np.where(together > 0, together**2 / np.maximum(spread * variance, 1e-12), 0)
