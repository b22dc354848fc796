"""Coils: which samples of the centre of k-space were measured, maps from a gapless square (ESPIRiT), mixed coils."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.errors import InputError, require_counts
from mri_design.operators.conventions import to_kspace

# Of the strongest sample. A receiver's quantisation is 2^-24 at best, so a sample this far down was never
# digitised: it is a zero that went through a Fourier transform and back in floating point.
ROUND_OFF = 1e-10
# Zeros that quantisation leaves by chance are expected from how often one component alone is zero; they crowd where the
# signal is weakest, so that there may be several times as many as their average says.
CHANCE = 10.0
# And so many more, since a few lines hold none or several where less than one is expected.
FEW = 4
_NEAR = 0.75
"""Cycles from any place to the nearest sample up to which samples count as dense: those of a grid are .71 at most."""
_MARGIN = 4.0
"""Cycles beyond the centre that are gridded with it, so that weights at its edge are right."""


def central(kspace: NDArray[Any], width: int) -> NDArray[Any]:
    """View of the square of ``width`` samples around the centre of k-space (..., ky, kx), or what there is of it."""
    rows, columns = (slice(n // 2 - min(width, n) // 2, n // 2 + (min(width, n) + 1) // 2) for n in kspace.shape[-2:])
    return kspace[..., rows, columns]


def gapless_side(samples: NDArray[np.bool_]) -> int:
    """Side of the largest square of measured ``samples`` (ky, kx) around the centre of k-space; 0 without one."""
    return max((n for n in range(1, min(samples.shape) + 1) if central(samples, n).all()), default=0)


def measured_samples(kspace: NDArray[np.complexfloating], strongest: float | None = None) -> NDArray[np.bool_]:
    """Which samples of one slice were measured: those that are not zero in all coils.

    Receivers that digitise coarsely return some zeros by chance. They count as measured as long as there are not more
    of them than the zeros of single components explain, also after a Fourier transform and back.

    Parameters
    ----------
    kspace : complex array, shape (coil, ky, kx)
        Zeros stand where nothing was measured: exact ones, or round-off below 1e-10 of the strongest sample, which
        zero-filling in another domain leaves.
    strongest : float, optional
        Largest modulus of a component in the scan; by default that of this slice.

    Returns
    -------
    bool array, shape (ky, kx)
    """
    limit = ROUND_OFF * (strongest_component(kspace) if strongest is None else strongest)
    samples = np.zeros(kspace.shape[1:], dtype=bool)
    for coil in kspace:
        samples |= (np.abs(coil.real) > limit) | (np.abs(coil.imag) > limit)
        if samples.all():
            return samples
    lines = samples.any(axis=1)
    holes = int((~samples[lines]).sum())
    if holes:
        within = kspace[:, lines][:, samples[lines]]
        # By the same limit as the samples: a zero that went through a Fourier transform and back is one still. Real
        # and imaginary parts are counted apart: parts of one kind are all zero where the image is symmetric.
        fractions = [(np.abs(part) <= limit).mean(axis=1) for part in (within.real, within.imag)]
        expected = float(np.prod(fractions)) * samples[lines].size
        if expected and holes <= CHANCE * expected + FEW:
            samples[lines] = True
    return samples


def strongest_component(kspace: NDArray[np.complexfloating]) -> float:
    """Largest modulus of a real or imaginary part; 0 of nothing."""
    parts = (kspace.real, kspace.imag)
    return max(max(float(part.max(initial=0)), -float(part.min(initial=0))) for part in parts)


def dense_centre(trajectory: NDArray[np.float64], most: int) -> int:
    """Side of the largest square around DC, up to ``most``, in which no place is far from all samples.

    Parameters
    ----------
    trajectory : float array, shape (sample, 2)
        Cycles per field of view, columns (ky, kx).
    most : int
        Largest side wanted, no more than the grid's.
    """
    offsets = np.arange(0, most, 0.5) - most // 2
    points = np.stack(np.meshgrid(offsets, offsets, indexing="ij"), axis=-1).reshape(-1, 2)
    far = scipy.spatial.cKDTree(trajectory).query(points)[0] > _NEAR
    reaching = np.where(points < 0, -2 * points, 2 * points + 1).max(axis=1)  # side of the square that reaches there
    return min(most, int(np.ceil(reaching[far].min(initial=most + 1))) - 1)


def gridded_square(
    kspace: NDArray[np.complex64], trajectory: NDArray[np.float64], shape: tuple[int, int], side: int
) -> NDArray[np.complex64]:
    """A square around DC on the grid, (slice, coil, ky, kx), of density-compensated samples; zero elsewhere.

    Parameters
    ----------
    kspace : complex64 array, shape (slice, coil, sample)
        Along the trajectory.
    trajectory : float array, shape (sample, 2)
        Dense around DC.
    shape : (int, int)
        The grid.
    side : int
        Of the square.
    """
    from mri_design.operators.nonuniform import NonUniformFourier, density_weights

    near = (np.abs(trajectory) <= side / 2 + _MARGIN).all(axis=1)
    weights = density_weights(trajectory[near], shape).astype(np.float32)
    images = NonUniformFourier(trajectory[near], shape).adjoint((weights * kspace[..., near])[..., np.newaxis, :])
    inside = np.zeros(shape, dtype=bool)
    inside[tuple(slice(n // 2 - side // 2, n // 2 - side // 2 + side) for n in shape)] = True
    return np.where(inside, to_kspace(images), 0).astype(np.complex64)


# Below 16 lines a kernel of 6 leaves too few blocks (results/benchmarks/measured-once.md).
_KERNEL, _SMALL_KERNEL, _ENOUGH_FOR_KERNEL = 6, 4, 16
_LEAST_VALUE, _POWERS = 0.02, 100
"""Least singular value of a kernel over the largest, and how often a matrix is applied; both are SigPy's."""
_BYTES = 2**23
"""Of the matrices of pixels that are made at a time."""


