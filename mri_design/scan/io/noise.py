"""Noise of a receiver's channels from samples without an excitation: of arrays, raw data and streams."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.provenance import NoiseOrigin, NoiseSamples
from mri_design.scan.sampling import require_finite

_MOST_NAMED = 12
SAMPLES_PER_COIL = 4
"""Fewer noise samples than this many times the channels leave a covariance that nothing should be whitened with."""


@dataclass(frozen=True)
class NoiseReadouts:
    """Noise of a receiver's channels, from samples without an excitation.

    Parameters
    ----------
    covariance : complex128 array, shape (channel, channel)
        E[n n^H] / 2 of one sample, in the units of the samples squared.
    samples : int
        How many of each channel it is from.
    dwell : float
        Dwell time, microseconds; 0 where it is not known.
    bandwidth : float, optional
        Relative noise bandwidth of the receiver, where the file says it.
    """

    covariance: NDArray[np.complex128]
    samples: int
    dwell: float = 0.0
    bandwidth: float | None = None


def listed(numbers: NDArray[Any]) -> str:
    """Numbers, one after the other, of many the first twelve."""
    return ", ".join(map(str, numbers[:_MOST_NAMED].tolist())) + (", ..." if numbers.size > _MOST_NAMED else "")


def noise_covariance(readouts: Iterable[NDArray[np.complex64]]) -> tuple[NDArray[np.complex128] | None, int]:
    """Covariance E[n n^H] / 2 over channels, and how many samples of each channel it is from.

    Parameters
    ----------
    readouts : iterable of complex arrays, shape (channel, sample)
        Noise; they may differ in length.

    Returns
    -------
    complex128 array, shape (channel, channel), or None
        Per real component, in the units of the samples squared; None where the samples are too few, or some
        combination of channels holds no noise.
    """
    total, samples = None, 0
    for readout in readouts:
        noise = readout.astype(np.complex128)
        total = noise @ noise.conj().T if total is None else total + noise @ noise.conj().T
        samples += noise.shape[1]
    if total is None or samples < SAMPLES_PER_COIL * len(total):
        return None, samples
    covariance = total / (2 * samples)
    power = np.linalg.eigvalsh(covariance)
    return (covariance if power[0] > 1e-12 * power[-1] else None), samples


def noise_of_samples(field: str, samples: NDArray[Any], channels: int) -> NoiseReadouts:
    """The noise of an array of samples without excitation.

    Parameters
    ----------
    field : str
        The file or argument, for messages.
    samples : complex array
        The coils along the first axis, or along the last where only that has their number.
    channels : int
        Coils of the scan.

    Raises
    ------
    InputError
        For other arrays, samples that are not finite, too few of them, or coils without noise of their own.
    """
    shape = samples.shape
    if samples.ndim > 1 and shape[0] != channels and shape[-1] == channels:
        samples = np.moveaxis(samples, -1, 0)
    by_coil = samples.reshape(1, -1) if channels == 1 else samples
    if not samples.size or len(by_coil) != channels or by_coil.ndim < 2 or samples.dtype.kind != "c":
        wanted = f"complex samples without excitation, ({channels}, sample): one row for each of the scan's coils"
        cure = "Pairs of real numbers are joined by numpy: samples[..., 0] + 1j * samples[..., 1]."
        raise InputError(field, f"{samples.dtype} {shape}", wanted, cure)
    require_finite(field, samples)
    covariance, count = noise_covariance([by_coil.reshape(channels, -1)])
    if covariance is None:
        got = f"{count} samples a coil, which leave noise of {channels} coils undetermined"
        wanted = f"at least {SAMPLES_PER_COIL * channels}, and no coil that is silent or the copy of another"
        cure = "Measure for longer, or leave the noise samples out: noise is estimated from the scan itself then."
        raise InputError(field, got, wanted, cure)
    return NoiseReadouts(covariance, count)


def noise_scale(noise: NDArray[Any], data: NDArray[Any], bandwidth: float | None) -> float:
    """Noise variance of the data over that of the noise readouts.

    White noise has a variance in proportion to the bandwidth, the inverse of the dwell time. The receiver's filter
    takes away some of it where the noise readouts were sampled; ``bandwidth`` is the share that it leaves.

    Parameters
    ----------
    noise, data : float arrays
        Dwell times of the noise readouts and of the data, in any one unit; 0 where the file does not say.
    bandwidth : float, optional
        Relative noise bandwidth of the receiver, 0 to 1.

    Notes
    -----
    Kellman and McVeigh, Magn. Reson. Med. 54 (2005) 1439-1447.
    """
    dwell_noise, dwell_data = float(np.median(noise)), float(np.median(data))
    scale = dwell_noise / dwell_data if dwell_noise > 0 and dwell_data > 0 else 1.0
    return scale if bandwidth is None else scale / bandwidth


def covariance_of_data(
    kept: Iterable[NDArray[np.complex64]],
    channels: NDArray[np.integer],
    dwells: tuple[NDArray[Any], NDArray[Any]],
    *,
    wanted: int,
    bandwidth: float | None,
    repeats: int = 1,
) -> tuple[NDArray[np.complex128] | None, NoiseOrigin]:
    """Noise covariance of the data from noise readouts, of a file or a stream, and what it is from.

    Parameters
    ----------
    kept : iterable of complex arrays, shape (coil, sample)
        Those readouts that have the channels of the data.
    channels : int array, shape (readout,)
        Channels of all noise readouts.
    dwells : tuple of float arrays
        Dwell times of the readouts in ``kept`` and of those of the data, see `noise_scale`.
    wanted : int
        Channels of the data.
    bandwidth : float, optional
        Relative noise bandwidth of the receiver, see `noise_scale`.
    repeats : int
        How many readouts the data are an average of, at least.
    """
    covariance, samples = noise_covariance(kept)
    if covariance is None:
        if (channels == wanted).any():
            return None, NoiseOrigin(measured=NoiseSamples(readouts=len(channels), unused="few samples"))
        numbers = (*map(int, np.unique(channels)), wanted)
        return None, NoiseOrigin(measured=NoiseSamples(readouts=len(channels), unused="channels", channels=numbers))
    told = NoiseSamples(
        readouts=int(np.count_nonzero(channels == wanted)),
        samples=samples,
        dwells=(float(np.median(dwells[0])), float(np.median(dwells[1]))),
        bandwidth=bandwidth,
        averages=repeats,
    )
    scale = noise_scale(*dwells, bandwidth) / repeats
    return covariance * scale, NoiseOrigin(source="readouts", measured=told)
