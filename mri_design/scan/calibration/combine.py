"""One image from many coils: the reference that a fully sampled scan provides."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, require_instance
from mri_design.scan.calibration.centred_fft import to_image
from mri_design.scan.calibration.coil_maps import estimate_coil_maps
from mri_design.scan.data import KSpaceData

__all__ = ["coil_combined", "explained_by_maps"]

_LOW_RESOLUTION = 16


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


def explained_by_maps(data: KSpaceData) -> float:
    r"""Share of the energy of low-resolution coil images x that coil maps S explain, 0 to 1: :math:`S S^H x`.

    Pixels where the maps are empty do not count.

    The right maps explain nearly all of it. Maps of other coils, or with rows and columns exchanged, explain little
    more than one part in as many as there are coils.

    Parameters
    ----------
    data : KSpaceData
        With coil maps.

    Raises
    ------
    InputError
        Without coil maps.
    """
    if data.coil_maps is None:
        raise InputError(field="coil_maps", got="none", wanted="coil maps to judge")
    rows, columns = data.grid_shape
    centre = np.zeros(data.grid_shape, dtype=bool)
    height, width = max(1, rows // _LOW_RESOLUTION), max(1, columns // _LOW_RESOLUTION)
    centre[rows // 2 - height : rows // 2 + height + 1, columns // 2 - width : columns // 2 + width + 1] = True
    explained = total = 0.0
    for stack, maps in zip(data.kspace, data.coil_maps, strict=True):
        images = to_image(np.where(centre, stack, 0) / (np.abs(stack).max() or 1))
        combined = np.sum(maps.conj() * images, axis=0)
        strength = np.sum(np.abs(maps) ** 2, axis=0)
        explained += float(np.sum(np.abs(combined) ** 2 * strength))
        total += float(np.sum(np.abs(images[:, strength > 0]) ** 2))
    return explained / total if total > 0 else 0.0
