"""Exact variances from a dense Cholesky factor: the reference, and the best choice for small problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from mri_design.errors import InputError
from mri_design.model import PosteriorPrecision, Variances
from mri_design.operators import Array, LinearOperator
from mri_design.status import Convergence, Status

__all__ = ["ExactVariances"]


@dataclass(frozen=True)
class ExactVariances:
    """z by dense linear algebra on the real unknowns.

    Parameters
    ----------
    limit : int
        Largest number of real unknowns accepted (memory 8 limit^2 bytes, time limit^3).

    Raises
    ------
    InputError
        On a larger problem, or where A is not positive definite (X and B share a null space).
    """

    limit: int = 9000

    def __call__(
        self,
        precision: PosteriorPrecision,
        analyses: Sequence[LinearOperator],
        rng: np.random.Generator,
        like: Array,
    ) -> Variances:
        matrix = precision.dense_real(self.limit)
        try:
            lower = scipy.linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=True)
        except (scipy.linalg.LinAlgError, ValueError) as error:
            raise InputError(
                field="posterior precision",
                got="a matrix that is not positive definite",
                wanted="X and B without a common null space",
                cure="Add a block of sites on the pixels.",
            ) from error
        values = []
        for analysis in analyses:
            rows = analysis.to_dense_real(self.limit)
            root = scipy.linalg.solve_triangular(lower, rows.T, lower=True, overwrite_b=True)
            z = np.einsum("ij,ij->j", root, root)
            if analysis.out_complex:
                z = z[: z.size // 2] + z[z.size // 2 :]
            values.append(z.reshape(analysis.out_shape).astype(like.real.dtype))
        return Variances(
            tuple(values),
            "exact",
            Convergence(Status.CONVERGED, 1, 0.0),
            log_determinant=2 * float(np.log(np.diag(lower)).sum()),
        )
