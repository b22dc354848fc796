"""Energies, variances and information of every candidate, as a posterior expects them or as the truth shows them.

Written once for everything that can be measured one by one: `Readouts` say what the values of a candidate are
(`Readouts.values`), and which moments of them are known in closed form under a circulant (`Readouts.moments`), which
make it a control variate of the posterior's own draws. Candidates that are yet to be measured change the covariance in
a known way (`with_unseen`), whatever their values will be.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, described
from mri_design.inference.base import with_unseen
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array, squared_modulus
from mri_design.operators.cartesian_fourier import CartesianLines, FourierLibrary
from mri_design.operators.nonuniform import NonUniformFourier
from mri_design.readouts import LineReadouts, Readouts, Rows
from mri_design.variances.base import VarianceEstimator, gain_from_values
from mri_design.variances.control_variate import LEAST, CirculantControl, PhasedControl, best_share

Found = TypeVar("Found")


class KeptPosteriors(Sequence[GaussianPosterior]):
    """Posteriors that are kept in other processes.

    Their means are here. What else is asked of them is computed there (`of_each`), and a posterior that is looked up by
    its number is fetched as a whole.
    """

    @property
    @abstractmethod
    def means(self) -> Sequence[Array]:
        """The mean of every slice, (ky, kx)."""

    @abstractmethod
    def each(self, function: Callable[..., Found], arguments: Sequence[tuple[Any, ...]]) -> list[Found]:
        """``function(posterior, *arguments)`` of every slice, each with its own arguments."""


@dataclass(frozen=True)
class PerSlice:
    """An argument of `of_each` that differs from slice to slice: one value for each, in the order of the slices."""

    values: Sequence[Any]


def of_each(posteriors: Sequence[GaussianPosterior], function: Callable[..., Found], *arguments: Any) -> list[Found]:
    """``function(posterior, *arguments)`` of every slice, computed where the posterior is.

    Parameters
    ----------
    posteriors : sequence of GaussianPosterior
        As `DesignView.posteriors`.
    function : callable
        Takes one posterior and the arguments. Where posteriors are in other processes it must survive pickling, as a
        function of a module does.
    *arguments
        The same for every slice, but for those that are `PerSlice`. They are not to be used again where they change
        when they are used: generators (see `generators`).

    Returns
    -------
    list
        In the order of the slices.
    """
    every = range(len(posteriors))
    own = [tuple(a.values[i] if isinstance(a, PerSlice) else a for a in arguments) for i in every]
    if isinstance(posteriors, KeptPosteriors):
        return posteriors.each(function, own)
    return [function(posterior, *mine) for posterior, mine in zip(posteriors, own, strict=True)]


def generators(rng: np.random.Generator, count: int) -> PerSlice:
    """A generator for every slice: what is drawn for one does not depend on the others, or on where they are kept.

    A single slice, which is always in this process, draws from ``rng`` itself.
    """
    return PerSlice(rng.spawn(count) if count > 1 else [rng] * count)


def means_of(posteriors: Sequence[GaussianPosterior]) -> list[Array]:
    """The mean of every slice, (ky, kx)."""
    if isinstance(posteriors, KeptPosteriors):
        return list(posteriors.means)
    return [posterior.mean for posterior in posteriors]


def fewest_coils(posteriors: Sequence[GaussianPosterior]) -> int:
    """How many coils measured, of several slices the fewest."""
    return min(coils for coils, _ in of_each(posteriors, coils_and_noise))


def coils_and_noise(posterior: GaussianPosterior) -> tuple[int, float]:
    """How many coils measured, and the noise variance of a sample's component."""
    return len(posterior.model.data), float(posterior.model.noise_variance)


