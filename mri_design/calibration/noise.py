"""Noise of the coils, estimated from samples: where a scan shows it, which of these places counts, and doubts.

Arrays of samples are (slice, coil, ky, kx), and variances are per real component of a measured sample. Limits on ratios
of variances lie above those of noise and below those of signal; which ratios scans had is in results/coils/noise.md and
results/benchmarks/measured-once.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.operators.conventions import to_image, to_readout_profiles

Variances = NDArray[np.float64]

REPEATS = "differences of repeats"
IMAGE_AIR = "air in the image"
BESIDE = "air next to the object along the readout"
ENDS = "ends of k-space"
OUTERMOST = "the outermost eighth of the measured samples"
OBJECT_BESIDE = "the object fills the readout"
SIGNAL_OUTSIDE = "the outermost samples hold signal"

# The median of |n|^2 over circular complex Gaussians of variance v per real component is 2 v log 2.
_MEDIAN_OF_POWER = 2 * math.log(2)
_ERROR_OF_MEDIAN = 1 / math.log(2)
"""Relative standard error of that median, times the root of the number of samples."""
_BANDS = 8
_ONE_SIDED = 3.0
"""Ratio of both ends of the readout, from which on the object is at one of them."""
_OVER_MOST, _OVER_OUTERMOST, _OVER_CORNERS = 8.0, 60.0, 20.0
"""Ratios of air next to the object on the central lines to that on most and on the outermost ones, and of that on most
to the corners: more than filters along the phase encode make of noise."""
_OVER_FALLING = 4.0
"""Largest ratio of air next to the object to the corners, where k-space falls outwards, too."""
_RISES, _RISES_MORE = 1.8, 4.0
"""Ratios between which the sixteenths of a readout next to the outermost are louder than these under a filter."""
_FALLING = 1.35
"""Ratio from which on k-space falls outwards: more than receivers' filters make of noise."""
_BLOCKS, _PIXELS = 16, 64
"""Blocks along either side of the image at most, and pixels of a block at least, of all coils that count."""
_ALIKE, _LOUDER = 4.0, 3.0
"""Standard errors by which a block of air may be louder than the median of its neighbours, and by which one that
may hold signal is louder than the noise is likely to be there."""
_MOSTLY_AIR = 0.5
"""Share of quiet blocks from which on a column of them is trusted to be air by itself."""
_QUIETEST, _ENOUGH_COILS = 0.25, 4
"""Quantile of blocks, or of as many coils, that is trusted where others may hold signal."""
_BEYOND = 1.25
"""Ratio of standard deviations from which on a coil's air is louder than the others'."""
_LINES_FOR_AIR = 0.5
"""Share of the grid's lines from which on a block of them shows air in the image: the edges of a smaller one make the
object ring all over it."""
_MORE_THAN_FILTER = 8.0
"""Air in the image over that at the ends of the readout: more than a receiver's filter dampens these."""
_AGREEMENT, _MORE_THAN_SIGNAL, _MUCH_MORE = 1.5, 2.0, 12.0
_FILTER = 6.0
"""Most that a receiver's filter which is seen dampens the ends of the readout by."""
_CHANGED = 4.0
"""Differences of repeats at the centre of k-space over those on most lines: more than a window on k-space makes."""
_CONTRADICTION = 3.0
"""Ratio of the given standard deviation to the estimate of every place, or its inverse, above which it is doubted."""
_BY_SIGNAL = 0.6
"""Correlation beyond which samples hold signal."""
_SAMPLES_PER_COIL = 4
_BEYOND_MOST = 6.0
ROUNDING = 2.0**-24
"""Relative rounding of a number in single precision."""
MOST_SIGNAL_TO_NOISE = 1000.0
"""Largest signal over noise of scans that are solved by iterations alone; see results/reliability/little-noise.md."""
_INNER = 0.25
_RIM, _SURE = 8, 4.0
"""One part in so many of the samples of a trajectory is the rim; standard deviations of chance by which power must fall
towards it to be that of signal."""


@dataclass(frozen=True)
class Source:
    """A place in a scan that shows noise.

    Parameters
    ----------
    name : str
        The place, in words.
    variances : float array, shape (coil,)
        What it shows.
    """

    name: str
    variances: Variances

    @property
    def mean(self) -> float:
        """Mean variance over the coils."""
        return float(self.variances.mean())

    @property
    def deviations(self) -> tuple[float, float, float]:
        """Least, median and largest standard deviation of the coils."""
        found = np.sqrt(self.variances)
        return float(found.min()), float(np.median(found)), float(found.max())


