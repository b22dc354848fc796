"""The mode of one chunk of sites times a Gaussian (the cavity): Newton's method, in one of two spaces.

`mode_on_coordinates` works on the unknowns, for chunks with more coefficients than coordinates; `mode_on_rows` on the
coefficients, for chunks with fewer, and for first-order sites, whose dual lives there. Both minimise

    theta^T Q theta / 2 - h^T theta - sum_i log t_i(rows theta).

Smola, Vishwanathan & Eskin 2003, equation (4); the second space as in Rasmussen & Williams 2006, algorithm 3.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.linalg

from mri_design.errors import InputError
from mri_design.inference.propagation.chunks import LoadedChunk, Message, expand, log_sites, weighted
from mri_design.inference.proper_factor import NEGLIGIBLE, proper_factor, resolution
from mri_design.operators.base import Array
from mri_design.status import Convergence, Status


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
        raise InputError("upper bounds", "zero, negative or infinite", "positive finite numbers")
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
    """What a chunk found.

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


def mode_on_coordinates(
    chunk: LoadedChunk, Q: Array, h: Array, start: Array, *, rows_on: Array | slice, max_iterations: int
) -> ChunkMode:
    """Newton on theta.

    Parameters
    ----------
    chunk : LoadedChunk
        Smooth sites.
    Q, h : arrays, shapes (d, d) and (d,)
        The cavity's precision and linear part.
    start : array, shape (d,)
        Where to begin.
    rows_on : int array or slice
        Which of the d coordinates the chunk's rows act on.
    max_iterations : int
        Newton steps.

    Raises
    ------
    InputError
        Where Q and the sites together leave a direction undetermined.
    """
    theta = start.copy()
    within = np.ix_(rows_on, rows_on) if not isinstance(rows_on, slice) else (rows_on, rows_on)

    def objective(at: Array, raw: Array) -> float:
        return 0.5 * float(at @ (Q @ at)) - float(h @ at) - log_sites(chunk, raw)

    raw = chunk.rows @ theta[rows_on]
    value = objective(theta, raw)
    status, iteration, size = Status.MAX_ITERATIONS, 0, np.inf
    for iteration in range(1, max_iterations + 1):  # noqa: B007 (reported)
        gradient, curvature = expand(chunk, raw)
        slope = h - Q @ theta
        slope[rows_on] += chunk.rows.T @ gradient
        hessian = Q.copy()
        hessian[within] += chunk.rows.T @ weighted(curvature, chunk.rows)
        step = scipy.linalg.cho_solve(proper_factor(hessian), slope)
        raw_step = chunk.rows @ step[rows_on]
        decrease = float(slope @ step)
        along = partial(_moved, objective, theta.copy(), step, raw, raw_step)
        length, value = _searched(along, value, decrease)
        theta += length * step
        raw = chunk.rows @ theta[rows_on]
        size = length * float(np.linalg.norm(step)) / max(float(np.linalg.norm(theta)), resolution(hessian))
        if length == 1 and size <= LAST_STEP:
            status = Status.CONVERGED
            break
        if length == 0:
            status = Status.STALLED
            break
    gradient, _ = expand(chunk, raw)
    return ChunkMode(message_at(chunk, raw), gradient, theta, Convergence(status, iteration, size))


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
    dual = np.zeros(len(mean)) if start is None else start.copy()

    def objective(a: Array, Ka: Array) -> float:
        return 0.5 * float(a @ Ka) - log_sites(chunk, mean + Ka)

    floor = NEGLIGIBLE * float(np.sqrt(np.trace(K)))
    image = K @ dual
    value = objective(dual, image)
    status, iteration, size = Status.MAX_ITERATIONS, 0, np.inf
    for iteration in range(1, max_iterations + 1):  # noqa: B007 (reported)
        gradient, curvature = expand(chunk, mean + image)
        system = weighted(curvature, K)
        system[np.diag_indices_from(system)] += 1.0
        target = weighted(curvature, image) + gradient
        step = scipy.linalg.solve(system, target) - dual
        image_step = K @ step
        decrease = float(image_step @ (gradient - dual))
        along = partial(_moved, objective, dual, step, image, image_step)
        length, value = _searched(along, value, decrease)
        dual = dual + length * step
        image = K @ dual
        scale = float(np.linalg.norm(mean + image))
        size = length * float(np.linalg.norm(image_step)) / max(scale, floor)
        if length == 1 and size <= LAST_STEP:
            status = Status.CONVERGED
            break
        if length == 0:
            status = Status.STALLED
            break
    raw = mean + image
    gradient, _ = expand(chunk, raw)
    return ChunkMode(message_at(chunk, raw), gradient, np.zeros(0), Convergence(status, iteration, size))


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


def _moved(
    objective: Callable[[Array, Array], float], at: Array, step: Array, raw: Array, raw_step: Array, length: float
) -> float:
    return objective(at + length * step, raw + length * raw_step)


def _searched(along: Callable[[float], float], value: float, decrease: float) -> tuple[float, float]:
    """Backtracking: the first of 1, 1/2, 1/4, ... with at least 1e-4 of the predicted decrease, or 0; the new value."""
    rounding = 1e-13 * (1 + abs(value))
    length = 1.0
    for _ in range(HALVINGS):
        new = float(along(length))
        if np.isfinite(new) and new <= value - 1e-4 * length * decrease + rounding:
            return length, new
        length *= 0.5
    return 0.0, value
