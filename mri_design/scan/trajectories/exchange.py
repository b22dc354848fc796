"""Trajectories, samples and coil maps to and from the conventions of BART, SigPy and mri-nufft.

| | trajectory | image axes, maps | samples of the image, on even grids |
|---|---|---|---|
| here | (..., 2): ky, kx; cycles per field of view | (ky, kx), (coil, ky, kx) | scaled by 1 / sqrt(N_y N_x) |
| BART | (3, sample, shot): kx, ky, kz; the same unit | (x, y, z, coil); planes x = 1, y, z | equal |
| SigPy | (..., 2) in the order of the image's axes; the same unit | (y, x), (coil, y, x) | equal |
| mri-nufft | (shot, sample, 2) in that order; [-1/2, 1/2] or [-pi, pi] | (y, x), (coil, y, x) | half of ours |

All have the image's origin at N // 2 and the sign exp(-2 pi i k.r). But ``bart nufft`` has another origin on odd grids,
and what it gives for samples less than about 1.3 cycles from the grid's rim is wrong (there its interpolation is cut
off). A radial trajectory of ``bart traj -r`` has no sample at DC but one half a sample to each side (``-c`` has one);
those are its true positions, which come through unchanged. The tests hold every translation against the package itself
where it is installed; this table is that of BART 0.8, SigPy 0.1.27 and mri-nufft 1.5.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError, number_array, require_grid
from mri_design.operators.trajectory import ROUNDING, checked_trajectory

MRI_NUFFT_SAMPLES = 0.5
"""Samples of mri-nufft's operators in two dimensions over those of this package."""


def to_bart(trajectory: ArrayLike) -> NDArray[np.complex64]:
    """A trajectory as BART has it.

    Parameters
    ----------
    trajectory : float array, shape (sample, 2) or (shot, sample, 2)
        Columns (ky, kx) in cycles per field of view.

    Returns
    -------
    complex64 array, shape (3, sample, shot)
        Rows kx, ky and kz = 0, in units of 1 / field of view; to be written in Fortran order.

    Raises
    ------
    InputError
        For what is no trajectory of these shapes.
    """
    k = checked_trajectory(trajectory)
    if k.ndim not in (2, 3):
        raise InputError(field="trajectory", got=f"shape {k.shape}", wanted="(sample, 2) or (shot, sample, 2)")
    shots = k.reshape(-1, *k.shape[-2:])
    return np.stack([shots[..., 1].T, shots[..., 0].T, np.zeros(shots.shape[1::-1])]).astype(np.complex64)


def from_bart(trajectory: ArrayLike) -> NDArray[np.float64]:
    """BART's trajectory of a slice as ours.

    Parameters
    ----------
    trajectory : array, shape (3, sample), (3, sample, shot) or these with further axes of length 1
        Rows kx, ky, kz.

    Returns
    -------
    float64 array, shape (shot, sample, 2)

    Raises
    ------
    InputError
        For other shapes, positions with imaginary parts, and positions off the plane kz = 0.
    """
    k = number_array("trajectory", trajectory)
    while k.ndim > 3 and k.shape[-1] == 1:
        k = k[..., 0]
    if k.ndim not in (2, 3) or len(k) != 3 or not k.size:
        raise InputError(field="trajectory", got=f"shape {k.shape}", wanted="BART's (3, sample, shot)")
    if np.any(k.imag):
        raise InputError(field="trajectory", got="imaginary parts", wanted="real positions")
    if np.any(k[2]):
        raise InputError(field="trajectory", got="positions with kz", wanted="those of one plane, kz = 0")
    planar = np.reshape(k.real, (*k.shape[:2], -1))
    return checked_trajectory(np.stack([planar[1].T, planar[0].T], axis=-1))


def to_sigpy(trajectory: ArrayLike, shape: tuple[int, int]) -> NDArray[np.float64]:
    """A trajectory as `sigpy.nufft` has it (``coord``): the same numbers, held against the grid.

    Parameters
    ----------
    trajectory : float array, shape (..., 2)
        Columns (ky, kx) in cycles per field of view.
    shape : (int, int)
        Grid (ky, kx); SigPy itself wraps positions beyond it silently.

    Raises
    ------
    InputError
        For what is no trajectory on that grid.
    """
    return checked_trajectory(trajectory, shape)


def from_sigpy(coord: ArrayLike, shape: tuple[int, int]) -> NDArray[np.float64]:
    """SigPy's coordinates as ours: the same numbers, held against the grid.

    Parameters
    ----------
    coord : float array, shape (..., 2)
        In the order of the image's axes, in cycles per field of view.
    shape : (int, int)
        Grid (ky, kx).

    Raises
    ------
    InputError
        For coordinates that are not on that grid.
    """
    return checked_trajectory(coord, shape)


def to_mri_nufft(trajectory: ArrayLike, shape: tuple[int, int], *, radians: bool = False) -> NDArray[np.float64]:
    """A trajectory in the normalised units of mri-nufft.

    Parameters
    ----------
    trajectory : float array, shape (..., 2)
        Columns (ky, kx) in cycles per field of view.
    shape : (int, int)
        Grid (ky, kx).
    radians : bool
        Positions in [-pi, pi] in place of [-1/2, 1/2].

    Raises
    ------
    InputError
        For what is no trajectory on that grid.
    """
    scale = 2 * np.pi if radians else 1.0
    return checked_trajectory(trajectory, shape) * (scale / np.array(shape, dtype=float))


