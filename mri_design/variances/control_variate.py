"""Variances from posterior samples: what a simpler operator explains of them is replaced by its exact value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mri_design.errors import InputError
from mri_design.krylov import conjugate_gradients
from mri_design.model import PosteriorPrecision, Variances
from mri_design.operators import Array, LinearOperator
from mri_design.status import Status
from mri_design.variances.base import not_positive_definite
from mri_design.variances.circulant import CirculantControl

__all__ = ["ControlVariate"]


@dataclass(frozen=True)
class ControlVariate:
    """Unbiased z with a standard error far below that of `MonteCarlo`.

    With b ~ N(0, A), s = B A^-1 b and the control t = B P b, P the inverse of a circulant near A,
    z = a1^2 / a2 + Var(s - (a1 / a2) t), where a1 = diag(B P B^H) and a2 = diag(B P A P B^H) are known exactly: only
    the small remainder is sampled.

    Parameters
    ----------
    samples : int
        K, at least 2; all are solved side by side.
    tolerance, max_iterations : float, int
        Of the conjugate gradients, see `krylov.conjugate_gradients`. They start at P b.

    Raises
    ------
    InputError
        For fewer than 2 samples; where A is found not to be positive definite.

    Notes
    -----
    Where no control is known (real images, sites on parts of complex pairs, matrices, padded wavelets) the
    coefficients are sampled plainly, as `MonteCarlo` does. ``std_error`` is that of the sampled part, estimated from
    the K draws.
    """

    samples: int = 8
    tolerance: float = 3e-2
    max_iterations: int = 500

    def __post_init__(self) -> None:
        if self.samples < 2:
            raise InputError(field="variance samples", got=str(self.samples), wanted="2 or more")

    def __call__(
        self,
        precision: PosteriorPrecision,
        analyses: Sequence[LinearOperator],
        rng: np.random.Generator,
        like: Array,
        previous: Variances | None = None,
    ) -> Variances:
        b = precision.perturbations(rng, self.samples, like)
        control = CirculantControl.of(precision)
        explained = None if control is None else control.image(b)
        draws, convergence = conjugate_gradients(
            precision,
            b,
            n_axes=like.ndim,
            start=explained if previous is None or previous.samples is None else previous.samples,
            preconditioner=precision.preconditioner,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        )
        if convergence.status is Status.BREAKDOWN:
            raise not_positive_definite()
        values, errors = [], []
        for analysis in analyses:
            remainder = analysis(draws)
            known: Array | float = 0.0
            moments = None if control is None else control.moments(analysis)
            if moments is not None and explained is not None:
                first, second = moments
                remainder = remainder - (first / second).astype(like.real.dtype) * analysis(explained)
                known = 2 * first**2 / second  # both components of a complex coefficient
            power = np.abs(remainder) ** 2
            values.append((known + power.mean(axis=0)).astype(like.real.dtype))
            errors.append(power.std(axis=0, ddof=1) / float(np.sqrt(self.samples)))
        return Variances(
            tuple(values), "unbiased", convergence, std_error=tuple(errors), samples=draws, explained=explained
        )
