"""Eigenvectors after a change of rank one, by the secular equation (Gu and Eisenstat 1994).

Of V diag(d) V^T + rho u u^T, with z = V^T u. First deflation: eigenvalues that agree to a tolerance are rotated so that
all but one of them do not see u; nor do those with a negligible z. On the k that are left the eigenvalues are the roots
of

    1 + rho sum_j z_j^2 / (d_j - lambda) = 0,

each kept as the nearest d_j and a distance from it; and the eigenvectors those of a z that is computed anew from the
roots, z_j^2 = prod_i (lambda_i - d_j) / (rho prod_{i != j} (d_i - d_j)), which makes them orthogonal to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError

Values = NDArray[np.float64]
TOLERANCE = 8 * np.finfo(float).eps
"""Relative to the largest eigenvalue: what deflation neglects."""


@numba.njit(cache=True)
def _roots(d, squares):
    """For rho = 1: the nearest pole of each root and the distance from it; d increases, squares are positive."""
    k = len(d)
    pole, distance = np.empty(k, np.int64), np.empty(k)
    total = squares.sum()
    for i in range(k):
        last = i == k - 1
        gap = total if last else d[i + 1] - d[i]
        value = 1.0
        for j in range(k):
            value += squares[j] / ((d[j] - d[i]) - 0.5 * gap)
        origin = i if last or value >= 0 else i + 1
        low, high = (0.0, gap) if last else (0.0, 0.5 * gap) if origin == i else (-0.5 * gap, 0.0)
        if last and value < 0:
            low = 0.5 * gap
        x = 0.5 * (low + high)
        near, far = d[i] - d[origin], 0.0 if last else d[i + 1] - d[origin]
        for _ in range(80):
            below, below_slope, above, above_slope = 0.0, 0.0, 0.0, 0.0
            for j in range(i + 1):
                t = squares[j] / ((d[j] - d[origin]) - x)
                below += t
                below_slope += t / ((d[j] - d[origin]) - x)
            for j in range(i + 1, k):
                t = squares[j] / ((d[j] - d[origin]) - x)
                above += t
                above_slope += t / ((d[j] - d[origin]) - x)
            f = 1 + below + above
            if abs(f) <= 2e-16 * k * (1 + abs(below) + abs(above)):
                break
            if f < 0:
                low = x
            else:
                high = x
            # Both sums are replaced by a constant and a pole, with their values and slopes.
            a, b = near - x, far - x
            if last:
                p = below_slope * a * a
                step = a - p / (p / a - f) if p / a - f != 0 else 0.0
            else:
                p, q = below_slope * a * a, above_slope * b * b
                c = f - p / a - q / b
                # c (a - s)(b - s) + p (b - s) + q (a - s) = 0
                B, C = c * (a + b) + p + q, c * a * b + p * b + q * a
                root = np.sqrt(max(B * B - 4 * c * C, 0.0))
                step = 2 * C / (B + root) if B > 0 else (B - root) / (2 * c) if c != 0 else 0.0
            new = x + step
            if not low < new < high:
                new = 0.5 * (low + high)
                if low > 0 and high > 4 * low:
                    new = np.sqrt(low * high)
                elif high < 0 and low < 4 * high:
                    new = -np.sqrt(low * high)
                elif low == 0:
                    new = 0.1 * high
                elif high == 0:
                    new = 0.1 * low
            if new == x or high - low <= 2e-16 * max(abs(low), abs(high)):
                break
            x = new
        pole[i], distance[i] = origin, x
    return pole, distance


@numba.njit(cache=True)
def _vectors(d, z, pole, distance):
    """Orthonormal eigenvectors of diag(d) + z z^T as columns, of the z that has exactly these roots."""
    k = len(d)
    S = np.empty((k, k))
    for j in range(k):
        product = distance[j] + (d[pole[j]] - d[j])
        for i in range(j):
            product *= ((d[pole[i]] - d[j]) + distance[i]) / (d[i] - d[j])
        for i in range(j + 1, k):
            product *= ((d[pole[i]] - d[j]) + distance[i]) / (d[i] - d[j])
        weight = np.sqrt(abs(product)) * (1.0 if z[j] >= 0 else -1.0)
        for i in range(k):
            S[j, i] = weight / ((d[j] - d[pole[i]]) - distance[i])
    return S / np.sqrt((S * S).sum(axis=0))


@dataclass(frozen=True)
class RankOne:
    """diag(d) + rho z z^T = T diag(values) T^T, where T is held as rotations and a small matrix.

    Parameters
    ----------
    values : array, shape (n,)
        Eigenvalues; those of ``kept`` in its order, the others deflated.
    rotations : list of (indices, reflector)
        Householder reflections of eigenvalues that agree.
    kept : int array, shape (k,)
        Undeflated indices.
    vectors : array, shape (k, k)
        Eigenvectors on them.
    """

    values: Values
    rotations: list[tuple[NDArray[np.intp], Values]]
    kept: NDArray[np.intp]
    vectors: Values

    @classmethod
    def of(cls, d: Values, z: Values, rho: float, tolerance: float = TOLERANCE) -> RankOne:
        """Deflate and solve.

        Raises
        ------
        InputError
            For arrays of different length or values that are not finite.
        """
        if d.shape != z.shape or not (np.isfinite(d).all() and np.isfinite(z).all() and np.isfinite(rho)):
            raise InputError("update", f"shapes {d.shape} and {z.shape}", "finite d and z of one length, finite rho")
        z, values = z.astype(float), d.astype(float)
        size = float(np.sqrt(z @ z))
        allowed = tolerance * max(float(np.abs(d).max()), abs(rho) * size**2)
        order = np.argsort(d)
        starts = _clusters(d[order], allowed)
        rotations = []
        for first, end in zip(starts, [*starts[1:], len(d)], strict=True):
            if end - first > 1:
                group = order[first:end]
                length = float(np.linalg.norm(z[group]))
                reflector = z[group].copy()
                reflector[0] += np.copysign(length, z[group[0]])
                norm = float(np.linalg.norm(reflector))
                if length > 0 and norm > 0:
                    rotations.append((group, reflector / norm))
                    top = -np.copysign(length, z[group[0]])
                    z[group] = 0.0
                    z[group[0]] = top
        kept = order[np.abs(rho) * np.abs(z[order]) * size > allowed]
        if rho == 0 or not len(kept):
            return cls(values, rotations, kept[:0], np.empty((0, 0)))
        sign = np.sign(rho)
        if sign < 0:
            kept = kept[::-1]
        poles, weights = sign * d[kept], np.sqrt(abs(rho)) * z[kept]
        pole, distance = _roots(poles, weights**2)
        values[kept] = sign * (poles[pole] + distance)
        return cls(values, rotations, kept, _vectors(poles, weights, pole, distance))

    def apply(self, y: Values) -> Values:
        """T y."""
        y = y.copy()
        y[self.kept] = self.vectors @ y[self.kept]
        for group, reflector in reversed(self.rotations):
            y[group] -= 2 * reflector * (reflector @ y[group])
        return y

    def transposed(self, y: Values) -> Values:
        """T^T y."""
        y = y.copy()
        for group, reflector in self.rotations:
            y[group] -= 2 * reflector * (reflector @ y[group])
        y[self.kept] = self.vectors.T @ y[self.kept]
        return y

    def times(self, V: Values) -> Values:
        """V T, in place: the new eigenvectors, in O(n k^2) and O(n) for each eigenvalue that was rotated."""
        for group, reflector in self.rotations:
            part = V[:, group]
            V[:, group] = part - 2 * np.outer(part @ reflector, reflector)
        V[:, self.kept] = V[:, self.kept] @ self.vectors
        return V


def _clusters(d: Values, allowed: float) -> list[int]:
    """Where runs of increasing values begin that lie within ``allowed`` of their first."""
    if not len(d):
        return []
    starts, far = [0], np.flatnonzero(np.diff(d) > allowed) + 1
    for end in [*far.tolist(), len(d)]:
        first = starts[-1]
        while first < end and d[end - 1] - d[first] > allowed:
            first += int(np.searchsorted(d[first:end], d[first] + allowed, side="right"))
            starts.append(first)
        if end < len(d):
            starts.append(end)
    return starts
