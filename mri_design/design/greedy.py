"""Greedy strategies: choose the candidates with the largest scores under the posterior, one by one or in blocks.

The scores are the expected error (A-optimality) and the information gain (D-optimality),

    score = log det(I + X_* A^-1 X_*^H)   over the real rows of X_*,

twice the mutual information between the image and the noisy data of a candidate, in nats: TR-175 section 6, equation
(12). It is computed from posterior draws, from Lanczos vectors (TR-175 section 6.1), or by dense algebra
(`exact_gains`, the reference).

A block of samples of a plane is chosen from one set of scores. Either samples are thinned by their correlations
(`thinned`), or they are chosen to cover the error (`covering`): with several coils a sample tells much about its
surroundings, and even distances count for more than the energies of single samples.

`Readouts` say what the values of a candidate are (`Readouts.values`), and which moments of them are known in closed
form under a circulant (`Readouts.moments`): these make the circulant a control variate of the posterior's own draws.
Under a Gaussian the covariance after a measurement does not depend on the measured values (`with_unseen`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, TypeVar, cast

import numpy as np
import scipy  # whose parts are loaded when they are first used
import scipy.linalg
from numpy.typing import NDArray

from mri_design.design.strategy import DesignView, Strategy, best_line
from mri_design.design.trace import Choice, Forecast
from mri_design.errors import InputError, described, require_counts, require_numbers, sequence_of
from mri_design.inference.base import with_unseen
from mri_design.model.posterior import GaussianPosterior, PosteriorPrecision, require_posterior
from mri_design.operators.base import Array, LinearOperator, squared_modulus
from mri_design.operators.cartesian_fourier import CartesianLines
from mri_design.readouts import LineReadouts, PlaneReadouts, Readouts, Rows
from mri_design.variances.base import VarianceEstimator, gain_from_values
from mri_design.variances.control_variate import LEAST, ScaledControl, best_share, filter_control

Found = TypeVar("Found")


class KeptElsewhere(Sequence[Any]):
    """A part of every slice, such as its posterior, that other processes keep.

    `of_each` computes there; a part that is indexed by its number is fetched as a whole, once.

    Parameters
    ----------
    which : str
        The name of the part.
    count : int
        Number of slices.
    ask : callable
        Has ``function(slice, *arguments)`` computed where the slices are, for a mapping of slices to ``arguments``.
    means : sequence of arrays (ky, kx)
        Of posteriors, the mean of every slice.
    """

    def __init__(
        self,
        which: str,
        count: int,
        ask: Callable[[Callable[..., Any], Mapping[int, tuple[Any, ...]]], list[Any]],
        means: Sequence[Array] = (),
    ) -> None:
        self._which, self._count, self._ask, self.means = which, count, ask, means
        self._whole = dict[int, Any]()

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        numbers = range(len(self))[index]
        if not isinstance(numbers, int):
            return [self[i] for i in numbers]
        if numbers not in self._whole:
            (self._whole[numbers],) = self._ask(getattr, {numbers: (self._which,)})
        return self._whole[numbers]

    def each(self, function: Callable[..., Found], arguments: Sequence[tuple[Any, ...]]) -> list[Found]:
        """``function(part, *arguments)`` of every slice, each with its own arguments."""
        return self._ask(_of_part, {n: (self._which, function, *own) for n, own in enumerate(arguments)})


def _of_part(one: object, which: str, function: Callable[..., Found], *arguments: Any) -> Found:
    return function(getattr(one, which), *arguments)


def of_each(
    posteriors: Sequence[GaussianPosterior],
    function: Callable[..., Found],
    arguments: Sequence[tuple[Any, ...]] | None = None,
) -> list[Found]:
    """``function(posterior, *arguments)`` of every slice, computed where the posterior is.

    Parameters
    ----------
    posteriors : sequence of GaussianPosterior
        As `DesignView.posteriors`.
    function : callable
        Takes one posterior and its arguments. Where posteriors are in other processes it must survive pickling, as a
        function of a module does.
    arguments : sequence of tuples, optional
        Further arguments of every slice. They are not to be used again where they change when they are used, as
        generators do.

    Returns
    -------
    list
        In the order of the slices.
    """
    own = [()] * len(posteriors) if arguments is None else arguments
    if isinstance(posteriors, KeptElsewhere):
        return posteriors.each(function, own)
    return [function(posterior, *mine) for posterior, mine in zip(posteriors, own, strict=True)]


def generators(rng: np.random.Generator, count: int) -> list[np.random.Generator]:
    """A generator for every slice: draws for one slice do not depend on the others, or on their process.

    A single slice, which is always in this process, draws from ``rng`` itself.
    """
    return rng.spawn(count) if count > 1 else [rng] * count


def means_of(posteriors: Sequence[GaussianPosterior]) -> list[Array]:
    """The mean of every slice, (ky, kx)."""
    if isinstance(posteriors, KeptElsewhere):
        return list(posteriors.means)
    return [posterior.mean for posterior in posteriors]


def fewest_coils(posteriors: Sequence[GaussianPosterior]) -> int:
    """How many coils measured, of several slices the fewest."""
    return min(coils for coils, *_ in of_each(posteriors, measurement_facts))


def measurement_facts(posterior: GaussianPosterior) -> tuple[int, float, bool]:
    """How many coils measured, the noise variance of a sample's component, and whether no phase is taken for known."""
    model = posterior.model
    return len(model.data), float(model.noise_variance), posterior.precision.complex_linear


