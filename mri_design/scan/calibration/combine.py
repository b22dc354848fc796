"""One image from many coils: the reference that a fully sampled scan provides."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, require_instance
from mri_design.scan.calibration.centred_fft import to_image
from mri_design.scan.calibration.coil_maps import estimate_coil_maps
from mri_design.scan.data import KSpaceData


def coil_combined(data: KSpaceData) -> NDArray[np.complex64]:
    r"""Image of a fully sampled scan: :math:`\sum_c \bar S_c x_c` over coil images x with unit maps S.

    This is the least-squares image of the SENSE model where the coils' noise is white (`prewhiten`), with the
    same noise variance at every pixel as one sample has. A single coil without maps gives its own image.

    Parameters
    ----------
    data : KSpaceData
        Fully sampled (zero-filled edges are allowed). Maps are estimated where it has none.

    Returns
    -------
    complex64 array, shape (slice, ky, kx)

    Raises
    ------
    InputError
        Where lines or samples are missing, or maps cannot be estimated.
    """
    require_instance(KSpaceData, wanted="a KSpaceData, as load_kspace reads it", data=data)
    if not data.fully_sampled:
        raise InputError(
            field=data.name,
            got=f"a scan that is not fully sampled: {data.missing}",
            wanted="full sampling",
            cure="Combine a fully sampled scan, or reconstruct this one.",
        )
    if data.coil_maps is None:
        if data.n_coils == 1:
            return np.asarray(to_image(data.kspace[:, 0]), dtype=np.complex64)
        data = estimate_coil_maps(data)
    assert data.coil_maps is not None
    combined = np.empty((data.n_slices, *data.grid_shape), np.complex64)
    for index in range(data.n_slices):
        combined[index] = np.sum(data.coil_maps[index].conj() * to_image(data.kspace[index]), axis=0)
    return combined
