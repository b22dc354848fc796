"""Coils that are mixed: made of independent noise (whitening), combined into fewer; and images in the units as read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.calibration.centre import central, measured_samples
from mri_design.calibration.espirit import coil_directions
from mri_design.errors import InputError, require_counts

_AT_ONCE = 1 << 14
_COLUMNS = 32


def mix_coils(matrix: NDArray[np.complex128], coils: NDArray[np.complex64]) -> NDArray[np.complex64]:
    """``matrix`` (coils then, coils) applied over the coil axis of (slice, coil, ...), some samples at a time."""
    mixed = np.empty((len(coils), len(matrix), *coils.shape[2:]), coils.dtype)
    flat = mixed.reshape(*mixed.shape[:2], -1)
    for index, stack in enumerate(coils.reshape(*coils.shape[:2], -1)):
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
    mixing : complex array, shape (coils then, coil)
        M, by which samples as read were multiplied; invertible, or of full rank where coils were compressed.
    maps : complex64 array, shape (coil, ky, kx), or None
        S, of unit root-sum-of-squares or zero; None for one coil.

    Returns
    -------
    float or float32 array, shape (ky, kx)
        A number where M is a multiple of the identity. Pixels that no map sees have the mean of the others.
    """
    gain = mixing[0, 0]
    if maps is None or np.array_equal(mixing, gain * np.eye(*mixing.shape)):
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


def back_from(mixing: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """What takes mixed coils back to those that were read; of compressed coils as far as these hold them."""
    square = mixing.shape[0] == mixing.shape[1]
    return np.asarray(np.linalg.inv(mixing) if square else np.linalg.pinv(mixing), dtype=np.complex128)


def _before_mixing(mixing: NDArray[np.complex128], maps: NDArray[np.complex64]) -> NDArray[np.complex64]:
    return mix_coils(back_from(mixing), maps)


@dataclass(frozen=True)
class Compression:
    """What combines coils into virtual ones.

    Parameters
    ----------
    matrix : complex array, shape (virtual, coil)
        Orthonormal rows, the strongest virtual coil first: white coils stay white.
    lost : float
        Share of the energy of the centre of k-space that the virtual coils do not hold, 0 to 1.
    """

    matrix: NDArray[np.complex128]
    lost: float

    def directions(self, directions: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """`coil_directions` of all coils as directions of virtual coils, the first one as it is seen there."""
        orthonormal, triangle = np.linalg.qr(self.matrix @ directions[:, : len(self.matrix)])
        along, size = np.diagonal(triangle), np.abs(np.diagonal(triangle))
        return np.asarray(orthonormal * np.where(size > 0, along / np.where(size > 0, size, 1), 1))


def compression(kspace: NDArray[np.complex64], count: int, width: int) -> Compression:
    """The ``count`` directions of coil space in which the centre of k-space has most energy.

    Of one position of a 3-D scan they are those of that position (geometric compression), which hold more of it than
    those of the volume would.

    Parameters
    ----------
    kspace : complex64 array, shape (slice, coil, ky, kx)
        Of white coils; slices are compressed alike. Only measured samples are looked at.
    count : int
        Virtual coils, at most as many as there are coils.
    width : int
        Central lines that are looked at, and as many samples of each, or 32 if these are more.

    Raises
    ------
    InputError
        Where there are fewer coils, or the centre holds no signal.

    Notes
    -----
    M. Buehrer et al., "Array compression for MRI with large coil arrays", Magn. Reson. Med. 57 (2007) 1131-1139;
    T. Zhang et al., "Coil compression for accelerated imaging with Cartesian sampling", Magn. Reson. Med. 69 (2013)
    571-582.
    """
    n_coils, rows, columns = kspace.shape[1:]
    require_counts(least=1, most=n_coils, **{"virtual coils": count})
    energies = np.zeros((n_coils, n_coils), np.complex128)
    inside = np.zeros((rows, columns), dtype=bool)
    central(inside, max(width, _COLUMNS))[:] = True
    inside[: rows // 2 - width // 2] = inside[rows // 2 + (width + 1) // 2 :] = False
    for stack in kspace:
        samples = stack[:, inside & measured_samples(stack)].astype(np.complex128)
        energies += samples @ samples.conj().T
    total = float(np.trace(energies).real)
    if not total > 0:
        raise InputError(field="kspace", got="no signal in the central lines", wanted="signal to combine coils by")
    matrix = coil_directions(energies)[:, :count].conj().T
    kept = float(np.trace(matrix @ energies @ matrix.conj().T).real)
    return Compression(np.asarray(matrix), max(0.0, 1 - kept / total))
