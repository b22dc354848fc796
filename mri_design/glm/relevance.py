"""Automatic relevance determination (ARD), or sparse Bayesian learning: Student-t sites in the limit of nu to zero.

    phi(gamma) = log|A| + log|Gamma| + min_u (||y - X u||^2 + s^T Gamma^-1 s) / sigma^2,   s = B u

The sites 1 / |s| are no densities, and phi has local minima in which most gamma_i are exactly zero. With the tangent z
of log|A| + log|Gamma|, which is concave, the inner problem is a Lasso whose weights are the roots of z (TR-175 section
4.4; Wipf & Nagarajan, NIPS 20, 2008):

    min_u ||y - X u||^2 / sigma^2 + (2 / sigma) sum_i sqrt(z_i) |s_i|,   gamma_i = |s_i| / (sigma sqrt(z_i)).

phi has no minimum where rows of B depend on each other: then it falls without end as their gamma_i go to zero together.
Otherwise u is s and what B does not see, v; where v is eliminated, phi is log|K| + y^T K^-1 y / sigma^2 and a constant,
with K = I + X Gamma X^T for the columns x_i of s, and z_i = x_i^T K^-1 x_i whether gamma_i is zero or not. That is the
report's footnote 12, diag([B_0 A_1^-1 B_0^T]^-1), without an A_1 that may be singular.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from mri_design.errors import InputError, number_array, positive_number, require_counts, require_numbers
from mri_design.operators.base import Array
from mri_design.status import Convergence, Status

ROUNDING = 1e-12
LASSO_STEPS = 10_000


@dataclass(frozen=True)
class Relevance:
    """The posterior of `automatic_relevance`: a Gaussian on the directions that it keeps.

    Parameters
    ----------
    mean : array, shape (n,)
        Of u.
    covariance : array, shape (n, n)
        Of u; B Cov B^T is zero where gamma is.
    widths, z : arrays, shape (q,)
        gamma >= 0, and the tangent of log|A| + log|Gamma| there.
    criterion : tuple of float
        phi after each outer loop: it never rises.
    convergence : Convergence
        ``residual`` is the last decrease of phi; not converged, too, where the last inner problem was not.
    """

    mean: Array
    covariance: Array
    widths: Array
    z: Array
    criterion: tuple[float, ...]
    convergence: Convergence


def automatic_relevance(
    X: ArrayLike,
    y: ArrayLike,
    noise_variance: float,
    B: ArrayLike | None = None,
    *,
    start: ArrayLike | None = None,
    outer_iterations: int = 500,
    tolerance: float = 1e-11,
) -> Relevance:
    """Minimise phi(gamma) by the double loop of the first class, to a local minimum.

    Parameters
    ----------
    X : float array, shape (m, n)
        Measurement.
    y : float array, shape (m,)
        Data.
    noise_variance : float
        sigma^2.
    B : float array, shape (q, n), optional
        Analysis with independent rows; the identity where none is given.
    start : float array, shape (q,), optional
        gamma to begin at, zero or positive; all one where none is given.
    outer_iterations : int
        Outer loops at most.
    tolerance : float
        Stop when a loop lowers phi by less.

    Raises
    ------
    InputError
        For arrays of other shapes or not finite, rows of B that depend on each other, a direction that neither X nor B
        sees, a variance that is not positive, or a senseless limit.
    """
    X = number_array("X", X, wanted="a finite matrix (m, n)", kind="real", shape=(None, None)).astype(float)
    m, n = X.shape
    y = number_array("y", y, wanted=f"{m} finite numbers", kind="real", shape=(m,)).astype(float)
    rows = np.eye(n) if B is None else B
    rows = number_array("B", rows, wanted=f"a finite matrix (q, {n})", kind="real", shape=(None, n)).astype(float)
    variance, count = positive_number("noise_variance", noise_variance), len(rows)
    require_counts(outer_iterations=outer_iterations, least=1)
    require_numbers(tolerance=tolerance)
    widths = number_array(
        "start", np.ones(count) if start is None else start, wanted=f"{count} numbers", shape=(count,)
    )
    if not (np.isfinite(widths).all() and (widths >= 0).all()):
        raise InputError("start", str(widths.min()), "numbers from 0 on")
    problem = eliminate(X, y, rows)
    columns, data = problem.columns, problem.data
    gram, correlations, s = columns.T @ columns, columns.T @ data, np.zeros(count)
    z, phi, solved = problem.tangent(widths, variance)
    trace, status, loop = [phi], Status.MAX_ITERATIONS, 0
    for loop in range(1, outer_iterations + 1):  # noqa: B007 (reported)
        weights = np.sqrt(variance * z)
        s, inner = weighted_lasso(gram, correlations, weights, s)
        widths = np.abs(s) / np.where(weights > 0, weights, 1)
        z, phi, solved = problem.tangent(widths, variance)
        trace.append(phi)
        if trace[-2] - phi < tolerance:
            status = inner.status
            break
    of_s = np.diag(widths) - (widths[:, None] * (columns.T @ solved)) * widths
    mean = problem.from_s @ (widths * (solved.T @ data)) + problem.offset
    covariance = variance * (problem.from_s @ of_s @ problem.from_s.T + problem.unseen_inverse)
    return Relevance(mean, covariance, widths, z, tuple(trace[1:]), Convergence(status, loop, trace[-2] - trace[-1]))


@dataclass(frozen=True)
class Elimination:
    """The regression on s that is left where v, what B does not see, is eliminated.

    Parameters
    ----------
    columns, data : arrays, shapes (m, q) and (m,)
        Columns x_i of s, and y, both without what v explains.
    from_s, offset : arrays, shapes (n, q) and (n,)
        The best u for given s is ``from_s @ s + offset``.
    unseen_inverse : array, shape (n, n)
        Cov[u | s] / sigma^2.
    constant : float
        Part of phi that does not depend on gamma.
    """

    columns: Array
    data: Array
    from_s: Array
    offset: Array
    unseen_inverse: Array
    constant: float

    def tangent(self, gamma: Array, variance: float) -> tuple[Array, float, Array]:
        """z, phi and K^-1 times the columns."""
        K = np.eye(len(self.data)) + (self.columns * gamma) @ self.columns.T
        factor = scipy.linalg.cho_factor(K, lower=True)
        solved = scipy.linalg.cho_solve(factor, self.columns)
        fit = float(self.data @ scipy.linalg.cho_solve(factor, self.data)) / variance
        phi = self.constant + 2 * float(np.log(np.diag(factor[0])).sum()) + fit
        return np.einsum("mi,mi->i", self.columns, solved), phi, solved


def eliminate(X: Array, y: Array, B: Array) -> Elimination:
    """Write u as B^+ s + N v, N an orthonormal basis of what B does not see, with the best v for every s.

    Raises
    ------
    InputError
        For rows of B that depend on each other, or a direction that neither X nor B sees.
    """
    if np.linalg.matrix_rank(B) < len(B):
        raise InputError("B", "rows that depend on each other", "independent rows", "Use sites that are densities.")
    N, inverse = scipy.linalg.null_space(B), np.linalg.pinv(B)
    seen_by_X = X @ N
    if np.linalg.matrix_rank(seen_by_X, tol=ROUNDING * float(np.linalg.norm(X))) < N.shape[1]:
        raise InputError("X and B", "a direction that neither sees", "measurements of all that B does not see")
    to_v, gram = np.linalg.pinv(seen_by_X), seen_by_X.T @ seen_by_X
    from_s = inverse - N @ (to_v @ (X @ inverse))
    constant = float(np.linalg.slogdet(gram)[1] + np.linalg.slogdet(B @ B.T)[1])
    return Elimination(
        X @ from_s, y - seen_by_X @ (to_v @ y), from_s, N @ (to_v @ y), N @ np.linalg.pinv(gram) @ N.T, constant
    )


def weighted_lasso(
    gram: Array, correlations: Array, weights: Array, start: Array, steps: int = LASSO_STEPS
) -> tuple[Array, Convergence]:
    """The s that minimises s^T G s / 2 - c^T s + sum_i weights_i |s_i|, with exact zeros, and how the search ended.

    One coefficient joins those that are not zero at a time, and the equations of these are solved, up to where a sign
    would change: feature-sign search (Lee, Battle, Raina & Ng, NIPS 19, 2007). The residual is the largest violation
    of the conditions of the minimum; without convergence after ``steps`` s is not yet the minimum.
    """
    s, small = start.copy(), ROUNDING * max(float(np.abs(correlations).max(initial=0)), np.finfo(float).tiny)
    status, step, violation = Status.MAX_ITERATIONS, 0, np.inf
    for step in range(1, steps + 1):  # noqa: B007 (reported)
        signs, gradient = np.sign(s), gram @ s - correlations
        unsolved = float(np.abs(gradient + weights * signs)[signs != 0].max(initial=0))
        excess = np.where(signs == 0, np.abs(gradient) - weights, 0)
        violation = max(unsolved, float(excess.max(initial=0)))
        if violation <= small:
            status = Status.CONVERGED
            break
        if unsolved <= small:
            new = int(excess.argmax())
            signs[new] = -np.sign(gradient[new])
        on = np.flatnonzero(signs)
        goal = np.linalg.lstsq(gram[np.ix_(on, on)], (correlations - weights * signs)[on])[0]
        turns = np.flatnonzero(s[on] * goal < 0)
        lengths = s[on][turns] / (s[on] - goal)[turns]
        length = lengths.min(initial=1.0)
        s[on] += length * (goal - s[on])
        if length < 1:
            s[on[turns[lengths.argmin()]]] = 0
    return s, Convergence(status, step, violation)
