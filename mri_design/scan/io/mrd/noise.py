"""The noise of a raw-data file's data, from the readouts that the scanner measured without a signal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.scan.io.mrd.acquisitions import Acquisitions, kept_samples

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


def noise_of_data(
    acquisitions: Acquisitions,
    noise: NDArray[np.intp],
    data: Sequence[int],
    coils: NDArray[np.intp],
    *,
    bandwidth: float | None,
    repeats: int,
) -> tuple[NDArray[np.complex128] | None, dict[str, str]]:
    """Noise covariance of the data from the noise readouts, where there are any, and notes for the card.

    Parameters
    ----------
    acquisitions : Acquisitions
        Of the open file.
    noise : int array, shape (acquisition,)
        Positions of the noise readouts.
    data : sequence of int
        Positions of the readouts of the image.
    coils : int array, shape (coil,)
        Channels that are read.
    bandwidth : float, optional
        Relative noise bandwidth of the receiver, see `noise_scale`.
    repeats : int
        How many readouts the data are an average of, at least.
    """
    if not len(noise):
        return None, {}
    heads = acquisitions.heads
    alike = noise[heads["active_channels"][noise] == heads["active_channels"][data[0]]]
    kept = (kept_samples(heads[at], samples)[coils] for at, samples in acquisitions.samples(alike.tolist()))
    covariance, samples = noise_covariance(kept)
    if covariance is None:
        why = "too few samples" if len(alike) else "other channels than the data"
        return None, {"noise_readouts": f"{len(noise)}, not used: {why}"}
    dwell = heads["sample_time_us"]
    scale, reason = noise_scale(dwell[alike], dwell[data], bandwidth)
    if repeats > 1:
        reason += f", {repeats} averages"
    return covariance * scale / repeats, {"noise_readouts": f"{len(alike)}, {samples} samples a channel; {reason}"}
