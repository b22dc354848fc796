"""Posterior variances of k-space lines, image column by image column, from draws and what a circulant explains of them.

The inverse FFT of a fully sampled readout separates the columns of the image, so a line's rows are e(ky, x): the FFT
along ky of column x (`CartesianLines.columns`). Under a circulant P the two moments that make E P b a control variate
of E u are known exactly, as they are for the sites (`variances.CirculantControl`). Lines that are yet to be measured
change the variances in a known way (`with_unseen_lines`), whatever their values will be.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from mri_design.design.posteriors import generators, of_each
from mri_design.errors import InputError, described
from mri_design.inference.base import with_unseen
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array, squared_modulus
from mri_design.operators.cartesian import CartesianLines
from mri_design.variances.base import VarianceEstimator
from mri_design.variances.circulant import CirculantControl
from mri_design.variances.control_variate import LEAST, PhasedControl, best_share

_DRAWS = 12
"""Posterior draws behind `least_energies`, where inference has nothing better."""


def all_lines(posterior: GaussianPosterior) -> CartesianLines:
    """The encoding of every line of the grid, with the measurement's own coils.

    Raises
    ------
    InputError
        Where the measurement is not one of Cartesian lines.
    """
    measured = posterior.model.measurement
    if not isinstance(measured, CartesianLines):
        raise InputError(
            field="posterior",
            got=f"one whose measurement is {described(measured)}",
            wanted="a Cartesian measurement, whose lines have numbers",
            cure="Ask for the information_gain of rows given as an operator, as Dense(rows).",
        )
    return CartesianLines(range(measured.grid[0]), measured.grid, measured.maps, measured.library)


def line_variances(posterior: GaussianPosterior, rng: np.random.Generator, draws: int) -> NDArray[np.float64]:
    """Posterior variance per real component of every value of every line of a single-coil scan, units of sigma^2.

    Parameters
    ----------
    posterior : GaussianPosterior
        Its own draws serve as they are where inference knows what a circulant explains of them.
    rng : numpy Generator
        Of the draws that are missing.
    draws : int
        Plain posterior draws at least, where they are plain.

    Returns
    -------
    float array, shape (ky, x)
    """
    made, every = posterior.marginals, all_lines(posterior)
    if made.samples is not None and made.explained is not None:
        phased = PhasedControl.of(posterior.precision)
        if phased is not None:
            return phased_line_variances(made.samples, made.explained, phased, every)
        control = CirculantControl.of(posterior.precision)
        if control is not None and control.sites is not None:
            return controlled_line_variances(made.samples, made.explained, control, every)
    values = every.columns(posterior.deviations(rng, draws))
    return np.asarray(np.mean(np.abs(values[:, 0]) ** 2, axis=0, dtype=np.float64) / 2)


def line_energies(posterior: GaussianPosterior, rng: np.random.Generator, draws: int) -> NDArray[np.float64]:
    """Expected energy of the mean's error on every line, (ky,): summed over readout and coils, in the data's units.

    Parameters
    ----------
    posterior : GaussianPosterior
        With several coils its own draws serve as they are.
    rng, draws
        As for `line_variances`; with several coils they serve where inference made no draws.
    """
    every = all_lines(posterior)
    if every.maps is None:
        components = 2 * line_variances(posterior, rng, draws)
    else:  # coil by coil, so that memory stays at a batch of images
        made = posterior.own_deviations(rng, draws)
        components = np.asarray(sum(mean_power(coil.columns(made)) for coil in every.single_coils()))
    return np.asarray(posterior.model.noise_variance * np.sum(components, axis=1))


def residual_energies(posterior: GaussianPosterior, truth: Array) -> NDArray[np.float64]:
    """Energy of the mean's actual error on every line, (ky,): summed over readout and coils, in the data's units."""
    wrong = all_lines(posterior)(posterior.mean - truth)
    return np.asarray(np.sum(np.abs(wrong) ** 2, axis=(0, 2), dtype=np.float64))


def expected_energies(
    posteriors: Sequence[GaussianPosterior], rng: np.random.Generator, draws: int
) -> NDArray[np.float64]:
    """`line_energies` summed over posteriors, (ky,): what the strategies by expected error predict."""
    own = generators(rng, len(posteriors))
    return np.asarray(np.sum(of_each(posteriors, line_energies, own, draws), axis=0))


def with_unseen_lines(
    posterior: GaussianPosterior, lines: Sequence[int], estimator: VarianceEstimator, rng: np.random.Generator
) -> GaussianPosterior:
    """The posterior with the rows of further lines in its precision: same mean, same widths, new draws.

    Under a Gaussian the covariance after a measurement does not depend on the measured values, so lines can be chosen
    one after another between two acquisitions (echo trains). The widths are those from before: they change with data.

    Parameters
    ----------
    posterior : GaussianPosterior
        Before.
    lines : sequence of int
        All lines that are in its precision afterwards: those measured, and those that will be.
    estimator : VarianceEstimator
        Makes the draws, starting from the posterior's own.
    rng : numpy Generator
        Equal to the one behind the posterior's own draws, so that they change little.

    Returns
    -------
    GaussianPosterior
        With marginals that hold no z of sites, only what line scores need.
    """
    every = all_lines(posterior)
    measurement = CartesianLines(lines, every.grid, every.maps, every.library)
    return with_unseen(posterior, measurement, estimator, rng)


def least_energies(
    posterior: GaussianPosterior, lines: Sequence[int], estimator: VarianceEstimator, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Expected energy of the error on every line once all of ``lines`` have been measured, (ky,): what noise leaves.

    Parameters
    ----------
    posterior, lines, estimator, rng
        As for `with_unseen_lines`.
    """
    return line_energies(with_unseen_lines(posterior, lines, estimator, rng), rng, _DRAWS)


