"""The noise of a raw-data file's data, from the readouts that the scanner measured without a signal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["noise_covariance", "noise_scale"]

_SAMPLES_PER_COIL = 4
"""Fewer noise samples than this many times the channels leave a covariance that nothing should be whitened with."""


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
    if total is None or samples < _SAMPLES_PER_COIL * len(total):
        return None, samples
    covariance = total / (2 * samples)
    power = np.linalg.eigvalsh(covariance)
    return (covariance if power[0] > 1e-12 * power[-1] else None), samples


def noise_scale(noise: NDArray[Any], data: NDArray[Any], bandwidth: float | None) -> tuple[float, str]:
    """Noise variance of the data over that of the noise readouts, and why, in words.

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
    scale, reasons = 1.0, []
    dwell_noise, dwell_data = float(np.median(noise)), float(np.median(data))
    if dwell_noise > 0 and dwell_data > 0:
        scale *= dwell_noise / dwell_data
        reasons.append(f"dwell time {dwell_noise:g} against {dwell_data:g} us")
    else:
        reasons.append("dwell times not in the file and taken as equal")
    if bandwidth is not None:
        scale /= bandwidth
        reasons.append(f"relative receiver noise bandwidth {bandwidth:g}")
    return scale, ", ".join(reasons)
