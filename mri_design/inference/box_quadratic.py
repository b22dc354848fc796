"""A convex quadratic over a box: the dual of a chunk of hinge sites."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from mri_design.errors import InputError
from mri_design.operators import Array
from mri_design.status import Convergence, Status

__all__ = ["minimise_in_box"]


def minimise_in_box(
    K: Array, b: Array, upper: Array, start: Array | None = None, *, tolerance: float = 1e-11, max_iterations: int = 500
) -> tuple[Array, Convergence]:
    """min over 0 <= alpha <= upper of alpha^T K alpha / 2 - b^T alpha, by single coordinates and Newton steps.

    Parameters
    ----------
    K : array, shape (m, m)
        Positive semidefinite.
    b, upper : arrays, shape (m,)
        Linear term and the positive upper bounds.
    start : array, optional
        Where to begin; brought into the box.
    tolerance : float
        On the largest change that a projected gradient step, scaled by the diagonal of K, would make, in units of the
        largest upper bound.

    Returns
    -------
    alpha : array
        The minimiser; one of them where K is singular on the free coordinates (K alpha is unique).
    convergence : Convergence
        ``residual`` is what ``tolerance`` looks at.

    Notes
    -----
    In turn as many single coordinates as there are, each time the one that gains most, which finds the bounds that
    hold; and a Newton step on the coordinates that are free, projected on the box with backtracking (Bertsekas, SIAM J.
    Control Optim. 20, 1982), which finds the rest. A little of the diagonal is added where K is singular.
    """
    if not (np.isfinite(upper).all() and (upper > 0).all()):
        raise InputError(field="upper bounds", got="zero, negative or infinite", wanted="positive finite numbers")
    diagonal = np.maximum(np.diag(K), np.finfo(float).eps * max(float(np.trace(K)), 1e-300) / len(K))
    ridge = 1e-10 * float(np.mean(diagonal))
    unit = float(np.max(upper))
    alpha = np.zeros(len(b)) if start is None else np.clip(start, 0.0, upper)
    status, residual, iteration = Status.MAX_ITERATIONS, np.inf, 0
    for iteration in range(max_iterations + 1):  # noqa: B007 (reported)
        gradient = K @ alpha - b
        residual = float(np.max(np.abs(np.clip(alpha - gradient / diagonal, 0.0, upper) - alpha))) / unit
        if residual <= tolerance:
            status = Status.CONVERGED
            break
        before = alpha.copy()
        _descend(K, alpha, gradient, diagonal, upper, len(b))
        held = ((alpha <= 0) & (gradient > 0)) | ((alpha >= upper) & (gradient < 0))
        free = np.flatnonzero(~held)
        block = K[np.ix_(free, free)]
        block[np.diag_indices_from(block)] += ridge
        step = np.zeros_like(alpha)
        step[free] = -scipy.linalg.solve(block, gradient[free], assume_a="pos")
        found = _searched(K, alpha, gradient, step, upper)
        if found is None:
            found = _searched(K, alpha, gradient, -gradient / diagonal, upper)
        if found is not None:
            alpha = found
        elif np.array_equal(alpha, before):
            status = Status.STALLED
            break
    return alpha, Convergence(status, iteration, residual)


def _descend(K: Array, alpha: Array, gradient: Array, diagonal: Array, upper: Array, steps: int) -> None:
    """So many steps along the coordinate that gains most, in place."""
    root = np.sqrt(diagonal)
    for _ in range(steps):
        moves = np.clip(alpha - gradient / diagonal, 0.0, upper) - alpha
        k = int(np.argmax(np.abs(moves) * root))
        if moves[k] == 0:
            return
        alpha[k] = min(max(alpha[k] + moves[k], 0.0), upper[k])
        gradient += moves[k] * K[k]


def _searched(K: Array, alpha: Array, gradient: Array, step: Array, upper: Array) -> Array | None:
    """The first of the halved, projected steps that lowers the quadratic."""
    length = 1.0
    for _ in range(40):
        new = np.clip(alpha + length * step, 0.0, upper)
        move = new - alpha
        if gradient @ move + 0.5 * move @ (K @ move) < 0:
            return new
        length *= 0.5
    return None
