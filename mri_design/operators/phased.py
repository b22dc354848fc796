"""Coefficients of an image turned by a phase, real and imaginary parts apart."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from mri_design.errors import InputError
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.kernels.suitable import laid_out


class PhasedParts(LinearOperator):
    """u -> parts of ``analysis(e^{-i phi} u)``: real output with a last axis (real part, imaginary part).

    Where phi is the image's own phase, e^{-i phi} u is real, its imaginary part small, and sites of their own on the
    two parts say so; k-space then has conjugate symmetry, line k tells about line -k.

    Parameters
    ----------
    analysis : LinearOperator
        Complex-linear, on complex images.
    rotation : complex array, shape of the image
        e^{i phi}, of modulus one.
    imaginary : float or array
        What the imaginary parts are multiplied by, broadcastable to the coefficients of ``analysis``.

    Raises
    ------
    InputError
        For another operator, a rotation of another shape or one whose modulus is not one, or factors that do not fit.

    Notes
    -----
    ``weights`` of the Gram products end in the axis of the two parts. The circulant spectrum is that of the mean of
    both parts' weights without the phase, near the nearest one only: a smooth phase shifts the filters by few
    frequencies. What is antilinear in B^H diag(w) B has no complex circulant.
    """

    def __init__(self, analysis: LinearOperator, rotation: Array, imaginary: Array | float = 1.0) -> None:
        if not analysis.complex_linear:
            raise InputError("PhasedParts", type(analysis).__name__, "a complex-linear operator on complex images")
        if rotation.shape != analysis.in_shape:
            raise InputError("rotation", f"shape {rotation.shape}", f"{analysis.in_shape}")
        if not np.allclose(np.abs(rotation), 1, rtol=0, atol=1e-4):
            raise InputError("rotation", "other moduli than one", "e^{i phi}")
        super().__init__(analysis.in_shape, (*analysis.out_shape, 2), in_complex=True, out_complex=False)
        self.analysis = analysis
        self.rotation = rotation
        self.imaginary = np.asarray(imaginary, dtype=float)
        fits = self.imaginary.ndim <= len(analysis.out_shape) and all(
            n in (1, wanted)
            for n, wanted in zip(reversed(self.imaginary.shape), reversed(analysis.out_shape), strict=False)
        )
        if not fits or not (np.isfinite(self.imaginary).all() and np.all(self.imaginary > 0)):
            raise InputError(
                "imaginary",
                f"shape {self.imaginary.shape}, or numbers that are not positive",
                f"positive factors on coefficients {analysis.out_shape}",
            )
        self._imaginary: dict[np.dtype[Any], Array] = {}
        self._powers: dict[np.dtype[Any], Array] = {}
        self._turns: dict[np.dtype[Any], tuple[Array, Array]] = {}

    def turned_back(self, u: Array) -> Array:
        """e^{-i phi} u, in the precision of u."""
        return self._turn(u)[1] * u

    def turned(self, v: Array) -> Array:
        """e^{i phi} v, in the precision of v."""
        return self._turn(v)[0] * v

    def _turn(self, like: Array) -> tuple[Array, Array]:
        dtype = np.result_type(like.dtype, np.complex64)
        if dtype not in self._turns:
            rotation = self.rotation.astype(dtype)
            self._turns[dtype] = rotation, np.conj(rotation)
        return self._turns[dtype]

    @cached_property
    def _emphasised(self) -> bool:
        """Whether imaginary parts are multiplied by anything but one."""
        return not bool((self.imaginary == 1).all())

    def _factors(self, dtype: np.dtype[Any]) -> Array:
        """Factors of the imaginary parts."""
        if dtype not in self._imaginary:
            self._imaginary[dtype] = self.imaginary.astype(dtype)
        return self._imaginary[dtype]

    def _apply(self, u: Array) -> Array:
        parts = in_parts(self.analysis._apply(self.turned_back(u)))
        if self._emphasised:
            np.multiply(parts[..., 1], self._factors(parts.dtype), out=parts[..., 1])
        return parts

    def _adjoint(self, v: Array) -> Array:
        parts = v
        if self._emphasised:
            parts = np.empty_like(v)
            parts[..., 0] = v[..., 0]
            np.multiply(v[..., 1], self._factors(v.dtype), out=parts[..., 1])
        return self.turned(self.analysis._adjoint(from_parts(parts)))

    def weighted_adjoint(self, weights: Array, v: Array) -> Array:
        """Adjoint of weighted coefficients; factors of imaginary parts go to the weights, which are fewer."""
        each = self._with_factors(weights, self._factors(weights.dtype))
        return self.turned(self.analysis.adjoint(from_parts(each * self._checked(v, self.out_shape))))

    def part_weights(self, weights: Array) -> Array:
        """Weights (..., 2) of the parts of ``analysis(e^{-i phi} u)`` without their factors, in their own precision.

        ``weights`` are broadcastable to the coefficients; along a first axis of length one, as that of all edges of a
        pixel, the result has length one too. Part by part: numpy is slow along an axis of two.
        """
        given = np.asarray(weights)
        return self._with_factors(given, self._squares(given.dtype))

    def _with_factors(self, weights: Array, factors: Array) -> Array:
        """Weights of both parts, those of the imaginary one multiplied by factors."""
        shape = self.out_shape
        if weights.ndim == len(shape) > max(len(self.in_shape), factors.ndim) + 1:  # an axis before those of the image
            shape = (weights.shape[0], *shape[1:])
        each = weights if weights.ndim == len(shape) else np.broadcast_to(weights, shape)
        parts = np.empty(shape, dtype=weights.dtype)
        parts[..., 0] = each[..., 0]
        np.multiply(each[..., -1], factors, out=parts[..., 1])
        return parts

    def _squares(self, dtype: np.dtype[Any]) -> Array:
        """Squared factors of the imaginary parts."""
        if dtype not in self._powers:
            self._powers[dtype] = (self.imaginary**2).astype(dtype)
        return self._powers[dtype]

    def squares_on_pixels(self, dtype: np.dtype[Any]) -> Array | None:
        """Squared factors of the imaginary parts as an image; None where those of a pixel differ."""
        if self.imaginary.ndim > len(self.in_shape) or len(self.in_shape) != 2:
            return None
        if self.analysis.out_shape[-2:] != self.in_shape:
            return None
        return laid_out(self._squares(dtype), self.in_shape, np.empty(0, dtype=dtype))

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        of_parts = self.part_weights(np.broadcast_to(np.asarray(weights, dtype=float), self.out_shape))
        return self.analysis.circulant_spectrum(of_parts.mean(axis=-1))

    def gram_spectrum(self) -> Array | None:
        spectrum = None if self._emphasised else self.analysis.gram_spectrum()
        constant = spectrum is not None and np.ptp(spectrum) <= 1e-12 * np.max(np.abs(spectrum))
        return spectrum if constant else None  # a multiple of the identity commutes with the phase

    def gram_floor(self) -> float:
        return self.analysis.gram_floor() * min(1.0, float(self.imaginary.min())) ** 2


def in_parts(s: Array) -> Array:
    """Complex (...,) -> real (..., 2), without a copy where possible."""
    return np.ascontiguousarray(s).view(s.real.dtype).reshape(*s.shape, 2)


def from_parts(v: Array) -> Array:
    """Real (..., 2) -> complex (...,)."""
    return np.ascontiguousarray(v).view(np.result_type(v.dtype, np.complex64))[..., 0]