def image_energy(means: Sequence[Array]) -> float:
    """Energy of the means, all slices together."""
    return float(sum(np.sum(np.abs(mean) ** 2, dtype=np.float64) for mean in means))


Numbers = NDArray[np.float64]

DRAWS = 12
"""Posterior draws behind `least_energies`, where inference has nothing better."""
VALUES_AT_ONCE = 1 << 14
"""Values whose covariances between coils are in memory together."""


def lines_of(posterior: GaussianPosterior) -> LineReadouts:
    """The phase-encode lines of the grid that a posterior was measured on.

    Raises
    ------
    InputError
        Where the measurement is not one of Cartesian lines.
    """
    measured = posterior.model.measurement
    if not isinstance(measured, CartesianLines):
        wanted = "a Cartesian measurement, whose lines have numbers"
        cure = "Ask for the information_gain of rows given as an operator, as Dense(rows)."
        raise InputError("posterior", f"one whose measurement is {described(measured)}", wanted, cure)
    return LineReadouts(measured.grid)


def rows_of(posterior: GaussianPosterior, readouts: Readouts, ids: Sequence[int]) -> Rows:
    """X of some candidates, with the coils of the posterior's own measurement."""
    return readouts.rows(ids, coils_of(posterior))


def value_variances(posterior: GaussianPosterior, readouts: Readouts, rng: np.random.Generator, draws: int) -> Numbers:
    """Posterior variance per real component of every value of every candidate, one coil, in units of sigma^2.

    Parameters
    ----------
    posterior : GaussianPosterior
        Its own draws serve as they are where inference knows what a circulant explains of them.
    readouts : Readouts
        The candidates.
    rng : numpy Generator
        Of the draws that are missing.
    draws : int
        Plain posterior draws at least, where they are plain.

    Returns
    -------
    float array, shape (candidate, value)
        Unbiased, but for what the draws lack of the solutions.
    """
    made = posterior.marginals

    def of(images: Array) -> Array:
        return readouts.values(images)[:, 0]

    if made.samples is not None and made.explained is not None:
        control = filter_control(posterior.precision)
        if isinstance(control, ScaledControl):
            first = readouts.scaled_moment(control.inverse.own, control.inverse.turn)
            if first is not None:
                return regressed_variances(of(made.samples), of(made.explained), first)
        elif control is not None:
            moments = readouts.moments(control.inverse, control.gram, control.sites)
            if moments is not None:
                return controlled_variances(of(made.samples), of(made.explained), *moments)
    return np.asarray(np.mean(np.abs(of(posterior.deviations(rng, draws))) ** 2, axis=0, dtype=np.float64) / 2)


def energies(posterior: GaussianPosterior, readouts: Readouts, rng: np.random.Generator, draws: int) -> Numbers:
    """Expected energy of the mean's error on every candidate, (size,): summed over its values and coils, in data units.

    Parameters
    ----------
    posterior : GaussianPosterior
        With several coils its own draws serve as they are.
    readouts, rng, draws
        As for `value_variances`; with several coils draws are made where inference made none.
    """
    maps = coils_of(posterior)
    if maps is None:
        powers = 2 * value_variances(posterior, readouts, rng, draws)
    else:  # coil by coil, so that memory stays at a batch of images
        made = posterior.own_deviations(rng, draws)
        each = (_power(readouts.values(made, maps[coil : coil + 1])) for coil in range(len(maps)))
        powers = np.asarray(sum(each))
    return np.asarray(posterior.model.noise_variance * np.sum(powers, axis=1))


