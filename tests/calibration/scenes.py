"""A smooth object seen by smooth coils, on grids of any size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mri_design import KSpaceData
from mri_design.operators import to_kspace


@dataclass(frozen=True)
class Truth:
    """Object (ky, kx), unit maps (coil, ky, kx) and noise-free k-space (1, coil, ky, kx)."""

    image: np.ndarray
    maps: np.ndarray
    kspace: np.ndarray

    @property
    def inside(self) -> np.ndarray:
        """Pixels of the object."""
        return np.abs(self.image) > 0.3

    def scan(self, noise_sd: float, seed: int = 0, mixing: np.ndarray | None = None) -> KSpaceData:
        """K-space with noise of that standard deviation per real component, correlated by ``mixing``."""
        rng = np.random.default_rng(seed)
        real, imaginary = rng.standard_normal((2, *self.kspace.shape))
        noise = noise_sd * (real + 1j * imaginary)
        if mixing is not None:
            noise = np.einsum("cd,sdyx->scyx", mixing, noise)
        lines = np.ones(self.kspace.shape[2], dtype=bool)
        return KSpaceData((self.kspace + noise).astype(np.complex64), lines)


def truth(ny: int = 64, nx: int = 64, coils: int = 6) -> Truth:
    """A scene on a grid (ny, nx) with a number of coils."""
    y = (np.arange(ny)[:, np.newaxis] - ny // 2) / ny * 2
    x = (np.arange(nx) - nx // 2) / nx * 2
    angles = 2 * np.pi * np.arange(coils) / coils
    far = ((y - 1.2 * np.sin(a)) ** 2 + (x - 1.2 * np.cos(a)) ** 2 for a in angles)
    phases = (a + x * np.cos(a) + 0.7 * y * np.sin(a) for a in angles)
    maps = np.array([np.exp(-square / 1.2 + 1j * phase) for square, phase in zip(far, phases, strict=True)])
    maps /= np.linalg.norm(maps, axis=0)
    body = ((y / 0.8) ** 2 + (x / 0.6) ** 2 < 1) * (1 + 0.5 * np.sin(9 * x) * np.cos(7 * y))
    image = body * np.exp(1j * (0.5 + 0.8 * x))
    return Truth(image, maps, to_kspace(maps * image)[np.newaxis])


def textured(n: int, ends: tuple[int, int], power: float, noise_sd: float, seed: int) -> KSpaceData:
    """A scan of n x n whose texture reaches the outermost samples, in the columns from ``ends[0]`` to ``ends[1]``.

    Its spectrum falls with a power of |k|.
    """
    rng = np.random.default_rng(seed)
    k = np.hypot(np.arange(n)[:, np.newaxis] - n // 2, np.arange(n) - n // 2)
    white = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))
    image = np.fft.fftshift(np.fft.ifft2(np.fft.ifftshift(white / (1 + k) ** power), norm="ortho"))
    image /= np.abs(image).max()
    image[:, : ends[0]] = image[:, ends[1] :] = 0
    kspace = to_kspace(image) + noise_sd * (rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n)))
    return KSpaceData(kspace.astype(np.complex64)[np.newaxis, np.newaxis], np.ones(n, dtype=bool))
