"""Variances from posterior samples: what a simpler operator explains of them is replaced by its exact value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

import numpy as np

from mri_design.errors import InputError, require_counts, require_numbers
from mri_design.krylov import conjugate_gradients, real_inner
from mri_design.model import PosteriorPrecision, Variances
from mri_design.operators import Array, Identity, LinearOperator
from mri_design.status import Convergence, Status
from mri_design.variances.base import mean_over_draws, not_positive_definite, starting_draws
from mri_design.variances.circulant import CirculantControl
from mri_design.variances.columns import ColumnControl

__all__ = ["ControlName", "ControlVariate"]

ControlName = Literal["auto", "circulant", "columns", "none"]


@dataclass(frozen=True)
class ControlVariate:
    """z from samples, unbiased, with a standard error far below that of `MonteCarlo`.

    With b ~ N(0, A), s = B A^-1 b and the control t = B P b for some P near A^-1, only the small part of s that t does
    not explain is sampled.

    Parameters
    ----------
    samples : int
        K, at least 2; all are solved side by side.
    tolerance, max_iterations : float, int
        Of the conjugate gradients, see `krylov.conjugate_gradients`, which start at P b: relative error of what P b
        lacks. Its share in z is of second order. Without a control, where it would be of first order, the solver goes
        to its square.
    control : {"auto", "circulant", "columns", "none"}
        P. The circulant serves one coil; columns serve any coils at O(kx ky^3) operations; automatic is the first of
        the two that is known and, for columns, affordable. A control that is not known for the model, or for some
        coefficients, leaves them to plain sampling.
    column_limit : int
        kx ky^3 up to which columns count as affordable; by default up to 128 x 128, where they take a second or more.

    Raises
    ------
    InputError
        For fewer than 2 samples, a senseless tolerance or limit, or an unknown control; where A is found not to be
        positive definite.

    Notes
    -----
    With a1 = diag(B P B^H) and a2 = diag(B P A P B^H) exact (circulant P, one coil),
    z = a1^2 / a2 + Var(s - (a1 / a2) t). Where a2 is not known (columns beside wavelets), E[t s*] = a1 still holds
    exactly, and z = a1 + E[Re (s - t) s*]. For sites on pixels and differences columns are exact and nothing is left
    to sample: the kind is then "exact", unless other coefficients are asked for that had to be sampled, and no product
    with A is spent. Columns also are the better preconditioner.

    ``std_error`` is that of the sampled part, estimated from the K draws. The solver's tolerance is not in it: on one
    coil it lowers z by 0.4 of it at tau/sigma of 10 to 30, as measured, and by one and a half of it at 3, where P b
    explains so much that this is 0.1 % of z. Where z spans decades the few largest values are solved last: on the
    default prior at 64 x 64 the mean over pixels is 4 % low at the default 0.07, 2 % at 0.03, 0.6 % at 0.01, with the
    median error near 1 % at each (57, 73 and 98 products of 8 draws). Take 0.01 where totals matter.

    Real images, sites on parts of complex pairs and matrices have no control yet.
    """

    samples: int = 8
    tolerance: float = 0.07
    max_iterations: int = 500
    control: ControlName = "auto"
    column_limit: int = 2**28

    def __post_init__(self) -> None:
        if self.samples < 2:
            raise InputError(field="variance samples", got=str(self.samples), wanted="2 or more")
        if self.control not in get_args(ControlName):
            raise InputError(field="control", got=repr(self.control), wanted=", ".join(get_args(ControlName)))
        require_numbers(tolerance=self.tolerance)
        require_counts(max_iterations=self.max_iterations, least=1)

    def __call__(
        self,
        precision: PosteriorPrecision,
        analyses: Sequence[LinearOperator],
        rng: np.random.Generator,
        like: Array,
        previous: Variances | None = None,
    ) -> Variances:
        control = self._control(precision)
        b = precision.perturbations(rng, self.samples, like)
        explained = None if control is None else control.image(b)
        draws, convergence = self._draws(precision, control, b, explained, previous)
        if convergence.status is Status.BREAKDOWN:
            raise not_positive_definite()

        def estimate(analysis: LinearOperator) -> tuple[Array, Array, bool]:
            """z, its standard error, and whether the control explained the coefficients at all."""
            s = analysis(draws)
            moments = None if control is None else control.moments(analysis)
            if moments is None or explained is None:
                value, error = mean_over_draws(np.abs(s) ** 2)
            else:
                value, error = _controlled(s, analysis(explained), *moments)
            return value.astype(like.real.dtype), error.astype(like.real.dtype), moments is not None

        estimates = [estimate(analysis) for analysis in analyses]
        exact = isinstance(control, ColumnControl) and control.exact
        return Variances(
            tuple(value for value, *_ in estimates),
            "exact" if exact and all(known for *_, known in estimates) else "unbiased",
            convergence,
            std_error=tuple(error for _, error, _ in estimates),
            samples=draws,
            explained=explained if isinstance(control, CirculantControl) else None,
            image=None if control is None else estimate(Identity(like.shape))[0],
            log_determinant=2 * control.factors.log_determinant
            if isinstance(control, ColumnControl) and exact
            else None,
        )

    def _control(self, precision: PosteriorPrecision) -> CirculantControl | ColumnControl | None:
        if self.control in ("auto", "circulant"):
            circulant = CirculantControl.of(precision)
            if circulant is not None or self.control == "circulant":
                return circulant
        shape = precision.measurement.in_shape
        affordable = len(shape) == 2 and shape[1] * shape[0] ** 3 <= self.column_limit
        if self.control == "columns" or (self.control == "auto" and affordable):
            return ColumnControl.of(precision)
        return None

    def _draws(
        self,
        precision: PosteriorPrecision,
        control: CirculantControl | ColumnControl | None,
        b: Array,
        explained: Array | None,
        previous: Variances | None,
    ) -> tuple[Array, Convergence]:
        """A^-1 b."""
        solve = partial(conjugate_gradients, precision, b, n_axes=b.ndim - 1, max_iterations=self.max_iterations)
        warm = starting_draws(previous, b)
        if control is None or explained is None:
            return solve(start=warm, preconditioner=precision.preconditioner, tolerance=self.tolerance**2)
        if isinstance(control, ColumnControl):
            if control.exact:
                return explained, Convergence(Status.CONVERGED, 0, 0.0)
            warm = None  # P b is nearer
        lacking = _lacking(precision, control, b[:1], explained[:1])
        draws, convergence = solve(
            start=explained if warm is None else warm,
            preconditioner=control.image,
            tolerance=self.tolerance * lacking,
        )
        return draws, replace(convergence, matvecs=convergence.matvecs + 1)


def _lacking(
    precision: PosteriorPrecision, control: CirculantControl | ColumnControl, b: Array, explained: Array
) -> float:
    """The residual of P b relative to b, in the norm of the conjugate gradients; one draw tells it of all."""
    residual = b - precision(explained)
    left, whole = (real_inner(v, control.image(v), b.ndim - 1)[0] for v in (residual, b))
    return float(np.sqrt(max(left, 0.0) / whole)) if whole > 0 else 1.0


def _controlled(s: Array, t: Array, first: Array, second: Array | None) -> tuple[Array, Array]:
    """z and its standard error, both components of a complex coefficient together."""
    if second is None:
        value, error = mean_over_draws(np.real((s - t) * np.conj(s)))
        return 2 * first + value, error
    weight = (first / second).astype(t.real.dtype)
    power = np.mean(np.abs(s - weight * t) ** 2, axis=0)
    # The remainder is a circular Gaussian: its power is exponentially distributed, and the mean tells the deviation.
    return 2 * first**2 / second + power, power / np.sqrt(len(s))
