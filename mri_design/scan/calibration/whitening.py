"""Coils made independent: the same scan in virtual coils whose noise is white and of variance one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import covariance_matrix, require_instance
from mri_design.scan.calibration.coil_mixing import inverse_root, mix_coils
from mri_design.scan.calibration.noise import estimate_noise_covariance
from mri_design.scan.data import KSpaceData
from mri_design.scan.trajectory_data import TrajectoryData

Scan = TypeVar("Scan", KSpaceData, TrajectoryData)


def prewhiten(data: Scan, covariance: NDArray[np.complex128] | None = None) -> Scan:
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
    require_instance((KSpaceData, TrajectoryData), wanted=wanted, data=data)
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
    mixed: dict[str, Any] = {"kspace": mix_coils(root, data.kspace), "coil_maps": maps, "reference": reference}
    if isinstance(data, KSpaceData) and data.calibration is not None:
        mixed["calibration"] = mix_coils(root, data.calibration)
    return replace(data, noise_variance=1.0, noise_covariance=None, **mixed)
