"""Images as NIfTI-1 volumes."""

from __future__ import annotations

import gzip

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import optional_package
from mri_design.scan.geometry import THICKNESS_UNKNOWN, SliceGeometry

_NO_SIZES = SliceGeometry((1.0, 1.0), None)
_LONGEST = 79
_SCANNER, _UNKNOWN = 1, 0
"""Codes of what an affine leads to."""


def nifti_bytes(
    image: NDArray[np.floating] | NDArray[np.complexfloating],
    geometry: SliceGeometry | None,
    description: str,
    *,
    compressed: bool = True,
) -> bytes:
    """Images as a NIfTI volume (kx, ky, slice): real ones of float32, complex ones of complex64.

    Parameters
    ----------
    image : array, shape (ky, kx), (slice, ky, kx) or (volume, slice, ky, kx)
        Magnitude, standard deviation, or coil maps, coil after coil along the file's fourth axis. Slices follow one
        another at the distance of their thickness.
    geometry : SliceGeometry
        Pixel size, and place of the first slice where it is known: only then does the file say that its affine leads to
        the scanner's coordinates. None writes sizes of 1 without a unit, which is how NIfTI leaves them unknown. A
        thickness that is not known is written as 1 mm, because a volume has some, and the description says so.
    description : str
        At most 79 characters, or 54 where the thickness is not known.
    compressed : bool
        For ``.nii.gz``; equal images give equal bytes.

    Raises
    ------
    MissingPackageError
        Where nibabel is not installed.
    """
    nibabel = optional_package("nibabel", "export")
    rows, columns = image.shape[-2:]
    kind = np.complex64 if np.iscomplexobj(image) else np.float32
    shape = image.shape if image.ndim == 4 else (-1, rows, columns)
    volume = np.ascontiguousarray(image.reshape(shape).T, dtype=kind)
    affine = (geometry or _NO_SIZES).affine((rows, columns))
    made = nibabel.Nifti1Image(volume, affine)
    code = _SCANNER if geometry is not None and geometry.placed else _UNKNOWN
    made.set_sform(affine, code)
    made.set_qform(affine, code)
    made.header.set_xyzt_units("unknown" if geometry is None else "mm")
    unsaid = f"; {THICKNESS_UNKNOWN}" if geometry is not None and geometry.thickness is None else ""
    made.header["descrip"] = (description[: _LONGEST - len(unsaid)] + unsaid).encode("ascii", "replace")
    made.header["cal_max"] = float(np.abs(volume).max())
    content: bytes = made.to_bytes()
    return gzip.compress(content, mtime=0) if compressed else content
