"""X for any trajectory: the Fourier transform of every coil image at any points of k-space."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.fft

from mri_design.errors import InputError, number_array, require_grid
from mri_design.operators.base import Array, LinearOperator
from mri_design.operators.coils import Coils
from mri_design.operators.nonuniform.convention import checked_samples
from mri_design.operators.nonuniform.toeplitz import ToeplitzGram, chan_spectrum
from mri_design.operators.nonuniform.transform import sums_at_pixels, sums_at_samples


class NonUniformFourier(LinearOperator):
    """Image (ky, kx) -> samples (coil, sample) of the Fourier transform of every coil image along a trajectory.

    Scale and centre are those of `CentredFFT`: at whole numbers these are the samples of `CartesianSamples`. Samples
    have a relative error of 1e-4 in single and 1e-13 in double precision. Its Gram operator needs no trajectory: it
    takes two FFTs on twice the grid.

    Parameters
    ----------
    trajectory : float array, shape (sample, 2)
        Columns ky and kx in cycles per field of view: DC is 0, and the grid holds up to N / 2 along each axis. A sample
        may come twice.
    grid : tuple of int
        Pixels (ky, kx) of the image.
    maps : complex array, shape (coil, ky, kx), optional
        Coil sensitivities; None is one coil of uniform sensitivity 1.

    Raises
    ------
    InputError
        For a trajectory that `checked_samples` refuses, maps on another grid or not finite; when applied, where
        FINUFFT is not installed.
    """

    def __init__(self, trajectory: Array, grid: tuple[int, int], maps: Array | None = None) -> None:
        rows, columns = require_grid("grid", grid, axes=2)
        self.trajectory = checked_samples(trajectory, (rows, columns))
        self.grid = (rows, columns)
        maps = None if maps is None else number_array("coil maps", maps, wanted="finite numbers (coil, ky, kx)")
        self._coils = None if maps is None else Coils(maps)
        if maps is not None and maps.shape[1:] != self.grid:
            wanted = f"(coil, {self.grid[0]}, {self.grid[1]})"
            raise InputError("coil maps", f"shape {maps.shape}", wanted)
        self.maps = maps
        self._angles = 2 * np.pi * self.trajectory / self.grid
        self._scale = 1 / float(np.sqrt(np.prod(self.grid)))
        super().__init__(self.grid, (1 if maps is None else len(maps), len(self.trajectory)))

    def _apply(self, u: Array) -> Array:
        coil_images = u[..., None, :, :] if self._coils is None else self._coils._apply(u)
        return self._scale * sums_at_samples(coil_images, self._angles)

    def _adjoint(self, v: Array) -> Array:
        coil_images = self._scale * sums_at_pixels(v, self._angles, self.grid)
        return coil_images[..., 0, :, :] if self._coils is None else self._coils._adjoint(coil_images)

    @cached_property
    def gram(self) -> LinearOperator:
        """X^H X, made once."""
        return self.toeplitz_gram()

    def toeplitz_gram(self, weights: Array | float = 1.0) -> LinearOperator:
        """X^H diag(weights) X, for many products with the same weights: two FFTs on twice the grid for every coil.

        Parameters
        ----------
        weights : float array, broadcastable to (coil, sample)
            Of the samples, for example `density_weights`.
        """
        return ToeplitzGram(self._spread(weights), self.maps)

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        if np.ndim(weights) == 0:
            return float(weights) * self._nearest
        return chan_spectrum(self._spread(weights), self.maps)

    @cached_property
    def _nearest(self) -> Array:
        """The eigenvalues of the circulant nearest to X^H X, made once."""
        return chan_spectrum(self._spread(1.0), self.maps)

    def unit_noise(self, rng: np.random.Generator, count: int, real: np.dtype[Any]) -> Array:
        """As in the base class; samples keep their noise when others are added behind them."""
        own = np.random.default_rng(rng.integers(2**63))
        numbers = own.standard_normal((self.out_shape[1], count, self.out_shape[0], 2), dtype=real.type)
        noise = numbers.view(np.result_type(real, np.complex64))[..., 0]
        return np.ascontiguousarray(noise.transpose(1, 2, 0))

    def _spread(self, weights: Array | float) -> Array:
        """The point-spread function at all differences of two pixels (1 or coil, 2 ky, 2 kx), difference 0 first."""
        given = np.asarray(weights, dtype=np.float64)
        coils = given.shape[0] if given.ndim == 2 else 1
        values = np.broadcast_to(given, (coils, self.out_shape[1])) * self._scale**2
        double = (2 * self.grid[0], 2 * self.grid[1])
        return np.asarray(scipy.fft.ifftshift(sums_at_pixels(values, self._angles, double), axes=(-2, -1)))
