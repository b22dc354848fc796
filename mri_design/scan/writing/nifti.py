"""Images as NIfTI-1 volumes of one slice."""

from __future__ import annotations

import gzip

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import optional_package
from mri_design.scan.geometry import SliceGeometry

__all__ = ["nifti_bytes"]

_SCANNER, _UNKNOWN = 1, 0
"""Codes of what an affine leads to."""


def nifti_bytes(
    image: NDArray[np.floating], geometry: SliceGeometry, description: str, *, compressed: bool = True
) -> bytes:
    """A real image as a NIfTI volume (kx, ky, 1) of float32.

    Parameters
    ----------
    image : real array, shape (ky, kx)
        Magnitude, or standard deviation.
    geometry : SliceGeometry
        Pixel size, and place where it is known: only then does the file say that its affine leads to the scanner's
        coordinates.
    description : str
        At most 79 characters.
    compressed : bool
        For ``.nii.gz``; equal images give equal bytes.

    Raises
    ------
    MissingPackageError
        Where nibabel is not installed.
    """
    nibabel = optional_package("nibabel", "export")
    volume = np.ascontiguousarray(image.T[:, :, np.newaxis], dtype=np.float32)
    affine = geometry.affine((image.shape[0], image.shape[1]))
    made = nibabel.Nifti1Image(volume, affine)
    code = _SCANNER if geometry.placed else _UNKNOWN
    made.set_sform(affine, code)
    made.set_qform(affine, code)
    made.header.set_xyzt_units("mm")
    made.header["descrip"] = description.encode("ascii", "replace")[:79]
    made.header["cal_max"] = float(volume.max())
    content: bytes = made.to_bytes()
    return gzip.compress(content, mtime=0) if compressed else content
