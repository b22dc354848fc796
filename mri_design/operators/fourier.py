"""Fourier transforms and filters of images: the one module that knows which FFT computes them.

Transforms are those of `scipy.fft`. Filters, which transform, multiply and transform back, are compiled loops
(`kernels.fft`) on sizes whose prime factors are at most 127, and `scipy.fft` on all others. docs/fft.md gives the
reason, and the time that each takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.operators import kernels
from mri_design.operators.elementary import Coils

Array = NDArray[Any]
Axes = tuple[int, ...]


def transform(u: Array, axes: Axes, *, inverse: bool = False) -> Array:
    """Orthonormal, uncentred FFT of ``u`` over ``axes``; single precision stays single.

    Parameters
    ----------
    u : array
        Real or complex, any shape.
    axes : tuple of int
        Axes to transform.
    inverse : bool
        The inverse transform.
    """
    return np.asarray((scipy.fft.ifftn if inverse else scipy.fft.fftn)(u, axes=axes, norm="ortho"))


def centred(u: Array, axes: Axes = (-2, -1), *, inverse: bool = False) -> Array:
    """Orthonormal FFT with the origin at index ``N // 2`` of every axis, before and after."""
    spread = transform(scipy.fft.ifftshift(u, axes=axes), axes, inverse=inverse)
    return np.asarray(scipy.fft.fftshift(spread, axes=axes))


class SpectralFilter:
    """F^H diag(response) F of images (..., ky, kx), with F the unitary transform along both axes.

    Parameters
    ----------
    response : real array, shape (ky, kx)
        In FFT order (DC first). Where it is larger than an image, the image is taken to be zero beyond its own grid,
        and what the filter gives there is left out.
    other : real array of that shape, optional
        On Fourier coefficients w the filter is ``response(k) w(k) + other(k) conj(w(-k))``: real-linear.
    turn : array of that shape, optional
        Images are multiplied by its conjugate before, and by itself after: a phase, a scale, or both.
    """

    def __init__(self, response: Array, other: Array | None = None, turn: Array | None = None) -> None:
        self._responses = response[None] if other is None else np.stack([response, other])
        self._turn = turn
        self._kept: dict[np.dtype[Any], tuple[bool, Array, Array | None]] = {}

    def __call__(self, images: Array) -> Array:
        """Filtered images, in the precision of ``images``; real ones stay real."""
        compiled, weights, turn = self._prepared(images)
        grid = self._responses.shape[1:]
        if compiled:
            return kernels.fft.filter_images(images, weights, turn, grid)
        rows, columns = images.shape[-2:]
        source = images if turn is None else np.conj(turn) * images
        # Along kx first: those transforms skip rows that are zero or not needed.
        spectra = scipy.fft.fft(scipy.fft.fft(source, grid[1], axis=-1), grid[0], axis=-2, overwrite_x=True)
        opposite = np.conj(np.roll(spectra[..., ::-1, ::-1], (1, 1), axis=(-2, -1))) if len(weights) == 2 else None
        spectra.view(weights.dtype)[...] *= weights[0]
        if opposite is not None:
            opposite.view(weights.dtype)[...] *= weights[1]
            spectra += opposite
        filtered = scipy.fft.ifft(scipy.fft.ifft(spectra, axis=-2, overwrite_x=True)[..., :rows, :], axis=-1)
        filtered = np.ascontiguousarray(filtered[..., :columns])
        if turn is not None:
            filtered *= turn
        return filtered if np.iscomplexobj(images) else filtered.real

    def _prepared(self, images: Array) -> tuple[bool, Array, Array | None]:
        """Whether the loops are compiled for these images; weights in the order of whoever computes; the turn."""
        dtype = images.dtype
        if dtype not in self._kept:
            compiled = all(kernels.fft.suits_both(shape, dtype) for shape in (images.shape, self._responses.shape))
            if compiled:
                weights = np.stack([kernels.fft.in_groups(response, dtype) for response in self._responses])
            else:  # one for the real part of a coefficient, one for the imaginary part
                weights = np.repeat(self._responses, 2, axis=-1).astype(images.real.dtype)
            self._kept[dtype] = compiled, weights, None if self._turn is None else self._turn.astype(dtype)
        return self._kept[dtype]


def over_coils(u: Array, maps: Array | None, filters: Sequence[SpectralFilter]) -> Array:
    """Sum over coils of conj(S) filter(S u), in the precision of ``u``.

    Parameters
    ----------
    u : complex array, shape (..., ky, kx)
        Images.
    maps : complex array, shape (coil, ky, kx), or None
        Coil sensitivities S; None is one coil of uniform sensitivity 1.
    filters : sequence of `SpectralFilter`
        One for all coils, or one for each.
    """
    if maps is None:
        return filters[0](u)
    total = np.zeros_like(u)
    # One coil at a time: batch x coils would not fit the cache.
    for coil, sensitivity in enumerate(maps.astype(u.dtype, copy=False)):
        seen = filters[min(coil, len(filters) - 1)](sensitivity * u)
        seen *= np.conj(sensitivity)
        total += seen
    return total


class LineTransform:
    """Centred unitary transforms along ky of coil images S u, and their filters by a mask of lines.

    Parameters
    ----------
    coils : Coils
        S.
    """

    def __init__(self, coils: Coils) -> None:
        self.coils, self.maps, self.grid = coils, coils.maps, (coils.in_shape[0], coils.in_shape[1])
        self._strips: dict[np.dtype[Any], Array] = {}

    def filtered(self, u: Array, mask: Array) -> Array:
        """Sum over coils of conj(S) F^H diag(mask) F S u of images (..., ky, kx); the real mask (ky,) in FFT order."""
        if kernels.fft.suits(self.grid, u.dtype):
            return kernels.fft.filter_lines(u, mask, self._maps_of(u.dtype))
        weights = mask[:, None].astype(u.real.dtype)

        def of_coil(seen: Array) -> Array:
            spectra = scipy.fft.fft(seen, axis=-2)
            spectra *= weights
            return np.asarray(scipy.fft.ifft(spectra, axis=-2, overwrite_x=True))

        if self.maps is None:
            return of_coil(u)
        maps = self.maps.astype(u.dtype, copy=False)
        return np.asarray(sum(np.conj(sensitivity) * of_coil(sensitivity * u) for sensitivity in maps))

    def lines(self, u: Array, lines: NDArray[np.intp]) -> Array:
        """Chosen lines (count, coil, line, x) of F S u, in their order, of complex images (count, ky, kx)."""
        if kernels.fft.suits(self.grid, u.dtype):
            return kernels.fft.images_to_lines(u, lines, self._maps_of(u.dtype))
        return centred(self.coils._apply(u), (-2,))[..., lines, :]

    def images(self, values: Array, mask: NDArray[np.bool_]) -> Array:
        """Sum over coils of conj(S) F^H values, shape (count, ky, kx), of the lines in a mask.

        ``values``, (count, coil, ky, x), are contiguous and hold all lines.
        """
        if kernels.fft.suits(self.grid, values.dtype):
            return kernels.fft.lines_to_images(values, mask, self._maps_of(values.dtype))
        return self.coils._adjoint(centred(values * mask[:, None], (-2,), inverse=True))

    def _maps_of(self, dtype: np.dtype[Any]) -> Array | None:
        """Coil maps in the order that compiled loops read, made once for a precision."""
        if self.maps is not None and dtype not in self._strips:
            self._strips[dtype] = kernels.fft.in_strips(self.maps, dtype)
        return self._strips.get(dtype)
