"""Noise variance and covariance over coils, measured from the scan itself."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, require_instance
from mri_design.scan.calibration.noise.image_air import ImageAir
from mri_design.scan.calibration.noise.regions import NoiseRegions
from mri_design.scan.calibration.noise.witnesses import Testimony, Witness, testimony
from mri_design.scan.data import KSpaceData

_BY_SIGNAL = 0.6
"""Correlation beyond which samples hold signal: which scans had which is in results/coils/noise.md."""
_SAMPLES_PER_COIL = 4
LINES_FOR_AIR = 0.5
"""Share of the grid's lines from which on a block of them shows air in the image: the edges of a smaller one make the
object ring all over it (results/coils/noise.md)."""
_BEYOND_MOST = 6.0
_KEPT = 64
"""Estimates that are remembered, those of the slices of a volume among them."""
MEASURED: dict[bytes, MeasuredNoise] = {}
OUTERMOST = "the outermost eighth of the measured samples"


@dataclass(frozen=True)
class MeasuredNoise:
    """A noise covariance over coils measured from k-space, what it rests on, and doubts about it.

    Parameters
    ----------
    covariance : complex128 array, shape (coil, coil)
        E[n n^H] / 2, in units of ``kspace`` squared.
    heard : Testimony
        Which witness the variances are from, and what the others say, in units of ``kspace`` squared.
    correlations : str
        What of the correlations between coils counts and why, in words; empty for one coil.
    alone : bool
        Whether each coil's variance counts alone because correlations are those of signal.
    """

    covariance: NDArray[np.complex128]
    heard: Testimony
    correlations: str = ""
    alone: bool = False

    @property
    def variance(self) -> float:
        """Mean variance of the coils."""
        return float(np.diag(self.covariance).real.mean())

    def scaled(self, factor: float) -> MeasuredNoise:
        """The same in other units, variances times ``factor``."""
        return replace(self, covariance=self.covariance * factor, heard=self.heard.scaled(factor))

    def overruled(self, variance: float) -> tuple[str, str]:
        """What all places say beside a variance that is given, as `text`; and why they contradict it, or nothing."""
        heard, doubt = self.heard.overruled(variance)
        return f"sd per real component: {heard.text}", doubt

    @property
    def doubt(self) -> str:
        """Why the variances may be wrong, and between what, in words; empty where nothing says so."""
        return self.heard.doubt

    @property
    def source(self) -> str:
        """Where the noise is from, in words, as it follows on "estimated from the data"."""
        return f"by {self.heard.spoke.name}" + (f", {self.correlations}" if self.alone else "")

    @property
    def text(self) -> str:
        """Standard deviations of all witnesses, and what of the correlations counts."""
        told = f"sd per real component: {self.heard.text}"
        return f"{told}; {self.correlations}" if self.correlations else told


def estimate_noise_variance(data: KSpaceData) -> float:
    r"""Noise variance per real component, from what k-space holds besides the object.

    Differences of repeats, air in the image, air beside the object along the readout and the ends of k-space are held
    against each other, and one of them counts (`witnesses`). All are medians of :math:`|.|^2`; exact zeros are no
    samples. Lines with holes have no profiles: there the outermost eighth of the measured samples counts, signal in it
    included.

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
    results/coils/noise.md has every witness of many scans, and results/benchmarks/measured-once.md the accuracy on
    simulated scans and with few lines; results/benchmarks/unknown-noise.md what it does to images.
    """
    regions, heard, _ = _hear(data)
    return heard.spoke.mean * regions.peak**2


def estimate_noise_covariance(data: KSpaceData) -> NDArray[np.complex128]:
    r"""Noise covariance over coils, :math:`E[n n^H] / 2`, so that its diagonal is per real component.

    The variances are those of `estimate_noise_variance`, coil by coil. The correlations are those of the air beside the
    object, shrunk by how well another witness agrees (`measure_noise`).

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
        Where there are fewer than four samples per coil, or a coil repeats another one.
    """
    return measure_noise(data).covariance


def measure_noise(data: KSpaceData) -> MeasuredNoise:
    r"""Noise covariance of one coil or several, what it rests on, and doubts about it; errors are those of the above.

    Two witnesses have their correlations held against each other, :math:`R_1` being the one whose coils correlate less:
    the covariance is shrunk towards its diagonal by :math:`\lambda = \mathrm{Re}\langle R_1, R_2\rangle / |R_1|^2`
    off the diagonal, from 0 to 1. That is how much of the first the second repeats: by chance alone it would be 0.
    Where the first are `correlated_by_signal`, correlations do not count at all. Coils that measured nothing have the
    others' median noise and take no part.

    The last estimates are remembered by the contents of their scans: what checks coil maps, what holds a given noise
    against the scan and what whitens the coils ask for the same one.
    """
    require_instance(KSpaceData, wanted="a KSpaceData, as load_kspace reads it", data=data)
    key = _contents(data)
    if key not in MEASURED:
        measured = _measured(data)
        while len(MEASURED) >= _KEPT:
            del MEASURED[next(iter(MEASURED))]
        MEASURED[key] = measured
    return MEASURED[key]


def _contents(data: KSpaceData) -> bytes:
    """Checksum of all that an estimate of the noise looks at, in a hundredth of the time that the estimate takes."""
    arrays = [data.kspace, data.measured, *([] if data.repeat is None else [data.repeat])]
    checksum = hashlib.blake2b(repr([array.shape for array in arrays]).encode())
    for array in arrays:
        checksum.update(np.ascontiguousarray(array).data)
    return checksum.digest()


def _measured(data: KSpaceData) -> MeasuredNoise:
    """`measure_noise`, anew."""
    regions, heard, air = _hear(data)
    heard = heard.scaled(regions.peak**2)
    count, live = data.n_coils, regions.live
    variances = np.full(count, np.median(heard.spoke.variances))
    variances[live] = heard.spoke.variances
    correlations, said, alone = np.eye(count, dtype=np.complex128), "", False
    if len(live) > 1 and regions.has_profiles:
        found, said, alone = _correlations_that_count(regions, air)
        correlations[np.ix_(live, live)] = found
    elif len(live) > 1:
        said = "coils count as equally noisy and independent"
    deviations = np.sqrt(variances)
    return MeasuredNoise(correlations * np.outer(deviations, deviations), heard, said, alone)


def _correlations_that_count(regions: NoiseRegions, air: ImageAir | None) -> tuple[NDArray[np.complex128], str, bool]:
    """Correlations of the coils, what of those found counts in words, and whether none does because of signal.

    Raises
    ------
    InputError
        Where there are fewer than four samples per coil, or a coil repeats another one.
    """
    refuse_copies(regions.kspace, regions.live)
    n_coils = len(regions.live)
    beside, other = regions.samples_beside(), regions.samples_of_corners() if air is None else air.samples
    if beside.shape[1] < _SAMPLES_PER_COIL * n_coils:
        raise InputError(
            field="kspace",
            got=f"{beside.shape[1]} noise samples for {n_coils} coils",
            wanted=f"at least {_SAMPLES_PER_COIL * n_coils}",
            cure="Measure more lines, or combine coils first.",
        )
    first, second = sorted((_correlations(beside), _correlations(other)), key=_size)
    doubt = correlated_by_signal(first)
    share = 0.0 if doubt else _agreement(first, second)
    shrunk = share * first
    np.fill_diagonal(shrunk, 1)
    return shrunk, each_coil_alone(doubt) if doubt else f"correlations of coils count by {share:.2f}", bool(doubt)


def _hear(data: KSpaceData) -> tuple[NoiseRegions, Testimony, ImageAir | None]:
    """The places of a scan, the witnesses in their units, and the air in the image of a complete scan."""
    require_instance(KSpaceData, wanted="a KSpaceData, as load_kspace reads it", data=data)
    regions = NoiseRegions.of(data)
    if not regions.has_profiles:
        outermost = np.full(len(regions.live), regions.rim().mean())
        return regions, _positive(Testimony(Witness(OUTERMOST, outermost))), None
    air = ImageAir.of(regions) if data.fully_sampled and data.measured.mean() >= LINES_FOR_AIR else None
    return regions, _positive(testimony(data, regions, air)), air


def _positive(heard: Testimony) -> Testimony:
    """What was heard, refused where it is no noise; coils that show none have the median of the others."""
    variances = heard.spoke.variances
    found = variances[variances > 0]
    if not (found.size and np.isfinite(variances).all()):
        raise InputError(
            field="noise_variance",
            got="no noise in the outer k-space",
            wanted="measured noise",
            cure="Give noise_variance, or data that were not masked, filtered or simulated without noise.",
        )
    filled = np.where(variances > 0, variances, np.median(found))
    return replace(heard, spoke=Witness(heard.spoke.name, filled))


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


def _apart(correlations: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Correlations of different coils, in a row."""
    return np.asarray(correlations[~np.eye(len(correlations), dtype=bool)])


