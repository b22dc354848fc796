"""NLINV: image and coil maps together, by regularised nonlinear inversion, from any samples near the centre of k-space.

Samples of coil c are modelled as :math:`y_c = P F (s_c \\cdot u)`, where P keeps what was measured, F is the Fourier
transform, and both the image u and the smooth maps s are unknown. Gauss-Newton steps solve for both, with a
regularisation that halves from step to step (IRGNM: M. Uecker et al., Magn. Reson. Med. 60 (2008) 674-682, equations 4
to 11). No sample has to have measured neighbours, as ESPIRiT wants it.

Maps are smooth, so that a small grid is enough: the samples of a central block and an image that may have a spectrum
somewhat wider than the block, which the maps fold into it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import fft
from numpy.typing import NDArray

from mri_design.scan.calibration.espirit import central

BLOCK = 32
"""Side of the central block of samples that maps are estimated from."""
_GRID = 48
_REACH = 6
"""Maps have waves of up to this many cycles per field of view; beyond, their weight is below a thousandth."""
_SMOOTHNESS, _UNIT, _ORDER = 220.0, 96, 16
"""The weight of a wave of j cycles is (1 + 220 (j / 96)^2)^-16, as in the paper for a grid of 96."""
_STEPS, _HALVING = 17, 0.5
_SCALE = 100.0
"""Norm of the samples, against which the image begins with ones and the regularisation with 1."""
_TOLERANCE, _INNER, _ROUGH_INNER = 1e-3, 100, 30
"""Residual and iterations at which the linear problem of a step is left."""


@dataclass(frozen=True)
class JointEstimate:
    """Image and coil maps that explain the samples of a central block together.

    Parameters
    ----------
    spectra : complex64 array, shape (coil, 13, 13)
        Waves of the maps, by cycles per field of view.
    block : complex64 array, shape (coil, ky, kx)
        Every sample of the central block, measured or not, as image and maps predict it.
    """

    spectra: NDArray[np.complex64]
    block: NDArray[np.complex64]

    def maps(self, shape: tuple[int, int]) -> NDArray[np.complex64]:
        """Maps with unit root-sum-of-squares on a grid, complex64 (coil, ky, kx); their common phase is any."""
        along_ky, along_kx = (_waves(n, centred=True) for n in shape)
        maps = along_ky @ self.spectra @ along_kx.T
        strength = np.linalg.norm(maps, axis=0)
        return np.asarray(maps / np.maximum(strength, np.finfo(np.float32).tiny), dtype=np.complex64)


def joint_estimate(kspace: NDArray[np.complex64], samples: NDArray[np.bool_], *, rough: bool = False) -> JointEstimate:
    """Image and coil maps of one slice from the measured samples of the central block.

    Parameters
    ----------
    kspace : complex64 array, shape (coil, ky, kx)
        Of white coils; only measured samples are looked at.
    samples : bool array, shape (ky, kx)
        Which were measured; some of the central 32 x 32 have to hold signal.
    rough : bool
        Whether to solve less accurately in a third of the time, which is enough to design with.
    """
    shape = samples.shape
    grid = (min(_GRID, shape[0]), min(_GRID, shape[1]))
    inside = np.zeros(grid, dtype=bool)
    central(inside, BLOCK)[:] = central(samples, BLOCK)
    data = np.zeros((len(kspace), *grid), dtype=np.complex64)
    central(data, BLOCK)[:] = np.where(central(samples, BLOCK), central(kspace, BLOCK), 0)
    size = float(np.linalg.norm(data))
    problem = _Problem(fft.ifftshift(data * (_SCALE / size), axes=(-2, -1)), fft.ifftshift(inside))
    image, spectra = problem.parts(problem.solution(_ROUGH_INNER if rough else _INNER))
    predicted = fft.fftshift(fft.fft2(image * problem.maps(spectra), norm="ortho"), axes=(-2, -1)) * np.float32(
        size / _SCALE
    )
    return JointEstimate(spectra * problem.weights, central(predicted, BLOCK))


def _waves(n: int, *, centred: bool) -> NDArray[np.complex64]:
    """Waves of -6 to 6 cycles per field of view at the pixels of a grid, shape (pixel, wave)."""
    cycles = np.arange(-_REACH, _REACH + 1)
    pixels = np.arange(n) - (n // 2 if centred else 0)
    return np.exp(2j * np.pi * np.outer(pixels, cycles) / n).astype(np.complex64)


class _Problem:
    """The samples of a block, uncentred, and the operators of the Gauss-Newton step.

    An unknown is a vector of the image's pixels and then the coils' weighted spectra.
    """

    def __init__(self, data: NDArray[np.complex64], inside: NDArray[np.bool_]) -> None:
        self.data = data
        self.inside = inside.astype(np.float32)
        ky, kx = inside.shape
        self.along_ky = _waves(ky, centred=False) / np.float32(np.sqrt(ky * kx))
        self.along_kx = _waves(kx, centred=False)
        square = (np.arange(-_REACH, _REACH + 1) / _UNIT) ** 2
        self.weights = ((1 + _SMOOTHNESS * (square[:, None] + square)) ** -_ORDER).astype(np.float32)

    def parts(self, unknown: NDArray[np.complex64]) -> tuple[NDArray[np.complex64], NDArray[np.complex64]]:
        """Image and weighted spectra of an unknown."""
        spectra = unknown[self.inside.size :].reshape(len(self.data), *self.weights.shape)
        return unknown[: self.inside.size].reshape(self.inside.shape), spectra

    def maps(self, spectra: NDArray[np.complex64]) -> NDArray[np.complex64]:
        """Maps of weighted spectra."""
        return np.asarray(self.along_ky @ (spectra * self.weights) @ self.along_kx.T)

    def adjoint(
        self, residual: NDArray[Any], image: NDArray[np.complex64], maps: NDArray[np.complex64]
    ) -> NDArray[np.complex64]:
        """The derivative's adjoint at an image and maps, as an unknown."""
        seen = fft.ifft2(residual * self.inside, norm="ortho")
        spectra = (self.along_ky.conj().T @ (image.conj() * seen) @ self.along_kx.conj()) * self.weights
        return np.concatenate([np.sum(maps.conj() * seen, axis=0).ravel(), spectra.ravel()])

    def solution(self, inner: int) -> NDArray[np.complex64]:
        """The unknown after all Gauss-Newton steps, from an image of ones and maps of zeros."""
        from scipy.sparse.linalg import LinearOperator, cg  # here: many commands need no maps

        start = np.zeros(self.inside.size + len(self.data) * self.weights.size, np.complex64)
        start[: self.inside.size] = 1
        unknown = start
        for step in range(_STEPS):
            image, spectra = self.parts(unknown)
            maps, ridge = self.maps(spectra), np.float32(_HALVING**step)

            def normal(
                change: NDArray[np.complex64],
                image: NDArray[np.complex64] = image,
                maps: NDArray[np.complex64] = maps,
                ridge: np.float32 = ridge,
            ) -> NDArray[np.complex64]:
                of_image, of_spectra = self.parts(change)
                seen = fft.fft2(image * self.maps(of_spectra) + of_image * maps, norm="ortho")
                return self.adjoint(seen, image, maps) + ridge * change

            missing = self.data - fft.fft2(image * maps, norm="ortho")
            right = self.adjoint(missing, image, maps) + ridge * (start - unknown)
            matrix = LinearOperator((start.size, start.size), matvec=normal, dtype=np.complex64)
            unknown = unknown + cg(matrix, right, rtol=_TOLERANCE, maxiter=inner)[0].astype(np.complex64)
        return unknown
