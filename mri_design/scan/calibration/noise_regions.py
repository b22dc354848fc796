"""The places in a scan's k-space and image that hold noise and (almost) nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.scan.calibration.centred_fft import to_image, to_readout_profiles
from mri_design.scan.data import KSpaceData

__all__ = ["NoiseRegions", "median_variance"]

# The median of |n|^2 over circular complex Gaussians of variance v per real component is 2 v log 2.
_MEDIAN_OF_POWER = 2 * math.log(2)
_BANDS = 8


@dataclass(frozen=True)
class NoiseRegions:
    """Robust noise variances (median of squared modulus) by region, per coil and per measured sample.

    Parameters
    ----------
    kspace : complex64 array, shape (slice, coil, ky, kx)
        Scaled to a largest modulus of 1, so that squares of very small or large data stay finite.
    bands : list of int arrays
        Measured lines in groups of equal size, from the centre of k-space outwards.
    columns : int array
        Readout samples that are not zero-filled.
    samples : bool array, shape (slice, ky, kx)
        Samples that hold data.
    """

    kspace: NDArray[np.complex64]
    bands: list[NDArray[np.intp]]
    columns: NDArray[np.intp]
    samples: NDArray[np.bool_]

    @classmethod
    def of(cls, data: KSpaceData) -> NoiseRegions:
        """The regions of ``data``."""
        lines = np.flatnonzero(data.measured)
        outwards = lines[np.argsort(np.abs(lines - data.grid_shape[0] // 2), kind="stable")]
        samples = np.stack([sampling.samples for sampling in data.samplings])
        return cls(
            kspace=data.kspace / np.abs(data.kspace).max(),
            bands=np.array_split(outwards, max(1, min(_BANDS, len(lines) // 2))),
            columns=np.flatnonzero(samples.any(axis=(0, 1))),
            samples=samples,
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
        outer = np.concatenate(self.bands[-2:])
        return median_variance(self.kspace[:, :, outer][..., _ends(self.columns, 8)])

    def air_beside(self) -> NDArray[np.float64]:
        """Variance in the outer sixteenths of the profiles along the readout, median over the bands."""
        air = [median_variance(self._profiles(band, 16)) for band in self.bands]
        return np.asarray(np.median(air, axis=0)) / self._readout_share

    def air_above(self) -> NDArray[np.float64]:
        """Variance in the image's outer sixteenth of rows, on the quieter side; needs full sampling.

        Column blocks are averaged, because the receiver's filter colours the noise along the readout.
        """
        rows, columns = self.kspace.shape[-2:]
        height = max(1, rows // 16)
        blocks = np.array_split(np.arange(columns), 16)
        edges = np.empty((2, *self.kspace.shape[:2], height, columns), self.kspace.dtype)
        for place in np.ndindex(self.kspace.shape[:2]):  # one image at a time, to bound the memory
            image = to_image(self.kspace[place])
            edges[0][place], edges[1][place] = image[:height], image[-height:]
        sides = [
            np.mean([median_variance(side[..., block]) for block in blocks if block.size], axis=0) for side in edges
        ]
        line_share = sum(len(band) for band in self.bands) / rows
        quieter = min(sides, key=lambda side: float(side.sum()))
        return np.asarray(quieter) / (line_share * self._readout_share)

    def air_samples(self) -> NDArray[np.complex128]:
        """Samples (coil, n) of the air beside the object, outer eighths, without the innermost lines."""
        outer = np.concatenate(self.bands[len(self.bands) // 4 :])
        samples = self._profiles(outer, 8) / math.sqrt(self._readout_share)
        return np.moveaxis(samples, 1, 0).reshape(samples.shape[1], -1).astype(np.complex128)

    @property
    def _readout_share(self) -> float:
        return len(self.columns) / self.kspace.shape[-1]

    def _profiles(self, lines: NDArray[np.intp], part: int) -> NDArray[Any]:
        every = np.arange(self.kspace.shape[-1])
        profiles: NDArray[Any] = to_readout_profiles(self.kspace[:, :, lines])[..., _ends(every, part)]
        return profiles


def _ends(columns: NDArray[np.intp], part: int) -> NDArray[np.intp]:
    width = max(1, len(columns) // part)
    return np.concatenate([columns[:width], columns[-width:]])


def median_variance(samples: NDArray[Any]) -> NDArray[np.float64]:
    """Variance per real component, shape (coil,), of samples (slice, coil, ...); exact zeros are none."""
    power = np.abs(np.moveaxis(samples, 1, 0).reshape(samples.shape[1], -1)).astype(np.float64) ** 2
    medians = [float(np.median(coil[coil > 0])) if (coil > 0).any() else 0.0 for coil in power]
    return np.array(medians) / _MEDIAN_OF_POWER
