"""Places in a scan that hold noise and (almost) no signal: beside the object along the readout, and ends of k-space."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.conventions import to_readout_profiles
from mri_design.scan.data import KSpaceData

# The median of |n|^2 over circular complex Gaussians of variance v per real component is 2 v log 2.
_MEDIAN_OF_POWER = 2 * math.log(2)
ERROR_OF_MEDIAN = 1 / math.log(2)
"""Relative standard error of that median, times the root of the number of samples."""
_BANDS = 8
# Limits on ratios of variances, above those of noise and below those of signal; which ratios scans had is in
# results/benchmarks/measured-once.md.
ONE_SIDED = 3.0
"""Ratio of both ends of the readout, from which on the object is at one of them."""
OVER_MOST, OVER_OUTERMOST, OVER_CORNERS = 8.0, 60.0, 20.0
"""Ratios of air beside the object on the central lines to that on most and on the outermost ones, and of that on most
to the corners: more than filters along the phase encode make of noise."""
OVER_FALLING = 4.0
"""Largest ratio of air beside the object to the corners, where k-space falls outwards, too."""
RISES, RISES_MORE = 1.8, 4.0
"""Ratios between which the sixteenths of a readout beside the outermost are louder than these under a filter."""
FALLING = 1.35
"""Ratio from which on k-space falls outwards: more than receivers' filters make of noise."""


