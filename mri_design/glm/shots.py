"""Information gain of a shot along any trajectory, and its gradient by the trajectory.

    score = log det(I + X_* A^-1 X_*^H)   over the real rows of X_*

is twice the information in nats that a shot brings (TR-175, equation (12)). A trajectory has parameters that are no
list of candidates: an angle, a density. With A^-1 = R R^H, V = X_* R and W its derivative,

    d score = 2 Re tr (I + V^H V)^-1 V^H W

(TR-175, section 6.2). A shift of the sample k multiplies the pixel at r by -2 pi i r, so that W takes two more products
with X_*, one per axis, and the gradient with respect to every sample is had at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError, number_array, positive_number, require_counts, require_random
from mri_design.model.posterior import GaussianPosterior, require_posterior
from mri_design.operators.base import Array, LinearOperator
from mri_design.status import Convergence, Status

Encoder = Callable[[NDArray[np.float64]], LinearOperator]
"""From a trajectory (sample, 2) to the rows X_* that measure it, with the sample on the last axis of the output."""

ShotFamily = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""From parameters (parameter,) to a trajectory (sample, 2) and its derivatives (parameter, sample, 2)."""

_MOST_ITERATIONS = 100


@dataclass(frozen=True)
class CovarianceRoot:
    """Images r_j for which sum_j r_j r_j^T is A^-1, or close to it, over real and imaginary parts.

    Parameters
    ----------
    images : complex array, shape (count, ky, kx)
        In units of sigma.
    with_turned : bool
        Whether i r_j belongs to the sum, too: in models that commute with i, half of the images are written down. The
        `inverse_root` of Lanczos factors is such a set.
    """

    images: Array
    with_turned: bool


@dataclass(frozen=True)
class ShotGain:
    """Score of a shot and how it changes.

    Parameters
    ----------
    gain : float
        Twice the information in nats, as `information_gain` counts.
    gradient : float64 array, shape (sample, 2)
        Derivative by the position (ky, kx) of each sample, per cycle per field of view. That by a parameter of the
        trajectory is the sum over samples of this times the derivative of the trajectory.
    """

    gain: float
    gradient: NDArray[np.float64]


@dataclass(frozen=True)
class BestShot:
    """The best shot near the best candidate.

    Parameters
    ----------
    parameters : float64 array, shape (parameter,)
        Those of the shot.
    trajectory : float64 array, shape (sample, 2)
        Its samples in cycles per field of view.
    gain : float
        Its score.
    candidate : int
        Number of the candidate that it was found from.
    candidate_gains : float64 array, shape (candidate,)
        Scores of all candidates.
    convergence : Convergence
        ``residual`` is the largest derivative by a parameter that may still move.
    """

    parameters: NDArray[np.float64]
    trajectory: NDArray[np.float64]
    gain: float
    candidate: int
    candidate_gains: NDArray[np.float64]
    convergence: Convergence


def exact_root(posterior: GaussianPosterior) -> CovarianceRoot:
    """The root of A^-1 by dense algebra: the reference, for small images.

    Raises
    ------
    InputError
        For anything but a posterior of complex images, and where A is too large to be held.
    """
    _require_complex(posterior)
    lower = scipy.linalg.cholesky(posterior.precision.dense_real(), lower=True)
    inverse = scipy.linalg.solve_triangular(lower, np.eye(len(lower)), lower=True)
    half = len(lower) // 2
    images = inverse[:, :half] + 1j * inverse[:, half:]
    return CovarianceRoot(images.reshape(-1, *posterior.mean.shape), with_turned=False)


def drawn_root(posterior: GaussianPosterior, rng: np.random.Generator, draws: int = 12) -> CovarianceRoot:
    """Posterior draws in place of the root: scores are estimates (too small), their gradients are exact for them.

    Parameters
    ----------
    posterior : GaussianPosterior
        Of the measurements so far.
    rng : numpy Generator
        For draws beyond those that inference has made.
    draws : int
        At least this many.

    Raises
    ------
    InputError
        For anything but a posterior of complex images and a generator, or no draw.
    """
    _require_complex(posterior)
    require_random(rng)
    require_counts(least=1, draws=draws)
    deviations = posterior.deviations(rng, draws)
    turned = bool(posterior.precision.complex_linear)
    return CovarianceRoot(deviations / np.sqrt((2 if turned else 1) * len(deviations)), with_turned=turned)