def coil_directions(energies: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Principal directions of coil space, strongest first, as columns, by `calibration_energies`."""
    directions = np.linalg.eigh(energies)[1][:, ::-1]
    # Eigenvectors come with any phase; this one depends on the data alone.
    leading = np.take_along_axis(directions, np.abs(directions).argmax(axis=0)[np.newaxis], axis=0)
    return np.asarray(directions * (leading.conj() / np.abs(leading)))


def espirit(kspace: NDArray[np.complex64], directions: NDArray[np.complex128], width: int) -> NDArray[np.complex64]:
    """Unit maps (coil, ky, kx) of one slice from the gapless square of ``width`` samples at the centre of its k-space.

    Parameters
    ----------
    kspace : complex array, shape (coil, ky, kx)
        Of white coils; nothing outside the square is looked at.
    directions : complex array, shape (coil, coil)
        `coil_directions`; the combination of the maps along the first is real and positive.
    width : int
        Side of the square.

    Notes
    -----
    M. Uecker et al., "ESPIRiT", Magn. Reson. Med. 71 (2014) 990-1001. What every pixel's matrix (coil, coil) is made of
    are the correlations of the kernels, which a few offsets hold; matrices are made and solved some rows at a time.
    SigPy makes the same maps from the image of every kernel, which the tests hold against these.
    """
    strongest = np.abs(central(kspace, width)).max()
    virtual = np.tensordot(directions.conj().T, central(kspace, width) / (strongest or 1), axes=1).astype(np.complex64)
    correlations = _kernel_correlations(virtual, _KERNEL if width >= _ENOUGH_FOR_KERNEL else _SMALL_KERNEL)
    rows, columns = kspace.shape[-2:]
    reach = correlations.shape[0] // 2
    of_rows, of_columns = (_waves(n, reach) for n in (rows, columns))
    along = np.einsum("xm,nmcd->nxcd", of_columns, correlations, optimize=True).reshape(2 * reach + 1, -1)
    n_coils, at_once = len(kspace), max(1, _BYTES // (8 * columns * len(kspace) ** 2))
    maps = np.empty((rows, columns, n_coils), np.complex64)
    with np.errstate(all="ignore"):  # pixels without any signal divide zero by zero
        for first in range(0, rows, at_once):
            part = slice(first, first + at_once)
            matrices = (of_rows[part] @ along).reshape(-1, columns, n_coils, n_coils)
            maps[part] = _strongest_directions(matrices)
        maps *= (maps[..., :1] / np.abs(maps[..., :1])).conj()  # the first virtual coil is real
    found = np.moveaxis(np.nan_to_num(maps, nan=0.0, posinf=0.0, neginf=0.0), -1, 0).astype(np.complex128)
    strength = np.linalg.norm(found, axis=0)
    found = found / np.where(strength > 0, strength, 1)
    found[0][strength == 0] = 1
    return np.tensordot(directions, found, axes=1).astype(np.complex64)


def _kernel_correlations(square: NDArray[np.complex64], side: int) -> NDArray[np.complex64]:
    """Sum over the kernels of the products of two coils' entries, by their offset, (ky, kx, coil, coil).

    Kernels are the directions in which blocks of ``side`` samples of all coils differ.
    """
    n_coils, offsets = len(square), 2 * side - 1
    blocks = np.lib.stride_tricks.sliding_window_view(square, (side, side), axis=(-2, -1))
    rows = np.moveaxis(blocks, 0, 2).reshape(-1, n_coils * side * side)
    _, values, directions = np.linalg.svd(rows, full_matrices=False)
    kept = directions[values > _LEAST_VALUE * values.max()]
    products = (kept.T @ kept.conj()).reshape(n_coils, side, side, n_coils, side, side)
    found = np.zeros((offsets, offsets, n_coils, n_coils), np.complex64)
    for row, column in np.ndindex(side, side):
        there = slice(side - 1 - row, offsets - row), slice(side - 1 - column, offsets - column)
        found[there] += np.moveaxis(products[..., row, column], 0, 2)
    return found / side**2


def _waves(n: int, reach: int) -> NDArray[np.complex64]:
    """Waves at the pixels of a centred grid by the offset of two samples, up to ``reach``, shape (pixel, offset)."""
    return np.exp(2j * np.pi * np.outer(np.arange(n) - n // 2, np.arange(-reach, reach + 1)) / n).astype(np.complex64)


def _strongest_directions(matrices: NDArray[np.complex64]) -> NDArray[np.complex64]:
    """Directions (..., coil) that Hermitian matrices (..., coil, coil) enlarge most, by powers of these."""
    found = np.ones((*matrices.shape[:-1], 1), np.complex64)
    for _ in range(_POWERS):
        found = matrices @ found
        found /= np.linalg.norm(found, axis=-2, keepdims=True)
    return found[..., 0]


_AT_ONCE = 1 << 14
_COLUMNS = 32


def mix_coils(matrix: NDArray[np.complex128], coils: NDArray[np.complex64]) -> NDArray[np.complex64]:
    """``matrix`` (coils then, coils) applied over the coil axis of (slice, coil, ...), some samples at a time."""
    mixed = np.empty((len(coils), len(matrix), *coils.shape[2:]), coils.dtype)
    flat = mixed.reshape(*mixed.shape[:2], -1)
    for index, stack in enumerate(coils.reshape(*coils.shape[:2], -1)):
        for start in range(0, flat.shape[-1], _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            flat[index, :, some] = matrix @ stack[:, some]
    return mixed


def inverse_root(covariance: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Hermitian inverse square root of a positive definite matrix."""
    power, directions = np.linalg.eigh(covariance)
    return np.asarray((directions / np.sqrt(power)) @ directions.conj().T)


def image_units(mixing: NDArray[np.complex128], maps: NDArray[np.complex64] | None) -> float | NDArray[np.float32]:
    r"""Factor by pixel that brings images of mixed coils to the units of the coils as they were read.

    Unit maps S of mixed coils leave out how strongly the mixture weighs a pixel: whitened images are as bright as a
    pixel is far above the noise. Coils as read see an image u as :math:`M^{-1} S u`, whose root-sum-of-squares is
    :math:`|M^{-1} S| |u|`. Times that factor, an image is as bright as the root-sum-of-squares of the coil images: no
    covariance shades it.

    Parameters
    ----------
    mixing : complex array, shape (coils then, coil)
        M, by which samples as read were multiplied; invertible, or of full rank where coils were compressed.
    maps : complex64 array, shape (coil, ky, kx), or None
        S, of unit root-sum-of-squares or zero; None for one coil.

    Returns
    -------
    float or float32 array, shape (ky, kx)
        A number where M is a multiple of the identity. Pixels that no map sees have the mean of the others.
    """
    gain = mixing[0, 0]
    if maps is None or np.array_equal(mixing, gain * np.eye(*mixing.shape)):
        return float(1 / abs(gain))
    seen = np.linalg.norm(_before_mixing(mixing, maps[np.newaxis])[0], axis=0)
    dark = seen == 0
    return np.asarray(np.where(dark, seen.mean(where=~dark) if not dark.all() else 1.0, seen), dtype=np.float32)


def maps_before_mixing(
    mixing: NDArray[np.complex128] | None, maps: NDArray[np.complex64] | None
) -> NDArray[np.complex64] | None:
    """Coil maps (slice, coil, ...) of the coils from which ``mixing`` (None is the identity) made those of ``maps``.

    Their root-sum-of-squares is 1 at every pixel, and 0 where that of ``maps`` is. None where there are no maps, or
    those of one coil.
    """
    if maps is None or maps.shape[1] == 1:
        return None
    if mixing is None:
        return maps
    seen = _before_mixing(mixing, maps)
    strength = np.linalg.norm(seen.astype(np.complex128), axis=1, keepdims=True)
    return (seen / np.where(strength > 0, strength, 1)).astype(np.complex64)


def back_from(mixing: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """What takes mixed coils back to those that were read; of compressed coils as far as these hold them."""
    square = mixing.shape[0] == mixing.shape[1]
    return np.asarray(np.linalg.inv(mixing) if square else np.linalg.pinv(mixing), dtype=np.complex128)


def _before_mixing(mixing: NDArray[np.complex128], maps: NDArray[np.complex64]) -> NDArray[np.complex64]:
    return mix_coils(back_from(mixing), maps)


@dataclass(frozen=True)
class Compression:
    """What combines coils into virtual ones.

    Parameters
    ----------
    matrix : complex array, shape (virtual, coil)
        Orthonormal rows, the strongest virtual coil first: white coils stay white.
    lost : float
        Share of the energy of the centre of k-space that the virtual coils do not hold, 0 to 1.
    """

    matrix: NDArray[np.complex128]
    lost: float

    def directions(self, directions: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """`coil_directions` of all coils as directions of virtual coils, the first one as it is seen there."""
        orthonormal, triangle = np.linalg.qr(self.matrix @ directions[:, : len(self.matrix)])
        along, size = np.diagonal(triangle), np.abs(np.diagonal(triangle))
        return np.asarray(orthonormal * np.where(size > 0, along / np.where(size > 0, size, 1), 1))


def compression(kspace: NDArray[np.complex64], count: int, width: int) -> Compression:
    """The ``count`` directions of coil space in which the centre of k-space has most energy.

    Of one position of a 3-D scan they are those of that position (geometric compression), which hold more of it than
    those of the volume would.

    Parameters
    ----------
    kspace : complex64 array, shape (slice, coil, ky, kx)
        Of white coils; slices are compressed alike. Only measured samples are looked at.
    count : int
        Virtual coils, at most as many as there are coils.
    width : int
        Central lines that are looked at, and as many samples of each, or 32 if these are more.

    Raises
    ------
    InputError
        Where there are fewer coils, or the centre holds no signal.

    Notes
    -----
    M. Buehrer et al., "Array compression for MRI with large coil arrays", Magn. Reson. Med. 57 (2007) 1131-1139;
    T. Zhang et al., "Coil compression for accelerated imaging with Cartesian sampling", Magn. Reson. Med. 69 (2013)
    571-582.
    """
    n_coils, rows, columns = kspace.shape[1:]
    require_counts(least=1, most=n_coils, **{"virtual coils": count})
    energies = np.zeros((n_coils, n_coils), np.complex128)
    inside = np.zeros((rows, columns), dtype=bool)
    central(inside, max(width, _COLUMNS))[:] = True
    inside[: rows // 2 - width // 2] = inside[rows // 2 + (width + 1) // 2 :] = False
    for stack in kspace:
        samples = stack[:, inside & measured_samples(stack)].astype(np.complex128)
        energies += samples @ samples.conj().T
    total = float(np.trace(energies).real)
    if not total > 0:
        raise InputError(field="kspace", got="no signal in the central lines", wanted="signal to combine coils by")
    matrix = coil_directions(energies)[:, :count].conj().T
    kept = float(np.trace(matrix @ energies @ matrix.conj().T).real)
    return Compression(np.asarray(matrix), max(0.0, 1 - kept / total))