@dataclass(frozen=True)
class NoiseRegions:
    """Robust noise variances (median of squared modulus) by region, per coil and per measured sample.

    Parameters
    ----------
    live : int array
        Coils that measured anything at all: the others are no part of the following.
    kspace : complex64 array, shape (slice, coil, ky, kx)
        Scaled to a largest modulus of 1, so that squares of very small or large data stay finite.
    bands : list of int arrays
        Measured lines in groups of equal size, from the centre of k-space outwards.
    columns : int array
        Readout samples that are not zero-filled.
    samples : bool array, shape (slice, ky, kx)
        Samples that hold data.
    peak : float
        Largest modulus of the data, by which they are divided.
    """

    live: NDArray[np.intp]
    kspace: NDArray[np.complex64]
    bands: list[NDArray[np.intp]]
    columns: NDArray[np.intp]
    samples: NDArray[np.bool_]
    peak: float

    @classmethod
    def of(cls, data: KSpaceData) -> NoiseRegions:
        """The regions of ``data``."""
        lines = np.flatnonzero(data.measured)
        outwards = lines[np.argsort(np.abs(lines - data.grid_shape[0] // 2), kind="stable")]
        samples, peak = np.stack([sampling.samples for sampling in data.samplings]), float(np.abs(data.kspace).max())
        live = np.flatnonzero(data.kspace.any(axis=(0, 2, 3)))
        return cls(
            live=live,
            kspace=data.kspace[:, live] / np.float32(peak),
            bands=np.array_split(outwards, max(1, min(_BANDS, len(lines) // 2))),
            columns=np.flatnonzero(samples.any(axis=(0, 1))),
            samples=samples,
            peak=peak,
        )

    @property
    def has_profiles(self) -> bool:
        """Whether lines can be transformed along the readout: they hold the same samples, one gapless run of them."""
        gapless = len(self.columns) == self.columns[-1] - self.columns[0] + 1
        lines = self.samples.any(axis=2, keepdims=True)
        return gapless and bool((self.samples[..., self.columns] == lines).all())

    def rim(self) -> NDArray[np.float64]:
        """Variance in the outermost eighth of the measured samples, by distance from the centre of k-space.

        For masks over both directions.
        """
        rows, columns = (np.abs(np.arange(n) - n // 2) / (n / 2) for n in self.samples.shape[1:])
        distance = np.hypot(rows[:, np.newaxis], columns)
        outermost = []
        for stack, samples in zip(self.kspace, self.samples, strict=True):
            if samples.any():
                outer = np.asarray(samples & (distance >= np.quantile(distance[samples], 1 - 1 / 8)))
                outermost.append(stack[:, outer])
        return median_variance(np.concatenate(outermost, axis=1)[np.newaxis])

    def corners(self) -> NDArray[np.float64]:
        """Variance in the outer quarter of the lines and the outer eighths of the readout."""
        return median_variance(self.kspace[:, :, self.outer_lines][..., _ends(self.columns, 8)])

    def falls_outwards(self) -> bool:
        """Whether k-space gets quieter towards both ends of the readout, as signal does and white noise does not.

        On the outer half of the measured lines, the outermost eighths of the readout are compared with the eighths
        beside them, which have to be louder by more than a third and by three standard errors of two medians.
        """
        lines = np.concatenate(self.bands[-_BANDS // 2 :])
        outermost = _ends(self.columns, 8)
        beside = np.setdiff1d(_ends(self.columns, 4), outermost)
        quiet, loud = (float(median_variance(self.kspace[:, :, lines][..., c]).mean()) for c in (outermost, beside))
        samples = self.kspace.shape[0] * self.kspace.shape[1] * len(lines) * len(outermost)
        return loud > max(FALLING, 1 + 3 * ERROR_OF_MEDIAN * math.sqrt(2 / samples)) * quiet > 0

    def filter_rises(self) -> bool:
        """Whether noise rises from both ends of the readout as under a receiver's filter, and not as at an object.

        On the outer three quarters of the measured lines, the sixteenths beside the outermost ones are compared with
        these, at either end; of coils, a quarter shows less.
        """
        lines = np.concatenate(self.bands[len(self.bands) // 4 :])
        count = self.kspace.shape[-1]
        ends = _ends(np.arange(count), 16)
        beside = np.setdiff1d(_ends(np.arange(count), 8), ends)
        rises = []
        for outer, inner in zip(np.array_split(ends, 2), np.array_split(beside, 2), strict=True):
            quiet, loud = self._air_of(lines, outer), self._air_of(lines, inner)
            if not (inner.size and (quiet > 0).all()):
                return False
            rises.append(float(np.quantile(loud / quiet, 0.25)))
        return RISES < min(rises) < RISES_MORE

    @property
    def outer_lines(self) -> NDArray[np.intp]:
        """The outer quarter of the measured lines."""
        return np.concatenate(self.bands[-2:])

    def air_beside(self) -> NDArray[np.float64]:
        """Variance in the outer sixteenths of the profiles along the readout, median over the bands.

        Where the object reaches one of the two ends, which is then more than three times louder, the other one counts.
        """
        return np.asarray(np.median(self._beside, axis=0))

    def object_beside(self) -> bool:
        """Whether the object reaches both ends of the readout.

        Air beside it is then far louder on the central lines than on most, or than on the outermost; or most of it is
        far louder than the corners, or louder where k-space falls outwards.
        """
        central, most, outermost, corners = (
            float(part.mean()) for part in (self._beside[0], self.air_beside(), self.outer_air_beside(), self.corners())
        )
        if central > OVER_MOST * most or central > OVER_OUTERMOST * outermost:
            return True
        return most > (OVER_FALLING if self.falls_outwards() else OVER_CORNERS) * corners

    def outer_air_beside(self) -> NDArray[np.float64]:
        """Variance in the outer quarter of the lines alone, where the object shows least."""
        return self._air_of(self.outer_lines, self._ends_that_count)

    @cached_property
    def _beside(self) -> NDArray[np.float64]:
        """Variance beside the object, (band, coil)."""
        return np.array([self._air_of(band, self._ends_that_count) for band in self.bands])

    @cached_property
    def _ends_that_count(self) -> NDArray[np.intp]:
        """Readout positions beside the object: at both ends, or at the quieter one."""
        both = _ends(np.arange(self.kspace.shape[-1]), 16)
        left, right = np.array_split(both, 2)
        loudness = [np.median([self._air_of(band, end).mean() for band in self.bands]) for end in (left, right)]
        if max(loudness) > ONE_SIDED * min(loudness):
            return np.asarray(left if loudness[0] < loudness[1] else right)
        return both

    def _air_of(self, lines: NDArray[np.intp], positions: NDArray[np.intp]) -> NDArray[np.float64]:
        profiles = to_readout_profiles(self.kspace[:, :, lines])[..., positions]
        return np.asarray(median_variance(profiles) / self._readout_share)

    def samples_beside(self) -> NDArray[np.complex128]:
        """Samples (coil, n) of the air beside the object, outer eighths, without the innermost lines."""
        outer = np.concatenate(self.bands[len(self.bands) // 4 :])
        positions = _ends(np.arange(self.kspace.shape[-1]), 8)
        samples = to_readout_profiles(self.kspace[:, :, outer])[..., positions] / math.sqrt(self._readout_share)
        return np.moveaxis(samples, 1, 0).reshape(samples.shape[1], -1).astype(np.complex128)

    def samples_of_corners(self) -> NDArray[np.complex128]:
        """Samples (coil, n) of the `corners`."""
        samples = self.kspace[:, :, self.outer_lines][..., _ends(self.columns, 8)]
        return np.moveaxis(samples, 1, 0).reshape(samples.shape[1], -1).astype(np.complex128)

    @property
    def share(self) -> float:
        """Share of the grid's samples that were measured, of which noise of the image is the mean."""
        return sum(len(band) for band in self.bands) / self.kspace.shape[-2] * self._readout_share

    @property
    def _readout_share(self) -> float:
        return len(self.columns) / self.kspace.shape[-1]


def _ends(columns: NDArray[np.intp], part: int) -> NDArray[np.intp]:
    width = max(1, len(columns) // part)
    return np.concatenate([columns[:width], columns[-width:]])


def median_variance(samples: NDArray[Any]) -> NDArray[np.float64]:
    """Variance per real component, shape (coil,), of samples (slice, coil, ...); exact zeros are none."""
    power = np.abs(np.moveaxis(samples, 1, 0).reshape(samples.shape[1], -1)).astype(np.float64) ** 2
    medians = [float(np.median(coil[coil > 0])) if (coil > 0).any() else 0.0 for coil in power]
    return np.array(medians) / _MEDIAN_OF_POWER
