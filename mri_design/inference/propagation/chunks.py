"""A partition of a model's sites into chunks, and one chunk's rows and sites when they are needed.

Everything here is on real unknowns theta = (real parts, imaginary parts) of u / sigma: s = rows theta - offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mri_design.errors import InputError
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.operators.base import Array
from mri_design.operators.rows import real_rows
from mri_design.potentials.base import Site
from mri_design.potentials.requirements import represented


@dataclass(frozen=True)
class Message:
    """exp(slope^T r - r^T diag(curvature) r / 2) on the raw coefficients r = rows theta of a chunk, t~_i of the paper.

    Parameters
    ----------
    slope : array, shape (sites, parts)
        Linear part; on theta it is h = rows^T slope.
    curvature : array, shape (sites, parts, parts)
        Per site; on theta it is P = rows^T diag(curvature) rows.
    """

    slope: Array
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
            (1 - share) * self.slope + share * other.slope, (1 - share) * self.curvature + share * other.curvature
        )

    def difference(self, other: Message) -> Message:
        """The message by which this one is multiplied to become ``other``."""
        return Message(other.slope - self.slope, other.curvature - self.curvature)

    def linear(self, chunk: LoadedChunk) -> Array:
        """h on the chunk's coordinates."""
        return np.asarray(chunk.rows.T @ self.slope.ravel())

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
    return float(np.sum(represented(chunk.potential).g(np.sum(s**2, axis=1))))


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
        curvature = np.maximum(-np.asarray(chunk.potential.d2log_t(s[:, 0])), 0.0)
        return np.array(slope), np.broadcast_to(curvature, s.shape[:1])[:, None, None].copy()
    x, site = np.sum(s**2, axis=1), represented(chunk.potential)
    across = np.broadcast_to(-2 * site.dg(x), x.shape)
    along = across - 4 * np.broadcast_to(site.d2g(x), x.shape) * x
    across, along = np.maximum(across, 0.0), np.maximum(along, 0.0)
    unit = s / np.sqrt(np.maximum(x, np.finfo(float).tiny))[:, None]
    curvature = across[:, None, None] * np.eye(chunk.parts)
    curvature = curvature + (along - across)[:, None, None] * unit[:, :, None] * unit[:, None, :]
    gradient = 2 * np.broadcast_to(site.dg(x), x.shape)[:, None] * s
    return gradient.ravel(), curvature


Partition = Literal["random", "contiguous", "groups"]


@dataclass(frozen=True)
class Chunk:
    """Some sites of one block.

    Parameters
    ----------
    block : int
        Number of the block.
    sites : int array
        Flat indices into the block's sites, ascending.
    """

    block: int
    sites: Array


@dataclass(frozen=True)
class LoadedChunk:
    """A chunk in memory.

    Parameters
    ----------
    rows : array, shape (sites * parts, len(coordinates))
        Rows of B, those of one site together, on the coordinates that any of them touches.
    coordinates : int array or slice
        These coordinates of theta; ``slice(None)`` where they are all.
    offsets : array, shape (sites, parts)
        In units of sigma.
    potential : Site
        Of these sites.
    parts : int
        Real numbers that share a site: 1, or more on moduli.
    """

    rows: Array
    coordinates: Array | slice
    offsets: Array
    potential: Site
    parts: int

    @property
    def curved(self) -> bool:
        """Whether the sites have curvatures; margins have none, and their mode is found in the dual."""
        return self.potential.margins is None

    @property
    def size(self) -> int:
        """How many real coefficients it has."""
        return len(self.rows)

    @property
    def width(self) -> int:
        """How many coordinates it touches."""
        return int(self.rows.shape[1])


