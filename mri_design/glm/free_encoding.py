"""Information gain of the best conceivable encoding: k-space vectors of a given energy, free of any trajectory.

A measurement x^H u with noise sigma^2 per real component gains log(1 + x^H A^-1 x), for a complex u and A that commutes
with i twice that. Under sum |x_j|^2 <= E the best rows are eigenvectors of the posterior covariance A^-1 with energies
by water filling,

    E_j = max(level - 1 / lambda_j, 0),    sum_j E_j = E,

so that no set of readouts of that energy, on lines or off, can gain more under this posterior. The linear-Gaussian case
of Lewi, Butera & Paninski 2007; the energies as in Cover & Thomas, Elements of Information Theory, section 9.4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse.linalg
from numpy.typing import NDArray

from mri_design.errors import InputError, positive_number, require_counts, require_random
from mri_design.krylov.conjugate_gradients import conjugate_gradients
from mri_design.model.posterior import GaussianPosterior, require_posterior
from mri_design.operators.base import Array
from mri_design.status import Convergence, Status


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
    variances: NDArray[np.float64]
    energies: NDArray[np.float64]
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
    """The encoding vectors that would tell most about the image.

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
    shape, dtype = posterior.mean.shape, np.complex128 if posterior.model.measurement.in_complex else np.float64
    size = int(np.prod(shape))
    if rows > size:
        raise InputError("rows", str(rows), f"at most {size}, the pixels")
    twice = posterior.model.measurement.in_complex
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
        solved, how = conjugate_gradients(
            posterior.precision,
            u.reshape(1, *shape).astype(dtype),
            n_axes=posterior.model.n_axes,
            preconditioner=posterior.precision.preconditioner,
            tolerance=tolerance,
            max_iterations=max_iterations,
        )
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


def water_filling(variances: NDArray[np.floating], energy: float) -> NDArray[np.float64]:
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
