"""Periodic finite differences of an image along both axes."""

from __future__ import annotations

import numpy as np

from mri_design.errors import InputError, require_grid
from mri_design.operators.base import Array, FilterBand, LinearOperator
from mri_design.operators.kernels.suitable import compilable, laid_out


class FiniteDifferences(LinearOperator):
    """Image (ky, kx) -> (2, ky, kx): u[i+1] - u[i] along ky, then along kx, wrapped around at the edges.

    Raises
    ------
    InputError
        For a shape that is not two positive whole numbers.
    """

    def __init__(self, shape: tuple[int, int], *, is_complex: bool = True) -> None:
        shape = _image_shape(shape)
        super().__init__(shape, (2, *shape), in_complex=is_complex, out_complex=is_complex)

    def _apply(self, u: Array) -> Array:
        if compilable(u, u):
            from mri_design.operators.kernels.differences import differences

            return differences(u)
        out = np.empty((*u.shape[:-2], 2, *u.shape[-2:]), dtype=u.dtype)
        along_y, along_x = out[..., 0, :, :], out[..., 1, :, :]
        np.subtract(u[..., 1:, :], u[..., :-1, :], out=along_y[..., :-1, :])
        np.subtract(u[..., 0, :], u[..., -1, :], out=along_y[..., -1, :])
        np.subtract(u[..., 1:], u[..., :-1], out=along_x[..., :-1])
        np.subtract(u[..., 0], u[..., -1], out=along_x[..., -1])
        return out

    def _adjoint(self, v: Array) -> Array:
        if compilable(v, v):
            from mri_design.operators.kernels.differences import differences_adjoint

            return differences_adjoint(v)
        along_y, along_x = v[..., 0, :, :], v[..., 1, :, :]
        u = -(along_y + along_x)
        u[..., 1:, :] += along_y[..., :-1, :]
        u[..., 0, :] += along_y[..., -1, :]
        u[..., 1:] += along_x[..., :-1]
        u[..., 0] += along_x[..., -1]
        return u

    def weighted_gram(self, weights: Array, u: Array) -> Array:
        total = np.zeros(u.shape, dtype=np.result_type(weights, u))
        self.add_weighted_gram(weights, u.astype(total.dtype, copy=False), total)
        return total

    def add_weighted_gram(self, weights: Array, u: Array, total: Array, pixels: Array | None = None) -> None:
        """As in the base class; with ``pixels * u`` added in the same pass where those weights are given."""
        if not compilable(u, total) or np.ndim(weights) > 3:
            total += self._adjoint(weights * self._apply(u))
            if pixels is not None:
                total += pixels * u
            return
        from mri_design.operators.kernels.differences import add_weighted_differences

        along_y, along_x = laid_out(weights, self.out_shape, u)
        on_pixels = None if pixels is None else laid_out(pixels, self.in_shape, u)
        add_weighted_differences(along_y, along_x, u, total, on_pixels)

    def add_weighted_parts(self, weights: Array, u: Array, total: Array, pixels: Array | None = None) -> None:
        """`add_weighted_gram` with weights (2, ky, kx, 2) that real and imaginary parts have of their own.

        ``pixels``, (ky, kx, 2), likewise. All arrays contiguous and of one precision, ``u`` and ``total`` complex.
        """
        from mri_design.operators.kernels.differences import add_weighted_differences

        add_weighted_differences(weights[0], weights[1], u, total, pixels)

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        weights = np.asarray(weights)
        if weights.ndim > 0:
            weights = np.broadcast_to(weights, self.out_shape).mean(axis=(-2, -1), dtype=float)
        along_y, along_x = np.broadcast_to(weights, 2)
        power_y, power_x = (4 * np.sin(np.pi * np.fft.fftfreq(n)) ** 2 for n in self.in_shape)
        return np.asarray(along_y * power_y[:, None] + along_x * power_x[None, :])

    def gram_spectrum(self) -> Array | None:
        return self.circulant_spectrum()

    def filter_bands(self) -> tuple[FilterBand, ...] | None:
        along_y, along_x = (np.exp(2j * np.pi * np.fft.fftfreq(n)) - 1 for n in self.in_shape)
        return FilterBand((0,), along_y, np.ones_like(along_x)), FilterBand((1,), np.ones_like(along_y), along_x)


def _image_shape(shape: tuple[int, int]) -> tuple[int, int]:
    lengths = require_grid("shape", shape)
    if len(lengths) != 2:
        raise InputError(
            "shape", str(lengths), "an image (ky, kx)", "A SparseMatrix of the differences serves signals and volumes."
        )
    return lengths[0], lengths[1]
