"""Stored numbers become complex64 k-space in this package's order of axes; coils that hold nothing are left out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.calibration.centre import ROUND_OFF
from mri_design.errors import InputError
from mri_design.scan.sampling import require_finite


def working_coils(kspace: NDArray[np.complex64]) -> tuple[NDArray[np.intp], dict[str, str]]:
    """Coils that hold samples of their own, and notes on the others for the header.

    With a coil whose samples are all zero, or one that repeats another's, the covariance of the coils' noise could not
    be inverted.

    Parameters
    ----------
    kspace : complex64 array, shape (slice, coil, ...)
        As measured.

    Returns
    -------
    int array, shape (working coil,)
        In their order; all of them where every coil is zero, which is for others to refuse.
    dict of str to str
        Which coils were dropped and why; empty where none was.
    """
    sums = [complex(kspace[:, coil].sum(dtype=np.complex128)) for coil in range(kspace.shape[1])]
    kept, dead, copies = list[int](), list[int](), list[str]()
    for coil, total in enumerate(sums):
        samples = kspace[:, coil]
        if not samples.any():
            dead.append(coil)
            continue
        alike = (other for other in kept if sums[other] == total and np.array_equal(kspace[:, other], samples))
        original = next(alike, None)
        if original is None:
            kept.append(coil)
        else:
            copies.append(f"{coil} repeats coil {original}")
    if not kept:
        return np.arange(kspace.shape[1]), {}
    reasons = [f"{coil} holds zeros only" for coil in dead] + copies
    return np.array(kept), {"coils_dropped": f"coil {'; coil '.join(reasons)}"} if reasons else {}


def only_coils(kspace: NDArray[np.complex64], coils: NDArray[np.intp]) -> NDArray[np.complex64]:
    """Some coils of (slice, coil, ...); the array itself, not a copy, where these are all."""
    return kspace if len(coils) == kspace.shape[1] else kspace[:, coils]


def readout_positions(volume: NDArray[np.complex64]) -> NDArray[np.complex64]:
    """A volume's k-space (kx, coil, ky, kz) as one plane per readout position, (x, coil, ky, kz): inverse FFT along kx.

    Centred and orthonormal, so that white noise keeps its variance. Readouts that were not measured stay zero.

    Raises
    ------
    InputError
        For samples whose sums single precision does not hold.
    """
    with within_single_precision("kspace") as sums:
        spread = np.fft.ifftshift(volume, axes=0)
        sums.append(np.ascontiguousarray(np.fft.fftshift(np.fft.ifft(spread, axis=0, norm="ortho"), axes=0)))
    return sums[0]


@contextmanager
def within_single_precision(field: str) -> Iterator[list[NDArray[np.complex64]]]:
    """Let arrays be computed from samples as large as a damaged file may have them, without a warning of NumPy.

    Yields
    ------
    list
        For the results, which are looked at when nothing more is computed.

    Raises
    ------
    InputError
        Where a result is beyond single precision.
    """
    results = list[NDArray[np.complex64]]()
    with np.errstate(over="ignore", invalid="ignore"):
        yield results
    for result in results:
        _refuse_overflow(field, result)


def readouts_of_positions(planes: NDArray[np.complex64]) -> NDArray[np.complex64]:
    """The k-space (kx, coil, ky, kz) whose `readout_positions` are these planes (x, coil, ky, kz); one stays itself."""
    spread = np.fft.ifftshift(planes, axes=0)
    return np.fft.fftshift(np.fft.fft(spread, axis=0, norm="ortho"), axes=0).astype(np.complex64)


def volume_note(count: int, plane: tuple[int, ...]) -> str:
    """Note for the header of a volume: so many planes of a shape (ky, kz), as of `readout_positions`."""
    positions = "1 readout position," if count == 1 else f"{count} readout positions, each"
    return f"{positions} a plane (ky, kz) of {plane}"


def is_pair(dtype: np.dtype[Any]) -> bool:
    """Whether numbers are structures of one real and one imaginary field, as HDF5 has complex numbers."""
    names = dtype.names
    return names is not None and len(names) == 2 and names[0].startswith("r") and names[1].startswith("i")


def to_complex64(field: str, samples: NDArray[Any]) -> NDArray[np.complex64]:
    """Complex samples of any precision as complex64, contiguous.

    Parameters
    ----------
    field : str
        File and field, for the message.
    samples : complex array, or structured array with one real and one imaginary field

    Raises
    ------
    InputError
        On samples that are not complex, on NaN or infinities, and on values complex64 cannot hold.
    """
    if (pair := samples.dtype.names) is not None and is_pair(samples.dtype):
        for part in pair:
            require_finite(field, samples[part])
        joined = np.empty(samples.shape, np.complex64)
        with np.errstate(over="ignore"):
            joined.real, joined.imag = samples[pair[0]], samples[pair[1]]
    elif samples.dtype.kind == "c":
        require_finite(field, samples)
        with np.errstate(over="ignore"):
            joined = np.ascontiguousarray(samples, dtype=np.complex64)
    else:
        raise InputError(field=field, got=f"dtype {samples.dtype}", wanted="complex samples")
    _refuse_overflow(field, joined)
    return joined


def to_float32(field: str, pixels: NDArray[Any]) -> NDArray[np.float32]:
    """Real pixels of any integer or floating type as float32, contiguous.

    Raises
    ------
    InputError
        On flags, text, complex numbers, NaN, infinities, and values float32 cannot hold.
    """
    if pixels.dtype.kind not in "iuf":
        raise InputError(field=field, got=f"dtype {pixels.dtype}", wanted="real numbers")
    require_finite(field, pixels)
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(pixels, dtype=np.float32)
    _refuse_overflow(field, single)
    return single


def measured_lines(
    field: str, kspace: NDArray[np.complex64], declared: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """Which phase-encode lines were really acquired; the others are set to exact zeros in place.

    A line was not acquired where it is zero over all slices, coils and readout samples: exactly, or down to
    1e-10 of the strongest sample, the round-off of zero-filling done in another domain.

    Parameters
    ----------
    field : str
        File and field that declared the lines, for the message.
    kspace : complex64 array, shape (slice, coil, ky, kx)
    declared : bool array, shape (ky,), optional
        Lines that the file says were acquired.

    Returns
    -------
    bool array, shape (ky,)

    Raises
    ------
    InputError
        Where a line declared as not acquired holds samples.
    """
    # slice by slice: the moduli of a whole scan would take as much memory as the scan
    parts = [np.maximum(np.abs(part.real), np.abs(part.imag)).max(axis=(0, 2)) for part in kspace]
    peaks = np.max(parts, axis=0)
    measured: NDArray[np.bool_] = peaks > ROUND_OFF * peaks.max()
    if declared is not None:
        contradicted = np.flatnonzero(measured & ~declared)
        if contradicted.size:
            raise InputError(
                field=field,
                got=f"line {int(contradicted[0])} marked as not measured, holding samples "
                f"({contradicted.size} such lines)",
                wanted="zeros in every line that was not measured",
                cure="Correct the list of lines, or set those samples to zero.",
            )
    kspace[:, :, ~measured] = 0
    return measured


def _refuse_overflow(field: str, array: NDArray[Any]) -> None:
    if not np.isfinite(array).all():
        raise InputError(
            field=field,
            got="samples beyond 3.4e38",
            wanted="values that single precision holds",
            cure="Scale the data down.",
        )
