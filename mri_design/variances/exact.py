"""Exact variances from a dense Cholesky factor: the reference, and the best choice for small problems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # whose parts are loaded when they are first used

from mri_design.errors import require_counts
from mri_design.model.posterior import Variances
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.dense import MatrixOperator
from mri_design.status import Convergence, Status
from mri_design.variances.base import not_positive_definite


@dataclass(frozen=True)
class Exact:
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

    def __post_init__(self) -> None:
        require_counts(limit=self.limit, least=1)

    def __call__(
        self,
        precision: PosteriorPrecision,
        analyses: Sequence[LinearOperator],
        rng: np.random.Generator,
        like: Array,
        previous: Variances | None = None,
    ) -> Variances:
        matrix = precision.dense_real(self.limit).T  # symmetric, and in the memory order of LAPACK
        norm = scipy.linalg.lapack.dlange("1", matrix)
        try:
            lower = scipy.linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=True)
        except (scipy.linalg.LinAlgError, ValueError) as error:
            raise not_positive_definite() from error
        if scipy.linalg.lapack.dpocon(lower, norm, uplo="L")[0] < np.finfo(float).eps:
            raise not_positive_definite()  # rounding had hidden a null space from the factorisation
        values = []
        inverse_root: Array | None = None
        for analysis in analyses:
            if isinstance(analysis, MatrixOperator) and not analysis.in_complex:
                if inverse_root is None:
                    inverse_root = scipy.linalg.solve_triangular(lower, np.eye(len(lower)), lower=True)
                values.append(analysis.spread(inverse_root).astype(like.real.dtype))
                continue
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
