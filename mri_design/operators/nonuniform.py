"""Measurements X along any trajectory: the Fourier transform of every coil image at any points of k-space.

The non-uniform transforms are those of FINUFFT (Barnett, Magland & af Klinteberg, SIAM J. Sci. Comput. 41, 2019), the
optional dependency ``nonuniform``. It runs on one thread, so that results are the same bits in every run. X^H X is a
block Toeplitz matrix, whose products take FFTs on twice the grid. Density weights make up for samples that lie closer
in some places than in others.
"""

from __future__ import annotations

from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.errors import InputError, number_array, require_counts, require_grid
from mri_design.operators.base import Array, GramOfImages, LinearOperator
from mri_design.operators.elementary import Coils
from mri_design.operators.fourier import SpectralFilter, over_coils
from mri_design.operators.trajectory import ROUNDING, checked_samples

# Requested relative errors. In single precision a smaller one gains no more than it costs, in double precision it costs
# next to nothing (results/benchmarks/measured-once.md).
_SINGLE, _DOUBLE = 1e-4, 1e-13
_ROUGH = 1e-9
"""From here on a grid of 1.25 times the length is fine enough inside, which takes a quarter of the time of 2 times."""

_BEYOND = 1e-4
"""Cycles by which a position may lie beyond the grid: what single precision leaves of an exact N / 2."""


def require_finufft() -> None:
    """Refuse work along trajectories where FINUFFT is missing, before any of it is done.

    Raises
    ------
    InputError
        With how to install it.
    """
    _finufft()


def sums_at_samples(images: Array, angles: Array, *, tolerance: float = _DOUBLE) -> Array:
    """Sum over pixels r of ``images`` exp(-i w r), for every sample w.

    Parameters
    ----------
    images : array, shape (..., ky, kx)
        With the origin r = 0 at index ``N // 2``.
    angles : float array, shape (sample, 2)
        w in radians per pixel, within pi: along ky and kx.
    tolerance : float
        Relative error of sums in double precision.

    Returns
    -------
    complex array, shape (..., sample)
        In the precision of the images, to a relative error of 1e-4 (single) or the tolerance (double).

    Raises
    ------
    InputError
        Where FINUFFT is not installed.
    """
    stack = _stack(images, axes=2)
    error = _accuracy(_SINGLE if stack.dtype == np.complex64 else tolerance)
    sums = _finufft().nufft2d2(*_axes(angles, stack), stack, isign=-1, nthreads=1, **error)
    return np.asarray(sums).reshape(*images.shape[:-2], len(angles))


def sums_at_pixels(samples: Array, angles: Array, shape: tuple[int, int], *, tolerance: float = _DOUBLE) -> Array:
    """Sum over samples w of ``samples`` exp(i w r), for every pixel r: the adjoint of `sums_at_samples`.

    Computed in double precision whatever comes in, which takes twice as long. X^H y is solved for with a Gram operator
    that is exact to rounding: where many samples crowd around DC, as those of spirals do, an error of 1e-4 of X^H y is
    larger than the rate of a sparsity prior, lies where X^H X is zero, and the objective has no minimum.

    Parameters
    ----------
    samples : array, shape (..., sample)
        Values at the samples.
    angles : float array, shape (sample, 2)
        w in radians per pixel, within pi: along ky and kx.
    shape : tuple of int
        Pixels (ky, kx) of the result, the origin at index ``N // 2``.
    tolerance : float
        Relative error, before a result in single precision is rounded.

    Returns
    -------
    complex array, shape (..., ky, kx)
        In the precision of the samples.

    Raises
    ------
    InputError
        Where FINUFFT is not installed.
    """
    stack = _stack(samples, axes=1).astype(np.complex128, copy=False)
    sums = _finufft().nufft2d1(*_axes(angles, stack), stack, n_modes=shape, isign=1, nthreads=1, **_accuracy(tolerance))
    wanted = np.result_type(samples.dtype, np.complex64)
    return np.asarray(sums).reshape(*samples.shape[:-1], *shape).astype(wanted, copy=False)


def _stack(values: Array, axes: int) -> Array:
    """All batch axes as one, complex, in the memory order of the library."""
    flat = values.reshape(-1, *values.shape[values.ndim - axes :])
    return np.ascontiguousarray(flat, dtype=np.result_type(values.dtype, np.complex64))


def _accuracy(tolerance: float) -> dict[str, float]:
    """The library's options for a relative error."""
    return {"eps": tolerance} | ({"upsampfac": 1.25} if _ROUGH <= tolerance < _SINGLE else {})


def _axes(angles: Array, stack: Array) -> tuple[Array, Array]:
    along_y, along_x = (np.ascontiguousarray(angles[:, axis], dtype=stack.real.dtype) for axis in (0, 1))
    return along_y, along_x