def mean_power(columns: Array) -> NDArray[np.float64]:
    """Mean over draws of the energy of values (draw, coil, ky, x), summed over coils, (ky, x)."""
    return np.asarray(np.sum(np.mean(squared_modulus(columns), axis=0, dtype=np.float64), axis=0))


def controlled_line_variances(
    draws: Array, explained: Array, control: CirculantControl, encoding: CartesianLines
) -> NDArray[np.float64]:
    """Variance per real component of every value of every line of a single-coil scan, in units of sigma^2.

    Parameters
    ----------
    draws, explained : complex arrays, shape (count, ky, kx)
        A^-1 b, and P b for the same b.
    control : CirculantControl
        P.
    encoding : CartesianLines
        All lines of the grid, in order, one coil.

    Returns
    -------
    float array, shape (ky, x)
        Unbiased, but for what the draws lack of the solutions.
    """
    from mri_design.operators.kernels.draws import mean_squares

    first, second = line_moments(control)
    left = mean_squares(encoding.columns(draws)[:, 0], encoding.columns(explained)[:, 0], first / second)
    return np.asarray(first**2 / second + left / 2)


def phased_line_variances(
    draws: Array, explained: Array, control: PhasedControl, encoding: CartesianLines
) -> NDArray[np.float64]:
    """The same beside sites that know the phase, where the control's first moment alone is known.

    Every line takes the share of the control that explains most of it, over the columns of other draws: those of even
    numbers for those of odd numbers, and the other way round.
    """
    s, t = encoding.columns(draws)[:, 0], encoding.columns(explained)[:, 0]
    own, power, both = np.abs(s) ** 2, np.abs(t) ** 2, np.real(np.conj(s) * t)
    shares = np.empty((len(s), s.shape[1], 1))
    for turn in range(2):
        of_s, of_t, of_both = (v[1 - turn :: 2].sum(axis=(0, 2), dtype=np.float64) for v in (own, power, both))
        shares[turn::2, :, 0] = best_share(of_s, of_t, of_both)
    known = 2 * phased_line_moments(control)
    terms = own + shares * (known - both)
    return np.asarray(np.maximum(terms.mean(axis=0), LEAST * own.mean(axis=0)) / 2)


def phased_line_moments(control: PhasedControl) -> NDArray[np.float64]:
    """diag(E P E^T) per real component, shape (ky, x).

    Notes
    -----
    Along a column of the image the circulant's eigenvalues are those averaged over kx. Division by the phase spreads
    them by the power spectrum of that column of exp(i phi). What is antilinear in P cancels in the sum of real and
    imaginary parts.
    """
    inverse = control.inverse
    column = inverse.own.mean(axis=1, keepdims=True)
    power = np.abs(scipy.fft.fft(inverse.rotation, axis=0)) ** 2 / len(column) ** 2
    spread = scipy.fft.ifft(scipy.fft.fft(column, axis=0) * scipy.fft.fft(power, axis=0), axis=0).real
    return np.asarray(scipy.fft.fftshift(spread, axes=0))


def line_moments(control: CirculantControl) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """diag(E P E^H) and diag(E P A P E^H) per real component, shape (ky, x).

    Notes
    -----
    Shifts along ky leave |E P g^H| alone, so the sites of a band add their site precisions summed over ky, correlated
    along x with the kernel's power.
    """
    n_lines, n_columns = control.inverse.shape
    first = np.broadcast_to(control.inverse.mean(axis=1, keepdims=True), (n_lines, n_columns))
    total = np.zeros((n_lines, n_columns // 2 + 1), dtype=complex)
    powers: list[tuple[Array, Array]] = []  # of kernels by their filters along x, which several bands may share
    for filters, weights in control.sites or ():
        columns = np.zeros(n_columns)
        columns[:: filters.stride] = weights.sum(axis=0) / n_lines
        power = next((power for along_x, power in powers if np.array_equal(along_x, filters.along_x)), None)
        if power is None:
            kernel = scipy.fft.ifft(control.inverse * np.conj(filters.along_x), axis=1)
            power = scipy.fft.rfft(squared_modulus(kernel), axis=1)
            powers.append((filters.along_x, power))
        total += np.abs(filters.along_y[:, np.newaxis]) ** 2 * (scipy.fft.rfft(columns) * power)
    sites = scipy.fft.irfft(total, n=n_columns, axis=1)
    second = np.mean(control.inverse**2 * control.gram, axis=1, keepdims=True) + sites
    return np.asarray(scipy.fft.fftshift(first, axes=0)), np.asarray(scipy.fft.fftshift(second, axes=0))
