"""NLINV: image and coil maps together, by regularised nonlinear inversion, from any samples near the centre of k-space.

Samples of coil c are modelled as :math:`y_c = P F (s_c \\cdot u)`, where P keeps what was measured, F is the Fourier
transform, and both the image u and the smooth maps s are unknown. Gauss-Newton steps solve for both, with a
regularisation that falls from step to step (IRGNM: M. Uecker et al., Magn. Reson. Med. 60 (2008) 674-682, equations 4
to 11). No sample has to have measured neighbours, as ESPIRiT wants it.

Maps are smooth, so that a small grid is enough: the samples of a central block and an image that may have a spectrum
somewhat wider than the block, which the maps fold into it.

The iteration begins with an image of ones. Where the phase of the object turns fast, as beside air, it may end in maps
that all vanish at one pixel while the image there grows beyond bounds: a pole, which a reconstruction shows as a false
bright spot. The root-sum-of-squares of the maps dips there. Begun again from the phase of the image that was found, the
same iteration leaves that phase to the image, and its maps have no pole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy import fft
from numpy.typing import NDArray

from mri_design.calibration.coils import central, coil_directions

try:
    from threadpoolctl import threadpool_limits
except ImportError:  # it saves time, no more
    from contextlib import nullcontext as threadpool_limits

BLOCK = 32
"""Side of the central block of samples that maps are estimated from."""
_GRID = 48
_REACH = 6
"""Maps have waves of up to this many cycles per field of view; beyond, their weight is below a thousandth."""
_SMOOTHNESS, _UNIT, _ORDER = 220.0, 96, 16
"""The weight of a wave of j cycles is (1 + 220 (j / 96)^2)^-16, as in the paper for a grid of 96."""
POLE, _LEVELLED = 0.8, 0.15
"""Maps whose root-sum-of-squares dips below the first part of its surroundings are solved again, and what is found then
is taken where it dips less by the second (results/coils/maps.md)."""
_INSIDE, _AROUND = 0.15, 0.045
"""The object is where coil images exceed this part of their 99th percentile; surroundings are averages over this part
of the field of view."""
_LAST_RIDGE = 2.0**-16
"""Regularisation of the last step; that of the first is 1."""
_SCALE = 100.0
"""Norm of the samples, against which the image begins with ones and the regularisation with 1."""
_STEPS, _INNER, _ROUGH_STEPS, _ROUGH_INNER = 17, 30, 9, 15
_TOLERANCE = 1e-2
"""Residual, over the right-hand side, at which the linear problem of a step is left before its last iteration."""
_NEAR = 4
"""Waves of up to this many cycles are solved together by the preconditioner, and shorter ones alone."""
_ROUNDING = 1e-6


@dataclass(frozen=True)
class JointEstimate:
    """Image and coil maps that explain the samples of a central block together.

    Parameters
    ----------
    spectra : complex64 array, shape (coil, 13, 13)
        Waves of the maps, by cycles per field of view.
    block : complex64 array, shape (coil, ky, kx)
        Every sample of the central block, measured or not, as image and maps predict it.
    dip : float
        The least of the maps' root-sum-of-squares inside the object, over that of its surroundings; 0 at a pole.
    """

    spectra: NDArray[np.complex64]
    block: NDArray[np.complex64]
    dip: float

    def maps(self, shape: tuple[int, int]) -> NDArray[np.complex64]:
        """Maps with unit root-sum-of-squares on a grid, complex64 (coil, ky, kx); their common phase is any."""
        along_ky, along_kx = (_waves(n, centred=True) for n in shape)
        maps = along_ky @ self.spectra @ along_kx.T
        strength = np.linalg.norm(maps, axis=0)
        return np.asarray(maps / np.maximum(strength, np.finfo(np.float32).tiny), dtype=np.complex64)


def joint_estimate(kspace: NDArray[np.complex64], samples: NDArray[np.bool_], *, rough: bool = False) -> JointEstimate:
    """Image and coil maps of one slice from the measured samples of the central block, without a pole if possible.

    Parameters
    ----------
    kspace : complex64 array, shape (coil, ky, kx)
        Of white coils; only measured samples are looked at.
    samples : bool array, shape (ky, kx) or (coil, ky, kx)
        Which were measured, or may be used of each coil; some of the central 32 x 32 have to hold signal.
    rough : bool
        Whether to solve less accurately in a third of the time, which is enough to design with.
    """
    shape = samples.shape[-2:]
    grid = (min(_GRID, shape[0]), min(_GRID, shape[1]))
    inside = np.zeros((*samples.shape[:-2], *grid), dtype=bool)
    central(inside, BLOCK)[:] = central(samples, BLOCK)
    data = np.zeros((len(kspace), *grid), dtype=np.complex64)
    central(data, BLOCK)[:] = np.where(central(samples, BLOCK), central(kspace, BLOCK), 0)
    size = float(np.linalg.norm(data))
    problem = _Problem((data * (_SCALE / size)).astype(np.complex64), inside)
    steps = (_ROUGH_STEPS, _ROUGH_INNER) if rough else (_STEPS, _INNER)
    with threadpool_limits(1):  # products this small only wait for the threads that share them
        found = problem.estimate(problem.solution(*steps))
        if found.dip < POLE:
            again = problem.estimate(problem.solution(*steps, _phase(problem.block_images(found.block))))
            found = again if again.dip > found.dip + _LEVELLED else found
    return replace(found, block=found.block * np.float32(size / _SCALE))


def _phase(coil_images: NDArray[np.complex64]) -> NDArray[np.complex64]:
    """Phase factors of the strongest combination of coils, shape (ky, kx)."""
    pixels = coil_images.reshape(len(coil_images), -1).astype(np.complex128)
    strongest = coil_directions(pixels @ pixels.conj().T)[:, 0]
    return np.exp(1j * np.angle(np.tensordot(strongest.conj(), coil_images, axes=1))).astype(np.complex64)


def _dip(maps: NDArray[np.complex64], coil_images: NDArray[np.complex64]) -> float:
    """`JointEstimate.dip` of maps, the object being where the coil images show it."""
    from scipy.ndimage import gaussian_filter  # here: many commands need no maps

    strength, image = np.linalg.norm(maps, axis=0), np.linalg.norm(coil_images, axis=0)
    surroundings = gaussian_filter(strength, [_AROUND * n for n in strength.shape], mode="wrap")
    inside = (image > _INSIDE * np.percentile(image, 99)) & (surroundings > 0)
    return float((strength[inside] / surroundings[inside]).min(initial=1.0))


def _waves(n: int, *, centred: bool) -> NDArray[np.complex64]:
    """Waves of -6 to 6 cycles per field of view at the pixels of a grid, shape (pixel, wave)."""
    cycles = np.arange(-_REACH, _REACH + 1)
    pixels = np.arange(n) - (n // 2 if centred else 0)
    return np.exp(2j * np.pi * np.outer(pixels, cycles) / n).astype(np.complex64)


def _transform(frequencies: NDArray[np.intp], n: int) -> NDArray[np.complex64]:
    """The unitary Fourier transform of n pixels at some frequencies, shape (frequency, pixel)."""
    return (np.exp(-2j * np.pi * np.outer(frequencies, np.arange(n)) / n) / np.sqrt(n)).astype(np.complex64)


class _Problem:
    """The samples of a block and the operators of the Gauss-Newton step.

    An unknown is a vector of the image's pixels, the first of which is the centre of the field of view, and then the
    coils' weighted spectra. Only rows and columns of k-space that hold samples are ever computed, by products with
    small matrices, which take less time here than whole Fourier transforms.

    Parameters
    ----------
    data : complex64 array, shape (coil, ky, kx)
        Samples with the centre of k-space in the middle.
    inside : bool array, shape (ky, kx) or (coil, ky, kx)
        Which of them were measured.
    """

    def __init__(self, data: NDArray[np.complex64], inside: NDArray[np.bool_]) -> None:
        self.grid: tuple[int, int] = (inside.shape[-2], inside.shape[-1])
        by_coil = inside.reshape(-1, *self.grid)
        rows, columns = np.flatnonzero(by_coil.any(axis=(0, 2))), np.flatnonzero(by_coil.any(axis=(0, 1)))
        self.data = data[:, rows[:, None], columns]
        self.inside = by_coil[:, rows[:, None], columns].astype(np.float32)
        self.rows, self.columns = rows - self.grid[0] // 2, columns - self.grid[1] // 2
        self.to_rows, self.to_columns = _transform(self.rows, self.grid[0]), _transform(self.columns, self.grid[1]).T
        ky, kx = self.grid
        self.along_ky = _waves(ky, centred=False) / np.float32(np.sqrt(ky * kx))
        self.along_kx = _waves(kx, centred=False)
        square = (np.arange(-_REACH, _REACH + 1) / _UNIT) ** 2
        self.weights = ((1 + _SMOOTHNESS * (square[:, None] + square)) ** -_ORDER).astype(np.float32)

    def parts(self, unknown: NDArray[np.complex64]) -> tuple[NDArray[np.complex64], NDArray[np.complex64]]:
        """Image and weighted spectra of an unknown."""
        pixels = self.grid[0] * self.grid[1]
        spectra = unknown[pixels:].reshape(len(self.data), *self.weights.shape)
        return unknown[:pixels].reshape(self.grid), spectra

    def maps(self, spectra: NDArray[np.complex64]) -> NDArray[np.complex64]:
        """Maps of weighted spectra."""
        return np.asarray(self.along_ky @ (spectra * self.weights) @ self.along_kx.T)

    def samples(self, images: NDArray[np.complex64]) -> NDArray[np.complex64]:
        """Samples (coil, row, column) of coil images, zeros where none was measured."""
        return np.asarray((self.to_rows @ images @ self.to_columns) * self.inside)

    def block_images(self, block: NDArray[np.complex64]) -> NDArray[np.complex64]:
        """Coil images (coil, ky, kx) of the samples of the central block, on the grid of the problem."""
        whole = np.zeros((len(block), *self.grid), np.complex64)
        central(whole, BLOCK)[:] = block
        return np.asarray(fft.ifft2(fft.ifftshift(whole, axes=(-2, -1)), norm="ortho"))

    def estimate(self, unknown: NDArray[np.complex64]) -> JointEstimate:
        """Maps of an unknown, and the central block that it predicts in the problem's units."""
        image, spectra = self.parts(unknown)
        maps = self.maps(spectra)
        predicted = fft.fftshift(fft.fft2(image * maps, norm="ortho"), axes=(-2, -1))
        block = central(predicted, BLOCK)
        return JointEstimate(spectra * self.weights, block, _dip(maps, self.block_images(block)))

    def adjoint(
        self, residual: NDArray[np.complex64], image: NDArray[np.complex64], maps: NDArray[np.complex64]
    ) -> NDArray[np.complex64]:
        """The derivative's adjoint at an image and maps, as an unknown."""
        seen = self.to_rows.conj().T @ residual @ self.to_columns.conj().T
        spectra = (self.along_ky.conj().T @ (image.conj() * seen) @ self.along_kx.conj()) * self.weights
        return np.concatenate([np.sum(maps.conj() * seen, axis=0).ravel(), spectra.ravel()])

    def preconditioner(
        self, image: NDArray[np.complex64], maps: NDArray[np.complex64], ridge: float
    ) -> Callable[[NDArray[np.complex64]], NDArray[np.complex64]]:
        """An approximate inverse of the step's matrix: pixels alone, and the long waves of a coil together.

        A wave of the maps shifts the spectrum of the image by whole samples, so that the matrix between waves, which is
        the same for all coils that were measured alike, is that of products between shifted spectra.
        """
        part = float(np.sum(self.inside)) / len(self.inside) / image.size
        of_pixels = 1 / (part * np.sum(np.abs(maps) ** 2, axis=0) + np.float32(ridge))
        of_waves = 1 / (part * float(np.vdot(image, image).real) / image.size * self.weights**2 + np.float32(ridge))
        near = slice(_REACH - _NEAR, _REACH + _NEAR + 1)
        cycles = np.arange(-_NEAR, _NEAR + 1)
        row, column = np.nonzero(self.inside.any(axis=0))
        spectrum = fft.fft2(image) / np.float32(image.size)
        from_rows = (self.rows[row][:, None] - cycles) % self.grid[0]
        from_columns = (self.columns[column][:, None] - cycles) % self.grid[1]
        shifted = spectrum[from_rows[:, :, None], from_columns[:, None, :]] * self.weights[near, near]
        shifted = shifted.reshape(len(row), -1)
        between = (shifted.conj().T @ shifted).astype(np.complex128)
        between[np.diag_indices(len(between))] += max(ridge, _ROUNDING * float(np.trace(between).real))
        together = np.linalg.inv(between).T.astype(np.complex64)

        def applied(unknown: NDArray[np.complex64]) -> NDArray[np.complex64]:
            pixels, spectra = self.parts(unknown)
            waves = spectra * of_waves
            long = spectra[:, near, near]
            waves[:, near, near] = (long.reshape(len(long), -1) @ together).reshape(long.shape)
            return np.concatenate([(of_pixels * pixels).ravel(), waves.ravel()])

        return applied

    def solution(self, steps: int, inner: int, image: NDArray[np.complex64] | complex = 1) -> NDArray[np.complex64]:
        """The unknown after some Gauss-Newton steps, from maps of zeros.

        Parameters
        ----------
        steps : int
            Steps, over which the regularisation falls from 1 to its last value by equal factors.
        inner : int
            Conjugate gradients in each at most.
        image : complex64 array, shape (ky, kx), or number
            Of unit modulus, with which the iteration begins.
        """
        from scipy.sparse.linalg import LinearOperator, cg  # here: many commands need no maps

        start = np.zeros(self.grid[0] * self.grid[1] + len(self.data) * self.weights.size, np.complex64)
        self.parts(start)[0][:] = image
        unknown, square = start, (start.size, start.size)
        for ridge in np.geomspace(1, _LAST_RIDGE, steps, dtype=np.float32):
            now, spectra = self.parts(unknown)
            maps = self.maps(spectra)

            def normal(
                change: NDArray[np.complex64],
                now: NDArray[np.complex64] = now,
                maps: NDArray[np.complex64] = maps,
                ridge: np.float32 = ridge,
            ) -> NDArray[np.complex64]:
                of_image, of_spectra = self.parts(change)
                seen = self.samples(now * self.maps(of_spectra) + of_image * maps)
                return self.adjoint(seen, now, maps) + ridge * change

            right = self.adjoint(self.data - self.samples(now * maps), now, maps) + ridge * (start - unknown)
            matrix, inverse = (
                LinearOperator(square, matvec=product, dtype=np.complex64)
                for product in (normal, self.preconditioner(now, maps, float(ridge)))
            )
            step = cg(matrix, right, rtol=_TOLERANCE, maxiter=inner, M=inverse)[0]
            unknown = unknown + step.astype(np.complex64)
        return unknown
