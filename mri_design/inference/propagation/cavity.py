"""The product of all messages and what is left of it without one: two ways to hold it.

`DensePrecision` holds the precision P of the product: a cavity costs a Cholesky factor of the size of the unknowns.
`LowRankCovariance` holds its inverse V: a chunk of few coefficients (or coordinates) is taken out and put back by a
correction of that rank (Woodbury), O(n^2 rank), and its mode is found in as many dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.linalg

from mri_design.errors import InputError
from mri_design.inference.propagation.chunk_mode import ChunkMode, mode_on_coordinates, mode_on_rows
from mri_design.inference.propagation.chunks import LoadedChunk, Message, weighted
from mri_design.inference.proper_factor import precision_inverse, proper_factor
from mri_design.operators.base import Array


class Cavities(Protocol):
    """N(mean, P^-1), the product of the Gaussian part and all messages."""

    def mode(
        self, chunk: LoadedChunk, message: Message, start: Array, dual: Array | None, max_iterations: int
    ) -> tuple[ChunkMode, Array]:
        """Mode of the chunk's sites times the product without its ``message``; also theta on its coordinates."""
        ...

    def replace(self, chunk: LoadedChunk, change: Message) -> None:
        """Multiply by ``change``, new message over old."""
        ...


@dataclass
class DensePrecision:
    """P and h of the product; n^2 numbers."""

    P: Array
    h: Array

    def mode(
        self, chunk: LoadedChunk, message: Message, start: Array, dual: Array | None, max_iterations: int
    ) -> tuple[ChunkMode, Array]:
        place = chunk.coordinates
        Q, h = self.P.copy(), self.h.copy()
        Q[square(place)] -= message.quadratic(chunk)
        h[place] -= message.linear(chunk)
        if chunk.size >= len(Q) and chunk.curved:
            mode = mode_on_coordinates(chunk, Q, h, start, rows_on=place, max_iterations=max_iterations)
            return mode, mode.theta[place]
        try:
            factor = proper_factor(Q)
        except InputError:  # the sites may determine what the cavity leaves open
            if not chunk.curved:
                raise
            mode = mode_on_coordinates(chunk, Q, h, start, rows_on=place, max_iterations=max_iterations)
            return mode, mode.theta[place]
        rows = np.zeros((len(self.h), chunk.size))
        rows[place] = chunk.rows.T
        spread = scipy.linalg.cho_solve(factor, rows, overwrite_b=True)
        centre = scipy.linalg.cho_solve(factor, h)
        K = chunk.rows @ spread[place]
        mode = mode_on_rows(chunk, 0.5 * (K + K.T), chunk.rows @ centre[place], dual, max_iterations=max_iterations)
        return mode, np.asarray((centre + spread @ mode.dual)[place])

    def replace(self, chunk: LoadedChunk, change: Message) -> None:
        self.P[square(chunk.coordinates)] += change.quadratic(chunk)
        self.h[chunk.coordinates] += change.linear(chunk)


@dataclass
class LowRankCovariance:
    """V = P^-1 and the mean of the product; n^2 numbers."""

    V: Array
    m: Array

    @classmethod
    def of(cls, P: Array, h: Array) -> LowRankCovariance:
        """From precision and linear part; P must be positive definite."""
        V = precision_inverse(P)
        return cls(V, V @ h)

    def mode(
        self, chunk: LoadedChunk, message: Message, start: Array, dual: Array | None, max_iterations: int
    ) -> tuple[ChunkMode, Array]:
        place = chunk.coordinates
        covariance, mean = self.V[square(place)], self.m[place]
        if chunk.width <= chunk.size and chunk.curved:
            marginal = precision_inverse(covariance)
            Q = marginal - message.quadratic(chunk)
            h = marginal @ mean - message.linear(chunk)
            mode = mode_on_coordinates(chunk, Q, h, start[place], rows_on=slice(None), max_iterations=max_iterations)
            return mode, mode.theta
        spread = covariance @ chunk.rows.T
        K, raw = chunk.rows @ spread, chunk.rows @ mean
        left = -weighted(message.curvature, K)
        left[np.diag_indices_from(left)] += 1.0  # I - W K
        factor = scipy.linalg.lu_factor(left)
        K_cavity = scipy.linalg.lu_solve(factor, K.T, trans=1).T
        slope = message.slope.ravel()
        centre = scipy.linalg.lu_solve(factor, raw - K @ slope, trans=1)
        mode = mode_on_rows(chunk, 0.5 * (K_cavity + K_cavity.T), centre, dual, max_iterations=max_iterations)
        shift = scipy.linalg.lu_solve(factor, weighted(message.curvature, raw) - slope + mode.dual)
        return mode, np.asarray(mean + spread @ shift)

    def replace(self, chunk: LoadedChunk, change: Message) -> None:
        place = chunk.coordinates
        if chunk.width <= chunk.size:
            G = self.V[:, place].copy()
            K, raw = self.V[square(place)], self.m[place]
            D = change.quadratic(chunk)
            d, DK, DG = change.linear(chunk), D @ K, D @ G.T
            moved = D @ raw
        else:
            G = self.V[:, place] @ chunk.rows.T
            K, raw = chunk.rows @ G[place], chunk.rows @ self.m[place]
            DK, DG = weighted(change.curvature, K), weighted(change.curvature, G.T)
            d, moved = change.slope.ravel(), weighted(change.curvature, raw)
        DK[np.diag_indices_from(DK)] += 1.0  # I + D K
        factor = scipy.linalg.lu_factor(DK)
        self.m = self.m + G @ scipy.linalg.lu_solve(factor, d - moved)
        V = self.V - G @ scipy.linalg.lu_solve(factor, DG)
        self.V = 0.5 * (V + V.T)


def square(place: Array | slice) -> tuple[Array | slice, ...]:
    """Index of the square of a matrix that belongs to some coordinates."""
    return (place, place) if isinstance(place, slice) else np.ix_(place, place)
