"""Samples that no receiver can have measured: strongest and ordinary ones too far apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError

# A receiver digitises 16 to 24 bits, 1.7e7 between the strongest and the weakest number. Averages and Fourier
# transforms add up to a million of them: signal grows by as much, noise by the root, so that samples with noise in them
# stay within some 1e10. Without noise, as of a simulation, they fall to the round-off of double precision, 1e-17 of the
# strongest.
_WITH_NOISE = 1e10
_WITHOUT_NOISE = 1e20
_ALONE = 0.03
"""Share of samples that may be so much stronger than all their neighbours. Without noise, samples on lines through the
centre of k-space are stronger than most others, but not than their neighbours on the line."""
_CURE = "The file may hold memory that was never filled, or damaged numbers: export the data again."


def refused_samples(kspace: NDArray[Any]) -> str:
    """Describe samples that `require_dynamic_range` refuses, in sentences that begin "up to"; empty for all others.

    Parameters
    ----------
    kspace : complex array, shape (slice, coil, ky, kx) or (slice, coil, sample)
        As read: the numbers are those of the file.
    """
    found = _beyond_receivers(kspace)
    return found and f"{found}: nothing that a receiver measures. recon and design refuse them. {_CURE}"


def require_dynamic_range(kspace: NDArray[Any], name: str = "kspace") -> None:
    """Refuse samples of which some are beyond all others by more than a receiver can measure.

    Files hold such samples where memory was written that nobody had filled, or where bits flipped. Exact zeros are no
    samples. The scale does not matter: all samples may be very large, or very small.

    Parameters
    ----------
    kspace : complex array, shape (slice, coil, ky, kx) or (slice, coil, sample)
        On a grid, neighbours are those along both of its axes; else those before and after in the readout.
    name : str
        Of the field, for the message.

    Raises
    ------
    InputError
        Where the strongest sample is beyond 1e20 times the median, or where more than 3 % are beyond 1e10 times the
        median and as far beyond every neighbour of theirs. The message has the numbers.
    """
    found = _beyond_receivers(kspace)
    if found:
        raise InputError(
            field=name,
            got=f"samples {found}",
            wanted="the dynamic range of a receiver: the samples of a 24-bit receiver, even summed over a million "
            "averages, stay within 1e10 times their median",
            cure=_CURE,
        )


def _beyond_receivers(kspace: NDArray[Any]) -> str:
    """How far samples are beyond all others, in words; empty where a receiver can have measured them."""
    size = np.maximum(np.abs(kspace.real), np.abs(kspace.imag))  # a modulus could overflow
    measured = size[size > 0]
    if not measured.size:
        return ""
    median, strongest = float(np.median(measured)), float(measured.max())
    if strongest <= _WITH_NOISE * median:
        return ""
    beyond = measured / np.float64(median) > _WITH_NOISE
    if strongest <= _WITHOUT_NOISE * median and _alone(size, median) <= _ALONE * measured.size:
        return ""
    return (
        f"up to {strongest:.2g}, {_in_powers(strongest, median)} times their median of {median:.2g}, and "
        f"{beyond.mean():.2%} of them beyond 1e10 times the median"
    )


def _in_powers(strongest: float, median: float) -> str:
    """The ratio as a power of ten: it may be beyond double precision."""
    return f"1e{math.log10(strongest) - math.log10(median):.0f}"


def _alone(size: NDArray[Any], median: float) -> int:
    """How many samples are beyond 1e10 times the median and every neighbour."""
    neighbour = np.zeros_like(size)
    for axis in (-2, -1) if size.ndim > 3 else (-1,):
        along, near = np.moveaxis(size, axis, -1), np.moveaxis(neighbour, axis, -1)
        np.maximum(near[..., 1:], along[..., :-1], out=near[..., 1:])
        np.maximum(near[..., :-1], along[..., 1:], out=near[..., :-1])
    limit = np.maximum(neighbour.astype(np.float64), median) * _WITH_NOISE
    return int(np.count_nonzero(size > limit))
