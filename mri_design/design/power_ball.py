"""The trust-region subproblem in an eigenbasis: a quadratic's largest or smallest value in a ball.

    maximise  sum_i c_i y_i^2 + w_i y_i   subject to  |y| <= R.

Stationary points are y_i = w_i / (2 (lambda - c_i)); the maximum has lambda >= max(c_max, 0), with lambda = 0 inside
the ball. Lewi, Butera & Paninski 2007, equations (15) to (23); More & Sorensen, SIAM J. Sci. Stat. Comput. 4 (1983).
The paper leaves out the hard case: where w has no part along the top eigenvector the multiplier may stay at c_max, and
what is left of the radius goes along that eigenvector, with either sign.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["maximise_in_ball", "minimise_in_ball"]

Values = NDArray[np.float64]
ITERATIONS = 100


def maximise_in_ball(curvatures: Values, slopes: Values, radii: Values) -> Values:
    """Where sum_i c_i y_i^2 + w_i y_i is largest, for many slopes and radii at once.

    Parameters
    ----------
    curvatures : float array, shape (n,)
        c, the eigenvalues, of any sign and in any order.
    slopes : float array, shape (m, n)
        w in the eigenbasis, one row per problem.
    radii : float array, shape (m,)
        R >= 0.

    Returns
    -------
    float array, shape (m, n)
        y of every problem.
    """
    w, R = np.asarray(slopes, dtype=float), np.asarray(radii, dtype=float)
    if not curvatures.size:
        return w.copy()
    least = max(float(curvatures.max()), 0.0)
    gaps = least - curvatures
    flat = (gaps == 0) & (w == 0)  # neither slope nor curvature under the smallest multiplier
    at_least = _norms(_stationary(w, gaps, np.zeros(len(w)), flat))
    y = np.zeros_like(w)
    inside = at_least <= R
    y[inside] = _stationary(w[inside], gaps, np.zeros(int(inside.sum())), flat[inside])
    if least == curvatures.max():  # the hard case; with c_max < 0 the interior point stands
        top = int(np.argmin(gaps))
        y[inside, top] += np.sqrt(np.maximum(R[inside] ** 2 - at_least[inside] ** 2, 0))
    edge = ~inside & (R > 0)
    if edge.any():
        y[edge] = _stationary(w[edge], gaps, _multiplier(w[edge], gaps, R[edge]), flat[edge])
        y[edge] *= (R[edge] / _norms(y[edge]))[:, None]
    return y


def minimise_in_ball(curvatures: Values, slopes: Values, radii: Values) -> Values:
    """Where the same quadratic is smallest; see `maximise_in_ball`."""
    return maximise_in_ball(-np.asarray(curvatures), -np.asarray(slopes), radii)


def _stationary(w: Values, gaps: Values, delta: Values, flat: NDArray[np.bool_]) -> Values:
    """w / (2 (delta + gaps)), zero where nothing pulls; infinite where nothing holds."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(flat | (w == 0), 0.0, w / (2 * (delta[:, None] + gaps)))


def _norms(y: Values) -> Values:
    return np.asarray(np.linalg.norm(y, axis=1))


def _multiplier(w: Values, gaps: Values, R: Values) -> Values:
    """delta > 0 with |y(delta)| = R, by Newton's method on 1 / |y| inside a bracket."""
    low = np.maximum(np.abs(w) / (2 * R[:, None]) - gaps, 0).max(axis=1)
    high = _norms(w) / (2 * R)
    delta = np.where(low > 0, low, 0.5 * high)
    for _ in range(ITERATIONS):
        spread = delta[:, None] + gaps
        y = np.divide(w, 2 * spread, out=np.zeros_like(w), where=spread > 0)
        size = _norms(y)
        low, high = np.where(size > R, delta, low), np.where(size > R, high, delta)
        fall = np.sum(np.divide(y**2, spread, out=np.zeros_like(w), where=spread > 0), axis=1)
        step = delta + np.divide(size**2, fall, out=np.zeros_like(size), where=fall > 0) * (size / R - 1)
        middle = np.where(low > 0, np.sqrt(low * high), 0.5 * high)
        new = np.where((step > low) & (step < high), step, middle)
        done = np.abs(size / R - 1) < 1e-12
        if np.all(done | (np.abs(new - delta) <= 1e-16 * delta)):
            break
        delta = np.where(done, delta, new)
    return np.asarray(delta)