def expected_energies(
    posteriors: Sequence[GaussianPosterior], readouts: Readouts, rng: np.random.Generator, draws: int
) -> Numbers:
    """`energies` summed over posteriors, (size,): the predicted error on every candidate."""
    arguments = [(readouts, own, draws) for own in generators(rng, len(posteriors))]
    return np.asarray(np.sum(of_each(posteriors, energies, arguments), axis=0))


def gains_and_energies(
    posterior: GaussianPosterior, readouts: Readouts, rng: np.random.Generator, draws: int
) -> tuple[Numbers, Numbers]:
    """Information gain of every candidate, and the expected energies behind it, (size,) each.

    The gain is log det(I + X_* A^-1 X_*^H) over the real rows of a candidate: twice the information in nats (TR-175,
    equation 12). Where the values of a candidate are nearly independent of each other, as those of image columns are on
    a line, what is left of the determinant is a small one for each value: det(I + C) with C the covariance of the
    coils. How far that is from `exact_gains` is measured in results/design-study/measurements.md. Where they are not,
    as along a shot, the score is too small with fewer draws than values; the order of the candidates is what counts.

    With Lanczos variances (`variances.Lanczos`) A^-1 is replaced by its approximation V V^H, and both are lower bounds
    (TR-175, section 6.1); otherwise they come from posterior draws.

    Parameters
    ----------
    posterior, readouts, rng, draws
        As for `energies`.
    """
    maps = coils_of(posterior)
    sigma2, factors = posterior.model.noise_variance, posterior.marginals.factors
    turned, apart = posterior.precision.complex_linear, readouts.independent and factors is None
    if maps is None and apart:
        variances = value_variances(posterior, readouts, rng, draws)
        return 2 * np.log1p(variances).sum(axis=1), np.asarray(np.sum(2 * sigma2 * variances, axis=1))
    if factors is not None:  # as many draws whose covariance is the Lanczos approximation of A^-1
        root = factors.inverse_root()
        made = root * root.real.dtype.type(np.sqrt((2 if turned else 1) * len(root)))
    else:
        made = posterior.own_deviations(rng, draws) if apart else posterior.deviations(rng, draws)
    values = readouts.values(made, maps)
    powers = np.asarray(sigma2 * np.sum(_power(values), axis=1))
    if apart:
        return gains_of_values(values), powers
    joined = np.moveaxis(values, 2, 0).reshape(readouts.size, len(made), -1)  # (candidate, draw, coil and value)
    if not turned:  # i times a draw is no draw
        joined = np.concatenate([joined.real, joined.imag], axis=-1)
    return gain_from_values(joined.mT), powers


