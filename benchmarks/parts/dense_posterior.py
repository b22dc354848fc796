"""Exact variances of small complex-linear models, by dense complex algebra: an eighth of the work of the real one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array, LinearOperator

COLUMNS = 256  # multiplied at a time, so that memory stays at a few matrices


@dataclass(frozen=True)
class DensePosterior:
    """A of a complex-linear model as a factorised matrix.

    Parameters
    ----------
    lower : complex array, shape (n, n)
        L with A = L L^H.
    shape : tuple of int
        Of the image.
    """

    lower: Array
    shape: tuple[int, ...]

    @classmethod
    def of(cls, precision: PosteriorPrecision) -> DensePosterior:
        """Build A column by column and factorise it."""
        if not precision.complex_linear:
            raise ValueError("dense complex algebra needs a complex-linear model")
        shape = precision.measurement.in_shape
        n = int(np.prod(shape))
        transposed = np.empty((n, n), dtype=np.complex128)
        for first in range(0, n, COLUMNS):
            unit = np.zeros((min(COLUMNS, n - first), n), dtype=np.complex128)
            unit[np.arange(len(unit)), np.arange(first, first + len(unit))] = 1
            transposed[first : first + len(unit)] = precision(unit.reshape(-1, *shape)).reshape(len(unit), n)
        lower = scipy.linalg.cholesky(transposed.T, lower=True, overwrite_a=True, check_finite=False)
        return cls(lower, shape)

    @cached_property
    def root(self) -> Array:
        """Images r_j, (n, *image shape), with A^-1 = sum_j r_j r_j^H."""
        inverse, failed = scipy.linalg.lapack.ztrtri(self.lower, lower=1)
        if failed:
            raise np.linalg.LinAlgError("A is singular")
        return np.conj(np.ascontiguousarray(inverse)).reshape(-1, *self.shape)

    def variances(self, analysis: LinearOperator) -> Array:
        """z = diag(B A^-1 B^H), real and imaginary part together."""
        z = np.zeros(analysis.out_shape)
        for first in range(0, len(self.root), COLUMNS):
            s = analysis(self.root[first : first + COLUMNS])
            z += 2 * np.sum(s.real**2 + s.imag**2, axis=0)
        return z
