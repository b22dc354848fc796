"""Noise of the coils: estimated from the data where nobody measured it, and made independent (whitening)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, covariance_matrix, require_instance
from mri_design.scan.centred_fft import to_image, to_readout_profiles
from mri_design.scan.data import KSpaceData, Scan

_AT_ONCE = 1 << 14


def mix_coils(matrix: NDArray[np.complex128], coils: NDArray[np.complex64]) -> NDArray[np.complex64]:
    """``matrix`` applied over the coil axis of (slice, coil, ...), some samples at a time to bound the memory."""
    mixed = np.empty(coils.shape, coils.dtype)
    flat = mixed.reshape(*coils.shape[:2], -1)
    for index, stack in enumerate(coils.reshape(flat.shape)):
        for start in range(0, flat.shape[-1], _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            flat[index, :, some] = matrix @ stack[:, some]
    return mixed


def inverse_root(covariance: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Hermitian inverse square root of a positive definite matrix."""
    power, directions = np.linalg.eigh(covariance)
    return np.asarray((directions / np.sqrt(power)) @ directions.conj().T)


def image_units(mixing: NDArray[np.complex128], maps: NDArray[np.complex64] | None) -> float | NDArray[np.float32]:
    r"""Factor by pixel that brings images of mixed coils to the units of the coils as they were read.

    Unit maps S of mixed coils leave out how strongly the mixture weighs a pixel: whitened images are as bright as a
    pixel is far above the noise. Coils as read see an image u as :math:`M^{-1} S u`, whose root-sum-of-squares is
    :math:`|M^{-1} S| |u|`. Times that factor, an image is as bright as the root-sum-of-squares of the coil images: no
    covariance shades it.

    Parameters
    ----------
    mixing : complex array, shape (coil, coil)
        M, by which samples as read were multiplied; invertible.
    maps : complex64 array, shape (coil, ky, kx), or None
        S, of unit root-sum-of-squares or zero; None for one coil.

    Returns
    -------
    float or float32 array, shape (ky, kx)
        A number where M is a multiple of the identity. Pixels that no map sees have the mean of the others.
    """
    gain = mixing[0, 0]
    if maps is None or np.array_equal(mixing, gain * np.eye(len(mixing))):
        return float(1 / abs(gain))
    seen = np.linalg.norm(_before_mixing(mixing, maps[np.newaxis])[0], axis=0)
    dark = seen == 0
    return np.asarray(np.where(dark, seen.mean(where=~dark) if not dark.all() else 1.0, seen), dtype=np.float32)


def maps_before_mixing(
    mixing: NDArray[np.complex128] | None, maps: NDArray[np.complex64] | None
) -> NDArray[np.complex64] | None:
    """Coil maps (slice, coil, ...) of the coils from which ``mixing`` (None is the identity) made those of ``maps``.

    Their root-sum-of-squares is 1 at every pixel, and 0 where that of ``maps`` is. None where there are no maps, or
    those of one coil.
    """
    if maps is None or maps.shape[1] == 1:
        return None
    if mixing is None:
        return maps
    seen = _before_mixing(mixing, maps)
    strength = np.linalg.norm(seen.astype(np.complex128), axis=1, keepdims=True)
    return (seen / np.where(strength > 0, strength, 1)).astype(np.complex64)


def _before_mixing(mixing: NDArray[np.complex128], maps: NDArray[np.complex64]) -> NDArray[np.complex64]:
    return mix_coils(np.asarray(np.linalg.inv(mixing), dtype=np.complex128), maps)


AnyScan = TypeVar("AnyScan", bound=Scan)


def prewhiten(data: AnyScan, covariance: NDArray[np.complex128] | None = None) -> AnyScan:
    r"""The same scan with noise that is independent between coils, of variance 1 per real component.

    Every sample is multiplied by :math:`\Psi^{-1/2}`, the Hermitian inverse root of the noise covariance: of
    all whitening matrices the one that changes the coils least, so maps stay as smooth as they were.

    Parameters
    ----------
    data : KSpaceData or TrajectoryData
        Scan with any number of coils.
    covariance : complex array, shape (coil, coil), optional
        :math:`\Psi = E[n n^H] / 2`, Hermitian and positive definite; by default that of the data's noise readouts,
        or `estimate_noise_covariance` of the data where there are none. Samples along a trajectory need one of the two.

    Returns
    -------
    KSpaceData or TrajectoryData
        ``kspace`` in units of the noise's standard deviation, and ``noise_variance`` 1. Coil maps, where
        given, are whitened too and divided by their new root-sum-of-squares :math:`r(x)`; a reference image is
        multiplied by :math:`r(x)`, so that maps times image is still what the coils see. Maps that are zero
        at a pixel stay zero there, and so does the reference. With several coils and no maps the reference
        cannot follow, and is dropped.

    Raises
    ------
    InputError
        On a covariance of another size, that is not Hermitian or not positive definite; and as
        `estimate_noise_covariance`.
    """
    wanted = "a KSpaceData, as load_kspace reads it, or a TrajectoryData"
    require_instance(Scan, wanted=wanted, data=data)
    known = data.noise_covariance if covariance is None else covariance
    if known is None and isinstance(data, KSpaceData):
        root = inverse_root(estimate_noise_covariance(data))
    else:
        root = inverse_root(covariance_matrix("covariance", known, data.n_coils).astype(np.complex128))
    maps, reference = data.coil_maps, data.reference
    if maps is not None:
        seen = mix_coils(root, maps)
        strength = np.linalg.norm(seen, axis=1)
        maps = (seen / np.where(strength > 0, strength, 1)[:, np.newaxis]).astype(np.complex64)
        if reference is not None:
            reference = (reference * strength).astype(np.complex64)
    elif reference is not None:
        single = data.n_coils == 1
        reference = (reference * root[0, 0].real).astype(np.complex64) if single else None
    known_then = {"noise_variance": 1.0, "noise_covariance": None, "coil_maps": maps, "reference": reference}
    return data.transformed(lambda samples: mix_coils(root, samples), **known_then)


