"""The papers' design score: how much information about the image a line would bring.

    score = log det(I + X_* A^-1 X_*^H)   over the real rows of a line's X_*

is twice the mutual information between the image and the line's noisy data, in nats. TR-175 section 6, equation (12).
Three ways to compute it stand here: dense (the reference), from Lanczos factors (TR-175 section 6.1) and from
posterior draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mri_design.design.decision import Choice, Forecast
from mri_design.design.line_variances import all_lines, line_variances, mean_power
from mri_design.design.posteriors import generators, of_each
from mri_design.design.strategy import DesignView, best_line, start_for_posterior
from mri_design.errors import InputError, described, require_counts
from mri_design.krylov.conjugate_gradients import conjugate_gradients
from mri_design.krylov.lanczos import BlockLanczosFactors, LanczosFactors, lanczos
from mri_design.model.posterior import GaussianPosterior, require_posterior
from mri_design.model.precision import PosteriorPrecision
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.cartesian import CartesianLines
from mri_design.variances.information import gain_from_values


def exact_gain(precision: PosteriorPrecision, encoding: CartesianLines) -> NDArray[np.float64]:
    """Score of every line of ``encoding`` by dense linear algebra (small grids)."""
    lower = scipy.linalg.cholesky(precision.dense_real(), lower=True)
    rows = encoding.to_dense_real().reshape(2, *encoding.out_shape, encoding.in_size)
    scores = np.empty(encoding.out_shape[1])
    for line in range(len(scores)):
        x_new = rows[:, :, line].reshape(-1, encoding.in_size)
        root = scipy.linalg.solve_triangular(lower, x_new.T, lower=True)
        scores[line] = np.linalg.slogdet(np.eye(len(x_new)) + root.T @ root)[1]
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
    For all lines of a scan at once `gain_from_draws` and `gain_from_overlaps` are far cheaper.
    """
    require_posterior(posterior)
    rows = _candidate_rows(posterior, candidate)
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


def _candidate_rows(posterior: GaussianPosterior, candidate: int | LinearOperator) -> LinearOperator:
    measured = posterior.model.measurement
    if isinstance(candidate, LinearOperator):
        got, wanted = (f"{'complex' if x.in_complex else 'real'} {x.in_shape}" for x in (candidate, measured))
        if got != wanted:
            raise InputError(field="candidate", got=f"rows on unknowns that are {got}", wanted=f"{wanted}, the image's")
        return candidate
    if isinstance(candidate, bool) or not isinstance(candidate, Integral):
        raise InputError(
            field="candidate",
            got=described(candidate),
            wanted="the number of a line, or its rows as a LinearOperator",
            cure="Make an operator of an array of rows: Dense(rows).",
        )
    return line_rows(posterior, int(candidate))


def line_rows(posterior: GaussianPosterior, line: int) -> CartesianLines:
    """X_* of one phase-encode line."""
    every = all_lines(posterior)
    return CartesianLines([line], every.grid, every.maps, every.library)


def gain_from_overlaps(overlaps: Array) -> NDArray[np.float64]:
    """Score with A^-1 replaced by its Lanczos approximation V V^H, a lower bound (TR-175 section 6.1).

    2 log det(I + V_*^H V_*) of every line, with V_* = X_* V: complex rows count twice. ``overlaps`` is (ky, k, k), as
    `line_overlaps` makes it.
    """
    return np.asarray(2 * np.linalg.slogdet(overlaps + np.eye(overlaps.shape[-1]))[1], dtype=np.float64)


def line_overlaps(factors: LanczosFactors | BlockLanczosFactors, encoding: CartesianLines) -> Array:
    """V_*^H V_* of every line, (ky, k, k); one coil after another, so that memory stays at k images."""
    root = factors.inverse_root()
    k, n_lines = len(root), encoding.grid[0]
    overlaps = np.zeros((n_lines, k, k), dtype=root.dtype)
    for coil in encoding.single_coils():
        v = coil(root)[:, 0].swapaxes(0, 1)  # (ky, k, kx)
        overlaps += np.conj(v) @ v.mT
    return overlaps


def gain_from_draws(draws: Array, encoding: CartesianLines) -> NDArray[np.float64]:
    """Score from posterior draws, neglecting correlations between image columns.

    The inverse FFT of a fully sampled readout separates the columns of the image, which are nearly independent under
    the posterior; samples of k-space are not, where most of the image is dark. What is left of the determinant is one
    small one per column: det(I + C) with C the covariance of the coils' values, estimated from the draws.

    Parameters
    ----------
    draws : complex array, shape (count, ky, kx)
        Deviations from the mean in units of sigma.
    encoding : CartesianLines
        All lines of the grid, in order.

    Returns
    -------
    float array, shape (ky,)
        Scores. How far they are from `exact_gain` is measured in results/design-study/measurements.md.
    """
    return gain_from_columns(encoding.columns(draws))


