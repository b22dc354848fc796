"""Scenes of ellipsoids, whose three-dimensional k-space is known exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError
from mri_design.scan.simulation.settings import pixel_positions

_NEAR_ZERO = 1e-3
"""Frequencies, in the ellipsoid's own scale, below which the closed form loses digits and its series is taken."""


@dataclass(frozen=True)
class EllipsoidPhantom:
    """Sum of ellipsoids of constant intensity with axes along x, y and z; overlapping ellipsoids add.

    Lengths are in fields of view: the field of view is the cube ``[-1/2, 1/2)^3``. ``x`` is the readout, ``y`` and
    ``z`` are the two phase encodes.

    Parameters
    ----------
    centres, semi_axes : float arrays, shape (ellipsoid, 3)
        Along (x, y, z); semi-axes are positive.
    intensities : float or complex array, shape (ellipsoid,)
        What each ellipsoid adds.
    name : str
        Short name for tables and figures.

    Raises
    ------
    InputError
        On sizes that disagree, entries that are not finite, or a semi-axis that is not positive.
    """

    centres: NDArray[np.float64]
    semi_axes: NDArray[np.float64]
    intensities: NDArray[Any]
    name: str = "ellipsoids"

    def __post_init__(self) -> None:
        n = len(np.atleast_1d(self.intensities))
        for field, wanted in {"centres": (n, 3), "semi_axes": (n, 3), "intensities": (n,)}.items():
            array = np.asarray(getattr(self, field))
            if array.shape != wanted or n == 0 or not np.isfinite(array).all():
                got = f"shape {array.shape}" if array.shape != wanted or n == 0 else "a NaN or infinite value"
                raise InputError(field=field, got=got, wanted=f"finite numbers of shape {wanted}")
            object.__setattr__(self, field, array.astype(np.complex128 if np.iscomplexobj(array) else np.float64))
        if not (self.semi_axes > 0).all():
            raise InputError(field="semi_axes", got=f"{self.semi_axes.min():g}", wanted="positive lengths")

    def spectrum(self, kx: ArrayLike, ky: ArrayLike, kz: ArrayLike) -> NDArray[np.complex128]:
        """Fourier integral of the scene, ``integral f(r) exp(-2 pi i k.r) dr``, in closed form.

        An ellipsoid with semi-axes a, b, c at centre r has ``a b c (sin t - t cos t) / (t^3 / 4 pi) exp(-2 pi i k.r)``
        with ``t = 2 pi |(a kx, b ky, c kz)|`` (Koay, Sarlls & Ozarslan, Magn. Reson. Med. 58:430-436, 2007).

        Parameters
        ----------
        kx, ky, kz : float arrays that broadcast
            Frequencies in cycles per field of view; any, not only whole ones.

        Returns
        -------
        complex128 array
            Shape of the broadcast frequencies; at zero the sum of intensity times volume.
        """
        k = [np.asarray(axis, np.float64) for axis in (kx, ky, kz)]
        total = np.zeros(np.broadcast_shapes(*(axis.shape for axis in k)), np.complex128)
        for centre, axes, intensity in zip(self.centres, self.semi_axes, self.intensities, strict=True):
            squared = sum(np.square(length * axis) for length, axis in zip(axes, k, strict=True))
            t = 2 * np.pi * np.sqrt(np.asarray(squared, np.float64))
            far = np.maximum(t, _NEAR_ZERO)
            ball = np.where(t < _NEAR_ZERO, 1 / 3 - t**2 / 30, (np.sin(far) - far * np.cos(far)) / far**3)
            shift = np.ones((), np.complex128)
            for place, axis in zip(centre, k, strict=True):
                shift = shift * np.exp(-2j * np.pi * place * axis)
            total += intensity * 4 * np.pi * np.prod(axes) * ball * shift
        return total

    def planes(self, positions: int, shape: tuple[int, int]) -> NDArray[np.complex128]:
        """K-space of planes at every readout position, after the inverse Fourier transform along the readout.

        Parameters
        ----------
        positions : int
            Readout samples, and positions.
        shape : (int, int)
            Grid (ky, kz) of every plane.

        Returns
        -------
        complex128 array, shape (positions, ky, kz)
            Scaled as the centred orthonormal FFT of three axes scales; all frequencies of the readout are exact.
        """
        kx, ky, kz = (np.arange(n) - n // 2 for n in (positions, *shape))
        whole = self.spectrum(kx[:, None, None], ky[:, None], kz) * np.sqrt(positions * np.prod(shape))
        spread = np.fft.ifft(np.fft.ifftshift(whole, axes=0), axis=0, norm="ortho")
        return np.asarray(np.fft.fftshift(spread, axes=0))

    def image(self, positions: int, shape: tuple[int, int], *, supersampling: int = 3) -> NDArray[Any]:
        """Average of the scene over each voxel, (positions, ky, kz), from a grid of points inside the voxel."""
        steps = (np.arange(supersampling) + 0.5) / supersampling - 0.5
        places = [(pixel_positions(n)[:, None] + steps / n).ravel() for n in (positions, *shape)]
        scene = np.zeros((positions, *shape), self.intensities.dtype)
        for centre, axes, intensity in zip(self.centres, self.semi_axes, self.intensities, strict=True):
            x, y, z = (np.square((at - c) / a) for at, c, a in zip(places, centre, axes, strict=True))
            for number in range(positions):  # one position at a time, to bound the memory
                few = x[number * supersampling : (number + 1) * supersampling]
                inside = few[:, None, None] + y[:, None] + z <= 1
                parts = inside.reshape(supersampling, shape[0], supersampling, shape[1], supersampling)
                scene[number] += intensity * parts.mean(axis=(0, 2, 4))
        return scene
