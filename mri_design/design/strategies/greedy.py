"""Scores of candidates under a plain posterior: the papers' information gain, and the expected error (A-optimality).

    score = log det(I + X_* A^-1 X_*^H)   over the real rows of a line's X_*

is twice the mutual information between the image and the line's noisy data, in nats. TR-175 section 6, equation (12).
Three ways to compute it stand here: dense (the reference), from Lanczos factors (TR-175 section 6.1) and from
posterior draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mri_design.design.blocks import PredictsByScore, Scores
from mri_design.design.energies import (
    coils_of,
    expected_energies,
    gains_and_energies,
    generators,
    lines_of,
    of_each,
    rows_of,
)
from mri_design.design.strategy import DesignView
from mri_design.design.trace import Forecast
from mri_design.errors import InputError, described, require_counts
from mri_design.krylov import LanczosFactors, conjugate_gradients, lanczos
from mri_design.model.posterior import GaussianPosterior, require_posterior
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.cartesian_fourier import CartesianLines
from mri_design.readouts import Readouts


def exact_gains(precision: PosteriorPrecision, readouts: Readouts) -> NDArray[np.float64]:
    """Scores of all candidates, (size,), by dense linear algebra (small grids): the reference."""
    lower = scipy.linalg.cholesky(precision.dense_real(), lower=True)
    maps = getattr(precision.measurement, "maps", None)
    scores = np.empty(readouts.size)
    for candidate in range(readouts.size):
        x_new = readouts.rows([candidate], maps).to_dense_real()
        root = scipy.linalg.solve_triangular(lower, x_new.T, lower=True)
        scores[candidate] = np.linalg.slogdet(np.eye(len(x_new)) + root.T @ root)[1]
    return scores


def information_gain(
    posterior: GaussianPosterior, candidate: int | LinearOperator, *, tolerance: float = 1e-5, max_iterations: int = 500
) -> float:
    """Score of one candidate, by solving with A for each of its rows.

    Parameters
    ----------
    posterior : GaussianPosterior
        Of the measurements so far.
    candidate : int or LinearOperator
        A phase-encode line of a Cartesian measurement, or the rows X_* of any measurement.
    tolerance, max_iterations : float, int
        Of the conjugate gradients.

    Returns
    -------
    float
        log det(I + X_* A^-1 X_*^H) over real rows: twice the information in nats.

    Raises
    ------
    InputError
        For anything but a posterior and a candidate that fits its image: rows of other unknowns, a number of a line
        that the grid has not, or one where the measurement is not Cartesian.

    Notes
    -----
    For all lines of a scan at once `gains_and_energies` and `gain_from_overlaps` are far cheaper.
    """
    require_posterior(posterior)
    rows, measured = candidate, posterior.model.measurement
    if isinstance(rows, LinearOperator):
        got, wanted = (f"{'complex' if x.in_complex else 'real'} {x.in_shape}" for x in (rows, measured))
        if got != wanted:
            raise InputError(field="candidate", got=f"rows on unknowns that are {got}", wanted=f"{wanted}, the image's")
    elif isinstance(rows, bool) or not isinstance(rows, Integral):
        raise InputError(
            field="candidate",
            got=described(rows),
            wanted="the number of a line, or its rows as a LinearOperator",
            cure="Make an operator of an array of rows: Dense(rows).",
        )
    else:
        rows = rows_of(posterior, lines_of(posterior), [int(rows)])
    count = int(np.prod(rows.out_shape))
    unit = np.eye(count).reshape(count, *rows.out_shape)
    twice = rows.complex_linear and posterior.precision.complex_linear and rows.out_complex
    # Where i passes through everything, real and imaginary parts give the same determinant.
    basis = unit + 0j if twice else np.concatenate([unit + 0j, 1j * unit]) if rows.out_complex else unit
    rhs = rows.adjoint(basis.astype(np.result_type(basis.dtype, posterior.mean.real.dtype)))
    solved, _ = conjugate_gradients(
        posterior.precision,
        rhs.astype(posterior.mean.dtype),
        n_axes=posterior.model.n_axes,
        preconditioner=posterior.precision.preconditioner,
        tolerance=tolerance,
        max_iterations=max_iterations,
    )
    images = rows(solved).reshape(len(basis), -1)
    if twice:
        return 2 * float(np.linalg.slogdet(np.eye(count) + images)[1])
    real = np.concatenate([images.real, images.imag], axis=1) if rows.out_complex else images.real
    return float(np.linalg.slogdet(np.eye(len(real)) + real)[1])


def gain_from_overlaps(overlaps: Array) -> NDArray[np.float64]:
    """Score with A^-1 replaced by its Lanczos approximation V V^H, a lower bound (TR-175 section 6.1).

    2 log det(I + V_*^H V_*) of every line, with V_* = X_* V: complex rows count twice. ``overlaps`` is (ky, k, k), as
    `line_overlaps` makes it.
    """
    return np.asarray(2 * np.linalg.slogdet(overlaps + np.eye(overlaps.shape[-1]))[1], dtype=np.float64)


def line_overlaps(factors: LanczosFactors, readouts: CartesianLines) -> Array:
    """V_*^H V_* of every line, (ky, k, k); one coil after another, so that memory stays at k images."""
    root = factors.inverse_root()
    k, n_lines = len(root), readouts.grid[0]
    overlaps = np.zeros((n_lines, k, k), dtype=root.dtype)
    for coil in readouts.single_coils():
        v = coil(root)[:, 0].swapaxes(0, 1)  # (ky, k, kx)
        overlaps += np.conj(v) @ v.mT
    return overlaps


@dataclass(frozen=True, kw_only=True)
class InformationGain(PredictsByScore):
    """Choose the candidates with the largest information gain; the scores are computed from posterior draws.

    Parameters
    ----------
    draws : int, optional
        Posterior draws behind the scores; inference's own are used, with one coil as far as they go. The few of
        `variances.ControlVariate` (one coil) are enough, see results/design-study/measurements.md. By default those of
        the readouts: 12 for lines and shots, 8 for the samples of a plane.

    Raises
    ------
    InputError
        For no draw.
    """

    draws: int | None = None
    name: str = "information-gain"

    def __post_init__(self) -> None:
        if self.draws is not None:
            require_counts(draws=self.draws, least=1)

    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Gains and expected energies of all candidates (`gains_and_energies`), summed over the posteriors."""
        own = generators(rng, len(view.posteriors))
        draws = self.draws or view.readouts.draws
        return _summed(of_each(view.posteriors, gains_and_energies, view.readouts, own, draws))


