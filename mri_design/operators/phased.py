"""Coefficients of an image turned by a phase, real and imaginary parts apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from mri_design.errors import InputError
from mri_design.operators.base import Array, LinearOperator

__all__ = ["PhasedParts"]


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

    Raises
    ------
    InputError
        For another operator, a rotation of another shape, or one whose modulus is not one.

    Notes
    -----
    ``weights`` of the Gram products end in the axis of the two parts. The circulant spectrum is that of the mean of
    both parts' weights without the phase: what is antilinear in B^H diag(w) B has no circulant, and a smooth phase
    shifts the filters by few frequencies.
    """

    def __init__(self, analysis: LinearOperator, rotation: Array) -> None:
        if not analysis.complex_linear:
            raise InputError(
                field="PhasedParts", got=type(analysis).__name__, wanted="a complex-linear operator on complex images"
            )
        if rotation.shape != analysis.in_shape:
            raise InputError(field="rotation", got=f"shape {rotation.shape}", wanted=f"{analysis.in_shape}")
        if not np.allclose(np.abs(rotation), 1, rtol=0, atol=1e-4):
            raise InputError(field="rotation", got="other moduli than one", wanted="e^{i phi}")
        super().__init__(analysis.in_shape, (*analysis.out_shape, 2), in_complex=True, out_complex=False)
        self.analysis = analysis
        self.rotation = rotation
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

    def _apply(self, u: Array) -> Array:
        return in_parts(self.analysis._apply(self.turned_back(u)))

    def _adjoint(self, v: Array) -> Array:
        return self.turned(self.analysis._adjoint(from_parts(v)))

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        return self.analysis.circulant_spectrum(np.broadcast_to(weights, self.out_shape).mean(axis=-1, dtype=float))

    def gram_spectrum(self) -> Array | None:
        spectrum = self.analysis.gram_spectrum()
        constant = spectrum is not None and np.ptp(spectrum) <= 1e-12 * np.max(np.abs(spectrum))
        return spectrum if constant else None  # a multiple of the identity commutes with the phase


def in_parts(s: Array) -> Array:
    """Complex (...,) -> real (..., 2), without a copy where possible."""
    return np.ascontiguousarray(s).view(s.real.dtype).reshape(*s.shape, 2)


def from_parts(v: Array) -> Array:
    """Real (..., 2) -> complex (...,)."""
    return np.ascontiguousarray(v).view(np.result_type(v.dtype, np.complex64))[..., 0]
