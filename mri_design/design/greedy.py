"""Greedy choices: the candidates with the largest scores, their blocks, and the papers' scores under a posterior.

Samples of a block are thinned by their correlations, or cover the error with what they tell of their surroundings: with
several coils a sample tells much of its surroundings, and even distances count for more than the energies of single
samples. The scores are the information gain and the expected error (A-optimality).

    score = log det(I + X_* A^-1 X_*^H)   over the real rows of a line's X_*

is twice the mutual information between the image and the line's noisy data, in nats. TR-175 section 6, equation (12).
Three ways to compute it stand here: dense (the reference), from Lanczos factors (TR-175 section 6.1) and from
posterior draws.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import cast

import numpy as np
import scipy  # whose parts are loaded when they are first used
import scipy.linalg
from numpy.typing import NDArray

from mri_design.design.energies import (
    coils_of,
    expected_energies,
    gains_and_energies,
    generators,
    lines_of,
    of_each,
    rows_of,
)
from mri_design.design.strategy import ChoosesBlocks, DesignView, LineCandidates, best_line
from mri_design.design.trace import Choice, Forecast
from mri_design.errors import InputError, described, require_counts, require_numbers, sequence_of
from mri_design.krylov import LanczosFactors, lanczos
from mri_design.model.posterior import GaussianPosterior, PosteriorPrecision, require_posterior
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.cartesian_fourier import CartesianLines
from mri_design.readouts import PlaneReadouts, Readouts

_WEIGHTS = "weights of the lines at distance 1, 2, ..., each from 0 to 1"


def neighbourhood(energies: NDArray[np.float64], weights: Sequence[float]) -> NDArray[np.float64]:
    """Energies of lines, (ky,), each with a share of its neighbours': ``weights[d - 1]`` of those at distance d.

    Beyond the grid there are none.
    """
    total = energies.copy()
    for distance, weight in enumerate(weights, 1):
        total[distance:] += weight * energies[:-distance]
        total[:-distance] += weight * energies[distance:]
    return total


def unmeasured_around(
    residual: NDArray[np.float64], candidates: LineCandidates, neighbours: Sequence[float], reach: float
) -> NDArray[np.float64]:
    """Residual energies on and around every candidate, (size,), as far as they are not measured.

    Parameters
    ----------
    residual : float array, shape (size,)
        Energy of the error on every candidate.
    candidates : LineCandidates
        Those measured take no part.
    neighbours : sequence of float
        Weights of `neighbourhood` for lines.
    reach : float
        For samples of a plane, standard deviation in samples of the Gaussian window over which energies are averaged.
    """
    unmeasured = ~candidates.mask
    if candidates.readouts.thinned:
        return mean_around(residual, unmeasured, candidates.readouts.shape, reach)
    return neighbourhood(np.where(unmeasured, residual, 0.0), neighbours)


def mean_around(
    values: NDArray[np.float64],
    counted: NDArray[np.bool_],
    shape: tuple[int, ...],
    reach: float,
    *,
    without_own: bool = False,
) -> NDArray[np.float64]:
    """Mean around every candidate in a Gaussian window, (size,); 0 where nothing that counts is near.

    Parameters
    ----------
    values : float array, shape (size,)
        Of every candidate.
    counted : bool array, shape (size,)
        Candidates whose values count.
    shape : tuple of int
        How candidates lie (`Readouts.shape`).
    reach : float
        Standard deviation of the window, in candidates; it ends at four of them.
    without_own : bool
        Whether a candidate's own value is left out of its mean.
    """
    ends = int(4 * reach + 0.5)
    own = 1 / np.exp(-(np.arange(-ends, ends + 1) ** 2) / (2 * reach**2)).sum() ** len(shape) if without_own else 0.0

    def spread(each: NDArray[np.float64]) -> NDArray[np.float64]:
        laid_out = scipy.ndimage.gaussian_filter(each.reshape(shape), reach, mode="constant", truncate=4.0)
        return np.asarray(laid_out.reshape(-1) - own * each)

    weights = spread(counted.astype(np.float64))
    total = spread(np.where(counted, values, 0.0))
    return np.divide(total, weights, out=np.zeros(len(weights)), where=weights > 1e-9)


def require_weights(neighbours: Sequence[float]) -> None:
    """Refuse weights that are not numbers between 0 and 1.

    Raises
    ------
    InputError
        With the distance of the first one.
    """
    for distance, weight in enumerate(sequence_of(Real, "neighbours", neighbours, wanted=_WEIGHTS), 1):
        require_numbers(most=1.0, **{f"neighbours: weight at distance {distance}": weight})


Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Scores:
    """Scores of all candidates under a rule, and the forecast that goes with them.

    Parameters
    ----------
    values : float array, shape (size,)
        The larger the better; NaN where there is none.
    forecast : Forecast
        What the rule predicts of the image's error.
    in_nats : bool
        Whether half a score is the information, in nats, that a candidate is expected to bring.
    """

    values: Numbers
    forecast: Forecast = field(default_factory=Forecast)
    in_nats: bool = False


class ChoosesByScore(ChoosesBlocks):
    """A strategy that takes the candidates with the largest scores, whatever they are.

    Single samples of a plane are chosen in thinned blocks, lines and shots one after another.
    """

    @abstractmethod
    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Scores of all candidates."""

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The ``count`` best remaining candidates; the first has the scores and the forecast."""
        made = self.scored(view, rng)
        block = block_by_scores(made.values, view, count, made.forecast)
        if not made.in_nats:
            return block
        nats = (float(made.values[choice.line]) / 2 for choice in block)
        return [replace(c, forecast=replace(c.forecast, information=n)) for c, n in zip(block, nats, strict=True)]

    def predicted(self, view: DesignView, rng: np.random.Generator) -> Forecast:
        """What the scores come with: of plain posteriors expected energies, which nothing corrects."""
        return self.scored(view, rng).forecast


def plane_of(readouts: Readouts) -> PlaneReadouts:
    """The plane that candidates are samples of.

    Raises
    ------
    InputError
        Where they are something else.
    """
    if not readouts.thinned:
        wanted, cure = "samples of a plane", "Name a strategy for lines, or make the slices with encoding='plane'."
        raise InputError("candidates", readouts.kind.several, wanted, cure)
    return cast(PlaneReadouts, readouts)


def block_by_scores(scores: Numbers, view: DesignView, count: int, forecast: Forecast | None = None) -> list[Choice]:
    """The ``count`` best remaining candidates, those of a plane thinned by the correlations under the posteriors.

    Parameters
    ----------
    scores : float array, shape (size,)
        Of every candidate; in a plane zero or more, of which only ratios count.
    view : DesignView
        Candidates and posteriors.
    count : int
        How many; there must be as many left.
    forecast : Forecast, optional
        Of the block; it goes to the first choice, with the scores.

    Raises
    ------
    NoUsableScoreError
        Where no candidate has a finite score.
    """
    first = best_line(scores, view.candidates)
    left = np.where(view.candidates.remaining, scores, np.nan)
    if view.readouts.thinned:
        chosen = thinned(left, squared_correlation(view.posteriors), plane_of(view.readouts), count)
    else:
        chosen = np.argsort(-np.where(np.isfinite(left), left, -np.inf), kind="stable")[:count].tolist()
    return [replace(first, line=chosen[0], forecast=forecast or Forecast()), *map(Choice, chosen[1:])]


def block_by_gains(energies: Numbers, view: DesignView, count: int, forecast: Forecast | None = None) -> list[Choice]:
    """The ``count`` samples of a plane that leave least energy of the error: see `covering`.

    Parameters
    ----------
    energies : float array, shape (size,)
        Of the error on every sample; those of measured ones do not count.
    view : DesignView
        Candidates and posteriors.
    count : int
        How many; there must be as many left.
    forecast : Forecast, optional
        Of the block; it goes to the first choice, with the gains.
    """
    left, free = np.where(view.candidates.mask, 0.0, energies), view.candidates.remaining
    chosen, gains = covering(left, squared_correlation(view.posteriors), plane_of(view.readouts), free, count)
    return [Choice(chosen[0], np.where(free, gains, np.nan), forecast or Forecast()), *map(Choice, chosen[1:])]


def thinned(scores: Numbers, squared: Numbers, plane: PlaneReadouts, count: int) -> list[int]:
    """Samples by their scores, one after another, each multiplying all scores by 1 - |rho|^2 around it.

    Parameters
    ----------
    scores : float array, shape (size,)
        NaN where a sample cannot be taken; then there may be fewer than ``count`` to return.
    squared : float array, shape (ky, kz)
        |rho|^2 by distance, DC at ``N // 2``: the share of `squared_correlation`.
    plane : PlaneReadouts
        The samples.
    count : int
        How many.

    Returns
    -------
    list of int
        Different samples; ties go to the lowest number.
    """
    left = np.where(np.isfinite(scores), scores, -np.inf).reshape(plane.grid)
    centre = plane.grid[0] // 2, plane.grid[1] // 2
    chosen: list[int] = []
    for _ in range(count):
        best = int(np.argmax(left))
        if not np.isfinite(left.flat[best]):
            break
        chosen.append(best)
        y, z = divmod(best, plane.grid[1])
        left *= 1 - np.minimum(np.roll(squared, (y - centre[0], z - centre[1]), axis=(0, 1)), 1)
        left.flat[best] = -np.inf
    return chosen


REACH = 7
"""Samples along ky and kz beyond which a sample tells nothing of another, for `covering`."""


def covering(
    energies: Numbers, squared: Numbers, plane: PlaneReadouts, free: NDArray[np.bool_], count: int
) -> tuple[list[int], Numbers]:
    """Samples that leave the least energy of the error, one after another, each with all that it tells of others.

    The gain of a sample i is sum_j K(j - i) E_j, with E the energies and K the share of them that it removes. The one
    with the largest gain is taken, and E_j becomes (1 - K(j - i)) E_j. Where single energies are known badly and a
    sample tells much of its surroundings, as with several coils, this spreads samples more evenly than `thinned`,
    which counts the energy of the sample itself alone.

    Parameters
    ----------
    energies : float array, shape (size,)
        Energy of the error on every sample; that of measured samples is best given as 0.
    squared : float array, shape (ky, kz)
        K by distance, DC at ``N // 2``, as `squared_correlation` gives it; beyond `REACH` it counts as 0.
    plane : PlaneReadouts
        The samples.
    free : bool array, shape (size,)
        Those that may be taken.
    count : int
        How many; there must be as many free ones.

    Returns
    -------
    list of int
        Different samples; ties go to the lowest number.
    float array, shape (size,)
        Gains before the first is taken.

    Notes
    -----
    One convolution gives all gains. A sample that is taken changes those within twice the reach, which are renewed by a
    small one.
    """
    reach = [min(REACH, (side - 1) // 2) for side in plane.grid]
    shares = np.clip(squared[_window([side // 2 for side in plane.grid], reach)], 0, 1)
    turned, edges = shares[::-1, ::-1], [(2 * r, 2 * r) for r in reach]  # what lies outside has no energy
    left = np.pad(energies.reshape(plane.grid), edges)
    gains = scipy.signal.fftconvolve(left, turned, mode="same")
    open_to = np.pad(free.reshape(plane.grid), edges)
    scores = np.where(open_to, gains, -np.inf)
    inside = tuple(slice(2 * r, 2 * r + side) for r, side in zip(reach, plane.grid, strict=True))
    begun = gains[inside].reshape(-1).copy()
    twice = [4 * r + 1 for r in reach]
    transformed = scipy.fft.rfft2(turned, twice)
    chosen: list[int] = []
    for _ in range(count):
        place = np.unravel_index(int(np.argmax(scores)), scores.shape)
        chosen.append(int((place[0] - 2 * reach[0]) * plane.grid[1] + place[1] - 2 * reach[1]))
        open_to[place] = False
        near, around = _window(place, reach), _window(place, [2 * r for r in reach])
        removed = left[near] * shares
        left[near] -= removed
        gains[around] -= scipy.fft.irfft2(scipy.fft.rfft2(removed, twice) * transformed, twice)
        scores[around] = np.where(open_to[around], gains[around], -np.inf)
    return chosen, begun


def _window(centre: Sequence[int | np.intp], reach: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(int(at) - r, int(at) + r + 1) for at, r in zip(centre, reach, strict=True))


def squared_correlation(posteriors: Sequence[GaussianPosterior]) -> Numbers:
    """Share of a sample's variance that the measurement of another removes, by their distance, (ky, kz).

    DC stands at ``N // 2``; there the share is 1 with one coil, and nearly 1 with several. Means over posteriors.

    Notes
    -----
    Pixels count as independent under the posterior. The covariance of the errors on two samples is then the Fourier
    transform C(d) of the map of pixel variances at their distance d. With several coils C(d) is a matrix over pairs of
    coils: each entry transforms the map times one coil's sensitivity and the conjugate of another's. Measuring one
    sample with noise of variance s removes the share tr(C(d) (C(0) + s)^-1 C(d)^H) / tr C(0) of the other's variance.
    With one coil that is |C(d) / C(0)|^2, where noise is neglected.
    """
    shares = of_each(posteriors, _removed_share)
    return np.asarray(scipy.fft.fftshift(np.mean(shares, axis=0)))


def _removed_share(posterior: GaussianPosterior) -> Numbers:
    """Fraction of the variance that is removed, by distance, under one posterior."""
    variances = np.asarray(posterior.image_variances, dtype=np.float64)
    return removed_share(variances, coils_of(posterior)[0], posterior.model.noise_variance)


def removed_share(variances: Numbers, maps: Array | None, noise_variance: float) -> Numbers:
    """Share of a sample's variance that the measurement of another removes, by their distance, distance 0 first.

    Parameters
    ----------
    variances : float array, shape (rows, columns)
        Of the error at every pixel, which count as independent: see `squared_correlation`.
    maps : complex array, shape (coil, rows, columns), or None
        Sensitivities of several coils.
    noise_variance : float
        Per real component of the data.
    """
    if maps is None:
        spectrum = scipy.fft.fft2(variances)
        return np.asarray(np.abs(spectrum / spectrum[0, 0]) ** 2)
    maps = maps.astype(np.complex64)
    weighted = maps[:, None] * np.conj(maps) * variances.astype(np.float32)
    joint = np.moveaxis(scipy.fft.fft2(weighted), (0, 1), (2, 3)) / variances.size  # (ky, kz, coil, coil)
    own = joint[0, 0]
    noise = 2 * noise_variance * np.eye(len(own))
    explained = joint @ np.linalg.inv(own + noise).astype(np.complex64)
    shares = np.sum(explained * np.conj(joint), axis=(2, 3)).real / np.trace(own).real
    return np.asarray(np.clip(shares, 0, 1), dtype=np.float64)


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
        wanted = "the number of a line, or its rows as a LinearOperator"
        cure = "Make an operator of an array of rows: Dense(rows)."
        raise InputError("candidate", described(rows), wanted, cure)
    else:
        rows = rows_of(posterior, lines_of(posterior), [int(rows)])
    count = int(np.prod(rows.out_shape))
    unit = np.eye(count).reshape(count, *rows.out_shape)
    twice = rows.complex_linear and posterior.precision.complex_linear and rows.out_complex
    # Where i passes through everything, real and imaginary parts give the same determinant.
    basis = unit + 0j if twice else np.concatenate([unit + 0j, 1j * unit]) if rows.out_complex else unit
    rhs = rows.adjoint(basis.astype(np.result_type(basis.dtype, posterior.mean.real.dtype)))
    rhs = rhs.astype(posterior.mean.dtype)
    solved, _ = posterior.precision.solve(rhs, tolerance=tolerance, max_iterations=max_iterations)
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
class InformationGain(ChoosesByScore):
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
    predicts = True

    def __post_init__(self) -> None:
        if self.draws is not None:
            require_counts(draws=self.draws, least=1)

    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Gains and expected energies of all candidates (`gains_and_energies`), summed over the posteriors."""
        own = generators(rng, len(view.posteriors))
        draws = self.draws or view.readouts.draws
        return _summed(of_each(view.posteriors, gains_and_energies, view.readouts, own, draws))


@dataclass(frozen=True, kw_only=True)
class LanczosInformationGain(ChoosesByScore):
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
    predicts = True

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
class ExpectedError(ChoosesByScore):
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
    predicts = True

    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Expected energies, which are the forecast, too."""
        expected = expected_energies(view.posteriors, view.readouts, rng, self.draws or view.readouts.draws)
        return Scores(expected, Forecast(expected))
