"""Sequential minimal optimisation for support vector machines with an offset, from any start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mri_design.errors import InputError
from mri_design.operators.base import Array

GAP = 1e-3
"""Largest violation of the optimality conditions that is left, as in common practice."""


@dataclass(frozen=True)
class Machine:
    """A trained machine.

    Parameters
    ----------
    alpha : array
        Dual variables.
    objective : float
        alpha^T H alpha / 2 - sum alpha, equation (11) of the paper.
    steps : int
        Pairs that were optimised.
    gap : float
        Violation left.
    """

    alpha: Array
    objective: float
    steps: int
    gap: float


def usable_start(alpha: Array, labels: Array, upper: float) -> Array:
    """A seed made feasible: clipped to [0, C], then the heavier class lowered until sum y alpha = 0.

    As few variables as possible are touched, those inside the box before those at its bound: every alpha that leaves
    its bound costs a step to bring it back.
    """
    found = np.clip(alpha, 0.0, upper)
    excess = float(labels @ found)
    heavy = np.flatnonzero((labels * excess > 0) & (found > 0))
    inside = found[heavy] < upper
    for k in heavy[np.lexsort((-found[heavy], ~inside))]:
        taken = min(abs(excess), found[k])
        found[k] -= taken
        excess -= labels[k] * taken
        if abs(excess) <= 1e-14 * upper:
            break
    return found


def smo(
    K: Array,
    labels: Array,
    upper: float,
    start: Array | None = None,
    *,
    second_order: bool = True,
    gap: float = GAP,
    max_steps: int = 2_000_000,
) -> Machine:
    """min alpha^T H alpha / 2 - sum alpha with H = y K y, 0 <= alpha <= C, sum y alpha = 0.

    Parameters
    ----------
    K : array, shape (cases, cases)
        Kernel matrix.
    labels : array
        y, -1 or +1.
    upper : float
        C.
    start : array, optional
        Feasible alpha (`usable_start`); zero without it.

    second_order : bool
        Pairs by the gain that the quadratic promises (Fan, Chen & Lin, JMLR 6, 2005), as libraries do now, or those
        that violate the conditions most (Keerthi et al., Neural Computation 13, 2001), nearer to the solvers of 2003.

    Raises
    ------
    InputError
        For a start that is not feasible.

    Notes
    -----
    The whole kernel matrix is in memory.
    """
    alpha = np.zeros(len(labels)) if start is None else start.copy()
    if alpha.min() < 0 or alpha.max() > upper or abs(labels @ alpha) > 1e-8 * (1 + alpha.sum()):
        raise InputError(field="start", got="alpha outside the box or the plane", wanted="feasible dual variables")
    gradient = labels * (K @ (labels * alpha)) - 1 if alpha.any() else -np.ones(len(labels))
    diagonal = np.diag(K).copy()
    edge = 1e-12 * upper
    score = -labels * gradient  # y_i times minus the gradient
    may_rise = np.where(labels > 0, alpha < upper - edge, alpha > edge)
    may_fall = np.where(labels > 0, alpha > edge, alpha < upper - edge)
    violation = np.inf
    for steps in range(max_steps):  # noqa: B007 (reported)
        rising = np.where(may_rise, score, -np.inf)
        i = int(np.argmax(rising))
        distance = np.where(may_fall, score[i] - score, -np.inf)
        violation = float(distance.max())
        if violation <= gap:
            break
        curvature = np.maximum(diagonal[i] + diagonal - 2 * K[i], 1e-12)
        gain = np.where(distance > 0, distance * np.abs(distance) / curvature, -np.inf) if second_order else distance
        j = int(np.argmax(gain))
        step = distance[j] / curvature[j]
        room_i = upper - alpha[i] if labels[i] > 0 else alpha[i]
        room_j = alpha[j] if labels[j] > 0 else upper - alpha[j]
        step = min(step, room_i, room_j)
        alpha[i] = np.clip(alpha[i] + labels[i] * step, 0.0, upper)
        alpha[j] = np.clip(alpha[j] - labels[j] * step, 0.0, upper)
        score -= step * (K[i] - K[j])
        for k in (i, j):
            may_rise[k] = alpha[k] < upper - edge if labels[k] > 0 else alpha[k] > edge
            may_fall[k] = alpha[k] > edge if labels[k] > 0 else alpha[k] < upper - edge
    gradient = -labels * score
    return Machine(alpha, float(0.5 * alpha @ (gradient - 1)), steps, violation)