@dataclass(frozen=True)
class NoiseEstimate:
    """A noise covariance over coils estimated from k-space, with its source and doubts about it.

    Parameters
    ----------
    covariance : complex128 array, shape (coil, coil)
        E[n n^H] / 2, in units of the samples squared.
    places : tuple of Source
        Places that show noise: the one that the variances are from, then those which do not count.
    reason : str
        Why the variances may be too large, `OBJECT_BESIDE` or `SIGNAL_OUTSIDE`; empty where nothing says so.
    correlations : float, optional
        The share of the correlations between coils that counts; None for one coil, and where coils count as equally
        noisy and independent.
    alone : float
        Correlation of two coils that is more than receivers make, so that none counts; 0 where they count.
    """

    covariance: NDArray[np.complex128]
    places: tuple[Source, ...]
    reason: str = ""
    correlations: float | None = None
    alone: float = 0.0

    @property
    def variance(self) -> float:
        """Mean variance of the coils."""
        return float(np.diag(self.covariance).real.mean())

    def scaled(self, factor: float) -> NoiseEstimate:
        """The same in other units, variances times ``factor``."""
        places = tuple(Source(one.name, one.variances * factor) for one in self.places)
        return replace(self, covariance=self.covariance * factor, places=places)

    @property
    def source(self) -> Source:
        """The place that the variances are from."""
        return self.places[0]

    @property
    def span(self) -> tuple[float, float]:
        """Least and largest standard deviation by all places."""
        found = [math.sqrt(one.mean) for one in self.places]
        return min(found), max(found)

    def against(self, variance: float) -> Literal["", "too large", "too small"]:
        """How all places contradict a given variance, if they do.

        Signal makes places too loud, a receiver's filter and a window on k-space make them too quiet: only what all of
        them contradict is doubted, and too little noise is not where signal is suspected in all.
        """
        (least, most), given = self.span, math.sqrt(variance)
        if given > _CONTRADICTION * most:
            return "too large"
        return "too small" if given < least / _CONTRADICTION and len(self.places) > 1 and not self.reason else ""


def median_variance(samples: NDArray[Any]) -> Variances:
    """Variance, shape (coil,), by the median power of samples (slice, coil, ...); exact zeros are none."""
    power = np.abs(np.moveaxis(samples, 1, 0).reshape(samples.shape[1], -1)).astype(np.float64) ** 2
    medians = [float(np.median(coil[coil > 0])) if (coil > 0).any() else 0.0 for coil in power]
    return np.array(medians) / _MEDIAN_OF_POWER