@dataclass(frozen=True, kw_only=True)
class LanczosInformationGain(PredictsByScore):
    """Choose the line with the largest information gain, with lower bounds from Lanczos vectors as in TR-175.

    Parameters
    ----------
    steps : int
        Number k of Lanczos vectors; those of the inference are used where it has computed any.

    Raises
    ------
    InputError
        For no step; where the measurement is not one of Cartesian lines.
    """

    steps: int = 100
    name: str = "information-gain-lanczos"

    def __post_init__(self) -> None:
        require_counts(steps=self.steps, least=1)

    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Gains and expected energies of all lines, summed over the posteriors; lower bounds both."""
        own = generators(rng, len(view.posteriors))
        return _summed(of_each(view.posteriors, gains_from_lanczos, own, self.steps))


def gains_from_lanczos(
    posterior: GaussianPosterior, rng: np.random.Generator, steps: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gains of all lines of the grid under one posterior, and expected energies, (ky,) each; lower bounds both."""
    factors = posterior.marginals.factors
    if factors is None:
        noise = rng.standard_normal((2, *posterior.mean.shape), dtype=posterior.mean.real.dtype.type)
        factors = lanczos(posterior.precision, noise[0] + 1j * noise[1], steps)
    lines = lines_of(posterior)
    maps, library = coils_of(posterior)
    overlaps = line_overlaps(factors, lines.rows(range(lines.size), maps, library))
    energies = np.trace(overlaps, axis1=1, axis2=2).real
    return gain_from_overlaps(overlaps), 2 * posterior.model.noise_variance * np.asarray(energies, dtype=np.float64)


def _summed(each: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> Scores:
    gains, energies = (np.asarray(np.sum([pair[part] for pair in each], axis=0)) for part in (0, 1))
    return Scores(gains, Forecast(energies), in_nats=True)


@dataclass(frozen=True, kw_only=True)
class ExpectedError(PredictsByScore):
    """The candidates with the largest posterior variance, summed over their values, coils and slices.

    Measuring a candidate removes at least its own share of E|u - mean|^2; what it teaches about others is left out. The
    log-determinant (`InformationGain`) counts the same variances in relative terms.

    Parameters
    ----------
    draws : int, optional
        Posterior draws behind the variances; inference's own are used, with one coil as far as they go. By default
        those of the readouts: 12 for lines and shots, 8 for the samples of a plane.
    """

    draws: int | None = None
    name: str = "expected-error"

    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Expected energies, which are the forecast, too."""
        expected = expected_energies(view.posteriors, view.readouts, rng, self.draws or view.readouts.draws)
        return Scores(expected, Forecast(expected))
