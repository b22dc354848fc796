"""Noise of the coils made independent (whitening), and images of white coils in the units of the coils as read."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import covariance_matrix, require_instance
from mri_design.scan.calibration.noise.covariance import estimate_noise_covariance
from mri_design.scan.data import WITHOUT_COVARIANCE, KSpaceData, Scan

_AT_ONCE = 1 << 14


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
    field, known, cure = "covariance", covariance, ""
    if covariance is None and data.noise_covariance is not None:
        field, known, cure = "noise_covariance", data.noise_covariance, WITHOUT_COVARIANCE
    elif covariance is None and isinstance(data, KSpaceData):
        known = estimate_noise_covariance(data)
    root = inverse_root(covariance_matrix(field, known, data.n_coils, cure=cure).astype(np.complex128))
    return replace(mixed_coils(data, root), noise_variance=1.0, noise_covariance=None)


def mixed_coils(data: AnyScan, matrix: NDArray[np.complex128]) -> AnyScan:
    """A scan whose coils are combined by ``matrix`` (coils then, coils), with its maps and reference.

    See `prewhiten` for what becomes of these; what is known of the noise stays as it is.
    """
    maps, reference = data.coil_maps, data.reference
    if maps is not None:
        seen = mix_coils(matrix, maps)
        strength = np.linalg.norm(seen, axis=1)
        maps = (seen / np.where(strength > 0, strength, 1)[:, np.newaxis]).astype(np.complex64)
        if reference is not None:
            reference = (reference * strength).astype(np.complex64)
    elif reference is not None:
        single = data.n_coils == 1
        reference = (reference * matrix[0, 0].real).astype(np.complex64) if single else None
    return data.transformed(lambda samples: mix_coils(matrix, samples), coil_maps=maps, reference=reference)
