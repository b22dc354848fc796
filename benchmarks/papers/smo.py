"""Sequential minimal optimisation for support vector machines with an offset, from any start, on kernel columns that
are made when they are needed."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError

from .data import Rows
from .kernels import kernel_column, squares_of

Values = NDArray[np.float64]
GAP = 1e-3
"""Largest violation of the optimality conditions that is left, as in common practice."""


class Columns:
    """Columns of a kernel matrix, kept once made; ``made`` counts them, in columns of ``whole`` cases.

    Parameters
    ----------
    rows : csr_array, shape (cases, features)
        x.
    whole : int
        Cases of the whole problem, of which these may be a chunk.
    """

    def __init__(self, rows: Rows, whole: int) -> None:
        self.rows, self.squares, self.share = rows, squares_of(rows), rows.shape[0] / whole
        self.K = np.empty((rows.shape[0], rows.shape[0]), order="F")
        self.known = np.zeros(rows.shape[0], dtype=bool)

    def require(self, cases: NDArray[np.intp]) -> None:
        """Make the columns of these cases."""
        for case in cases[~self.known[cases]]:
            self.K[:, case] = kernel_column(self.rows, self.squares, int(case))
            self.known[case] = True

    @property
    def made(self) -> float:
        return float(self.known.sum() * self.share)


@dataclass(frozen=True)
class Machine:
    """alpha, the gradient of the dual, pairs that were optimised, and the violation that is left."""

    alpha: Values
    gradient: Values
    steps: int
    gap: float


@numba.njit(cache=True)
def _pairs(K, known, labels, alpha, score, upper, second_order, gap, most):
    """Optimise pairs until the gap is small or a column is missing: (steps, violation, the missing case or -1)."""
    edge = 1e-12 * upper
    for step in range(most):
        i, top = -1, -np.inf
        for k in range(len(alpha)):
            may_rise = alpha[k] < upper - edge if labels[k] > 0 else alpha[k] > edge
            if may_rise and score[k] > top:
                i, top = k, score[k]
        if i < 0:
            return step, 0.0, -1
        if not known[i]:
            return step, np.inf, i
        j, violation, best = -1, -np.inf, -np.inf
        for k in range(len(alpha)):
            may_fall = alpha[k] > edge if labels[k] > 0 else alpha[k] < upper - edge
            if may_fall:
                distance = top - score[k]
                violation = max(violation, distance)
                gain = distance
                if second_order:
                    gain = distance * distance / max(2 - 2 * K[k, i], 1e-12) if distance > 0 else -np.inf
                if gain > best:
                    j, best = k, gain
        if violation <= gap:
            return step, violation, -1
        if not known[j]:
            return step, np.inf, j
        move = (top - score[j]) / max(2 - 2 * K[j, i], 1e-12)
        move = min(move, upper - alpha[i] if labels[i] > 0 else alpha[i])
        move = min(move, alpha[j] if labels[j] > 0 else upper - alpha[j])
        alpha[i] = min(max(alpha[i] + labels[i] * move, 0.0), upper)
        alpha[j] = min(max(alpha[j] - labels[j] * move, 0.0), upper)
        for k in range(len(alpha)):
            score[k] -= move * (K[k, i] - K[k, j])
    return most, violation, -1


def smo(
    columns: Columns,
    labels: Values,
    upper: float,
    *,
    start: Values | None = None,
    linear: Values | float = 0.0,
    second_order: bool = True,
    most: int = 2_000_000,
) -> Machine:
    """min alpha^T H alpha / 2 + (linear - 1)^T alpha, H = y K y, 0 <= alpha <= C, sum y alpha as at the start.

    Parameters
    ----------
    columns : Columns
        Of K, with ones on its diagonal.
    labels : array
        y, -1 or +1.
    upper : float
        C.
    start : array, optional
        alpha to begin with, zero without it; sum y alpha stays what it is.
    linear : array or float
        y times what other cases add to f, equation (12) of the paper.
    second_order : bool
        Pairs by the gain that the quadratic promises (Fan, Chen and Lin, JMLR 6, 2005), as libraries do now, or those
        that violate the conditions most (Keerthi et al., Neural Computation 13, 2001), nearer to the solvers of 2003.

    Raises
    ------
    InputError
        For labels that are not -1 and +1, or a start outside the box.
    """
    if not np.isin(labels, (-1.0, 1.0)).all() or not (labels > 0).any() or not (labels < 0).any():
        raise InputError("labels", f"{np.unique(labels)}", "both -1 and +1")
    alpha = np.zeros(len(labels)) if start is None else start.astype(float)
    if alpha.min() < 0 or alpha.max() > upper:
        raise InputError("start", f"alpha from {alpha.min():g} to {alpha.max():g}", f"0 to C = {upper:g}")
    support = np.flatnonzero(alpha)
    columns.require(support)
    score = labels * (1 - linear) - columns.K[:, support] @ (labels * alpha)[support]
    steps = 0
    while True:
        taken, violation, missing = _pairs(
            columns.K, columns.known, labels, alpha, score, upper, second_order, GAP, most - steps
        )
        steps += taken
        if missing < 0:
            return Machine(alpha, -labels * score, steps, float(violation))
        columns.require(np.array([missing]))