def from_mri_nufft(samples: ArrayLike, shape: tuple[int, int], *, radians: bool = False) -> NDArray[np.float64]:
    """Normalised positions of mri-nufft as ours.

    Parameters
    ----------
    samples : float array, shape (..., 2)
        In the order of the image's axes, in [-1/2, 1/2], or [-pi, pi] with ``radians``.
    shape : (int, int)
        Grid (ky, kx).
    radians : bool
        Which of the two.

    Returns
    -------
    float64 array, shape (..., 2)
        In cycles per field of view. Values that mri-nufft's operators computed are `MRI_NUFFT_SAMPLES` times ours.

    Raises
    ------
    InputError
        For positions outside that range, and for those that fit the other one: none beyond 1/2 where radians are said.
    """
    lengths = np.array(require_grid("shape", shape, axes=2), dtype=float)
    k = checked_trajectory(samples)
    largest, limit = float(np.abs(k).max()), np.pi if radians else 0.5
    too_large = largest > limit * (1 + ROUNDING)
    if too_large or (radians and largest <= 0.5):
        other = not too_large or largest <= np.pi * (1 + ROUNDING)
        raise InputError(
            field="samples",
            got=f"values up to {largest:.4g}",
            wanted="positions in [-pi, pi], not all within 1/2" if radians else "positions in [-1/2, 1/2]",
            cure=f"Give radians={not radians}." if other else "Cycles per field of view need no translation.",
        )
    return k * (lengths / (2 * limit))


def samples_to_bart(kspace: ArrayLike) -> NDArray[np.complex64]:
    """Non-uniform samples as BART has them: (coil, sample) or (coil, shot, sample) becomes (1, sample, shot, coil).

    Raises
    ------
    InputError
        For other numbers of axes.
    """
    values = number_array("kspace", kspace)
    if values.ndim not in (2, 3):
        raise InputError(field="kspace", got=f"shape {values.shape}", wanted="(coil, sample) or (coil, shot, sample)")
    shots = values.reshape(len(values), -1, values.shape[-1])
    return shots.T[np.newaxis].astype(np.complex64)


def samples_from_bart(kspace: ArrayLike) -> NDArray[Any]:
    """BART's non-uniform samples (1, sample, shot, coil) as ours, (coil, shot, sample); trailing axes may be left out.

    Raises
    ------
    InputError
        For other shapes.
    """
    return _four_axes("kspace", kspace, "BART's (1, sample, shot, coil)", single=0)[0].T


def maps_to_bart(maps: ArrayLike) -> NDArray[np.complex64]:
    """Coil maps (coil, ky, kx) as BART has them, (x, y, 1, coil); an image is maps of one coil.

    Raises
    ------
    InputError
        For another number of axes.
    """
    values = number_array("maps", maps)
    if values.ndim != 3:
        raise InputError(field="maps", got=f"shape {values.shape}", wanted="(coil, ky, kx)")
    return values.T[:, :, np.newaxis].astype(np.complex64)


def maps_from_bart(maps: ArrayLike) -> NDArray[Any]:
    """BART's maps (x, y, 1, coil), or an image (x, y), as ours: (coil, ky, kx).

    Raises
    ------
    InputError
        For other shapes: volumes, several sets of maps.
    """
    return _four_axes("maps", maps, "BART's (x, y, 1, coil)", single=2)[:, :, 0].T


def planes_to_bart(planes: ArrayLike) -> NDArray[np.complex64]:
    """Planes (ky, kz) as BART has them: (x, coil, ky, kz) becomes (x, ky, kz, coil), one plane (1, ky, kz, coil).

    K-space, coil maps and masks all have these axes. One plane (coil, ky, kz) may be given without the first of ours.

    Raises
    ------
    InputError
        For another number of axes.
    """
    values = number_array("planes", planes)
    if values.ndim not in (3, 4):
        raise InputError(field="planes", got=f"shape {values.shape}", wanted="(x, coil, ky, kz) or (coil, ky, kz)")
    return np.moveaxis(values.reshape((-1, *values.shape[-3:])), 1, 3).astype(np.complex64)


def planes_from_bart(planes: ArrayLike) -> NDArray[Any]:
    """BART's (x, ky, kz, coil) as planes of ours, (x, coil, ky, kz); trailing axes may be left out.

    Raises
    ------
    InputError
        For other shapes.
    """
    return np.moveaxis(_four_axes("planes", planes, "BART's (x, ky, kz, coil)"), 3, 1)


def _four_axes(field: str, array: ArrayLike, wanted: str, *, single: int | None = None) -> NDArray[Any]:
    """BART's first four axes; the others, and the one that is named, must have length 1."""
    values = number_array(field, array)
    lengths = [*values.shape, 1, 1]
    alone = single is None or lengths[single] == 1
    if values.ndim < 2 or not alone or int(np.prod(lengths[4:])) != 1:
        raise InputError(field=field, got=f"shape {values.shape}", wanted=wanted)
    return values.reshape(lengths[:4])