def _size(correlations: NDArray[np.complex128]) -> float:
    return float(np.linalg.norm(_apart(correlations)))


def _agreement(first: NDArray[np.complex128], second: NDArray[np.complex128]) -> float:
    """How much of the first correlations the second repeat, 0 to 1."""
    one, two = _apart(first), _apart(second)
    size = float(np.vdot(one, one).real)
    return float(np.clip(np.vdot(one, two).real / size, 0, 1)) if size > 0 else 0.0


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
            raise InputError(
                field="kspace",
                got=f"coil {numbers[second]}, which measured the same as coil {numbers[first]}",
                wanted="noise of its own in every coil",
                cure="Remove dead or duplicated coils.",
            )


def largest_correlation(covariance: NDArray[np.complex128]) -> float:
    """Largest modulus of the correlation of two coils, 0 to 1, by their covariance; 0 for one coil."""
    deviations = np.sqrt(np.diag(covariance).real)
    correlations = np.abs(covariance / np.outer(deviations, deviations))
    return float(correlations[~np.eye(len(deviations), dtype=bool)].max(initial=0.0))


def correlated_by_signal(covariance: NDArray[np.complex128]) -> str:
    """Why a covariance that was estimated from a scan is not that of noise alone, in words; empty where it may be.

    Receivers correlate the noise of two coils by a half at most, as a rule; two coils that see the same object
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