def _finufft() -> ModuleType:
    try:
        import finufft
    except ImportError as error:
        raise InputError(
            "non-uniform Fourier transform",
            "an environment without FINUFFT",
            "FINUFFT 2.5 or newer, which measurements along spokes, spirals and other trajectories need",
            "Install it (pip install finufft), or this package with its extra (pip install '.[nonuniform]').",
        ) from error
    return finufft


def toeplitz_gram(spread: Array, maps: Array | None) -> LinearOperator:
    """Image (ky, kx) -> sum over coils of conj(S) (q * S u): X^H W X, where X samples k-space at any points.

    The convolution with the point-spread function q is linear, not periodic, so it takes FFTs of twice the length.

    Parameters
    ----------
    spread : complex array, shape (1 or coil, 2 ky, 2 kx)
        q at all differences of two pixels, in FFT order (difference 0 first); that at the difference -N does not
        matter. One for all coils, or one for each.
    maps : complex array, shape (coil, ky, kx), optional
        Coil sensitivities S; None is one coil of uniform sensitivity 1.

    Notes
    -----
    Fessler, Lee, Olafsson, Shi & Noll, IEEE Trans. Signal Process. 53 (2005).
    """
    grid = (spread.shape[-2] // 2, spread.shape[-1] // 2)
    symmetric = spread.astype(np.complex128)
    symmetric[:, grid[0]] = 0
    symmetric[:, :, grid[1]] = 0
    filters = [SpectralFilter(spectrum) for spectrum in scipy.fft.fft2(symmetric).real]
    return GramOfImages(grid, lambda u: over_coils(u, maps, filters))


def chan_spectrum(spread: Array, maps: Array | None) -> Array:
    """Eigenvalues of the circulant nearest (Frobenius) to the matrix of `toeplitz_gram`.

    Its entry for a periodic difference is the mean of the matrix over all pairs of pixels that far apart: q times how
    many pairs there are, which for one coil is a triangle, and for several the autocorrelation of their maps.

    Parameters
    ----------
    spread, maps : arrays
        As for `toeplitz_gram`.

    Returns
    -------
    float64 array, shape (ky, kx)
        In FFT order, not negative.

    Notes
    -----
    T. Chan, SIAM J. Sci. Stat. Comput. 9 (1988).
    """
    rows, columns = spread.shape[-2] // 2, spread.shape[-1] // 2
    seen = np.ones((1, rows, columns)) if maps is None else maps
    power = np.abs(scipy.fft.fft2(seen, s=spread.shape[-2:])) ** 2
    pairs = scipy.fft.ifft2(power).conj()
    weighted = np.sum(spread * pairs, axis=0)
    periodic = weighted.reshape(2, rows, 2, columns).sum(axis=(0, 2)) / (rows * columns)
    return np.asarray(np.maximum(scipy.fft.fft2(periodic).real, 0))


def density_weights(
    trajectory: Array,
    grid: tuple[int, int],
    *,
    iterations: int = 10,
    given: NDArray[np.float64] | None = None,
    tolerance: float = _DOUBLE,
) -> NDArray[np.float64]:
    """Weights w of the samples for which X^H diag(w) y is close to the image, where the trajectory is dense enough.

    For images to start from, and to look at; models weight all samples alike, as their noise is alike.

    Parameters
    ----------
    trajectory : float array, shape (sample, 2)
        Cycles per field of view.
    grid : tuple of int
        Pixels (ky, kx) of the image.
    iterations : int
        Each costs two transforms on twice the grid. More of them make weights at the edge of the trajectory uneven.
    given : float array, shape (sample,), optional
        Weights of any scale, computed elsewhere. They are returned with the sum that the weights computed
        here have; computed ones where all of them are zero.
    tolerance : float
        Relative error of the transforms.

    Returns
    -------
    float64 array, shape (sample,)
        Positive, dimensionless: the area of k-space that a sample stands for, 1 at every sample of a full grid.

    Raises
    ------
    InputError
        As `checked_samples`; for no iteration; where FINUFFT is not installed.

    Notes
    -----
    Pipe & Menon, Magn. Reson. Med. 41 (1999): w is divided by its own convolution with a kernel until that is 1. The
    kernel is |x_i^H x_j|^2 of the rows of X, scaled to 1 at i = j. It is that of the field of view: positive, zero
    between different samples of the grid, and its transform is a triangle over differences of pixels.
    """
    points = checked_samples(trajectory, grid)
    require_counts(least=1, iterations=iterations)
    angles = 2 * np.pi * points / grid
    triangles = (1 - np.abs(np.arange(-n, n)) / n for n in grid)
    triangle = np.multiply.outer(*triangles) / np.prod(grid)
    weights = np.ones(len(points))
    for _ in range(iterations):
        spread = sums_at_pixels(weights, angles, triangle.shape, tolerance=tolerance)
        around = sums_at_samples(triangle * spread, angles, tolerance=tolerance).real
        weights /= np.maximum(around, np.finfo(np.float32).eps)
    if given is None or not given.sum() > 0:
        return weights
    return np.asarray(given * (weights.sum() / given.sum()))


class DirectFourier(LinearOperator):
    """Image (ky, kx) -> samples (coil, sample) anywhere in k-space, by sums over all pixels: the reference for them.

    sum_r u(r) exp(-2 pi i k.r) / sqrt(N_y N_x) of every coil image u, with r = (n - N // 2) / N. At whole k these are
    the samples of `CentredFFT`. The cost is samples times pixels; few samples and small grids need nothing faster.

    Parameters
    ----------
    trajectory : float array, shape (sample, 2)
        Columns (ky, kx) in cycles per field of view: DC is 0, and the grid holds up to N / 2 along each axis. A sample
        may come twice.
    grid : (int, int)
        Pixels (ky, kx) of the image.
    maps : complex array, shape (coil, ky, kx), optional
        Coil sensitivities; None is one coil of uniform sensitivity 1.

    Raises
    ------
    InputError
        For positions that are no finite numbers (sample, 2) or lie beyond the grid, and maps on another grid.
    """

    def __init__(self, trajectory: Array, grid: tuple[int, int], maps: Array | None = None) -> None:
        rows, columns = require_grid("grid", grid, axes=2)
        wanted = f"finite numbers (sample, 2), ky and kx, up to {rows / 2:g} and {columns / 2:g}"
        k = number_array("trajectory", trajectory, wanted=wanted, shape=(None, 2), kind="real")
        limits = np.array([rows, columns]) / 2 * (1 + ROUNDING) + _BEYOND
        if not len(k) or not (np.abs(k) <= limits).all():
            raise InputError("trajectory", f"values up to {np.abs(k).max(initial=0):g}", wanted)
        self._coils = Coils(maps, (rows, columns))
        super().__init__((rows, columns), (self._coils.out_shape[0], len(k)))
        self.trajectory, self.grid, self.maps = k.astype(np.float64), (rows, columns), self._coils.maps

    @cached_property
    def _waves(self) -> tuple[Array, ...]:
        return tuple(
            np.exp(-2j * np.pi / n * np.outer(column, np.arange(n) - n // 2)) / np.sqrt(n)
            for column, n in zip(self.trajectory.T, self.grid, strict=True)
        )

    def _apply(self, u: Array) -> Array:
        along_y, along_x = self._waves
        coil_images = self._coils._apply(u)
        return np.asarray(((along_y @ coil_images) * along_x).sum(axis=-1), dtype=np.result_type(u, np.complex64))

    def _adjoint(self, v: Array) -> Array:
        along_y, along_x = self._waves
        coil_images = np.conj(along_y).T @ (v[..., None] * np.conj(along_x))
        return np.asarray(self._coils._adjoint(coil_images), dtype=np.result_type(v, np.complex64))


class NonUniformFourier(DirectFourier):
    """`DirectFourier` by fast transforms.

    Samples have a relative error of 1e-4 in single and 1e-13 in double precision. Its Gram operator needs no
    trajectory: it takes two FFTs on twice the grid.

    Raises
    ------
    InputError
        For a trajectory that `checked_samples` refuses, maps on another grid or not finite; when applied, where
        FINUFFT is not installed.
    """

    def __init__(self, trajectory: Array, grid: tuple[int, int], maps: Array | None = None) -> None:
        rows, columns = require_grid("grid", grid, axes=2)
        super().__init__(checked_samples(trajectory, (rows, columns)), (rows, columns), maps)
        self._angles = 2 * np.pi * self.trajectory / self.grid
        self._scale = 1 / float(np.sqrt(np.prod(self.grid)))

    def _apply(self, u: Array) -> Array:
        return self._scale * sums_at_samples(self._coils._apply(u), self._angles)

    def _adjoint(self, v: Array) -> Array:
        return self._coils._adjoint(self._scale * sums_at_pixels(v, self._angles, self.grid))

    @cached_property
    def gram(self) -> LinearOperator:
        """X^H X, computed once."""
        return self.toeplitz_gram()

    def toeplitz_gram(self, weights: Array | float = 1.0) -> LinearOperator:
        """X^H diag(weights) X, for many products with the same weights: two FFTs on twice the grid for every coil.

        Parameters
        ----------
        weights : float array, broadcastable to (coil, sample)
            Of the samples, for example `density_weights`.
        """
        return toeplitz_gram(self._spread(weights), self.maps)

    def circulant_spectrum(self, weights: Array | float = 1.0) -> Array | None:
        if np.ndim(weights) == 0:
            return float(weights) * self._nearest
        return chan_spectrum(self._spread(weights), self.maps)

    @cached_property
    def _nearest(self) -> Array:
        """The eigenvalues of the circulant nearest to X^H X, computed once."""
        return chan_spectrum(self._spread(1.0), self.maps)

    def unit_noise(self, rng: np.random.Generator, count: int, real: np.dtype[Any]) -> Array:
        """Unit noise, of which samples keep theirs when others are added behind them."""
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
