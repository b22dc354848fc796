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

from mri_design.inference.box_quadratic import minimise_in_box
from mri_design.inference.proper_factor import NEGLIGIBLE, proper_factor, resolution
from mri_design.inference.site_chunks import LoadedChunk
from mri_design.inference.site_expansion import Message, expand, log_sites, weighted
from mri_design.operators import Array
from mri_design.potentials import Hinge
from mri_design.status import Convergence, Status

__all__ = ["ChunkMode", "message_at", "mode_on_coordinates", "mode_on_rows"]

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
    pull = gradient + weighted(curvature, raw)
    return Message(pull.reshape(-1, chunk.parts), curvature)


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
    """Newton on the dual a of s = mean + K a, or the box-constrained dual of hinge sites.

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
    if isinstance(chunk.potential, Hinge):
        return _hinge_mode(chunk, K, mean, start, max_iterations)
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


def _hinge_mode(chunk: LoadedChunk, K: Array, mean: Array, start: Array | None, max_iterations: int) -> ChunkMode:
    potential = chunk.potential
    assert isinstance(potential, Hinge)
    labels = np.broadcast_to(potential.labels, mean.shape)
    upper = np.broadcast_to(potential.scale, mean.shape)
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
    """A step length out of 1, 1/2, 1/4, ... that keeps a tenth of a thousandth of the decrease promised; 0 if none."""
    rounding = 1e-13 * (1 + abs(value))
    length = 1.0
    for _ in range(HALVINGS):
        new = float(along(length))
        if np.isfinite(new) and new <= value - 1e-4 * length * decrease + rounding:
            return length, new
        length *= 0.5
    return 0.0, value
