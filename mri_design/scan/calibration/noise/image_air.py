"""Air in the image: noise where a complete scan shows no object, with the receiver's filter along the readout."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.operators.conventions import to_image
from mri_design.scan.calibration.noise.regions import ERROR_OF_MEDIAN, NoiseRegions, median_variance

_BLOCKS, _PIXELS = 16, 64
"""Blocks along either side of the image at most, and pixels of a block at least, of all coils that count."""
_ALIKE = 4.0
"""Standard errors by which a block of air may be louder than the median of the others beside it."""
_LOUDER = 3.0
"""Standard errors by which a block that may hold signal is louder than the noise is likely to be there."""
_MOSTLY_AIR = 0.5
"""Share of quiet blocks from which on a column of them is trusted to be air by itself."""
QUIETEST = 0.25
"""Quantile of blocks, or of coils, that is trusted where others may hold signal."""
ENOUGH_COILS = 4
_BEYOND = 1.25
"""Ratio of standard deviations from which on a coil's air is louder than the others'."""


@dataclass(frozen=True)
class ImageAir:
    """Noise variances in blocks of columns of the image, each from those of its rows that are quiet and alike.

    Parameters
    ----------
    variances : float array, shape (coil, block)
        Per real component and measured sample, from the left to the right end of the readout.
    quiet : float array, shape (block,)
        Share of the rows of a block that are quiet and alike.
    error : float array, shape (block,)
        Relative standard error of a variance.
    samples : complex64 array, shape (coil, n)
        Their pixels, without those of the readout's outer eighths, where the air of its profiles is looked for.
    """

    variances: NDArray[np.float64]
    quiet: NDArray[np.float64]
    error: NDArray[np.float64]
    samples: NDArray[np.complex64]

    @classmethod
    def of(cls, regions: NoiseRegions) -> ImageAir:
        """Look for the air of every slice; its noise is that of all slices together.

        In every block of columns the quietest band of rows begins, and bands join it that are no louder than four
        standard errors of a median beyond the median of those there, until none does: nothing is assumed of where the
        object lies.
        """
        kspace = regions.kspace
        n_coils, rows, columns = kspace.shape[1:]
        side = math.ceil(math.sqrt(_PIXELS / min(n_coils, ENOUGH_COILS)))
        bands, blocks = (np.array_split(np.arange(n), max(1, min(_BLOCKS, n // side))) for n in (rows, columns))
        found: list[list[NDArray[np.complex64]]] = [[] for _ in blocks]
        quiet = np.zeros(len(blocks))
        for stack in kspace:  # one slice at a time, to bound the memory
            image = to_image(stack)
            power = np.abs(image) ** 2
            for number, block in enumerate(blocks):
                air = _quiet_bands(power[..., block], bands)
                quiet[number] += len(air) / len(bands) / len(kspace)
                found[number] += [image[:, bands[band]][..., block].reshape(n_coils, -1) for band in air]
        samples = [np.concatenate(parts, axis=1) for parts in found]
        variances = np.stack([median_variance(part[np.newaxis]) for part in samples], axis=1)
        error = ERROR_OF_MEDIAN / np.sqrt([part.shape[1] for part in samples])
        outer = math.ceil(len(samples) / 8)
        inner = np.concatenate(samples[outer:-outer] or samples, axis=1)
        return cls(variances / regions.share, quiet, error, inner / np.float32(math.sqrt(regions.share)))

    def variance(self) -> NDArray[np.float64]:
        """Variance per coil, mean over the readout, where the receiver's filter makes it quieter towards the ends.

        The filter is symmetric, and flat halfway down the readout. So a block few of whose rows are quiet, which may
        hold signal in all of them, counts as its mirror image does, or as the quietest quarter of the middle half,
        where it is louder than these by three standard errors. And the filter is that of all coils: one whose air is
        louder in the middle, beside its own ends, than that of three quarters of the others shows signal there, and
        counts as they do.
        """
        count = self.variances.shape[1]
        middle = self.variances[:, count // 4 : count - count // 4]
        flat = np.quantile(middle, QUIETEST, axis=1, keepdims=True)
        likely = np.minimum(self.variances[:, ::-1], flat)
        louder = self.variances > likely * (1 + _LOUDER * self.error)
        mean = np.where(louder & (self.quiet < _MOSTLY_AIR), likely, self.variances).mean(axis=1)
        ends = np.minimum(self.variances[:, 0], self.variances[:, -1])
        if len(mean) < ENOUGH_COILS or not (ends > 0).all():
            return np.asarray(mean)
        usual = float(np.quantile(mean / ends, QUIETEST)) * ends
        return np.asarray(np.where(mean > _BEYOND**2 * usual, usual, mean))


def _quiet_bands(power: NDArray[np.float32], bands: list[NDArray[np.intp]]) -> list[int]:
    """Bands of rows of a block (coil, row, column) that are as quiet as the quietest, by all coils alike."""
    medians = np.stack([np.median(power[:, band].reshape(len(power), -1), axis=1) for band in bands])
    quietest = medians.min(axis=0)
    loudness = np.mean(medians / np.where(quietest > 0, quietest, 1), axis=1)
    samples = len(bands[0]) * power.shape[2] * min(len(power), ENOUGH_COILS)  # coils share some of their noise
    most = 1 + _ALIKE * ERROR_OF_MEDIAN / math.sqrt(samples)
    chosen = loudness <= loudness.min() * most
    while True:
        grown = loudness <= np.median(loudness[chosen]) * most
        if (grown <= chosen).all():
            return np.flatnonzero(chosen).tolist()
        chosen |= grown
