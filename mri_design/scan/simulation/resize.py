"""Bring images to the scan matrix: pad to its aspect, then resize without aliasing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage.transform import resize

from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.simulation.settings import checked_shape


def fit_to_matrix(images: NDArray[Any], matrix: int | tuple[int, int] | None) -> NDArray[Any]:
    """Pad a stack with zeros to the aspect of the matrix (centred), then resize to it.

    Parameters
    ----------
    images : real or complex array, shape (slice, row, column)
        Square pixels are assumed. Nothing is cropped: the shorter side is padded.
    matrix : int, (int, int) or None
        Target grid (ky, kx); one number for a square, None to leave the images as they are.

    Returns
    -------
    float64 or complex128 array, shape (slice, ky, kx)
        Where the matrix is smaller, a Gaussian low-pass (skimage's anti-aliasing) precedes linear
        interpolation; where it is larger, the interpolation adds no detail.

    Raises
    ------
    InputError
        On a wrong matrix.
    """
    kind = np.complex128 if np.iscomplexobj(images) else np.float64
    stack = images.astype(kind)
    if matrix is None:
        checked_shape(stack.shape[1:], field="images")
        return stack
    target = checked_shape(matrix, field="matrix")
    stack = _padded(stack, _shape_with_aspect(stack.shape[1:], target))
    if stack.shape[1:] == target:
        return stack
    return np.stack([_resized(image, target) for image in stack])


def fitted_geometry(
    geometry: SliceGeometry, shape: tuple[int, int], matrix: int | tuple[int, int] | None
) -> SliceGeometry:
    """Size and place of an image of a shape (row, column) after `fit_to_matrix`."""
    if matrix is None:
        return geometry
    target = checked_shape(matrix, field="matrix")
    return geometry.resampled(_shape_with_aspect(shape, target), target)


def _shape_with_aspect(shape: tuple[int, ...], target: tuple[int, int]) -> tuple[int, int]:
    rows, columns = shape
    if rows * target[1] < columns * target[0]:
        return max(rows, round(columns * target[0] / target[1])), columns
    return rows, max(columns, round(rows * target[1] / target[0]))


def _padded(stack: NDArray[Any], shape: tuple[int, int]) -> NDArray[Any]:
    """Zeros around the images, such that pixel ``n // 2`` stays the centre."""
    before = [new // 2 - old // 2 for new, old in zip(shape, stack.shape[1:], strict=True)]
    after = [new - old - b for new, old, b in zip(shape, stack.shape[1:], before, strict=True)]
    return np.pad(stack, ((0, 0), *zip(before, after, strict=True)))


def _resized(image: NDArray[Any], target: tuple[int, int]) -> NDArray[Any]:
    if np.iscomplexobj(image):
        return _resized(image.real, target) + 1j * _resized(image.imag, target)
    resized: NDArray[Any] = resize(image, target, order=1, anti_aliasing=True, mode="edge")
    return resized
