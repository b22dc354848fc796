"""Information gain of encodings beyond a list of candidates: free k-space vectors, and shots of any trajectory.

A measurement x^H u with noise sigma^2 per real component gains log(1 + x^H A^-1 x), for a complex u and A that commutes
with i twice that. Under sum |x_j|^2 <= E the best rows are eigenvectors of the posterior covariance A^-1 with energies
by water filling,

    E_j = max(level - 1 / lambda_j, 0),    sum_j E_j = E,

so that no set of readouts of that energy, on lines or off, can gain more under this posterior. The linear-Gaussian case
of Lewi, Butera & Paninski 2007; the energies as in Cover & Thomas, Elements of Information Theory, section 9.4.

A trajectory has continuous parameters, such as an angle or a density. A shot along it has the score

    score = log det(I + X_* A^-1 X_*^H)   over the real rows of X_*,

twice the information in nats that it brings (TR-175, equation (12)). With A^-1 = R R^H, V = X_* R and W its derivative,

    d score = 2 Re tr (I + V^H V)^-1 V^H W

(TR-175, section 6.2). A shift of the sample k multiplies the pixel at r by -2 pi i r, so that W takes two more products
with X_*, one per axis, which gives the gradient with respect to every sample at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError, number_array, positive_number, require_counts, require_random
from mri_design.model.posterior import GaussianPosterior, require_posterior
from mri_design.operators.base import Array, LinearOperator
from mri_design.status import Convergence, Status

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class FreeEncoding:
    """The best free rows.

    Parameters
    ----------
    rows : array, shape (rows, *image shape)
        Orthonormal images x_j / |x_j|, the most uncertain first.
    variances : float array, shape (rows,)
        lambda_j, Var[x_j^H u] / sigma^2 per real component for unit energy.
    energies : float array, shape (rows,)
        E_j.
    gain : float
        Twice the information in nats, as `information_gain` counts.
    convergence : Convergence
        Of the eigenvectors; ``residual`` is the largest |A^-1 x - lambda x| / lambda.
    """

    rows: Array
    variances: Numbers
    energies: Numbers
    gain: float
    convergence: Convergence


def best_free_encoding(
    posterior: GaussianPosterior,
    rng: np.random.Generator,
    *,
    rows: int = 1,
    energy: float = 1.0,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
) -> FreeEncoding:
    """The encoding vectors with the largest information gain.

    Parameters
    ----------
    posterior : GaussianPosterior
        Of the measurements so far.
    rng : numpy Generator
        Start of the eigenvector iteration.
    rows : int
        How many measurements may be made; fewer have energy where that is better.
    energy : float
        E, the sum of |x_j|^2 over all of them. A sample of an orthonormal FFT has 1, a line of n samples n.
    tolerance, max_iterations : float, int
        Of the solves with A.

    Returns
    -------
    FreeEncoding
        Eigenvectors by Lanczos iterations on A^-1, each a solve with A.

    Raises
    ------
    InputError
        For anything but a posterior and a generator, no rows or more than there are pixels, an energy that is not
        positive, and complex models that do not commute with i (sites that know a phase): there a complex row is not
        two copies of a real one.
    """
    require_posterior(posterior)
    require_random(rng)
    require_counts(least=1, rows=rows)
    positive_number("energy", energy)
    shape, twice = posterior.mean.shape, posterior.model.measurement.in_complex
    size, dtype = int(np.prod(shape)), np.complex128 if twice else np.float64
    if rows > size:
        raise InputError("rows", str(rows), f"at most {size}, the pixels")
    if twice and not posterior.precision.complex_linear:
        raise InputError(
            "posterior",
            "sites that treat real and imaginary part differently",
            "a model that commutes with i",
            "Take sites on moduli.",
        )
    spent = 0

    def covariance(u: Array) -> Array:
        nonlocal spent
        row = u.reshape(1, *shape).astype(dtype)
        solved, how = posterior.precision.solve(row, tolerance=tolerance, max_iterations=max_iterations)
        spent += how.matvecs
        return np.asarray(solved.reshape(size))

    if rows > size // 3:
        values, vectors = np.linalg.eigh(np.stack([covariance(e) for e in np.eye(size)], axis=1))
    else:
        start = rng.standard_normal(size).astype(dtype)
        inverse = scipy.sparse.linalg.LinearOperator((size, size), matvec=covariance, dtype=dtype)
        values, vectors = scipy.sparse.linalg.eigsh(inverse, k=rows, which="LA", v0=start, tol=tolerance)
    order = np.argsort(values)[::-1][:rows]
    lambdas = values[order]
    images = np.linalg.qr(vectors[:, order])[0].T  # orthonormal to rounding, whatever the solves' tolerance
    worst = max(
        float(np.linalg.norm(covariance(x) - value * x)) / value for x, value in zip(images, lambdas, strict=True)
    )
    energies = water_filling(lambdas, energy)
    gain = (2 if twice else 1) * float(np.sum(np.log1p(energies * lambdas)))
    status = Status.CONVERGED if worst < 100 * tolerance else Status.MAX_ITERATIONS
    return FreeEncoding(
        images.reshape(-1, *shape), lambdas, energies, gain, Convergence(status, rows, worst, matvecs=spent)
    )


def water_filling(variances: NDArray[np.floating], energy: float) -> Numbers:
    """Energies E_j >= 0 of sum ``energy`` for which sum_j log(1 + E_j lambda_j) is largest.

    Parameters
    ----------
    variances : float array, shape (n,)
        lambda_j > 0, descending.
    energy : float
        To be shared out.
    """
    floors = 1 / np.asarray(variances, dtype=float)
    levels = (energy + np.cumsum(floors)) / np.arange(1, len(floors) + 1)
    used = int(np.flatnonzero(levels > floors)[-1]) + 1  # the floors rise, so that the wet ones come first
    return np.maximum(np.where(np.arange(len(floors)) < used, levels[used - 1] - floors, 0), 0)


Encoder = Callable[[Numbers], LinearOperator]
"""From a trajectory (sample, 2) to the rows X_* that measure it, with the sample on the last axis of the output."""

ShotFamily = Callable[[Numbers], tuple[Numbers, Numbers]]
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

    parameters: Numbers
    trajectory: Numbers
    gain: float
    candidate: int
    candidate_gains: Numbers
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
    """Posterior draws as an approximate root: scores are estimates (too small), their gradients are exact for them.

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