def image_energy(posteriors: Sequence[GaussianPosterior]) -> float:
    """Energy of the means, all slices together."""
    return float(sum(np.sum(np.abs(mean) ** 2, dtype=np.float64) for mean in means_of(posteriors)))


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
    maps, library = coils_of(posterior)
    return readouts.rows(ids, maps, library)


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
    made, library = posterior.marginals, coils_of(posterior)[1]

    def of(images: Array) -> Array:
        return readouts.values(images, None, library)[:, 0]

    if made.samples is not None and made.explained is not None:
        phased = PhasedControl.of(posterior.precision)
        control = CirculantControl.of(posterior.precision) if phased is None else None
        if phased is not None:
            first = readouts.phased_moment(phased.inverse.own, phased.inverse.rotation)
            if first is not None:
                return regressed_variances(of(made.samples), of(made.explained), first)
        elif control is not None and control.sites is not None:
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
    maps, library = coils_of(posterior)
    if maps is None:
        powers = 2 * value_variances(posterior, readouts, rng, draws)
    else:  # coil by coil, so that memory stays at a batch of images
        made = posterior.own_deviations(rng, draws)
        each = (_power(readouts.values(made, maps[coil : coil + 1], library)) for coil in range(len(maps)))
        powers = np.asarray(sum(each))
    return np.asarray(posterior.model.noise_variance * np.sum(powers, axis=1))


def expected_energies(
    posteriors: Sequence[GaussianPosterior], readouts: Readouts, rng: np.random.Generator, draws: int
) -> Numbers:
    """`energies` summed over posteriors, (size,): what strategies predict of the error on every candidate."""
    own = generators(rng, len(posteriors))
    return np.asarray(np.sum(of_each(posteriors, energies, readouts, own, draws), axis=0))


def gains_and_energies(
    posterior: GaussianPosterior, readouts: Readouts, rng: np.random.Generator, draws: int
) -> tuple[Numbers, Numbers]:
    """Information gain of every candidate from posterior draws, and the expected energies behind it, (size,) each.

    The gain is log det(I + X_* A^-1 X_*^H) over the real rows of a candidate: twice the information in nats (TR-175,
    equation 12). Where the values of a candidate are nearly independent of each other, as those of image columns are on
    a line, what is left of the determinant is a small one for each value: det(I + C) with C the covariance of the
    coils. How far that is from `exact_gains` is measured in results/design-study/measurements.md. Where they are not,
    as along a shot, the score is too small with fewer draws than values; the order of the candidates is what counts.

    Parameters
    ----------
    posterior, readouts, rng, draws
        As for `energies`.
    """
    maps, library = coils_of(posterior)
    sigma2 = posterior.model.noise_variance
    if maps is None and readouts.independent:
        variances = value_variances(posterior, readouts, rng, draws)
        return 2 * np.log1p(variances).sum(axis=1), np.asarray(np.sum(2 * sigma2 * variances, axis=1))
    made = posterior.own_deviations(rng, draws) if readouts.independent else posterior.deviations(rng, draws)
    values = readouts.values(made, maps, library)
    powers = np.asarray(sigma2 * np.sum(_power(values), axis=1))
    if readouts.independent:
        return gains_of_values(values), powers
    joined = np.moveaxis(values, 2, 0).reshape(readouts.size, len(made), -1)  # (candidate, draw, coil and value)
    if not posterior.precision.complex_linear:  # i times a draw is no draw
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
    maps, library = coils_of(posterior)
    wrong = readouts.values((posterior.mean - truth)[None], maps, library)
    return np.asarray(np.sum(np.abs(wrong) ** 2, axis=(0, 1, 3), dtype=np.float64))


def actual_energies(posteriors: Sequence[GaussianPosterior], readouts: Readouts, truths: Sequence[Array]) -> Numbers:
    """`residual_energies` summed over posteriors, each with its own truth, (size,)."""
    return np.asarray(np.sum(of_each(posteriors, residual_energies, readouts, PerSlice(truths)), axis=0))


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


def coils_of(posterior: GaussianPosterior) -> tuple[Array | None, FourierLibrary]:
    """Coil maps of a posterior's measurement, and the library of its Fourier transforms.

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
    return measured.maps, "scipy" if isinstance(measured, NonUniformFourier) else measured.library


def _power(values: Array) -> Numbers:
    """Mean over draws of the energy of values (draw, coil, candidate, value), summed over coils, (candidate, value)."""
    return np.asarray(np.sum(np.mean(squared_modulus(values), axis=0, dtype=np.float64), axis=0))


def controlled_variances(draws: Array, explained: Array, first: Numbers, second: Numbers) -> Numbers:
    """Variances by the control variate: values (draw, candidate, value) of A^-1 b, and of P b for the same b."""
    from mri_design.operators.kernels.draws import mean_squares

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
