"""The noise of a volume, of which no slice or plane says enough alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mri_design.scan.calibration.noise.covariance import MeasuredNoise, correlated_by_signal, each_coil_alone
from mri_design.scan.calibration.noise.regions import median_variance
from mri_design.scan.data import KSpaceData


def median_noise(found: Sequence[MeasuredNoise]) -> MeasuredNoise:
    """The noise of a volume, whose slices have the scanner's alike: that of the slice in the middle, by its strength.

    Slices whose noise is doubted, or whose correlations are those of signal, have no say where others are not; where
    all are, the quietest counts, because signal is what makes an estimate too large.

    Parameters
    ----------
    found : sequence of MeasuredNoise
        `measure_noise` of some slices, one at least.
    """
    ranked = sorted(found, key=lambda one: one.variance)
    trusted = [one for one in ranked if not (one.doubt or one.alone)]
    return trusted[(len(trusted) - 1) // 2] if trusted else ranked[0]


NOISE_FROM = "noise estimated from"
"""Entry of a header: the positions or slices that a covariance of noise was estimated from."""
_ENDS = 16
_INNER = 0.25


def noise_is_beside(data: KSpaceData, positions: int) -> bool:
    """Whether noise is to be looked for at the ends of a readout.

    Parameters
    ----------
    data : KSpaceData
        A volume ("volume" stands in its header), or planes of it. They have holes, and their noise is not known.
    positions : int
        Of the whole volume: 32 or more.
    """
    known = data.noise_variance is not None or data.noise_covariance is not None
    holes = not all(sampling.whole_lines for sampling in data.samplings)
    return not known and holes and data.volume and positions >= 2 * _ENDS


def with_volume_noise(data: KSpaceData) -> KSpaceData:
    """A volume whose planes have holes, with the noise covariance of the positions at the quieter end of the readout.

    Of one plane with holes there are only its outermost samples to measure noise in, and they hold signal, the more
    the fewer were measured. The positions beside the object, a sixteenth of all of them at either end, hold none.
    Where the object fills the readout at both ends the noise is overestimated, as it would be from one plane; where the
    receiver's filter damps the ends it is underestimated.

    Parameters
    ----------
    data : KSpaceData
        Any scan. It is returned as it is unless `noise_is_beside` the object.

    Returns
    -------
    KSpaceData
        With ``noise_covariance``, E[n n^H] / 2, in units of ``kspace`` squared, and `NOISE_FROM` in its header; of each
        coil alone where the correlations are those of signal. Without it where the samples there hold no noise, as in
        data that were masked.
    """
    if not noise_is_beside(data, data.n_slices):
        return data
    width = data.n_slices // _ENDS
    ends = {f"0-{width - 1}": slice(0, width), f"{data.n_slices - width}-{data.n_slices - 1}": slice(-width, None)}
    found = {name: _covariance(data, part) for name, part in ends.items()}
    quieter = min(found, key=lambda name: float(np.trace(found[name]).real))
    covariance = found[quieter]
    power = np.linalg.eigvalsh(covariance)
    if not power[0] > 1e-12 * power[-1]:  # zeros, or a coil that repeats another one
        return data
    said = f"positions {quieter} of the readout, the quieter end of {data.n_slices}"
    doubt = correlated_by_signal(covariance)
    if doubt:
        covariance, said = np.diag(np.diag(covariance)), f"{said}, {each_coil_alone(doubt)}"
    return replace(data, noise_covariance=covariance, header={**data.header, NOISE_FROM: said})


def _covariance(data: KSpaceData, positions: slice) -> NDArray[np.complex128]:
    """E[n n^H] / 2 of the measured samples away from the centre of k-space, scaled to their medians."""
    rows, columns = (np.abs(np.arange(n) - n // 2) / (n / 2) for n in data.grid_shape)
    outer = np.hypot(rows[:, None], columns) > _INNER
    stacks = zip(data.kspace[positions], data.samplings[positions], strict=True)
    samples = np.concatenate([stack[:, sampling.samples & outer] for stack, sampling in stacks], axis=1)
    wide = samples.astype(np.complex128)
    covariance = wide @ wide.conj().T / (2 * max(1, samples.shape[1]))
    mean = np.diag(covariance).real
    ratio = np.divide(median_variance(samples[None]), mean, out=np.zeros_like(mean), where=mean > 0)
    scale = np.sqrt(ratio)  # of a few strong samples, from a rest of the object, the median takes no notice
    return np.asarray(covariance * scale[:, None] * scale)
