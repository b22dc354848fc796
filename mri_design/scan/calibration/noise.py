"""Receiver noise, measured from the scan's own k-space: its variance, and its covariance over coils."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, require_instance
from mri_design.scan.calibration.coil_correlation import correlated_by_signal
from mri_design.scan.calibration.coil_mixing import inverse_root, mix_coils
from mri_design.scan.calibration.noise_regions import NoiseRegions
from mri_design.scan.data import KSpaceData

# Limits on ratios of variances; which ratios scans had is in results/benchmarks/measured-once.md. Above the first, the
# receiver's filter makes corners of k-space louder than the air beside the object; above the last, signal does.
_MORE_THAN_SIGNAL = 2.0
_AGREEMENT = 1.5
_MORE_THAN_FILTER = 12.0

# Ratio of two coils' ratios of mean to median beyond which the samples of a covariance hold signal; which scans had
# which is in results/reliability/noise-shading.md.
_WITNESSES_AGREE = 2.0

OBJECT_BESIDE = "the object fills the readout"
SIGNAL_OUTSIDE = "the outermost samples hold signal"


@dataclass(frozen=True)
class MeasuredNoise:
    """A noise variance measured from k-space, and whether signal stood in the way.

    Parameters
    ----------
    variance : float
        As of `estimate_noise_variance`.
    doubt : str
        Why it may be too large, in words; empty where there is no reason.
    """

    variance: float
    doubt: str = ""


def estimate_noise_variance(data: KSpaceData) -> float:
    r"""Noise variance per real component, from what k-space holds besides the object.

    Three places hold (almost) only noise, and none of them always does:

    1. the air beside the object, in profiles along the readout of single lines: outer sixteenths, median over
       bands of lines. Every line counts there, so also noise that was filtered at high frequencies before saving;
    2. the corners of k-space (outer quarter of the measured lines, outer eighths of the readout), where
       signal has decayed. They hold noise of the whole readout, so also the receiver's filter, which makes the air
       beside the object quieter than the middle of the image in scans without readout oversampling;
    3. the air above and below the object, in the image. It averages over all lines, and over the readout as
       the object does, but needs full sampling and a field of view larger than the object.

    The first gives the number. Where the corners are more than twice as loud, they count instead: that is
    more than the signal in them explains, so the receiver's filter is at work. Where the third is more than
    1.5 times quieter than the result, it counts instead: there was signal in the result. All are medians of
    :math:`|.|^2`; exact zeros are no samples. Lines with holes have no profiles: there the outermost eighth of the
    measured samples counts, signal in it included.

    Signal is told from noise by how it falls off. Where k-space gets quieter towards the ends of the readout, or the
    corners are more than twelve times as loud, they hold signal (of scans of low resolution) and do not count. Where
    air beside the object is far louder on the central lines than elsewhere, or than the corners, the object fills the
    readout: there that air counts on the outer quarter of the lines alone, or the corners where they are quieter.
    `measure_noise` says when this was so; it is not where the air above and below the object is quieter still, and
    counts.

    Parameters
    ----------
    data : KSpaceData
        Fully sampled or undersampled; maps, reference and a given noise variance are not looked at.

    Returns
    -------
    float
        Mean over the coils, in units of ``kspace`` squared. Coils of unequal noise want `prewhiten` first.

    Raises
    ------
    InputError
        Where no noise is left to measure.

    Notes
    -----
    results/benchmarks/measured-once.md has its accuracy on simulated and real scans, and with few lines;
    results/benchmarks/unknown-noise.md what it does to images.
    """
    return measure_noise(data).variance


def measure_noise(data: KSpaceData) -> MeasuredNoise:
    """The same with what is to be said about it; parameters and errors are those of `estimate_noise_variance`."""
    require_instance(KSpaceData, wanted="a KSpaceData, as load_kspace reads it", data=data)
    regions = NoiseRegions.of(data)
    if not regions.has_profiles:
        return MeasuredNoise(_positive(float(regions.rim().mean()), data))
    variance, corners, doubt = float(regions.air_beside().mean()), float(regions.corners().mean()), ""
    if regions.object_beside():
        variance, doubt = min(float(regions.outer_air_beside().mean()), corners), OBJECT_BESIDE
    if corners > _MORE_THAN_SIGNAL * variance:
        if corners > _MORE_THAN_FILTER * variance or regions.falls_outwards():
            doubt = SIGNAL_OUTSIDE
        else:
            variance, doubt = corners, ""
    if data.fully_sampled:
        above = float(regions.air_above().mean())
        if variance > (1 if doubt else _AGREEMENT) * above > 0:
            variance, doubt = above, ""
    return MeasuredNoise(_positive(variance, data), doubt)


def _positive(variance: float, data: KSpaceData) -> float:
    """A variance of data scaled to a largest modulus of 1 in the data's own units; refused where it is none."""
    estimate = variance * float(np.abs(data.kspace).max()) ** 2
    if not (math.isfinite(estimate) and estimate > 0):
        raise InputError(
            field="noise_variance",
            got="no noise in the outer k-space",
            wanted="measured noise",
            cure="Give noise_variance, or data that were not masked, filtered or simulated without noise.",
        )
    return estimate


