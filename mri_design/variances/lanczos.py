"""Variances from the Lanczos low-rank representation: cheap, always too small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mri_design.errors import InputError, require_counts, require_random
from mri_design.krylov import lanczos
from mri_design.model.posterior import Variances
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array, LinearOperator, squared_modulus
from mri_design.status import Status
from mri_design.variances.base import not_positive_definite


@dataclass(frozen=True)
class Lanczos:
    """z_k = sum over j <= k of |B v_j|^2, rising monotonically to z (TR-175 section 4.5, appendix B).

    Parameters
    ----------
    steps : int
        k; memory k images, k multiplications with A. At the dimension of u the values are exact where A has no repeated
        eigenvalues; with some it ends early, below.

    Raises
    ------
    InputError
        For no step; where A is not positive definite; where A is only real-linear on a complex image (sites on parts
        of complex pairs): use perturb-and-solve.

    Notes
    -----
    Always lower bounds. In image reconstruction they are far too small unless k is close to the dimension; they rank
    lines better than they measure them.
    """

    steps: int = 100

    def __post_init__(self) -> None:
        require_counts(least=1, **{"Lanczos steps": self.steps})

    def __call__(
        self,
        precision: PosteriorPrecision,
        analyses: Sequence[LinearOperator],
        rng: np.random.Generator,
        like: Array,
        previous: Variances | None = None,
    ) -> Variances:
        require_random(rng)
        is_complex = precision.measurement.in_complex
        if is_complex and not precision.complex_linear:
            raise InputError(
                "Lanczos",
                "sites on real and imaginary parts of a complex image",
                "sites on moduli, or a real image",
                "Use MonteCarlo, which is 'perturb-and-solve' in a recipe.",
            )
        start = rng.standard_normal(like.shape, dtype=like.real.dtype.type)
        if is_complex:
            start = start + 1j * rng.standard_normal(like.shape, dtype=like.real.dtype.type)
        factors = lanczos(precision, start.astype(like.dtype), self.steps)
        if factors.convergence.status is Status.BREAKDOWN:
            raise not_positive_definite()
        components = 2 if is_complex else 1  # real unknowns per entry of u
        root = factors.inverse_root()
        values = []
        for analysis in analyses:
            z = np.zeros(analysis.out_shape, dtype=like.real.dtype)
            for v in root:
                z += squared_modulus(analysis(v))
            values.append(components * z)
        return Variances(
            tuple(values),
            "lower_bound",
            factors.convergence,
            factors=factors,
            log_determinant=components * factors.log_determinant(),
        )