def shot_gain(root: CovarianceRoot, trajectory: ArrayLike, encode: Encoder) -> ShotGain:
    """Score of one shot and its gradient.

    Parameters
    ----------
    root : CovarianceRoot
        Of the posterior: `exact_root`, `drawn_root`, or Lanczos vectors.
    trajectory : float array, shape (sample, 2)
        Columns (ky, kx) in cycles per field of view.
    encode : callable
        Makes X_* of a trajectory: ``lambda k: DirectFourier(k, grid, maps)``, or a faster transform.

    Raises
    ------
    InputError
        For rows of images of another shape; whatever ``encode`` refuses.
    """
    k = np.asarray(number_array("trajectory", trajectory), dtype=np.float64)
    rows = encode(k)
    if rows.in_shape != root.images.shape[1:] or rows.out_shape[-1] != len(k):
        raise InputError(
            "encode", f"rows {rows.in_shape} -> {rows.out_shape}", f"{root.images.shape[1:]} -> (..., {len(k)})"
        )
    count = len(root.images)
    seen = rows(root.images).reshape(count, -1)
    overlaps = np.conj(seen) @ seen.T
    if not root.with_turned:
        overlaps = overlaps.real
    times = 2 if root.with_turned else 1
    inner = np.eye(count) + overlaps
    weights = np.linalg.solve(inner, np.conj(seen))
    gradient = np.empty_like(k)
    for axis, n in enumerate(rows.in_shape):
        positions = np.expand_dims((np.arange(n) - n // 2) / n, 1 - axis)
        moved = rows(-2j * np.pi * positions * root.images).reshape(count, -1)
        by_row = 2 * times * np.sum((weights * moved).real, axis=0)
        gradient[:, axis] = by_row.reshape(-1, len(k)).sum(axis=0)
    return ShotGain(times * float(np.linalg.slogdet(inner)[1]), gradient)


def rotations(shot: ArrayLike) -> ShotFamily:
    """One shot at every angle, from +kx towards +ky: the family of spokes, or of the interleaves of a spiral.

    Parameters
    ----------
    shot : float array, shape (sample, 2)
        At angle 0, on a square grid.
    """
    one = number_array("shot", shot, wanted="one shot (sample, 2)", shape=(None, 2)).astype(np.float64, copy=False)
    across = np.stack([one[:, 1], -one[:, 0]], axis=1)

    def family(parameters: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        cosine, sine = np.cos(parameters[0]), np.sin(parameters[0])
        return cosine * one + sine * across, (cosine * across - sine * one)[None]

    return family


def best_shot(
    root: CovarianceRoot, family: ShotFamily, candidates: ArrayLike, encode: Encoder, *, radius: float
) -> BestShot:
    """The most informative of some candidates, and from there uphill to a shot that is no candidate.

    Parameters
    ----------
    root, encode
        As for `shot_gain`.
    family : callable
        Trajectories and their derivatives by parameters: `rotations`, or one's own.
    candidates : float array, shape (candidate, parameter)
        Parameters to compare; one axis stands for one parameter each.
    radius : float
        How far each parameter may go from the best candidate's: the spacing of the candidates, usually.

    Returns
    -------
    BestShot
        A local maximum in that box, never worse than the best candidate.

    Raises
    ------
    InputError
        For no candidate, or a radius that is not positive; whatever the family and ``encode`` refuse.

    Notes
    -----
    L-BFGS-B in the box.
    """
    from scipy.optimize import minimize  # here, because the import takes a tenth of a second

    given = np.asarray(number_array("candidates", candidates), dtype=np.float64)
    tried = given[:, None] if given.ndim == 1 else given
    if tried.ndim != 2 or not tried.size or not np.isfinite(tried).all():
        raise InputError("candidates", f"shape {given.shape}", "finite (candidate, parameter)")
    positive_number("radius", radius)

    def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        trajectory, derivatives = family(parameters)
        made = shot_gain(root, trajectory, encode)
        return -made.gain, -np.sum(made.gradient * derivatives, axis=(1, 2))

    gains = np.array([shot_gain(root, family(parameters)[0], encode).gain for parameters in tried])
    best = int(np.argmax(gains))
    start = tried[best]
    box = [(middle - radius, middle + radius) for middle in start]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": _MOST_ITERATIONS})
    parameters = np.asarray(found.x) if -found.fun >= gains[best] else start
    value, slope = loss(parameters)
    free = np.array([low < p < high for p, (low, high) in zip(parameters, box, strict=True)])
    residual = float(np.max(np.abs(slope), where=free, initial=0.0))
    status = Status.CONVERGED if found.success else Status.MAX_ITERATIONS if found.status == 1 else Status.STALLED
    convergence = Convergence(status, int(found.nit), residual)
    return BestShot(parameters, family(parameters)[0], -value, best, gains, convergence)


def _require_complex(posterior: GaussianPosterior) -> None:
    require_posterior(posterior)
    if not posterior.model.measurement.in_complex or posterior.mean.ndim != 2:
        got = f"unknowns of shape {posterior.mean.shape}, {posterior.mean.dtype}"
        raise InputError("posterior", got, "the posterior of a complex image (ky, kx)")
