"""Preconditioned conjugate gradients for several right-hand sides at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import require_counts, require_numbers
from mri_design.status import Convergence, Status

__all__ = ["conjugate_gradients", "real_inner", "squared_norm"]

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
    require_numbers(tolerance=tolerance)
    require_counts(max_iterations=max_iterations, least=0)
    spread = (...,) + (None,) * n_axes
    precondition = preconditioner or (lambda r: r)
    real_dtype = rhs.real.dtype
    scale = real_inner(rhs, precondition(rhs), n_axes)
    matvecs = 0
    if start is None:
        x = np.zeros_like(rhs)
        r = rhs.copy()
    else:
        x = start.astype(rhs.dtype, copy=True)
        x[scale == 0] = 0  # the solution for a right-hand side of zero, which no relative residual would reach
        r = rhs - apply(x)
        matvecs += len(rhs)
    z = precondition(r)
    rz = real_inner(r, z, n_axes)
    goal = tolerance**2 * scale
    p = z.copy()
    active = np.flatnonzero(rz > goal)
    status, iterations = Status.CONVERGED, 0
    while active.size and iterations < max_iterations:
        iterations += 1
        every = active.size == len(rhs)
        p_active = p if every else p[active]
        a_p = apply(p_active)
        matvecs += active.size
        curvature = real_inner(p_active, a_p, n_axes)
        if not (np.isfinite(curvature).all() and (curvature > 0).all()):
            status = Status.BREAKDOWN
            break
        step = (rz[active] / curvature).astype(real_dtype)[spread]
        if every:
            x += step * p
            r -= step * a_p
            z = precondition(r)
        else:
            x[active] += step * p_active
            r[active] -= step * a_p
            z = precondition(r[active])
        rz_new = real_inner(r if every else r[active], z, n_axes)
        momentum = (rz_new / rz[active]).astype(real_dtype)[spread]
        if every:
            p *= momentum
            p += z
        else:
            p[active] = z + momentum * p_active
        rz[active] = rz_new
        active = np.flatnonzero(rz > goal)
    with np.errstate(invalid="ignore"):
        relative = rz / np.where(scale == 0, 1, scale)
    residual = float(np.sqrt(np.abs(relative).max())) if relative.size else 0.0
    indefinite = np.minimum(scale, rz) < -np.abs(goal)  # rounding may take rz a little below zero
    if not np.isfinite(residual) or indefinite.any():
        status = Status.BREAKDOWN
    elif status is Status.CONVERGED and active.size:
        status = Status.MAX_ITERATIONS
    return x, Convergence(status, iterations, residual, matvecs)