_BY_SIGNAL = 0.5
"""Correlation beyond which samples hold signal: which scans had which is in results/reliability/noise-shading.md."""


def largest_correlation(covariance: NDArray[np.complex128]) -> float:
    """Largest modulus of the correlation of two coils, 0 to 1, by their covariance; 0 for one coil."""
    deviations = np.sqrt(np.diag(covariance).real)
    correlations = np.abs(covariance / np.outer(deviations, deviations))
    return float(correlations[~np.eye(len(deviations), dtype=bool)].max(initial=0.0))


def correlated_by_signal(covariance: NDArray[np.complex128]) -> str:
    """Why a covariance that was estimated from a scan is not that of noise alone, in words; empty where it may be.

    Receivers correlate the noise of two coils by less than a half, as a rule; two coils that see the same object
    correlate up to one.

    Parameters
    ----------
    covariance : complex array, shape (coil, coil)
        Hermitian, with a positive diagonal.
    """
    largest = largest_correlation(covariance)
    if largest <= _BY_SIGNAL:
        return ""
    return f"two coils correlate by {largest:.3f}, which is more than {_BY_SIGNAL:g}, as signal does"


def each_coil_alone(doubt: str) -> str:
    """The end of a sentence on where noise is from: that correlations do not count, and why."""
    return f"each coil's variance alone because {doubt}"


ROUNDING = 2.0**-24
"""Relative rounding of a number in single precision."""
MOST_SIGNAL_TO_NOISE = 1000.0
"""Largest signal over noise of scans that are solved by iterations alone; see results/reliability/little-noise.md."""


def least_noise(kspace: NDArray[Any], pixels: int, *, direct: bool) -> tuple[float, str]:
    """Least variance per real component, and why it cannot be less, in words.

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
        return rounding, "samples in single precision carry no less beside the largest of them"
    energies = [float(np.sum(np.abs(one) ** 2, dtype=np.float64)) for one in kspace]
    limited = max(energies) / pixels / MOST_SIGNAL_TO_NOISE**2
    why = "several coils, or samples along a trajectory, are not solved to less, nor coil maps known well enough"
    return max(rounding, limited), why


# The median of |n|^2 over circular complex Gaussians of variance v per real component is 2 v log 2.
_MEDIAN_OF_POWER = 2 * math.log(2)
_ERROR_OF_MEDIAN = 1 / math.log(2)  # relative standard error of that median, times the root of the number of samples
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
FALLING = 1.35
"""Ratio from which on k-space falls outwards: more than receivers' filters make of noise."""


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
        return loud > max(FALLING, 1 + 3 * _ERROR_OF_MEDIAN * math.sqrt(2 / samples)) * quiet > 0

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
        positions = _ends(np.arange(self.kspace.shape[-1]), 8)
        samples = to_readout_profiles(self.kspace[:, :, outer])[..., positions] / math.sqrt(self._readout_share)
        return np.moveaxis(samples, 1, 0).reshape(samples.shape[1], -1).astype(np.complex128)

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
    """Noise variance, and doubts about it; parameters and errors are those of `estimate_noise_variance`."""
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
    """A noise covariance over coils measured from k-space, and the part of it that was not trusted.

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
    """Noise covariance, and doubts about it; parameters and errors are those of `estimate_noise_covariance`.

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
    """Say that two measures of the coils' variances differ from coil to coil, in words; empty where they agree."""
    if not (medians > 0).all():
        return "some coils show no noise beside the object"
    ratios = means / medians
    spread = float(ratios.max() / ratios.min())
    return f"mean and median disagree {spread:.1f}-fold on the coils' noise" if spread > _WITNESSES_AGREE else ""


def noise_of_slice(data: KSpaceData) -> tuple[CoilNoise, str]:
    """Noise covariance of one slice, of one coil as well, and why it may be too large, in words.

    Raises
    ------
    InputError
        As `estimate_noise_covariance`.
    """
    measured = measure_noise(data)
    if data.n_coils == 1:
        return CoilNoise(np.full((1, 1), measured.variance, np.complex128)), measured.doubt
    coils = measure_coil_noise(data)
    return coils, measured.doubt or coils.doubt


def median_noise(found: Sequence[tuple[CoilNoise, str]]) -> tuple[CoilNoise, str]:
    """The noise of a volume, whose slices have the scanner's alike: that of the slice in the middle, by its strength.

    Slices whose noise is doubted have no say where others are not; where all are, the quietest counts, because signal
    is what makes an estimate too large.

    Parameters
    ----------
    found : sequence of (CoilNoise, str)
        `noise_of_slice` of some slices, one at least.
    """
    ranked = sorted(found, key=lambda one: float(np.trace(one[0].covariance).real))
    trusted = [one for one in ranked if not one[1]]
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
