"""Second-order expansion of sites around given coefficients: the Gaussian that Laplace's method puts in their place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mri_design.inference.site_chunks import LoadedChunk
from mri_design.operators import Array

__all__ = ["Message", "expand", "log_sites", "weighted"]


@dataclass(frozen=True)
class Message:
    """exp(pull^T r - r^T diag(curvature) r / 2) on the raw coefficients r = rows theta of a chunk, t~_i of the paper.

    Parameters
    ----------
    pull : array, shape (sites, parts)
        Linear part; on theta it is h = rows^T pull.
    curvature : array, shape (sites, parts, parts)
        Per site; on theta it is P = rows^T diag(curvature) rows.
    """

    pull: Array
    curvature: Array

    @classmethod
    def flat(cls, sites: int, parts: int) -> Message:
        """t~ = 1."""
        return cls(np.zeros((sites, parts)), np.zeros((sites, parts, parts)))

    def mixed(self, other: Message, share: float) -> Message:
        """Natural parameters between this (share 0) and ``other`` (share 1)."""
        if share == 1:
            return other
        return Message(
            (1 - share) * self.pull + share * other.pull, (1 - share) * self.curvature + share * other.curvature
        )

    def difference(self, other: Message) -> Message:
        """What turns this into ``other``."""
        return Message(other.pull - self.pull, other.curvature - self.curvature)

    def linear(self, chunk: LoadedChunk) -> Array:
        """h on the chunk's coordinates."""
        return np.asarray(chunk.rows.T @ self.pull.ravel())

    def quadratic(self, chunk: LoadedChunk) -> Array:
        """P on the chunk's coordinates."""
        return np.asarray(chunk.rows.T @ weighted(self.curvature, chunk.rows))


def weighted(curvature: Array, rows: Array) -> Array:
    """diag(curvature) rows, with a matrix (parts, parts) per site; also of a vector of coefficients."""
    parts = curvature.shape[-1]
    if parts == 1:
        return np.asarray(curvature.reshape(-1, *([1] * (rows.ndim - 1))) * rows)
    grouped = rows.reshape(len(curvature), parts, -1)
    return np.asarray((curvature @ grouped).reshape(rows.shape))


def log_sites(chunk: LoadedChunk, raw: Array) -> float:
    """sum_i log t_i at raw coefficients rows theta, shape (sites * parts,)."""
    s = raw.reshape(-1, chunk.parts) - chunk.offsets
    if chunk.parts == 1:
        return float(np.sum(chunk.potential.log_t(s[:, 0])))
    return float(np.sum(chunk.potential.g(np.sum(s**2, axis=1))))


def expand(chunk: LoadedChunk, raw: Array) -> tuple[Array, Array]:
    """Gradient (sites * parts,) of sum_i log t_i, and minus its second derivative (sites, parts, parts).

    Notes
    -----
    On a modulus, log t = g(|s|^2) has the gradient 2 g' s and the second derivative 2 g' I + 4 g'' s s^T. Directions in
    which a site is not log-concave count as flat: the expansion keeps its gradient there, and so do fixed points.
    """
    s = raw.reshape(-1, chunk.parts) - chunk.offsets
    if chunk.parts == 1:
        slope = np.broadcast_to(chunk.potential.dlog_t(s[:, 0]), s.shape[:1])
        bend = np.maximum(-np.asarray(chunk.potential.d2log_t(s[:, 0])), 0.0)
        return np.array(slope), np.broadcast_to(bend, s.shape[:1])[:, None, None].copy()
    x = np.sum(s**2, axis=1)
    across = np.broadcast_to(-2 * chunk.potential.dg(x), x.shape)
    along = across - 4 * np.broadcast_to(chunk.potential.d2g(x), x.shape) * x
    across, along = np.maximum(across, 0.0), np.maximum(along, 0.0)
    unit = s / np.sqrt(np.maximum(x, np.finfo(float).tiny))[:, None]
    curvature = across[:, None, None] * np.eye(chunk.parts)
    curvature = curvature + (along - across)[:, None, None] * unit[:, :, None] * unit[:, None, :]
    gradient = 2 * np.broadcast_to(chunk.potential.dg(x), x.shape)[:, None] * s
    return gradient.ravel(), curvature
