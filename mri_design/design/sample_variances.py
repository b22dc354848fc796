"""Posterior variances of the samples of a plane (ky, kz), from draws and what a circulant explains of them.

A sample of k-space is one row of the Fourier transform, which makes every circulant P diagonal. So both moments that
make a row of P b a control variate are known exactly: P itself, and P A P on the diagonal, in which the sites of a band
of filters count with their mean site precision. `line_variances` has the same for whole lines.
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
from mri_design.operators.base import Array
from mri_design.operators.cartesian import CartesianSamples
from mri_design.operators.encodings import PlaneEncoding
from mri_design.variances.base import VarianceEstimator
from mri_design.variances.circulant import CirculantControl

_DRAWS = 12
"""Posterior draws behind `least_sample_energies`, where inference has nothing better."""


def plane_of(posterior: GaussianPosterior) -> tuple[PlaneEncoding, CartesianSamples]:
    """The plane that a posterior's samples lie in, and its measurement.

    Raises
    ------
    InputError
        Where the measurement is not one of single samples.
    """
    measured = posterior.model.measurement
    if not isinstance(measured, CartesianSamples):
        raise InputError(
            field="posterior",
            got=f"one whose measurement is {described(measured)}",
            wanted="a measurement of single samples of a plane",
            cure="Make the slice with encoding='plane'.",
        )
    return PlaneEncoding(measured.grid), measured


def sample_variances(posterior: GaussianPosterior, rng: np.random.Generator, draws: int) -> NDArray[np.float64]:
    """Posterior variance per real component of every sample of the plane, (size,), summed over coils, units of sigma^2.

    Parameters
    ----------
    posterior : GaussianPosterior
        Its own draws serve as they are where inference knows what a circulant explains of them.
    rng : numpy Generator
        Of the draws that are missing.
    draws : int
        Plain posterior draws at least, where they are plain.

    Raises
    ------
    InputError
        Where the measurement is not one of single samples.
    """
    plane, measured = plane_of(posterior)
    made = posterior.marginals
    if made.explained is not None and made.samples is not None and measured.maps is None:
        control = CirculantControl.of(posterior.precision)
        if control is not None and control.sites is not None and control.gram is not None:
            first, second = sample_moments(control, control.gram)
            drawn, known = (plane.values(images)[:, 0, :, 0] for images in (made.samples, made.explained))
            remainder = drawn - (first / second).astype(drawn.real.dtype) * known
            return np.asarray(first**2 / second + np.mean(np.abs(remainder) ** 2, axis=0, dtype=np.float64) / 2)
    values = plane.values(posterior.deviations(rng, draws), measured.maps, measured.library)
    return np.asarray(np.sum(np.mean(np.abs(values) ** 2, axis=0, dtype=np.float64), axis=(0, 2)) / 2)


def sample_moments(control: CirculantControl, gram: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """diag(E P E^H) and diag(E P A P E^H) per real component, shape (size,), E the samples of a plane in order.

    ``gram`` are the eigenvalues of X^H X, which is circulant.
    """
    spectrum = gram + sum(
        np.mean(weights, dtype=np.float64) / filters.stride**2 * np.abs(filters.response) ** 2
        for filters, weights in control.sites or ()
    )
    moments = (control.inverse, control.inverse**2 * spectrum)
    first, second = (scipy.fft.fftshift(moment).reshape(-1) for moment in moments)
    return first, second


def expected_sample_energies(
    posteriors: Sequence[GaussianPosterior], rng: np.random.Generator, draws: int
) -> NDArray[np.float64]:
    """Expected energy of the mean's error on every sample, (size,), summed over coils and posteriors, in data units."""
    return np.asarray(np.sum(of_each(posteriors, sample_energies, generators(rng, len(posteriors)), draws), axis=0))


def sample_energies(posterior: GaussianPosterior, rng: np.random.Generator, draws: int) -> NDArray[np.float64]:
    """The same under one posterior."""
    return 2 * posterior.model.noise_variance * sample_variances(posterior, rng, draws)


def residual_sample_energies(posterior: GaussianPosterior, truth: Array) -> NDArray[np.float64]:
    """Energy of the mean's actual error on every sample, (size,), summed over coils, in the data's units."""
    plane, measured = plane_of(posterior)
    wrong = plane.values((posterior.mean - truth)[None], measured.maps, measured.library)
    return np.asarray(np.sum(np.abs(wrong) ** 2, axis=(0, 1, 3), dtype=np.float64))


def least_sample_energies(
    posterior: GaussianPosterior, samples: Sequence[int], estimator: VarianceEstimator, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Expected energy of the error on every sample once all of ``samples`` have been measured, (size,).

    Parameters
    ----------
    posterior : GaussianPosterior
        Before; mean and widths stay as they are.
    samples : sequence of int
        All samples that are measured afterwards.
    estimator : VarianceEstimator
        Makes the draws, starting from the posterior's own.
    rng : numpy Generator
        Equal to the one behind the posterior's own draws, so that they change little.
    """
    plane, measured = plane_of(posterior)
    measurement = plane.rows(samples, measured.maps, measured.library)
    return expected_sample_energies([with_unseen(posterior, measurement, estimator, rng)], rng, _DRAWS)


def squared_correlation(posteriors: Sequence[GaussianPosterior]) -> NDArray[np.float64]:
    """What share of a sample's variance the measurement of another removes, by their distance, (ky, kz).

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


def _removed_share(posterior: GaussianPosterior) -> NDArray[np.float64]:
    """For one posterior, distance 0 first."""
    variances = np.asarray(posterior.image_variances, dtype=np.float64)
    _, measured = plane_of(posterior)
    if measured.maps is None:
        spectrum = scipy.fft.fft2(variances)
        return np.asarray(np.abs(spectrum / spectrum[0, 0]) ** 2)
    maps = measured.maps.astype(np.complex64)
    weighted = maps[:, None] * np.conj(maps) * variances.astype(np.float32)
    joint = np.moveaxis(scipy.fft.fft2(weighted), (0, 1), (2, 3)) / variances.size  # (ky, kz, coil, coil)
    own = joint[0, 0]
    noise = 2 * posterior.model.noise_variance * np.eye(len(own))
    explained = joint @ np.linalg.inv(own + noise).astype(np.complex64)
    shares = np.sum(explained * np.conj(joint), axis=(2, 3)).real / np.trace(own).real
    return np.asarray(np.clip(shares, 0, 1), dtype=np.float64)