def gain_from_columns(columns: Array) -> NDArray[np.float64]:
    """`gain_from_draws` of draws that are laid out in `CartesianLines.columns` already, (count, coil, ky, x)."""
    each = np.moveaxis(columns, 0, 3)  # (coil, ky, x, draw)
    return np.array([gain_from_values(each[:, line].swapaxes(0, 1)).sum() for line in range(each.shape[1])])


@dataclass(frozen=True, kw_only=True)
class InformationGain:
    """Choose the line with the largest information gain; the scores are computed from posterior draws.

    Parameters
    ----------
    draws : int
        Posterior draws behind the scores; inference's own are used, with one coil as far as they go. The few of
        `variances.ControlVariate` (one coil) are enough, see results/design-study/measurements.md.

    Raises
    ------
    InputError
        For no draw; where the measurement is not one of Cartesian lines.
    """

    draws: int = 12
    name: str = "information-gain"
    needs_posterior: bool = True

    def __post_init__(self) -> None:
        require_counts(draws=self.draws, least=1)

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """Half of the target, between 8 lines and an eighth of the grid."""
        return start_for_posterior(n_lines, target)

    def scores(
        self, posterior: GaussianPosterior, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scores of all lines of the grid under one posterior, and the expected energies behind them, (ky,) each."""
        every = all_lines(posterior)
        if every.maps is None:
            variances = line_variances(posterior, rng, self.draws)
            energies = np.asarray(np.sum(2 * posterior.model.noise_variance * variances, axis=1))
            return np.asarray(2 * np.sum(np.log1p(variances), axis=1)), energies
        draws = posterior.own_deviations(rng, self.draws)
        columns = every.columns(draws)
        energies = np.sum(posterior.model.noise_variance * mean_power(columns), axis=1)
        return gain_from_columns(columns), np.asarray(energies)

    def predicted(self, view: DesignView, rng: np.random.Generator) -> Forecast:
        """Expected energies summed over the posteriors; nothing corrects them."""
        return _forecast(of_each(view.posteriors, self.scores, generators(rng, len(view.posteriors))))

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line with the largest total score over the posteriors."""
        return _most_informative(of_each(view.posteriors, self.scores, generators(rng, len(view.posteriors))), view)


@dataclass(frozen=True, kw_only=True)
class LanczosInformationGain:
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
    needs_posterior: bool = True

    def __post_init__(self) -> None:
        require_counts(steps=self.steps, least=1)

    def default_start(self, n_lines: int, target: int, n_coils: int = 1) -> int:
        """Half of the target, between 8 lines and an eighth of the grid."""
        return start_for_posterior(n_lines, target)

    def scores(
        self, posterior: GaussianPosterior, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scores of all lines of the grid under one posterior, and expected energies; lower bounds both."""
        factors = posterior.marginals.factors
        if factors is None:
            noise = rng.standard_normal((2, *posterior.mean.shape), dtype=posterior.mean.real.dtype.type)
            factors = lanczos(posterior.precision, noise[0] + 1j * noise[1], self.steps)
        overlaps = line_overlaps(factors, all_lines(posterior))
        energies = np.trace(overlaps, axis1=1, axis2=2).real
        return gain_from_overlaps(overlaps), 2 * posterior.model.noise_variance * np.asarray(energies, dtype=np.float64)

    def predicted(self, view: DesignView, rng: np.random.Generator) -> Forecast:
        """Expected energies summed over the posteriors; nothing corrects them."""
        return _forecast(of_each(view.posteriors, self.scores, generators(rng, len(view.posteriors))))

    def choose(self, view: DesignView, rng: np.random.Generator) -> Choice:
        """The remaining line with the largest total score over the posteriors."""
        return _most_informative(of_each(view.posteriors, self.scores, generators(rng, len(view.posteriors))), view)


def _forecast(each: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> Forecast:
    """Expected energies summed over the posteriors, from the scores and energies of each."""
    return Forecast(np.asarray(np.sum([energies for _, energies in each], axis=0)))


def _most_informative(each: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]], view: DesignView) -> Choice:
    """The remaining line whose scores, half of which are nats, add up to most over the posteriors."""
    total = np.asarray(np.sum([scores for scores, _ in each], axis=0))
    best = best_line(total, view.candidates)
    return replace(best, forecast=replace(_forecast(each), information=float(total[best.line]) / 2))
