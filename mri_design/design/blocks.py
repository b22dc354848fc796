"""Choices from scores: the best candidate, or a block of samples of a plane that do not tell the same.

Samples of a block are thinned by their correlations, cover the error with what they tell of their surroundings, or keep
a distance from each other (a Poisson disc): with several coils a sample tells much of its surroundings, and even
distances count for more than the energies of single samples.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Real

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.design.candidate import LineCandidates
from mri_design.design.energies import coils_of, of_each
from mri_design.design.strategy import ChoosesBlocks, DesignView, best_line
from mri_design.design.trace import Choice, Forecast
from mri_design.errors import InputError, require_numbers, sequence_of
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.readouts import PlaneReadouts

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


LEAST = 1e-4
"""Share of the way to the corners of the plane that is left there: every sample can be drawn."""
SHIFT = 0.25
"""How far, in samples along each axis, a sample may count as lying from its place: distances of a grid are few (1, 1.4,
2, ...), and without it a distance between two of them makes a checkerboard."""
BISECTIONS = 20
SHARE = 0.7
"""Part of a mask that is a disc where a strategy begins with one (results/coils/planes.md)."""
POWER = 2.0
"""Power of its density."""


def radial_density(plane: PlaneReadouts, power: float) -> NDArray[np.float64]:
    """Relative density (1 - r / r_max)^power of every sample, (size,), r the distance from DC; 1 there."""
    if not power:
        return np.ones(plane.size)
    share = 1 - plane.radius / plane.radius.max()
    return np.asarray(np.maximum(share, 0) ** power + LEAST**power)


def first_disc(candidates: LineCandidates, rng: np.random.Generator, count: int, power: float = POWER) -> list[Choice]:
    """The next ``count`` samples of a plane as a Poisson disc around those that are there: the first part of a mask.

    Parameters
    ----------
    candidates : LineCandidates
        Samples of a plane, and how many there will be in the end.
    rng : numpy Generator
        See `poisson_disc`.
    count : int
        How many.
    power : float
        Of `radial_density`.
    """
    plane = candidates.readouts
    assert isinstance(plane, PlaneReadouts)
    density = radial_density(plane, power)
    disc = poisson_disc(plane, density, candidates.remaining, candidates.mask, count, rng)
    return [Choice(int(sample)) for sample in disc]


def poisson_disc(
    plane: PlaneReadouts,
    density: NDArray[np.float64],
    free: NDArray[np.bool_],
    there: NDArray[np.bool_],
    count: int,
    rng: np.random.Generator,
) -> NDArray[np.intp]:
    """Exactly ``count`` of the ``free`` samples that keep a distance from each other and from those that are ``there``.

    Parameters
    ----------
    plane : PlaneReadouts
        The samples.
    density : float array, shape (size,)
        Positive. No two samples are nearer than the smaller one of their scale / sqrt(density), in samples, each of
        them being shifted by up to `SHIFT`.
    free, there : bool arrays, shape (size,)
        Samples that may be taken, and those that are measured already.
    count : int
        How many; there must be as many free.
    rng : numpy Generator
        Of the order in which samples are tried, and of their shifts.

    Returns
    -------
    int array, shape (count,)

    Notes
    -----
    Samples are tried in a random order, and a sample is taken unless it lies within the distance of one taken before:
    none can be added then. Bisection finds the largest scale at which there are enough; the few too many are left out,
    the last ones taken first.
    """
    order = rng.permutation(np.flatnonzero(free))
    distance = 1 / np.sqrt(density / density.max())
    places = np.indices(plane.grid) + rng.uniform(-SHIFT, SHIFT, (2, *plane.grid))
    low, high = 0.0, float(max(plane.grid))
    best = order[:count]  # at no distance everything is taken
    for _ in range(BISECTIONS):
        scale = (low + high) / 2
        taken = _taken(places, scale * distance, order, np.flatnonzero(there), count)
        if len(taken) >= count:
            low, best = scale, taken
        else:
            high = scale
    return np.asarray(best, dtype=np.intp)


def _taken(
    places: NDArray[np.float64],
    distance: NDArray[np.float64],
    order: NDArray[np.intp],
    there: NDArray[np.intp],
    most: int,
) -> NDArray[np.intp]:
    """Samples in their order that lie in the disc of none before, ``most`` at most; ``places`` are (2, ky, kz)."""
    grid = places.shape[1:]
    covered, square = np.zeros(grid, dtype=bool), (distance**2).reshape(grid)
    reaches = np.minimum(np.ceil(distance + 2 * SHIFT), max(grid)).astype(int).tolist()

    def cover(sample: int) -> None:
        if distance[sample] <= 1 - 2 * SHIFT:  # nothing else is as near
            return
        y, z = divmod(sample, grid[1])
        whole = reaches[sample]
        window = np.s_[max(y - whole, 0) : y + whole + 1, max(z - whole, 0) : z + whole + 1]
        away_y, away_z = places[0][window] - places[0, y, z], places[1][window] - places[1, y, z]
        near = away_y * away_y + away_z * away_z < np.minimum(square[window], square[y, z])
        np.logical_or(covered[window], near, out=covered[window])

    for sample in there.tolist():
        cover(sample)
    flat, taken = covered.reshape(-1).data, list[int]()  # its items are read faster than the array's
    for sample in order.tolist():
        if not flat[sample]:
            taken.append(sample)
            if len(taken) == most:
                break
            cover(sample)
    return np.array(taken, dtype=np.intp)


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

    needs_posterior: bool = True

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


class PredictsByScore(ChoosesByScore):
    """A strategy by a plain posterior, whose scores come with what the posterior expects of the error."""

    def predicted(self, view: DesignView, rng: np.random.Generator) -> Forecast:
        """Expected energies summed over the posteriors; nothing corrects them."""
        return self.scored(view, rng).forecast


def plane_of(view: DesignView) -> PlaneReadouts:
    """The plane that a view's candidates are samples of.

    Raises
    ------
    InputError
        Where they are something else.
    """
    if not isinstance(view.readouts, PlaneReadouts):
        raise InputError(
            field="candidates",
            got="phase-encode lines",
            wanted="samples of a plane",
            cure="Name a strategy for lines, or make the slices with encoding='plane'.",
        )
    return view.readouts


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
        chosen = thinned(left, squared_correlation(view.posteriors), plane_of(view), count)
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
    chosen, gains = covering(left, squared_correlation(view.posteriors), plane_of(view), free, count)
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
