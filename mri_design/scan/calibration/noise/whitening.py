"""Scans whose coils' noise is made independent (whitening)."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mri_design.calibration.whitening import inverse_root, mix_coils
from mri_design.errors import covariance_matrix, require_instance
from mri_design.scan.calibration.noise.covariance import estimate_noise_covariance
from mri_design.scan.data import WITHOUT_COVARIANCE, KSpaceData, Scan

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
