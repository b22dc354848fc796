"""Preconditioned conjugate gradients for several right-hand sides at once."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import require_counts, require_numbers
from mri_design.krylov.chunks import chunks, in_chunks
from mri_design.status import Convergence, Status

__all__ = ["ConjugateGradients", "conjugate_gradients", "real_inner", "squared_norm"]

Array = NDArray[Any]


def real_inner(a: Array, b: Array, n_axes: int) -> NDArray[np.float64]:
    """Re<a, b> over the last ``n_axes`` axes, accumulated in double precision.

    Parameters
    ----------
    a, b : arrays of equal shape
        Real or complex.
    n_axes : int
        Trailing axes that make up one vector; the others are a batch.
    """
    flat_a = a.reshape(*a.shape[: a.ndim - n_axes], -1)
    flat_b = b.reshape(*b.shape[: b.ndim - n_axes], -1)
    if np.iscomplexobj(flat_a):
        flat_a = np.ascontiguousarray(flat_a).view(flat_a.real.dtype)
        flat_b = np.ascontiguousarray(flat_b).view(flat_b.real.dtype)
    return np.einsum("...i,...i->...", flat_a, flat_b, dtype=np.float64)


def squared_norm(a: Array) -> float:
    """||a||^2 of the whole array, accumulated in double precision."""
    return float(real_inner(a, a, a.ndim))


def conjugate_gradients(
    apply: Callable[[Array], Array],
    rhs: Array,
    *,
    n_axes: int,
    start: Array | None = None,
    preconditioner: Callable[[Array], Array] | None = None,
    tolerance: float = 1e-3,
    max_iterations: int = 200,
) -> tuple[Array, Convergence]:
    """Solve A x = rhs for a positive definite A with respect to Re<., .>, many right-hand sides side by side.

    Parameters
    ----------
    apply : callable
        x -> A x on a batch (batch, *shape).
    rhs : array, shape (batch, *shape)
        Right-hand sides, real or complex.
    n_axes : int
        Number of axes of one vector (``len(shape)``).
    start : array, optional
        Starting point of the shape of ``rhs``; zeros without one.
    preconditioner : callable, optional
        r -> P r, an approximation of A^-1, positive definite.
    tolerance : float
        A right-hand side is done when ||P^(1/2) r|| <= tolerance ||P^(1/2) rhs||.
    max_iterations : int
        Limit for each.

    Returns
    -------
    x : array
        Solutions; finished ones are frozen while others go on.
    convergence : Convergence
        Worst right-hand side; ``residual`` is relative in the preconditioned norm, ``matvecs`` counts vectors.

    Raises
    ------
    InputError
        For a tolerance that is negative or not finite, or a limit below 0.

    Notes
    -----
    Vectors keep the precision of ``rhs``; scalars are double. Breakdown (a direction of non-positive curvature, an
    indefinite preconditioner, a non-finite value) is reported, not raised. Golub & Van Loan, Matrix Computations,
    section 11.5.
    """
    solver = ConjugateGradients(apply, rhs.copy(), n_axes=n_axes, start=start, preconditioner=preconditioner)
    convergence = solver.solve(tolerance, max_iterations)
    return solver.x, convergence


class ConjugateGradients:
    """The iteration behind `conjugate_gradients`, which can go on from where it stopped.

    Parameters
    ----------
    apply, n_axes, start, preconditioner
        As in `conjugate_gradients`.
    rhs : array, shape (batch, *shape)
        Right-hand sides; their memory becomes that of the residuals.
    preconditioned : array, optional
        P rhs, where it is known already.
    at_once : int, optional
        Right-hand sides that are iterated side by side, all by default. Beside solutions, residuals and directions of
        all of them, memory holds the products of so many.

    Attributes
    ----------
    x : array, shape of ``rhs``
        The solutions so far.
    """

    def __init__(
        self,
        apply: Callable[[Array], Array],
        rhs: Array,
        *,
        n_axes: int,
        start: Array | None = None,
        preconditioner: Callable[[Array], Array] | None = None,
        preconditioned: Array | None = None,
        at_once: int | None = None,
    ) -> None:
        self._apply, self._n_axes, self._at_once = apply, n_axes, at_once
        self._precondition = preconditioner or (lambda r: r)
        if preconditioned is None:
            preconditioned = in_chunks(self._precondition, rhs, at_once)
        self._scale = real_inner(rhs, preconditioned, n_axes)
        self._uncounted = 0
        if start is None:
            self.x = np.zeros_like(rhs)
            self._r = rhs
        else:
            self.x = start.astype(rhs.dtype, copy=True)
            self.x[self._scale == 0] = 0  # a right-hand side of zero: no relative residual would reach its solution
            product = in_chunks(apply, self.x, at_once)
            self._r = np.subtract(rhs, product, out=rhs)
            del product
            self._uncounted = len(rhs)
        z = in_chunks(self._precondition, self._r, at_once)
        self._rz = real_inner(self._r, z, n_axes)
        self._p = z.copy() if np.may_share_memory(z, self._r) else z

    @property
    def residuals(self) -> NDArray[np.float64]:
        """||P^(1/2) r|| of every right-hand side, relative to ||P^(1/2) rhs||."""
        return _relative(self._rz, self._scale)

    def solve(self, tolerance: float, max_iterations: int) -> Convergence:
        """Iterate until ||P^(1/2) r|| <= tolerance ||P^(1/2) rhs|| for every right-hand side.

        Parameters
        ----------
        tolerance, max_iterations : float, int
            As in `conjugate_gradients`; the limit is that of this call.

        Returns
        -------
        convergence : Convergence
            Of this call: ``matvecs`` and ``iterations`` are those it took, the product for a start among the first's.

        Raises
        ------
        InputError
            For a tolerance that is negative or not finite, or a limit below 0.
        """
        require_numbers(tolerance=tolerance)
        return self._until(tolerance, self._scale, max_iterations)

    def reduce(self, factor: float, max_iterations: int) -> Convergence:
        """Iterate until every ||P^(1/2) r|| is at most ``factor`` times what it is now; with 0, up to the limit.

        As `solve` otherwise; ``residual`` of the result is relative to what it is now, too.
        """
        require_numbers(factor=factor)
        return self._until(factor, self._rz.copy(), max_iterations)

    def part(self, which: NDArray[np.integer] | slice) -> ConjugateGradients:
        """Some of the right-hand sides to go on with.

        By number they are a copy, which leaves this one as it is; a slice of them goes on in this one's place.
        """
        some = copy(self)
        some._uncounted = 0
        some.x, some._r, some._p, some._rz, some._scale = (
            v[which] for v in (self.x, self._r, self._p, self._rz, self._scale)
        )
        return some

    def _until(self, tolerance: float, scale: NDArray[np.float64], max_iterations: int) -> Convergence:
        """Iterate until every <r, P r> is at most tolerance^2 times its ``scale``."""
        require_counts(max_iterations=max_iterations, least=0)
        goal, rz = tolerance**2 * scale, self._rz
        matvecs, self._uncounted = self._uncounted, 0
        status, iterations = Status.CONVERGED, 0
        for some in chunks(len(rz), self._at_once):
            status, taken, spent = self.part(some)._iterate(goal[some], max_iterations)
            iterations, matvecs = max(iterations, taken), matvecs + spent
            if status is Status.BREAKDOWN:
                break
        residual = float(_relative(rz, scale).max()) if rz.size else 0.0
        indefinite = np.minimum(scale, rz) < -np.abs(goal)  # rounding may take rz a little below zero
        if not np.isfinite(residual) or indefinite.any():
            status = Status.BREAKDOWN
        elif status is Status.CONVERGED and (rz > goal).any():
            status = Status.MAX_ITERATIONS
        return Convergence(status, iterations, residual, matvecs)

    def _iterate(self, goal: NDArray[np.float64], max_iterations: int) -> tuple[Status, int, int]:
        """Take all of them to their ``goal`` side by side: converged unless broken down, iterations and products."""
        spread = (...,) + (None,) * self._n_axes
        x, r, p, rz = self.x, self._r, self._p, self._rz
        scratch = np.empty_like(p)
        active = np.flatnonzero(rz > goal)
        iterations, matvecs = 0, 0
        while active.size and iterations < max_iterations:
            iterations += 1
            every = active.size == len(x)
            p_active = p if every else p[active]
            a_p = self._apply(p_active)
            matvecs += active.size
            curvature = real_inner(p_active, a_p, self._n_axes)
            if not (np.isfinite(curvature).all() and (curvature > 0).all()):
                return Status.BREAKDOWN, iterations, matvecs
            step = (rz[active] / curvature).astype(x.real.dtype)[spread]
            if every:
                x += np.multiply(step, p, out=scratch)
                r -= np.multiply(step, a_p, out=scratch)
                z = self._precondition(r)
            else:
                x[active] += step * p_active
                r[active] -= step * a_p
                z = self._precondition(r[active])
            rz_new = real_inner(r if every else r[active], z, self._n_axes)
            momentum = (rz_new / rz[active]).astype(x.real.dtype)[spread]
            if every:
                p *= momentum
                p += z
            else:
                p[active] = z + momentum * p_active
            rz[active] = rz_new
            active = np.flatnonzero(rz > goal)
        return Status.CONVERGED, iterations, matvecs


def _relative(rz: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """The root of |rz| relative to that of ``scale``, or as it is where that is zero."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt(np.abs(rz / np.where(scale == 0, 1, scale))))