def gains_of_values(values: Array) -> Numbers:
    """Gains of candidates, (size,), from draws of independent values, (draw, coil, size, value), in units of sigma."""
    each = np.moveaxis(values, (2, 3), (0, 1)).swapaxes(2, 3)  # (size, value, coil, draw)
    many = max(1, VALUES_AT_ONCE // each.shape[1])
    parts = (each[first : first + many] for first in range(0, len(each), many))
    return np.concatenate([gain_from_values(part).sum(axis=1) for part in parts])


def residual_energies(posterior: GaussianPosterior, readouts: Readouts, truth: Array) -> Numbers:
    """Energy of the mean's actual error on every candidate, (size,): summed over values and coils, in data units."""
    maps = coils_of(posterior)
    wrong = readouts.values((posterior.mean - truth)[None], maps)
    return np.asarray(np.sum(np.abs(wrong) ** 2, axis=(0, 1, 3), dtype=np.float64))


def actual_energies(posteriors: Sequence[GaussianPosterior], readouts: Readouts, truths: Sequence[Array]) -> Numbers:
    """`residual_energies` summed over posteriors, each with its own truth, (size,)."""
    return np.asarray(np.sum(of_each(posteriors, residual_energies, [(readouts, truth) for truth in truths]), axis=0))


def least_energies(
    posterior: GaussianPosterior,
    readouts: Readouts,
    ids: Sequence[int],
    estimator: VarianceEstimator,
    rng: np.random.Generator,
) -> Numbers:
    """Expected energy of the error on every candidate once all of ``ids`` have been measured, (size,): of their noise.

    Parameters
    ----------
    posterior : GaussianPosterior
        Before.
    readouts : Readouts
        The candidates.
    ids : sequence of int
        All that are measured afterwards.
    estimator : VarianceEstimator
        Makes the draws, starting from the posterior's own.
    rng : numpy Generator
        Equal to the one behind the posterior's own draws, so that they change little.
    """
    later = with_unseen(posterior, rows_of(posterior, readouts, ids), estimator, rng)
    return energies(later, readouts, rng, DRAWS)


def coils_of(posterior: GaussianPosterior) -> Array | None:
    """Coil maps of a posterior's measurement; None is one coil of uniform sensitivity 1.

    Raises
    ------
    InputError
        Where the measurement is not one of k-space.
    """
    measured = posterior.model.measurement
    if not isinstance(measured, Rows):
        wanted = "a measurement of lines, of samples of a plane, or along a trajectory"
        cure = "Make the slice with SliceModel."
        raise InputError("posterior", f"one whose measurement is {described(measured)}", wanted, cure)
    return measured.maps


def _power(values: Array) -> Numbers:
    """Mean over draws of the energy of values (draw, coil, candidate, value), summed over coils, (candidate, value)."""
    return np.asarray(np.sum(np.mean(squared_modulus(values), axis=0, dtype=np.float64), axis=0))


def controlled_variances(draws: Array, explained: Array, first: Numbers, second: Numbers) -> Numbers:
    """Variances by the control variate: values (draw, candidate, value) of A^-1 b, and of P b for the same b."""
    from mri_design.operators.kernels.pixels import mean_squares

    return np.asarray(first**2 / second + mean_squares(draws, explained, first / second) / 2)


def regressed_variances(draws: Array, explained: Array, first: Numbers) -> Numbers:
    """Variances by the control variate where the control's first moment alone is known.

    Every candidate takes the share of the control that explains most of it, over the values of other draws: those of
    even numbers for those of odd numbers, and the other way round.
    """
    own, power, both = np.abs(draws) ** 2, np.abs(explained) ** 2, np.real(np.conj(draws) * explained)
    shares = np.empty((len(draws), draws.shape[1], 1))
    for turn in range(2):
        of_draws, of_control, of_both = (
            v[1 - turn :: 2].sum(axis=(0, 2), dtype=np.float64) for v in (own, power, both)
        )
        shares[turn::2, :, 0] = best_share(of_draws, of_control, of_both)
    terms = own + shares * (2 * first - both)
    return np.asarray(np.maximum(terms.mean(axis=0), LEAST * own.mean(axis=0)) / 2)


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


Scores = tuple[Numbers, Forecast]
"""Of all candidates, (size,), the larger the better and NaN if a candidate has none; and the forecast with them."""


class ChoosesByScore(Strategy):
    """A strategy that takes the candidates with the largest scores, whatever they are.

    Single samples of a plane are chosen in thinned blocks, lines and shots one after another.
    """

    in_nats: bool = False
    """Whether half a score is the information, in nats, that a candidate is expected to bring."""

    @abstractmethod
    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Scores of all candidates, and the forecast."""

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The ``count`` best remaining candidates; the first has the scores and the forecast."""
        scores, forecast = self.scored(view, rng)
        block = block_by_scores(scores, view, count, forecast)
        if not self.in_nats:
            return block
        nats = (float(scores[choice.line]) / 2 for choice in block)
        return [replace(c, forecast=replace(c.forecast, information=n)) for c, n in zip(block, nats, strict=True)]

    def predicted(self, view: DesignView, rng: np.random.Generator) -> Forecast:
        """The forecast that comes with the scores: expected energies of the posterior, uncorrected."""
        return self.scored(view, rng)[1]


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
    MriDesignError
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
    """Samples that leave the least energy of the error, chosen one by one, each with its effect on its surroundings.

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
    return removed_share(variances, coils_of(posterior), posterior.model.noise_variance)


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
    For all lines of a scan at once `gains_and_energies` is far cheaper.
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


@dataclass(frozen=True, kw_only=True)
class InformationGain(ChoosesByScore):
    """Choose the candidates with the largest information gain, computed from posterior draws or Lanczos vectors.

    Lanczos vectors are those of the inference, where its variances are `Lanczos` (TR-175, section 6.1).

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
    in_nats = True

    def __post_init__(self) -> None:
        if self.draws is not None:
            require_counts(draws=self.draws, least=1)

    def scored(self, view: DesignView, rng: np.random.Generator) -> Scores:
        """Gains and expected energies of all candidates (`gains_and_energies`), summed over the posteriors."""
        readouts, draws = view.readouts, self.draws or view.readouts.draws
        arguments = [(readouts, own, draws) for own in generators(rng, len(view.posteriors))]
        each = of_each(view.posteriors, gains_and_energies, arguments)
        gains, energies = (np.asarray(np.sum(part, axis=0)) for part in zip(*each, strict=True))
        return gains, Forecast(energies)


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
        return expected, Forecast(expected)