def _ends(columns: NDArray[np.intp], part: int) -> NDArray[np.intp]:
    width = max(1, len(columns) // part)
    return np.concatenate([columns[:width], columns[-width:]])


def _from_centre(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Distance of samples (ky, kx) from the centre of k-space, over half the grid along each axis."""
    rows, columns = (np.abs(np.arange(n) - n // 2) / (n / 2) for n in shape)
    return np.hypot(rows[:, np.newaxis], columns)


def _by_coil(samples: NDArray[Any]) -> NDArray[np.complex128]:
    """Samples (coil, n) of (slice, coil, ...)."""
    return np.moveaxis(samples, 1, 0).reshape(samples.shape[1], -1).astype(np.complex128)


class _Regions:
    """Places of a scan that hold noise and (almost) no signal: next to the object, and the ends of k-space.

    Variances are those of `median_variance`. Coils that measured nothing are left out, and samples are scaled to a
    largest modulus of 1, so that squares of very small or large data stay finite.

    Parameters
    ----------
    kspace : complex64 array, shape (slice, coil, ky, kx)
        As measured.
    measured : bool array, shape (ky,)
        Lines that count as measured.
    samples : bool array, shape (slice, ky, kx)
        Samples that hold data.
    """

    def __init__(self, kspace: NDArray[np.complex64], measured: NDArray[np.bool_], samples: NDArray[np.bool_]) -> None:
        lines = np.flatnonzero(measured)
        outwards = lines[np.argsort(np.abs(lines - len(measured) // 2), kind="stable")]
        self.samples, self.peak = samples, float(np.abs(kspace).max())
        self.live = np.flatnonzero(kspace.any(axis=(0, 2, 3)))
        self.kspace = kspace[:, self.live] / np.float32(self.peak)
        self.bands = np.array_split(outwards, max(1, min(_BANDS, len(lines) // 2)))
        """Measured lines in groups of equal size, from the centre of k-space outwards."""
        self.columns = np.flatnonzero(samples.any(axis=(0, 1)))
        """Readout samples that are not zero-filled."""
        self.outer_lines = np.concatenate(self.bands[-2:])
        self.readout_share = len(self.columns) / kspace.shape[-1]
        self.share = sum(len(band) for band in self.bands) / kspace.shape[-2] * self.readout_share
        """Share of the grid's samples that were measured, of which noise of the image is the mean."""

    @cached_property
    def has_profiles(self) -> bool:
        """Whether lines can be transformed along the readout: they hold the same samples, one gapless run of them."""
        gapless = len(self.columns) == self.columns[-1] - self.columns[0] + 1
        lines = self.samples.any(axis=2, keepdims=True)
        return gapless and bool((self.samples[..., self.columns] == lines).all())

    def rim(self) -> Variances:
        """Of the outermost eighth of the measured samples, by distance from the centre of k-space."""
        distance = _from_centre(self.samples.shape[1:])
        outermost = []
        for stack, samples in zip(self.kspace, self.samples, strict=True):
            if samples.any():
                outer = np.asarray(samples & (distance >= np.quantile(distance[samples], 1 - 1 / 8)))
                outermost.append(stack[:, outer])
        return median_variance(np.concatenate(outermost, axis=1)[np.newaxis])

    @cached_property
    def corner_samples(self) -> NDArray[np.complex64]:
        """Samples of the outer quarter of the lines and the outer eighths of the readout."""
        return self.kspace[:, :, self.outer_lines][..., _ends(self.columns, 8)]

    def samples_beside(self) -> NDArray[np.complex128]:
        """Samples (coil, n) of the air next to the object, outer eighths, without the innermost lines."""
        outer = np.concatenate(self.bands[len(self.bands) // 4 :])
        profiles = to_readout_profiles(self.kspace[:, :, outer])[..., _ends(np.arange(self.kspace.shape[-1]), 8)]
        return _by_coil(profiles / math.sqrt(self.readout_share))

    def falls_outwards(self) -> bool:
        """Whether k-space gets quieter towards both ends of the readout, as signal does and white noise does not.

        On the outer half of the measured lines, the outermost eighths of the readout are compared with the eighths
        next to them, which have to be louder by more than a third and by three standard errors of two medians.
        """
        lines = np.concatenate(self.bands[-_BANDS // 2 :])
        outermost = _ends(self.columns, 8)
        beside = np.setdiff1d(_ends(self.columns, 4), outermost)
        quiet, loud = (float(median_variance(self.kspace[:, :, lines][..., c]).mean()) for c in (outermost, beside))
        samples = self.kspace.shape[0] * self.kspace.shape[1] * len(lines) * len(outermost)
        return loud > max(_FALLING, 1 + 3 * _ERROR_OF_MEDIAN * math.sqrt(2 / samples)) * quiet > 0

    def filter_rises(self) -> bool:
        """Whether noise rises from both ends of the readout as under a receiver's filter, and not as at an object.

        On the outer three quarters of the measured lines, the sixteenths next to the outermost ones are compared with
        these, at either end; of coils, a quarter shows less.
        """
        lines, every = np.concatenate(self.bands[len(self.bands) // 4 :]), np.arange(self.kspace.shape[-1])
        ends = _ends(every, 16)
        beside = np.setdiff1d(_ends(every, 8), ends)
        rises = []
        for outer, inner in zip(np.array_split(ends, 2), np.array_split(beside, 2), strict=True):
            quiet, loud = self._air_of(lines, outer), self._air_of(lines, inner)
            if not (inner.size and (quiet > 0).all()):
                return False
            rises.append(float(np.quantile(loud / quiet, 0.25)))
        return _RISES < min(rises) < _RISES_MORE

    def _air_of(self, lines: NDArray[np.intp], positions: NDArray[np.intp]) -> Variances:
        profiles = to_readout_profiles(self.kspace[:, :, lines])[..., positions]
        return np.asarray(median_variance(profiles) / self.readout_share)

    @cached_property
    def _positions_beside(self) -> NDArray[np.intp]:
        """Readout positions next to the object: the outer sixteenths, or the quieter where the object reaches one."""
        both = _ends(np.arange(self.kspace.shape[-1]), 16)
        left, right = np.array_split(both, 2)
        loudness = [np.median([self._air_of(band, end).mean() for band in self.bands]) for end in (left, right)]
        if max(loudness) > _ONE_SIDED * min(loudness):
            return np.asarray(left if loudness[0] < loudness[1] else right)
        return both

    @cached_property
    def _variances_by_band(self) -> Variances:
        """Noise variances in the air next to the object, (band, coil)."""
        return np.array([self._air_of(band, self._positions_beside) for band in self.bands])

    def air_beside(self) -> Variances:
        """Noise variance of every coil in the air next to the object along the readout: the median over the bands."""
        return np.asarray(np.median(self._variances_by_band, axis=0))

    def outer_air_beside(self) -> Variances:
        """The same from the outer quarter of the lines alone, where the object has least signal."""
        return self._air_of(self.outer_lines, self._positions_beside)

    def object_beside(self) -> bool:
        """Whether the object reaches both ends of the readout.

        Air next to it is then far louder on the central lines than on most, or than on the outermost; or most of it is
        far louder than the corners, or louder where k-space falls outwards.
        """
        parts = (
            self._variances_by_band[0],
            self.air_beside(),
            self.outer_air_beside(),
            median_variance(self.corner_samples),
        )
        central, most, outermost, corners = (float(part.mean()) for part in parts)
        if central > _OVER_MOST * most or central > _OVER_OUTERMOST * outermost:
            return True
        return most > (_OVER_FALLING if self.falls_outwards() else _OVER_CORNERS) * corners


def _image_air(regions: _Regions) -> tuple[Variances, NDArray[np.complex64]]:
    """Variances by the air in the image of a complete scan, and samples (coil, n) of it, all slices together.

    In every block of columns the quietest band of rows begins, and bands join it that are no louder than four standard
    errors of a median beyond the median of those there, until none does: nothing is assumed of where the object lies.
    Samples are without those of the readout's outer eighths, where the air of its profiles is searched.

    Variances are means over the readout, where the receiver's filter makes it quieter towards the ends. The filter is
    symmetric, and flat halfway down the readout. So a block few of whose rows are quiet, which may hold signal in all
    of them, counts as its mirror image does, or as the quietest quarter of the middle half, where it is louder than
    these by three standard errors. And the filter is that of all coils: one whose air is louder in the middle, beside
    its own ends, than that of three quarters of the others shows signal there, and counts as they do.
    """
    n_coils, rows, columns = regions.kspace.shape[1:]
    side = math.ceil(math.sqrt(_PIXELS / min(n_coils, _ENOUGH_COILS)))
    bands, blocks = (np.array_split(np.arange(n), max(1, min(_BLOCKS, n // side))) for n in (rows, columns))
    found: list[list[NDArray[np.complex64]]] = [[] for _ in blocks]
    quiet = np.zeros(len(blocks))
    for stack in regions.kspace:  # one slice at a time, to bound the memory
        image = to_image(stack)
        power = np.abs(image) ** 2
        for number, block in enumerate(blocks):
            air = _quiet_bands(power[..., block], bands)
            quiet[number] += len(air) / len(bands) / len(regions.kspace)
            found[number] += [image[:, bands[band]][..., block].reshape(n_coils, -1) for band in air]
    samples = [np.concatenate(parts, axis=1) for parts in found]
    variances = np.stack([median_variance(part[np.newaxis]) for part in samples], axis=1) / regions.share
    error = _ERROR_OF_MEDIAN / np.sqrt([part.shape[1] for part in samples])
    outer, count = math.ceil(len(samples) / 8), len(samples)
    inner = np.concatenate(samples[outer:-outer] or samples, axis=1) / np.float32(math.sqrt(regions.share))
    flat = np.quantile(variances[:, count // 4 : count - count // 4], _QUIETEST, axis=1, keepdims=True)
    likely = np.minimum(variances[:, ::-1], flat)
    louder = variances > likely * (1 + _LOUDER * error)
    mean = np.asarray(np.where(louder & (quiet < _MOSTLY_AIR), likely, variances).mean(axis=1))
    ends = np.minimum(variances[:, 0], variances[:, -1])
    if len(mean) >= _ENOUGH_COILS and (ends > 0).all():
        usual = float(np.quantile(mean / ends, _QUIETEST)) * ends
        mean = np.where(mean > _BEYOND**2 * usual, usual, mean)
    return mean, inner


def _quiet_bands(power: NDArray[np.float32], bands: list[NDArray[np.intp]]) -> list[int]:
    """Bands of rows of a block (coil, row, column) that are as quiet as the quietest, by all coils alike."""
    medians = np.stack([np.median(power[:, band].reshape(len(power), -1), axis=1) for band in bands])
    quietest = medians.min(axis=0)
    loudness = np.mean(medians / np.where(quietest > 0, quietest, 1), axis=1)
    samples = len(bands[0]) * power.shape[2] * min(len(power), _ENOUGH_COILS)  # coils share some of their noise
    most = 1 + _ALIKE * _ERROR_OF_MEDIAN / math.sqrt(samples)
    chosen = loudness <= loudness.min() * most
    while True:
        grown = loudness <= np.median(loudness[chosen]) * most
        if (grown <= chosen).all():
            return np.flatnonzero(chosen).tolist()
        chosen |= grown


def _of_repeats(repeat: NDArray[np.complex64], regions: _Regions) -> Source | None:
    """Variance by the difference of two repeats, mean of bands of lines; None where the object changed between them."""
    repeat = repeat[:, regions.live]
    both = regions.samples[:, np.newaxis] & (repeat != 0)
    difference = np.where(both, repeat / np.float32(regions.peak) - regions.kspace, 0) / np.sqrt(np.float32(2))
    bands = np.array([median_variance(difference[:, :, band]) for band in regions.bands])
    centre = np.abs(np.arange(difference.shape[-1]) - difference.shape[-1] // 2) <= difference.shape[-1] // 16
    loudness = np.array([median_variance(difference[:, :, band][..., centre]).mean() for band in regions.bands])
    if not (bands > 0).all() or loudness[0] > _CHANGED * float(np.median(loudness)):
        return None
    return Source(REPEATS, bands.mean(axis=0))


def _from_lines(regions: _Regions) -> tuple[Source, Source, str]:
    """The air next to the object or the ends of k-space, whichever counts; the other; and why it may be wrong.

    A receiver's filter dampens that air: noise rises from both ends of the readout then (`_Regions.filter_rises`), and
    the ends of k-space count, as far as a filter explains how much louder they are. Of four coils and more, the filter
    is what a quarter of them show least of, because signal differs from coil to coil and the filter does not. Without a
    filter the air counts. The ends hold signal where they are more than twice as loud for another reason, get quieter
    towards the ends of the readout, or are more than twelve times as loud.

    Where air next to the object is far louder on the central lines than elsewhere, or than the ends, the object fills
    the readout: there that air counts on the outer quarter of the lines alone, or the ends where they are quieter.
    """
    beside, ends = Source(BESIDE, regions.air_beside()), Source(ENDS, median_variance(regions.corner_samples))
    found, other, reason = beside, ends, ""
    if regions.object_beside():
        reason = OBJECT_BESIDE
        outer = Source(BESIDE, regions.outer_air_beside())
        found, other = (outer, ends) if outer.mean <= ends.mean else (ends, outer)
    if found.name == BESIDE:
        falls = regions.falls_outwards() and ends.mean > _AGREEMENT * found.mean
        if not reason and (falls or ends.mean > _MUCH_MORE * found.mean):
            reason = SIGNAL_OUTSIDE
        if regions.filter_rises():
            variances, air = ends.variances, found.variances
            if (air > 0).all():
                shared = float(np.quantile(variances / air, _QUIETEST)) if len(air) >= _ENOUGH_COILS else _FILTER
                variances = np.asarray(np.minimum(variances, min(shared, _FILTER) * air))
            found, other = Source(ENDS, variances), found
        elif not reason and ends.mean > _MORE_THAN_SIGNAL * found.mean:
            reason = SIGNAL_OUTSIDE
    return found, other, reason


def _from_places(
    regions: _Regions, in_air: Variances | None, repeat: NDArray[np.complex64] | None
) -> tuple[list[Source], str]:
    """Of a scan whose lines are whole all places, the one that counts first, in units of ``regions``; and a doubt.

    1. Differences of two repeats hold noise alone, wherever the object is. They do not count where they are far louder
       at the centre of k-space than on most lines: the object changed.
    2. Air in the image averages over all of k-space and over the readout, as the object does, so that neither a window
       on k-space nor a receiver's filter misleads it. It needs all lines, or a block of half of them at the centre.
       Where it is more than eight times louder than the air at the ends of the readout, which is more than a receiver's
       filter makes, it holds signal. Where the ends of k-space are more than twelve times louder, the object rings
       everywhere in the image, and it is doubted.
    3. Else the air next to the object along the readout and the ends of k-space: the first is too quiet by the
       receiver's filter, the second too loud by signal, or too quiet by a window on k-space (`_from_lines`).
    """
    found, other, reason = _from_lines(regions)
    every = sorted((found, other), key=lambda one: one.name != BESIDE)
    image = None if in_air is None else Source(IMAGE_AIR, in_air)
    if image is not None and image.mean > 0:
        every.insert(0, image)
        most = _MORE_THAN_FILTER * float(regions.air_beside().mean())
        if image.mean <= most or image.mean < found.mean / (1 if reason else _AGREEMENT):
            rings = float(median_variance(regions.corner_samples).mean()) > _MUCH_MORE * image.mean
            found, reason = image, SIGNAL_OUTSIDE if rings else ""
    repeats = None if repeat is None else _of_repeats(repeat, regions)
    if repeats is not None:
        every.insert(0, repeats)
        found, reason = repeats, ""
    return [found, *(one for one in every if one.name != found.name)], reason


def estimate_noise(
    kspace: NDArray[np.complex64],
    measured: NDArray[np.bool_],
    samples: NDArray[np.bool_],
    *,
    complete: bool = False,
    repeat: NDArray[np.complex64] | None = None,
    correlated: bool = True,
) -> NoiseEstimate:
    r"""Estimate the noise of one or several coils from the parts of k-space and image without signal.

    Differences of repeats, air in the image, air next to the object along the readout and the ends of k-space are held
    against each other, and one of them counts (`_from_places`). All are medians of :math:`|.|^2`; exact zeros are no
    samples. Lines with holes have no profiles: there the outermost eighth of the measured samples counts, signal in it
    included, and coils count as equally noisy and independent.

    Two places have their correlations held against each other, :math:`R_1` being the one whose coils correlate less:
    the covariance is shrunk towards its diagonal by :math:`\lambda = \mathrm{Re}\langle R_1, R_2\rangle / |R_1|^2`
    off the diagonal, from 0 to 1. That is how much of the first the second repeats: by chance alone it would be 0.
    Where the first are `correlated_by_signal`, correlations do not count at all. Coils that measured nothing have the
    others' median noise and take no part.

    Parameters
    ----------
    kspace : complex64 array, shape (slice, coil, ky, kx)
        Fully sampled or undersampled.
    measured : bool array, shape (ky,)
        Lines that count as measured.
    samples : bool array, shape (slice, ky, kx)
        Samples that hold data.
    complete : bool
        Whether no line or sample is missing but edges of k-space, so that the image shows air.
    repeat : complex64 array, shape (slice, coil, ky, kx), optional
        The same measured once more.
    correlated : bool
        Whether correlations are estimated; without them the covariance is diagonal.

    Raises
    ------
    InputError
        Where no noise is left to measure, there are fewer than four samples per coil, or a coil repeats another one.
    """
    regions = _Regions(kspace, measured, samples)
    in_air = air = None
    if regions.has_profiles:
        if complete and measured.mean() >= _LINES_FOR_AIR:
            in_air, air = _image_air(regions)
        (source, *others), reason = _from_places(regions, in_air, repeat)
    else:
        source, others, reason = Source(OUTERMOST, np.full(len(regions.live), regions.rim().mean())), [], ""
    found = source.variances[source.variances > 0]
    if not (found.size and np.isfinite(source.variances).all()):
        cure = "Give noise_variance, or data that were not masked, filtered or simulated without noise."
        raise InputError("noise_variance", "no noise in the outer k-space", "measured noise", cure)
    source = Source(source.name, np.where(source.variances > 0, source.variances, np.median(found)))
    correlations, share, alone = np.eye(kspace.shape[1], dtype=np.complex128), None, 0.0
    estimate = NoiseEstimate(correlations, (source, *others), reason).scaled(regions.peak**2)
    live, variances = regions.live, np.full(kspace.shape[1], np.median(estimate.source.variances))
    variances[live] = estimate.source.variances
    if correlated and len(live) > 1 and regions.has_profiles:
        correlations[np.ix_(live, live)], share, alone = _correlations_that_count(regions, air)
    deviations = np.sqrt(variances)
    return replace(
        estimate, covariance=correlations * np.outer(deviations, deviations), correlations=share, alone=alone
    )


def _correlations_that_count(
    regions: _Regions, air: NDArray[np.complex64] | None
) -> tuple[NDArray[np.complex128], float | None, float]:
    """Correlations of the coils, the share of those found that counts, and the largest where none counts."""
    refuse_copies(regions.kspace, regions.live)
    n_coils = len(regions.live)
    beside, other = regions.samples_beside(), _by_coil(regions.corner_samples) if air is None else air
    if beside.shape[1] < _SAMPLES_PER_COIL * n_coils:
        got, wanted = f"{beside.shape[1]} noise samples for {n_coils} coils", f"at least {_SAMPLES_PER_COIL * n_coils}"
        raise InputError("kspace", got, wanted, "Measure more lines, or combine coils first.")
    apart = ~np.eye(n_coils, dtype=bool)
    first, second = sorted(map(_correlations, (beside, other)), key=lambda one: float(np.linalg.norm(one[apart])))
    if largest := correlated_by_signal(first):
        return np.eye(n_coils, dtype=np.complex128), None, largest
    size = float(np.vdot(first[apart], first[apart]).real)
    share = float(np.clip(np.vdot(first[apart], second[apart]).real / size, 0, 1)) if size > 0 else 0.0
    shrunk = share * first
    np.fill_diagonal(shrunk, 1)
    return shrunk, share, 0.0


def _correlations(samples: NDArray[np.complex128] | NDArray[np.complex64]) -> NDArray[np.complex128]:
    """Correlations of coils by samples (coil, n), without those far louder than most, which hold signal.

    How loud a sample is, all coils counting alike, has a median and a quantile far below it; samples farther above the
    median than six times the distance of the two are left out.
    """
    wide = samples.astype(np.complex128)
    power = np.abs(wide) ** 2
    medians = np.median(power, axis=1, keepdims=True)
    loudness = np.sum(power / np.where(medians > 0, medians, 1), axis=0)
    quiet, middle = np.quantile(loudness, [0.05, 0.5])
    kept = wide[:, loudness <= middle + _BEYOND_MOST * (middle - quiet)]
    covariance = kept @ kept.conj().T
    deviations = np.sqrt(np.diag(covariance).real)
    deviations[deviations == 0] = 1
    return np.asarray(covariance / np.outer(deviations, deviations))


def refuse_copies(kspace: NDArray[np.complex64], numbers: Sequence[int] | NDArray[np.intp] | None = None) -> None:
    """Refuse a coil that measured the same as another one, up to a factor; coils of zeros are none.

    Parameters
    ----------
    kspace : complex64 array, shape (slice, coil, ky, kx)
        Samples.
    numbers : sequence of int, optional
        What its coils are called.

    Raises
    ------
    InputError
        Naming both.
    """
    n_coils = kspace.shape[1]
    numbers = range(n_coils) if numbers is None else numbers
    stacks = [stack.reshape(n_coils, -1) for stack in kspace]
    peak = max(float(np.abs(stack).max()) for stack in stacks) or 1.0
    energies = sum((stack / peak) @ (stack / peak).conj().T.astype(np.complex64) for stack in stacks)
    deviations = np.sqrt(np.diag(energies).real.astype(np.float64))
    alike = np.triu((np.abs(energies) > 0.999 * np.outer(deviations, deviations)) & (deviations > 0), 1)
    for first, second in np.argwhere(alike):
        factor = np.complex64(energies[second, first] / energies[first, first])
        left = sum(float(np.linalg.norm((stack[second] - factor * stack[first]) / peak) ** 2) for stack in stacks)
        if left <= (1e-5 * deviations[second]) ** 2:
            got = f"coil {numbers[second]}, which measured the same as coil {numbers[first]}"
            raise InputError("kspace", got, "noise of its own in every coil", "Remove dead or duplicated coils.")


def largest_correlation(covariance: NDArray[np.complex128]) -> float:
    """Largest modulus of the correlation of two coils, 0 to 1, by their covariance.

    0 for one coil, and between any coil and one without a signal.
    """
    deviations = np.sqrt(np.diag(covariance).real)
    correlations = np.abs(covariance) / np.maximum(np.outer(deviations, deviations), np.finfo(float).tiny)
    return float(correlations[~np.eye(len(deviations), dtype=bool)].max(initial=0.0))


def correlated_by_signal(covariance: NDArray[np.complex128]) -> float:
    """The largest correlation of a covariance that is not that of noise alone; 0 where it may be.

    Receivers correlate the noise of two coils by a half at most, as a rule; two coils that see the same object
    correlate up to one.

    Parameters
    ----------
    covariance : complex array, shape (coil, coil)
        Hermitian, with a positive diagonal.
    """
    largest = largest_correlation(covariance)
    return largest if largest > _BY_SIGNAL else 0.0


def median_noise(found: Sequence[NoiseEstimate]) -> NoiseEstimate:
    """The noise of a volume, whose slices have the scanner's alike: that of the slice in the middle, by its strength.

    Slices whose noise is doubted, or whose correlations are those of signal, have no say where others are not; where
    all are, the quietest counts, because signal is what makes an estimate too large.
    """
    ranked = sorted(found, key=lambda one: one.variance)
    trusted = [one for one in ranked if not (one.reason or one.alone)]
    return trusted[(len(trusted) - 1) // 2] if trusted else ranked[0]


def outer_covariance(kspace: NDArray[np.complex64], samples: NDArray[np.bool_]) -> NDArray[np.complex128]:
    """E[n n^H] / 2 of the measured samples away from the centre of k-space, scaled to their medians.

    Parameters
    ----------
    kspace : complex64 array, shape (slice, coil, ky, kx)
        Positions of a readout without the object.
    samples : bool array, shape (slice, ky, kx)
        Those measured.
    """
    outer = _from_centre(kspace.shape[-2:]) > _INNER
    wide = np.concatenate([stack[:, held & outer] for stack, held in zip(kspace, samples, strict=True)], axis=1)
    variances, wide = median_variance(wide[None]), wide.astype(np.complex128)
    covariance = wide @ wide.conj().T / (2 * max(1, wide.shape[1]))
    mean = np.diag(covariance).real
    ratio = np.divide(variances, mean, out=np.zeros_like(mean), where=mean > 0)
    scale = np.sqrt(ratio)  # of a few strong samples, from a rest of the object, the median takes no notice
    return np.asarray(covariance * scale[:, None] * scale)


def least_noise(kspace: NDArray[Any], pixels: int, *, direct: bool) -> tuple[float, Literal["rounding", "iterations"]]:
    """Least noise variance per real component that computations can resolve, and the reason for the limit.

    Samples in single precision are known no better than the rounding of the largest one. Lines of one coil are solved
    nearly directly, whatever the noise. The iterations for several coils or a trajectory grow with the ratio of signal
    to noise, and so does what an error of the coil maps does to the image: there the ratio, |y| / sigma per root of the
    number of pixels, is limited.

    Parameters
    ----------
    kspace : complex array, shape (slice, ...)
        All samples of a scan.
    pixels : int
        Of one image.
    direct : bool
        Whether one coil was measured on a grid.
    """
    rounding = (ROUNDING * float(np.abs(kspace).max())) ** 2
    if direct:
        return rounding, "rounding"
    energies = [float(np.sum(np.abs(one) ** 2, dtype=np.float64)) for one in kspace]
    limited = max(energies) / pixels / MOST_SIGNAL_TO_NOISE**2
    return max(rounding, limited), "iterations"


def rim_noise(
    kspace: NDArray[np.complex64], trajectory: NDArray[np.float64], shape: tuple[int, int]
) -> tuple[float, bool]:
    """Noise variance from the samples of a trajectory farthest from DC, signal included; and whether they hold some.

    Noise is as strong everywhere, so signal is seen by power that falls with the distance from DC: the median power of
    the outermost samples is held against the largest of the three shells further in that have as many, beyond what
    chance makes of either. That is a doubt and no proof: signal that is level over these shells is missed, and one that
    ends between them is taken for signal at the rim.

    Parameters
    ----------
    kspace : complex64 array, shape (slice, coil, sample)
        Of any number of coils, whose variances are averaged.
    trajectory : float array, shape (sample, 2)
        Cycles per field of view, columns (ky, kx).
    shape : (int, int)
        The image's grid.

    Raises
    ------
    InputError
        Where these samples are zero.
    """
    inwards = np.argsort(-np.hypot(*(trajectory / shape).T), kind="stable")
    count, scale = max(len(inwards) // _RIM, 1), float(np.abs(kspace).max())
    powers = []
    for shell in range(4):
        chosen = inwards[shell * count : (shell + 1) * count]
        power = np.abs(kspace[..., chosen] / np.float32(scale)).astype(np.float64) ** 2
        powers.append(float(np.median(np.moveaxis(power, 1, 0).reshape(kspace.shape[1], -1), axis=1).mean()))
    variance = powers[0] / _MEDIAN_OF_POWER * scale**2
    if not (math.isfinite(variance) and variance > 0):
        cure = "Give noise_variance in the file, or noise under [input] of the recipe."
        raise InputError("noise_variance", "no noise in the outermost samples", "measured noise", cure)
    # The median of n exponential variates has a relative standard deviation of 1 / (log(2) sqrt(n)).
    chance = math.sqrt(2 / (count * kspace.shape[1] * len(kspace))) / math.log(2)
    return variance, max(powers[1:]) > (1 + _SURE * chance) * powers[0]