@dataclass(frozen=True)
class CoilNoise:
    """A noise covariance over coils measured from k-space, and what was not believed of it.

    Parameters
    ----------
    covariance : complex128 array, shape (coil, coil)
        As of `estimate_noise_covariance`.
    doubt : str
        Why each coil's variance counts alone, in words; empty where the correlations count too.
    """

    covariance: NDArray[np.complex128]
    doubt: str = ""


def estimate_noise_covariance(data: KSpaceData) -> NDArray[np.complex128]:
    r"""Noise covariance over coils, :math:`E[n n^H] / 2`, so that its diagonal is per real component.

    The correlations come from the air beside the object (profiles along the readout, outer three quarters of
    the measured lines, outer eighths of the readout), where a coil sees nothing but noise. The scale is such
    that `estimate_noise_variance` finds 1 in the whitened data: that air is quieter than the middle of the
    image, and coils of unequal noise count alike once they are whitened.

    Where that air holds signal, the correlations are those of the signal, and each coil's variance counts alone
    (`measure_coil_noise` says so).

    Lines with holes have no profiles, and the outermost samples hold signal too, whose correlations would shade the
    image if they were taken for those of noise. There the coils count as equally noisy and independent; noise readouts,
    or a covariance given with the data, do better.

    Parameters
    ----------
    data : KSpaceData
        Fully sampled or undersampled.

    Returns
    -------
    complex128 array, shape (coil, coil)
        Hermitian, positive definite, in units of ``kspace`` squared.

    Raises
    ------
    InputError
        Where there are fewer than four samples per coil, or a coil without noise.
    """
    return measure_coil_noise(data).covariance


def measure_coil_noise(data: KSpaceData) -> CoilNoise:
    """The same with what is to be said about it; parameters and errors are those of `estimate_noise_covariance`.

    Two witnesses are held against each other: the mean square of all samples in the air beside the object, from which
    the covariance comes, and the median over them, which takes no notice of signal in a few. Where they disagree on
    which coils are noisy, or the covariance is `correlated_by_signal`, the medians count and the correlations do not.
    """
    require_instance(KSpaceData, wanted="a KSpaceData, as load_kspace reads it", data=data)
    regions = NoiseRegions.of(data)
    if not regions.has_profiles:
        return CoilNoise(np.eye(data.n_coils, dtype=np.complex128) * estimate_noise_variance(data))
    samples = regions.air_samples()
    n_coils, n_samples = samples.shape
    if n_samples < 4 * n_coils:
        raise InputError(
            field="kspace",
            got=f"{n_samples} noise samples for {n_coils} coils",
            wanted=f"at least {4 * n_coils}",
            cure="Measure more lines, or combine coils first.",
        )
    covariance = samples @ samples.conj().T / (2 * n_samples)
    power = np.linalg.eigvalsh(covariance)
    if not power[0] > 1e-12 * power[-1]:
        raise InputError(
            field="kspace",
            got="coils without noise of their own",
            wanted="independent noise in every coil",
            cure="Remove dead or duplicated coils.",
        )
    medians = regions.air_beside()
    doubt = correlated_by_signal(covariance) or _disagreement(np.diag(covariance).real, medians)
    if doubt and (medians > 0).all():
        covariance = np.diag(medians).astype(np.complex128)
    elif doubt:
        covariance = np.diag(np.diag(covariance))
    whitened = replace(data, kspace=mix_coils(inverse_root(covariance), data.kspace))
    return CoilNoise(np.asarray(covariance * estimate_noise_variance(whitened)), doubt)


def _disagreement(means: NDArray[np.float64], medians: NDArray[np.float64]) -> str:
    """That two measures of the coils' variances differ from coil to coil, in words; empty where they agree."""
    if not (medians > 0).all():
        return "some coils show no noise beside the object"
    ratios = means / medians
    spread = float(ratios.max() / ratios.min())
    return f"mean and median disagree {spread:.1f}-fold on the coils' noise" if spread > _WITNESSES_AGREE else ""