def partition_sites(
    blocks: Sequence[SiteBlock], members: Sequence[int], partition: Partition, size: int, rng: np.random.Generator
) -> list[Chunk]:
    """Chunks of at most ``size`` sites of the blocks ``members``; no chunk has sites of two blocks.

    Parameters
    ----------
    blocks : sequence of SiteBlock
        Of the model.
    members : sequence of int
        Numbers of the blocks to cut.
    partition : {"random", "contiguous", "groups"}
        Sites shuffled, sites in their order, or every block a chunk whatever its size.
    size : int
        Sites per chunk; the chunks of a block differ by one site at most.
    rng : numpy Generator
        Shuffles.
    """
    chunks: list[Chunk] = []
    for number in members:
        count = int(np.prod(blocks[number].site_shape))
        order = rng.permutation(count) if partition == "random" else np.arange(count)
        pieces = 1 if partition == "groups" else -(-count // size)
        chunks += [Chunk(number, np.sort(part)) for part in np.array_split(order, pieces)]
    return chunks


def coefficients_of_sites(block: SiteBlock, sites: Array) -> Array:
    """Flat indices of the coefficients that share each site, shape (len(sites), members of a group)."""
    shape = block.analysis.out_shape
    along = [axis % len(shape) for axis in block.group_axes]
    kept = [axis for axis in range(len(shape)) if axis not in along]
    strides = np.array([int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))], dtype=int)
    starts = np.zeros(len(sites), dtype=int)
    if kept:
        places = np.unravel_index(sites, [shape[axis] for axis in kept])
        starts = sum((place * strides[axis] for place, axis in zip(places, kept, strict=True)), start=starts)
    within = np.zeros(1, dtype=int)
    for axis in along:
        within = (within[:, None] + strides[axis] * np.arange(shape[axis])).ravel()
    return starts[:, None] + within


def load_chunk(model: GeneralizedLinearModel, chunk: Chunk) -> LoadedChunk:
    """Rows, offsets and sites of a chunk: the only place where rows of B are read.

    Raises
    ------
    InputError
        For a potential whose sites cannot be taken apart.
    """
    block = model.blocks[chunk.block]
    sigma = float(np.sqrt(model.noise_variance))
    index = coefficients_of_sites(block, chunk.sites)
    rows = real_rows(block.analysis, index.ravel())
    parts = index.shape[1] * rows.shape[1]
    offsets = np.zeros((len(chunk.sites), parts))
    if block.offset is not None:
        given = block.offset.ravel()[index] / sigma
        pieces = [given.real, given.imag] if block.analysis.out_complex else [given.real]
        offsets = np.stack(pieces, axis=-1).reshape(len(chunk.sites), parts)
    rows = rows.reshape(-1, rows.shape[-1])
    touched = np.flatnonzero(rows.any(axis=0))
    coordinates: Array | slice = slice(None)
    if len(touched) < rows.shape[1]:
        coordinates, rows = touched, rows[:, touched]
    return LoadedChunk(rows, coordinates, offsets, _sites_apart(block, chunk.sites), parts)


def row_batches(model: GeneralizedLinearModel, number: int, size: int) -> Iterator[tuple[Array, Array]]:
    """All coefficients of a block in batches: flat indices and rows (count, parts, real unknowns)."""
    analysis = model.blocks[number].analysis
    total = int(np.prod(analysis.out_shape))
    for first in range(0, total, size):
        index = np.arange(first, min(first + size, total))
        yield index, real_rows(analysis, index)


def _sites_apart(block: SiteBlock, sites: Array) -> Site:
    shape = block.site_shape
    place: tuple[Any, ...] = np.unravel_index(sites, shape)
    taken = block.potential.at(place, shape)
    try:
        fits = np.broadcast_shapes(np.shape(taken.start_variance), np.shape(taken.shift), (len(sites),)) == (
            len(sites),
        )
    except ValueError:
        fits = False
    if not fits:
        raise InputError(
            f"block {block.name!r}",
            f"{type(block.potential).__name__}, whose sites cannot be taken apart",
            "a potential whose method `at` selects sites",
            "Give its parts one scale each, or write its method `at`.",
        )
    return taken
