"""Do coil maps from elsewhere belong to a scan? A small SENSE reconstruction of its centre tells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.scan.calibration.centred_fft import to_image, to_kspace
from mri_design.scan.data import KSpaceData
from mri_design.scan.sampling import measured_samples

_PART, _MARGIN = 16, 4
"""The centre reaches to one part in 16 of the grid on each side; the image may reach four samples further."""
_DAMPING, _ITERATIONS = 1e-2, 20


def explained_by_maps(data: KSpaceData) -> float:
    r"""Share of the energy of the central samples that an image seen through the coil maps explains, 0 to 1.

    The image u of low resolution minimises :math:`\|y - P F S u\|^2 + 0.01 \|u\|^2`, where P keeps the measured samples
    y of the centre of k-space, F is the Fourier transform and S multiplies with the maps. So an undersampled scan is
    judged as fairly as a complete one, as long as it has clearly more coils than its acceleration. What the noise alone
    leaves unexplained is taken off where the noise is known.

    The right maps explain nearly all. Maps of other coils, in another order, or with rows and columns exchanged explain
    less, far less with many coils. Two coils explain nearly everything with any smooth maps, and cannot be judged. The
    shares of several scans are in results/benchmarks/measured-once.md.

    Parameters
    ----------
    data : KSpaceData
        With coil maps.

    Raises
    ------
    InputError
        Without coil maps.
    """
    if data.coil_maps is None:
        raise InputError(field="coil_maps", got="none", wanted="coil maps to judge")
    noise = data.noise_variance or 0.0
    if data.noise_covariance is not None:
        noise = float(np.mean(np.diagonal(data.noise_covariance).real))
    unexplained = total = 0.0
    for stack, fine_maps in zip(data.kspace, data.coil_maps, strict=True):
        coarse = _coarse(data.grid_shape)
        inner = np.ix_(*(n // 2 - m // 2 + np.arange(m) for n, m in zip(data.grid_shape, coarse, strict=True)))
        samples, maps = stack[:, *inner], fine_maps[:, *_pixels(data.grid_shape, coarse)]
        centre = measured_samples(samples) & _central(coarse, data.grid_shape, 0)
        samples = np.where(centre, samples, 0).astype(np.complex128)
        energy = float(np.sum(np.abs(samples) ** 2))
        if energy > 0:
            lost = energy * _residual(
                samples / np.sqrt(energy),
                maps.astype(np.complex128),
                centre,
                _central(coarse, data.grid_shape, _MARGIN),
            )
            unexplained += max(0.0, lost - 2 * noise * len(stack) * np.count_nonzero(centre))
            total += energy
    return 1 - unexplained / total if total > 0 else 0.0


def _reach(n: int, margin: int) -> int:
    return max(4, n // _PART) + margin


def _coarse(shape: tuple[int, int]) -> tuple[int, ...]:
    """A grid of the same field of view that holds the image's band twice over: maps are smooth enough for it."""
    return tuple(min(n, 2 * (2 * _reach(n, _MARGIN) + 1)) for n in shape)


def _pixels(shape: tuple[int, int], coarse: tuple[int, ...]) -> tuple[NDArray[np.int_], ...]:
    """Where the coarse grid's pixels lie on the fine one."""
    places = (
        np.rint((np.arange(m) - m // 2) * (n / m) + n // 2).astype(int) for n, m in zip(shape, coarse, strict=True)
    )
    return np.ix_(*places)


def _central(coarse: tuple[int, ...], shape: tuple[int, int], margin: int) -> NDArray[np.bool_]:
    inside = np.zeros(coarse, dtype=bool)
    ranges = (
        slice(max(0, m // 2 - _reach(n, margin)), m // 2 + _reach(n, margin) + 1)
        for m, n in zip(coarse, shape, strict=True)
    )
    inside[tuple(ranges)] = True
    return inside


def _residual(
    samples: NDArray[np.complex128],
    maps: NDArray[np.complex128],
    centre: NDArray[np.bool_],
    support: NDArray[np.bool_],
) -> float:
    """Energy of what is left of samples of unit energy, after the best image whose spectrum lies in the support."""
    band = np.flatnonzero(support)

    def seen(u: NDArray[np.complex128]) -> NDArray[np.complex128]:
        spectrum = np.zeros(centre.size, dtype=np.complex128)
        spectrum[band] = u
        return np.asarray(np.where(centre, to_kspace(maps * to_image(spectrum.reshape(centre.shape))), 0))

    def back(r: NDArray[np.complex128]) -> NDArray[np.complex128]:
        return np.asarray(to_kspace(np.sum(maps.conj() * to_image(r), axis=0)).ravel()[band])

    from scipy.sparse.linalg import LinearOperator, cg  # here: few scans come with maps

    normal = LinearOperator((band.size, band.size), matvec=lambda u: back(seen(u)) + _DAMPING * u, dtype=np.complex128)
    image, _ = cg(normal, back(samples), rtol=1e-3, maxiter=_ITERATIONS)
    return float(np.sum(np.abs(samples - seen(image)) ** 2))
