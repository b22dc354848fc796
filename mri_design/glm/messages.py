"""Chunks of sites for Laplace propagation: their modes under a cavity, their messages, and the product of all messages.

Everything is on real unknowns theta = (real parts, imaginary parts) of u / sigma, with s = rows theta - offsets. The
sites of a model are partitioned into chunks (`partition_sites`), whose rows are read when they are needed
(`load_chunk`).

The mode of a chunk times a Gaussian (the cavity) minimises

    theta^T Q theta / 2 - h^T theta - sum_i log t_i(rows theta)

by Newton's method: `mode_on_coordinates` works on the unknowns, for chunks with more coefficients than coordinates;
`mode_on_rows` on the coefficients, for chunks with fewer, and for first-order sites, whose dual lives there. Smola,
Vishwanathan & Eskin 2003, equation (4); for the second space see Rasmussen & Williams 2006, algorithm 3.1.

The product of all messages is held by its precision: a cavity costs a Cholesky factor of the size of the unknowns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.linalg

from mri_design.errors import InputError
from mri_design.glm.dense import NEGLIGIBLE, as_vector, proper_factor, resolution
from mri_design.model.generalized_linear import GeneralizedLinearModel, SiteBlock
from mri_design.model.posterior import PosteriorPrecision
from mri_design.operators.base import Array
from mri_design.sites.base import Site, represented
from mri_design.status import Convergence, Status


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

    def mixed(self, other: Message, part: float) -> Message:
        """Natural parameters between this (part 0) and ``other`` (part 1)."""
        if part == 1:
            return other
        return Message(
            (1 - part) * self.slope + part * other.slope, (1 - part) * self.curvature + part * other.curvature
        )

    def multiply(self, chunk: LoadedChunk, *products: tuple[Array, Array], by: float = 1.0) -> None:
        """Multiply products, given by their P and h, by this message in place, or divide them (``by`` -1)."""
        quadratic = chunk.rows.T @ weighted(by * self.curvature, chunk.rows)
        linear = chunk.rows.T @ (by * self.slope.ravel())
        for P, h in products:
            if isinstance(chunk.coordinates, slice):  # all of them: without a second copy of P
                P += quadratic
            else:
                P[square(chunk.coordinates)] += quadratic
            h[chunk.coordinates] += linear


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
        """Number of real coefficients."""
        return len(self.rows)


def partition_sites(
    blocks: Sequence[SiteBlock], members: Sequence[int], partition: Partition, size: int, rng: np.random.Generator
) -> list[tuple[int, Array]]:
    """Chunks of at most ``size`` sites of the blocks ``members``; no chunk has sites of two blocks.

    Each is the number of its block, and flat indices into the block's sites, ascending.

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
    chunks: list[tuple[int, Array]] = []
    for number in members:
        count = int(np.prod(blocks[number].site_shape))
        order = rng.permutation(count) if partition == "random" else np.arange(count)
        pieces = 1 if partition == "groups" else -(-count // size)
        chunks += [(number, np.sort(part)) for part in np.array_split(order, pieces)]
    return chunks


def coefficients_of_sites(block: SiteBlock, sites: Array) -> Array:
    """Flat indices of the coefficients that share each site, shape (len(sites), members of a group)."""
    shape, axes = block.analysis.out_shape, range(-len(block.analysis.out_shape), 0)
    members = [shape[axis] if axis in block.group_axes else 1 for axis in axes]
    starts = np.ravel_multi_index(np.unravel_index(sites, block.site_shape), shape)
    within = np.ravel_multi_index(tuple(np.indices(members).reshape(len(shape), -1)), shape)
    return np.asarray(starts)[:, None] + within


def load_chunk(model: GeneralizedLinearModel, number: int, sites: Array) -> LoadedChunk:
    """Rows, offsets and sites of a chunk of the block with a number: the only place where rows of B are read.

    Raises
    ------
    InputError
        For a potential whose sites cannot be taken apart.
    """
    block = model.blocks[number]
    sigma = float(np.sqrt(model.noise_variance))
    index = coefficients_of_sites(block, sites)
    rows = block.analysis.real_rows(index.ravel())
    parts = index.shape[1] * rows.shape[1]
    offsets = np.zeros((len(sites), parts))
    if block.offset is not None:
        given = block.offset.ravel()[index] / sigma
        pieces = [given.real, given.imag] if block.analysis.out_complex else [given.real]
        offsets = np.stack(pieces, axis=-1).reshape(len(sites), parts)
    rows = rows.reshape(-1, rows.shape[-1])
    touched = np.flatnonzero(rows.any(axis=0))
    coordinates: Array | slice = slice(None)
    if len(touched) < rows.shape[1]:
        coordinates, rows = touched, rows[:, touched]
    return LoadedChunk(rows, coordinates, offsets, _sites_apart(block, sites), parts)


def _sites_apart(block: SiteBlock, sites: Array) -> Site:
    shape = block.site_shape
    place: tuple[Any, ...] = np.unravel_index(sites, shape)
    taken = block.potential.at(place, shape)
    shapes = np.shape(taken.start_variance), np.shape(taken.shift)
    if not all(each in ((), (1,), (len(sites),)) for each in shapes):
        raise InputError(
            f"block {block.name!r}",
            f"{type(block.potential).__name__}, whose sites cannot be taken apart",
            "a potential whose method `at` selects sites",
            "Give its parts one scale each, or write its method `at`.",
        )
    return taken


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
        accepted = _searched_in_box(K, alpha, gradient, step, upper)
        if accepted is None:
            accepted = _searched_in_box(K, alpha, gradient, -gradient / diagonal, upper)
        if accepted is not None:
            alpha = accepted
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


def _searched_in_box(K: Array, alpha: Array, gradient: Array, step: Array, upper: Array) -> Array | None:
    """The first of the halved, projected steps that lowers the quadratic."""
    length = 1.0
    for _ in range(40):
        new = np.clip(alpha + length * step, 0.0, upper)
        move = new - alpha
        if gradient @ move + 0.5 * move @ (K @ move) < 0:
            return new
        length *= 0.5
    return None


LAST_STEP = 1e-7
"""Newton stops after a step below this (relative): the error left is of the order of its square."""
HALVINGS = 40


@dataclass(frozen=True)
class ChunkMode:
    """The mode of a chunk under its cavity.

    Parameters
    ----------
    message : Message
        Expansion of the sites at the mode.
    dual : array, shape (sites * parts,)
        Gradient of sum log t there, or the element of the subdifferential that is optimal.
    theta : array
        The mode: on the coordinates that the caller worked on, empty where it worked on coefficients.
    convergence : Convergence
        ``iterations`` counts Newton steps.
    """

    message: Message
    dual: Array
    theta: Array
    convergence: Convergence


def message_at(chunk: LoadedChunk, raw: Array) -> Message:
    """Expansion of a chunk at raw coefficients rows theta."""
    gradient, curvature = expand(chunk, raw)
    slope = gradient + weighted(curvature, raw)
    return Message(slope.reshape(-1, chunk.parts), curvature)


def mode_on_coordinates(chunk: LoadedChunk, Q: Array, h: Array, start: Array, *, max_iterations: int) -> ChunkMode:
    """Newton on theta.

    Parameters
    ----------
    chunk : LoadedChunk
        Smooth sites.
    Q, h : arrays, shapes (d, d) and (d,)
        The cavity's precision and linear part.
    start : array, shape (d,)
        Where to begin.
    max_iterations : int
        Newton steps.

    Raises
    ------
    InputError
        Where Q and the sites together leave a direction undetermined.
    """
    rows_on = chunk.coordinates

    def direction(theta: Array, raw: Array, gradient: Array, curvature: Array) -> _Step:
        slope = h - Q @ theta
        slope[rows_on] += chunk.rows.T @ gradient
        hessian = Q.copy()
        hessian[square(rows_on)] += chunk.rows.T @ weighted(curvature, chunk.rows)
        step = scipy.linalg.cho_solve(proper_factor(hessian), slope)
        return step, chunk.rows @ step[rows_on], float(slope @ step), resolution(hessian)

    return _newton(
        chunk,
        start,
        lambda theta: chunk.rows @ theta[rows_on],
        lambda theta, raw: 0.5 * float(theta @ (Q @ theta)) - float(h @ theta),
        direction,
        on_rows=False,
        max_iterations=max_iterations,
    )


def mode_on_rows(
    chunk: LoadedChunk, K: Array, mean: Array, start: Array | None = None, *, max_iterations: int
) -> ChunkMode:
    """Newton on the dual a of s = mean + K a, or the box-constrained dual of margins.

    Parameters
    ----------
    chunk : LoadedChunk
        Smooth sites, or sites of first order.
    K, mean : arrays, shapes (m, m) and (m,)
        Covariance and mean of the raw coefficients under the cavity.
    start : array, optional
        A dual to begin from.
    max_iterations : int
        Newton steps.
    """
    if chunk.potential.margins is not None:
        return _margin_mode(chunk, K, mean, start, max_iterations)
    floor = NEGLIGIBLE * float(np.sqrt(np.trace(K)))

    def direction(dual: Array, raw: Array, gradient: Array, curvature: Array) -> _Step:
        system = weighted(curvature, K)
        system[np.diag_indices_from(system)] += 1.0
        step = scipy.linalg.solve(system, weighted(curvature, raw - mean) + gradient) - dual
        raw_step = K @ step
        return step, raw_step, float(raw_step @ (gradient - dual)), floor

    return _newton(
        chunk,
        np.zeros(len(mean)) if start is None else start,
        lambda dual: mean + K @ dual,
        lambda dual, raw: 0.5 * float(dual @ (raw - mean)),
        direction,
        on_rows=True,
        max_iterations=max_iterations,
    )


_Step = tuple[Array, Array, float, float]
"""A Newton step, the change of rows theta, the decrease it promises, and the norm below which nothing counts."""


def _newton(
    chunk: LoadedChunk,
    start: Array,
    raw_of: Callable[[Array], Array],
    energy: Callable[[Array, Array], float],
    direction: Callable[[Array, Array, Array, Array], _Step],
    *,
    on_rows: bool,
    max_iterations: int,
) -> ChunkMode:
    """Damped Newton steps on energy - sum log t, until a whole one is small (in rows theta, or in what it moves).

    A step is halved until there is at least 1e-4 of the decrease it promises.
    """
    at, raw = start, raw_of(start)
    value = energy(at, raw) - log_sites(chunk, raw)
    status, iteration, size = Status.MAX_ITERATIONS, 0, np.inf
    for iteration in range(1, max_iterations + 1):  # noqa: B007 (reported)
        step, raw_step, decrease, floor = direction(at, raw, *expand(chunk, raw))
        rounding, length = 1e-13 * (1 + abs(value)), 1.0
        for _ in range(HALVINGS):
            trial, raw_trial = at + length * step, raw + length * raw_step
            new = energy(trial, raw_trial) - log_sites(chunk, raw_trial)
            if np.isfinite(new) and new <= value - 1e-4 * length * decrease + rounding:
                break
            length *= 0.5
        else:
            status, size = Status.STALLED, 0.0
            break
        at, raw, value = trial, raw_of(trial), new
        moved, place = (raw_step, raw) if on_rows else (step, at)
        size = length * float(np.linalg.norm(moved)) / max(float(np.linalg.norm(place)), floor)
        if length == 1 and size <= LAST_STEP:
            status = Status.CONVERGED
            break
    gradient, _ = expand(chunk, raw)
    theta = np.zeros(0) if on_rows else at
    return ChunkMode(message_at(chunk, raw), gradient, theta, Convergence(status, iteration, size))


def _margin_mode(chunk: LoadedChunk, K: Array, mean: Array, start: Array | None, max_iterations: int) -> ChunkMode:
    assert chunk.potential.margins is not None
    labels, upper = (np.broadcast_to(margin, mean.shape) for margin in chunk.potential.margins)
    margin = 1 - labels * (mean - chunk.offsets[:, 0])
    alpha, convergence = minimise_in_box(
        labels[:, None] * K * labels,
        margin,
        upper,
        None if start is None else labels * start,
        max_iterations=10 * max_iterations,
    )
    dual = labels * alpha
    flat = Message.flat(len(mean), 1)
    return ChunkMode(Message(dual[:, None], flat.curvature), dual, np.zeros(0), convergence)


def mode_under_cavity(
    chunk: LoadedChunk, cavity: tuple[Array, Array], start: Array, dual: Array | None, max_iterations: int
) -> tuple[ChunkMode, Array]:
    """Mode of a chunk's sites times their cavity; theta on the chunk's coordinates.

    Parameters
    ----------
    chunk : LoadedChunk
        The sites.
    cavity : arrays
        P and h of the product of the Gaussian part and all other messages.
    start, dual : arrays
        Where Newton's method begins: theta, or the dual of an earlier mode.
    max_iterations : int
        Newton steps.

    Raises
    ------
    InputError
        Where the product is not a proper distribution.
    """
    place, (P, h), factor = chunk.coordinates, cavity, None
    if chunk.size < len(P) or not chunk.curved:
        try:
            factor = proper_factor(P)
        except InputError:
            if not chunk.curved:
                raise
    if factor is None:  # fewer coordinates than rows, or the sites may determine what the cavity leaves open
        mode = mode_on_coordinates(chunk, P, h, start, max_iterations=max_iterations)
        return mode, mode.theta[place]
    sides = np.zeros((len(h), chunk.size + 1), order="F")
    sides[place, :-1], sides[:, -1] = chunk.rows.T, h
    sides = scipy.linalg.cho_solve(factor, sides, overwrite_b=True, check_finite=False)[place]
    spread, centre = sides[:, :-1], sides[:, -1]
    K = chunk.rows @ spread
    mode = mode_on_rows(chunk, 0.5 * (K + K.T), chunk.rows @ centre, dual, max_iterations=max_iterations)
    return mode, np.asarray(centre + spread @ mode.dual)


def square(place: Array | slice) -> tuple[Array | slice, ...]:
    """Index of the square of a matrix that belongs to some coordinates."""
    return (place, place) if isinstance(place, slice) else np.ix_(place, place)


BATCH = 64


def gaussian_part(model: GeneralizedLinearModel, exact: Sequence[int]) -> tuple[Array, Array]:
    """P_0 and h_0 on theta = u / sigma of X and the Gaussian blocks ``exact``: t_0, which is never approximated."""
    blocks = tuple(model.blocks[number] for number in exact)
    precisions = tuple(gaussian_precision(model, number) for number in exact)
    precision = PosteriorPrecision(model.measurement, blocks, precisions)
    n, sigma = model.measurement.in_size, float(np.sqrt(model.noise_variance))
    pixels = int(np.prod(model.image_shape))
    P = np.empty((n, n))
    for first in range(0, n, BATCH):
        columns = np.arange(first, min(first + BATCH, n))
        unit = np.zeros((len(columns), pixels), dtype=complex if model.measurement.in_complex else float)
        unit[np.arange(len(columns)), columns % pixels] = np.where(columns < pixels, 1, 1j) if n > pixels else 1
        image = precision(unit.reshape(-1, *model.image_shape)).reshape(len(columns), -1)
        P[:, columns] = (np.concatenate([image.real, image.imag], axis=1) if n > pixels else image.real).T
    linear = replace(model, blocks=blocks).right_hand_side(precisions) if blocks else model.back_projection()
    return 0.5 * (P + P.T), as_vector(linear) / sigma


def gaussian_precision(model: GeneralizedLinearModel, number: int) -> Array:
    """Site precisions of a block of the Gaussian part; refuses other blocks."""
    block = model.blocks[number]
    own = block.potential.gaussian_precision
    if own is None:
        raise InputError(
            f"exact block {block.name!r}",
            f"{type(block.potential).__name__} sites",
            "Gaussian sites: others need messages",
        )
    return np.broadcast_to(own, block.site_shape).astype(float)