def shot_gain(root: CovarianceRoot, trajectory: ArrayLike, encode: Encoder) -> tuple[float, Numbers]:
    """Score of one shot and its gradient.

    Parameters
    ----------
    root : CovarianceRoot
        Of the posterior: `exact_root`, `drawn_root`, or Lanczos vectors.
    trajectory : float array, shape (sample, 2)
        Columns (ky, kx) in cycles per field of view.
    encode : callable
        Makes X_* of a trajectory: ``lambda k: DirectFourier(k, grid, maps)``, or a faster transform.

    Returns
    -------
    gain : float
        Twice the information in nats, as `information_gain` counts.
    gradient : float64 array, shape (sample, 2)
        Derivative by the position (ky, kx) of each sample, per cycle per field of view. That by a parameter of the
        trajectory is the sum over samples of this times the derivative of the trajectory.

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
    return times * float(np.linalg.slogdet(inner)[1]), gradient


def rotations(shot: ArrayLike) -> ShotFamily:
    """One shot at every angle, from +kx towards +ky: the family of spokes, or of the interleaves of a spiral.

    Parameters
    ----------
    shot : float array, shape (sample, 2)
        At angle 0, on a square grid.
    """
    one = number_array("shot", shot, wanted="one shot (sample, 2)", shape=(None, 2)).astype(np.float64, copy=False)
    across = np.stack([one[:, 1], -one[:, 0]], axis=1)

    def family(parameters: Numbers) -> tuple[Numbers, Numbers]:
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

    def loss(parameters: Numbers) -> tuple[float, Numbers]:
        trajectory, derivatives = family(parameters)
        gain, gradient = shot_gain(root, trajectory, encode)
        return -gain, -np.sum(gradient * derivatives, axis=(1, 2))

    gains = np.array([shot_gain(root, family(parameters)[0], encode)[0] for parameters in tried])
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
