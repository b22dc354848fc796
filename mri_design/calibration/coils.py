"""Coil sensitivity maps from the centre of k-space, their checks, coil mixing and coil compression.

ESPIRiT takes maps from a gapless square at the centre of k-space. NLINV estimates image and maps together, by
regularised nonlinear inversion, from any samples near the centre: samples of coil c are modelled as
:math:`y_c = P F (s_c \\cdot u)`, where P keeps what was measured, F is the Fourier transform, and both the image u and
the smooth maps s are unknown. Gauss-Newton steps solve for both, with a regularisation that falls from step to step
(IRGNM: M. Uecker et al., Magn. Reson. Med. 60 (2008) 674-682, equations 4 to 11). No sample needs measured neighbours.
Maps are smooth, so that a small grid is enough: the samples of a central block, and an image with a spectrum somewhat
wider than the block, which the maps fold into it.

Gaps at equal distances leave open which part of an image is an alias of another. From the middle of the iteration on
the image is therefore held the tighter where it is dark, in proportion to the inverse square of its own envelope, which
helps where few lines at the centre have neighbours (results/coils/maps.md).

NLINV begins with an image of ones. If the phase of the object turns fast, as near air, it may end in maps that all
vanish at one pixel while the image there grows beyond bounds: a pole, which a reconstruction shows as a false bright
spot. The root-sum-of-squares of the maps dips there. Started again from the phase of the image that was found, the
iteration leaves that phase to the image, and its maps have no pole. It may also explain samples that the first did not.

Maps are checked by coils that are held back, and by how much of the measured energy they explain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import comb
from typing import Any, Literal, get_args

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy import fft
from numpy.typing import NDArray

from mri_design.brief import briefly
from mri_design.errors import InputError, option, require_counts
from mri_design.operators.conventions import to_image, to_kspace

# Of the strongest sample. A receiver's quantisation is 2^-24 at best, so a sample this far down was never
# digitised: it is a zero that went through a Fourier transform and back in floating point.
ROUND_OFF = 1e-10
# Zeros that quantisation leaves by chance are expected from how often one component alone is zero; they crowd where the
# signal is weakest, so that there may be several times as many as their average says.
CHANCE = 10.0
# And so many more, since a few lines hold none or several where less than one is expected.
FEW = 4
_DENSE = 0.75
"""Cycles from any place to the nearest sample up to which samples count as dense: those of a grid are .71 at most."""
_GRIDDED_WITH = 4.0
"""Cycles beyond the centre that are gridded with it, so that weights at its edge are right."""


def central(kspace: NDArray[Any], width: int) -> NDArray[Any]:
    """View of the square of ``width`` samples around the centre of k-space (..., ky, kx), cut off at the edges."""
    rows, columns = (slice(n // 2 - min(width, n) // 2, n // 2 + (min(width, n) + 1) // 2) for n in kspace.shape[-2:])
    return kspace[..., rows, columns]


def gapless_side(samples: NDArray[np.bool_]) -> int:
    """Side of the largest square of measured ``samples`` (ky, kx) around the centre of k-space; 0 without one."""
    return max((n for n in range(1, min(samples.shape) + 1) if central(samples, n).all()), default=0)


def measured_samples(kspace: NDArray[np.complexfloating], strongest: float | None = None) -> NDArray[np.bool_]:
    """Which samples of one slice were measured: all but those which are zero in every coil.

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
    far = scipy.spatial.cKDTree(trajectory).query(points)[0] > _DENSE
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

    near = (np.abs(trajectory) <= side / 2 + _GRIDDED_WITH).all(axis=1)
    weights = density_weights(trajectory[near], shape).astype(np.float32)
    images = NonUniformFourier(trajectory[near], shape).adjoint((weights * kspace[..., near])[..., np.newaxis, :])
    inside = np.zeros(shape, dtype=bool)
    inside[tuple(slice(n // 2 - side // 2, n // 2 - side // 2 + side) for n in shape)] = True
    return np.where(inside, to_kspace(images), 0).astype(np.complex64)


# Below 16 lines a kernel of 6 leaves too few blocks (results/benchmarks/measured-once.md).
_KERNEL, _SMALL_KERNEL, _ENOUGH_FOR_KERNEL = 6, 4, 16
_LEAST_VALUE, _POWER = 0.02, 100
"""Least singular value of a kernel over the largest, and the power of a matrix that a direction is taken from; both are
SigPy's."""
_FIRST, _TERMS, _LEAST_PART = 5, 20, 0.05
"""Plain powers that the largest eigenvalue is estimated from, terms of the series that makes the others, and the part
of the trace that the estimate is at least, so that single precision holds all terms."""
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
        Of white coils; nothing outside the square is used.
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
    of_rows, of_columns = (_offset_waves(n, reach) for n in (rows, columns))
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
    rows = rows.astype(np.complex128)  # whose products have the squares of small values
    values, left = np.linalg.eigh(rows @ rows.conj().T)
    strong = values > _LEAST_VALUE**2 * values[-1]
    kept = (left[:, strong].conj().T @ rows) / np.sqrt(values[strong])[:, np.newaxis]
    kept = kept.astype(np.complex64)
    products = (kept.T @ kept.conj()).reshape(n_coils, side, side, n_coils, side, side)
    found = np.zeros((offsets, offsets, n_coils, n_coils), np.complex64)
    for row, column in np.ndindex(side, side):
        there = slice(side - 1 - row, offsets - row), slice(side - 1 - column, offsets - column)
        found[there] += np.moveaxis(products[..., row, column], 0, 2)
    return found / side**2


def _offset_waves(n: int, reach: int) -> NDArray[np.complex64]:
    """Waves at the pixels of a centred grid by the offset of two samples, up to ``reach``, shape (pixel, offset)."""
    return np.exp(2j * np.pi * np.outer(np.arange(n) - n // 2, np.arange(-reach, reach + 1)) / n).astype(np.complex64)


def _strongest_directions(matrices: NDArray[np.complex64]) -> NDArray[np.complex64]:
    r"""Directions (..., coil) that Hermitian matrices (..., coil, coil) enlarge most: columns of ones times a power.

    With eigenvalues x from 0 to 1, :math:`x^n = 4^{-n} \sum_k \binom{2n}{n+k} T_k(2x - 1)` over k from -n to n, whose
    terms fall as :math:`e^{-k^2/n}`: 20 of them stand for a hundred products with the matrix.
    """
    found = np.ones((*matrices.shape[:-1], 1), np.complex64)
    for _ in range(_FIRST):
        found = matrices @ found
        found /= np.linalg.norm(found, axis=-2, keepdims=True)
    enlarged = matrices @ found
    largest = np.sum((found.conj() * enlarged).real, axis=-2, keepdims=True)
    trace = np.trace(matrices, axis1=-2, axis2=-1).real[..., np.newaxis, np.newaxis]
    scale = 2 / np.maximum(largest, np.float32(_LEAST_PART) * trace)
    left = _POWER - _FIRST
    weights = [comb(2 * left, left + k) / comb(2 * left, left) for k in range(_TERMS + 1)]
    before, term = found, scale * enlarged - found
    total = found / 2 + np.float32(weights[1]) * term
    for weight in weights[2:]:
        before, term = term, 2 * (scale * (matrices @ term) - term) - before
        total += np.float32(weight) * term
    total /= np.abs(total).max(axis=-2, keepdims=True)  # whose squares it would not hold
    return np.asarray(total / np.linalg.norm(total, axis=-2, keepdims=True))[..., 0]


_AT_ONCE = 1 << 14
MANY_COILS = 12
"""More are compressed by default."""
_LEAST_VIRTUAL, _LEFT_OUT, _SIDE = 8, 0.25, 8
"""Fewest virtual coils, the part of the noise that they may leave out, and the side of the samples of a plane that are
looked at."""


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
        return float(1 / np.linalg.norm(mixing[0]))
    seen = np.linalg.norm(mix_coils(back_from(mixing), maps[np.newaxis])[0], axis=0)
    dark = seen == 0
    return np.asarray(np.where(dark, seen.mean(where=~dark) if not dark.all() else 1.0, seen), dtype=np.float32)


def maps_before_mixing(
    mixing: NDArray[np.complex128] | None, maps: NDArray[np.complex64] | None
) -> NDArray[np.complex64] | None:
    """Coil maps (slice, coil, ...) of the original coils, from the ``maps`` of coils that ``mixing`` mixed.

    Their root-sum-of-squares is 1 at every pixel, and 0 where that of ``maps`` is. None where there are no maps, or
    those of one coil.
    """
    if maps is None or maps.shape[1] == 1:
        return None
    if mixing is None:
        return maps
    seen = mix_coils(back_from(mixing), maps)
    strength = np.linalg.norm(seen.astype(np.complex128), axis=1, keepdims=True)
    return (seen / np.where(strength > 0, strength, 1)).astype(np.complex64)


def back_from(mixing: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Inverse of a coil mixing; of fewer coils than were read the pseudo-inverse, zero for those left out."""
    square = mixing.shape[0] == mixing.shape[1]
    back = np.asarray(np.linalg.inv(mixing) if square else np.linalg.pinv(mixing), dtype=np.complex128)
    back[~mixing.any(axis=0)] = 0
    return back


def virtual_directions(matrix: NDArray[np.complex128], directions: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """`coil_directions` of all coils as directions of the virtual coils that ``matrix`` (virtual, coil) combines."""
    orthonormal, triangle = np.linalg.qr(matrix @ directions[:, : len(matrix)])
    along, size = np.diagonal(triangle), np.abs(np.diagonal(triangle))
    return np.asarray(orthonormal * np.where(size > 0, along / np.where(size > 0, size, 1), 1))


@dataclass(frozen=True)
class Compression:
    """White coils combined into virtual ones.

    Parameters
    ----------
    matrix : complex array, shape (virtual, coil)
        Orthonormal rows: white coils stay white. The strongest directions are mixed by a Fourier transform, so that
        virtual coils are about as strong as each other, as coils are.
    lost : float
        Share of the energy of the signal that the virtual coils do not hold, 0 to 1.
    left_out : float
        Root-mean-square over the pixels of the object of the signal that they do not hold, over the standard deviation
        of the noise.
    """

    matrix: NDArray[np.complex128]
    lost: float
    left_out: float


def compression(
    kspace: NDArray[np.complex64],
    noise_variance: float,
    count: int | None = None,
    *,
    square: bool = False,
    maps: NDArray[np.complex64] | None = None,
) -> Compression:
    r"""The directions of coil space in which the centre of k-space has most energy above the noise.

    Of one position of a 3-D scan they are those of that position (geometric compression), which hold more of it than
    those of the volume would. Only the four measured lines next to the centre are looked at, with which a design
    begins: a mask with these lines has the same virtual coils as the design that chose it. Of known maps S the energies
    are :math:`\sum_x |u(x)|^2 S(x) S(x)^H`, where u is the image of two lines.

    Parameters
    ----------
    kspace : complex64 array, shape (slice, coil, ky, kx)
        Of white coils; slices are compressed alike. Only measured samples are used.
    noise_variance : float
        Of the samples, per real component.
    count : int, optional
        Virtual coils, at most as many as there are coils. By default as few as leave out less than a quarter of the
        noise's standard deviation (`Compression.left_out`), at least eight.
    square : bool
        Whether the samples of a plane are measured: the 64 next to the centre are taken.
    maps : complex64 array, shape (slice, coil, ky, kx), optional
        If they are known.

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
    n_coils = kspace.shape[1]
    require_counts(least=1, most=n_coils, **{"virtual coils": n_coils if count is None else count})
    energies, pixels, noise = np.zeros((n_coils, n_coils), np.complex128), 0.0, 0.0
    for number, stack in enumerate(kspace):
        measured = measured_samples(stack)
        if not measured.any():
            continue
        inside = _next_to_centre(measured, square, of_maps=maps is not None)
        seen = to_image(np.where(inside, stack, 0))
        strength = np.linalg.norm(seen, axis=0).astype(np.float64)
        pixels += float(strength.sum() ** 2 / (np.vdot(strength, strength) or 1))
        if maps is None:
            signal = stack[:, inside].astype(np.complex128)
            noise += 2 * noise_variance * signal.shape[1]
        else:
            signal = maps[number] * np.linalg.norm(np.sum(maps[number].conj() * seen, axis=0, keepdims=True), axis=0)
            signal = signal.reshape(n_coils, -1).astype(np.complex128)
        energies += signal @ signal.conj().T
    directions = coil_directions(energies)
    along = np.sum(directions.conj() * (energies @ directions), axis=0).real
    found = np.maximum(along - noise, 0)
    if not found.any():
        raise InputError(field="kspace", got="no signal in the central lines", wanted="signal to combine coils by")
    left = np.append(np.cumsum(found[::-1])[::-1], 0)  # by how many virtual coils there are
    left_out = np.sqrt(left / (2 * noise_variance * pixels))
    kept = max(_LEAST_VIRTUAL, int(np.argmax(left_out <= _LEFT_OUT))) if count is None else count
    kept = min(kept, n_coils)
    alike = np.fft.fft(directions[:, :kept].conj().T, axis=0, norm="ortho")
    return Compression(alike, float(left[kept] / left[0]), float(left_out[kept]))


def _next_to_centre(measured: NDArray[np.bool_], square: bool, *, of_maps: bool) -> NDArray[np.bool_]:
    """The measured samples (ky, kx) of the lines next to the centre, or those of a plane next to it."""
    rows, columns = (np.abs(np.arange(n) - n // 2 + 0.5) for n in measured.shape)
    away = np.maximum(rows[:, np.newaxis], columns if square else 0)
    units, wanted = (measured, _SIDE**2) if square else (measured.any(axis=1, keepdims=True), 2 if of_maps else 4)
    nearest = np.sort(away[units])
    return np.asarray(measured & (away <= nearest[min(wanted, nearest.size) - 1]))


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
POLE, _LEVELLED, _CLOSER = 0.8, 0.15, 0.9
"""Maps whose root-sum-of-squares dips below the first part of its surroundings are solved again, and what is found then
is taken where it dips less by the second, or its residual is below the third part (results/coils/maps.md)."""
_INSIDE, _AROUND = 0.15, 0.045
"""The object is where coil images exceed this part of their 99th percentile; surroundings are averages over this part
of the field of view."""
_LAST_RIDGE = 2.0**-16
"""Regularisation of the last step; that of the first is 1."""
_SCALE = 100.0
"""Norm of the samples, against which the image begins with ones and the regularisation with 1."""
_STEPS, _INNER, _ROUGH_STEPS, _ROUGH_INNER = 17, 60, 9, 30
_SMOOTHED, _ENVELOPE = 0.7, (0.005, 1.5)
"""Pixels over which the envelope of an image is smoothed, and its least and largest values."""
_TOLERANCE = 1e-2
"""Residual, over the right-hand side, at which the linear problem of a step is left before its last iteration."""
_NEAR = 4
"""Waves of up to this many cycles are solved together by the preconditioner, and shorter ones alone."""
_ROUNDING = 1e-6


def maps_of_waves(spectra: NDArray[np.complex64], shape: tuple[int, int]) -> NDArray[np.complex64]:
    """Maps with unit root-sum-of-squares on a grid, complex64 (coil, ky, kx), from their waves (coil, 13, 13)."""
    along_ky, along_kx = (_waves(n, centred=True) for n in shape)
    maps = along_ky @ spectra @ along_kx.T
    strength = np.linalg.norm(maps, axis=0)
    return np.asarray(maps / np.maximum(strength, np.finfo(np.float32).tiny), dtype=np.complex64)


Joint = tuple[NDArray[np.complex64], NDArray[np.complex64], float]


def joint_estimate(
    kspace: NDArray[np.complex64], samples: NDArray[np.bool_], *, rough: bool = False, sets: int = 1
) -> Joint:
    """Image and coil maps of one slice from the measured samples of the central block, without a pole if possible.

    Two sets of maps, each with an image of its own, explain an object that reaches beyond its field of view, where two
    places fold into one pixel (ENLIVE: H. C. M. Holme et al., Sci. Rep. 9 (2019) 3034).

    Parameters
    ----------
    kspace : complex64 array, shape (coil, ky, kx)
        Of white coils; only measured samples are used.
    samples : bool array, shape (ky, kx) or (coil, ky, kx)
        Which were measured, or may be used of each coil; some of the central 32 x 32 have to hold signal.
    rough : bool
        Whether to solve less accurately in a third to half of the time, which is enough to design with.
    sets : int
        Of maps.

    Returns
    -------
    spectra : complex64 array, shape (set, coil, 13, 13)
        Waves of the maps by cycles per field of view, for `maps_of_waves`; the common phase of the maps is any.
    block : complex64 array, shape (coil, ky, kx)
        Every sample of the central block, measured or not, as image and maps predict it.
    dip : float
        The least of the maps' root-sum-of-squares inside the object, over that of its surroundings; 0 at a pole.
    """
    shape = samples.shape[-2:]
    grid = (min(_GRID, shape[0]), min(_GRID, shape[1]))
    inside = np.zeros((*samples.shape[:-2], *grid), dtype=bool)
    central(inside, BLOCK)[:] = central(samples, BLOCK)
    data = np.zeros((len(kspace), *grid), dtype=np.complex64)
    central(data, BLOCK)[:] = np.where(central(samples, BLOCK), central(kspace, BLOCK), 0)
    size = float(np.linalg.norm(data))
    data = (data * (_SCALE / size)).astype(np.complex64)
    problem = _Problem(data, inside, sets)
    steps = (_ROUGH_STEPS, _ROUGH_INNER) if rough else (_STEPS, _INNER)
    with threadpool_limits(1):  # products this small only wait for the threads that share them
        spectra, block, dip = problem.estimate(problem.solution(*steps))
        if dip < POLE and sets == 1:
            again = problem.estimate(problem.solution(*steps, _phase(problem.block_images(block))))
            missed = [
                np.linalg.norm(central(inside, BLOCK) * (each - central(data, BLOCK))) for each in (block, again[1])
            ]
            if again[-1] > dip + _LEVELLED or missed[1] < _CLOSER * missed[0]:
                spectra, block, dip = again
    return spectra, block * np.float32(size / _SCALE), dip


def _phase(coil_images: NDArray[np.complex64]) -> NDArray[np.complex64]:
    """Phase factors of the strongest combination of coils, shape (ky, kx)."""
    pixels = coil_images.reshape(len(coil_images), -1).astype(np.complex128)
    strongest = coil_directions(pixels @ pixels.conj().T)[:, 0]
    return np.exp(1j * np.angle(np.tensordot(strongest.conj(), coil_images, axes=1))).astype(np.complex64)


def _dip(maps: NDArray[np.complex64], coil_images: NDArray[np.complex64]) -> float:
    """The dip of maps (`joint_estimate`), the object being where the coil images show it."""
    from scipy.ndimage import gaussian_filter  # here: many commands need no maps

    strength, image = np.linalg.norm(maps, axis=0), np.linalg.norm(coil_images, axis=0)
    surroundings = gaussian_filter(strength, [_AROUND * n for n in strength.shape], mode="wrap")
    inside = (image > _INSIDE * np.percentile(image, 99)) & (surroundings > 0)
    return float((strength[inside] / surroundings[inside]).min(initial=1.0))


def seen_by_coils(images: NDArray[Any], maps: NDArray[Any]) -> NDArray[Any]:
    """What coils (coil, ky, kx) see of the images (set, ky, kx) that belong to sets of maps (set, coil, ky, kx)."""
    return np.asarray(np.sum(images[:, np.newaxis] * maps, axis=0))


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

    An unknown is a vector of the pixels of an image for each set of maps, the first of which is the centre of the field
    of view, and then of the maps' weighted spectra. Only rows and columns of k-space that hold samples are ever
    computed, by products with small matrices, which take less time here than whole Fourier transforms.

    Parameters
    ----------
    data : complex64 array, shape (coil, ky, kx)
        Samples with the centre of k-space in the middle.
    inside : bool array, shape (ky, kx) or (coil, ky, kx)
        Which of them were measured.
    sets : int
        Of maps.
    """

    def __init__(self, data: NDArray[np.complex64], inside: NDArray[np.bool_], sets: int = 1) -> None:
        self.grid: tuple[int, int] = (inside.shape[-2], inside.shape[-1])
        self.sets, self.pixels = sets, sets * self.grid[0] * self.grid[1]
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
        """Images (set, ky, kx) and weighted spectra (set, coil, 13, 13) of an unknown."""
        spectra = unknown[self.pixels :].reshape(self.sets, len(self.data), *self.weights.shape)
        return unknown[: self.pixels].reshape(self.sets, *self.grid), spectra

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

    def estimate(self, unknown: NDArray[np.complex64]) -> Joint:
        """What `joint_estimate` returns, of an unknown and in the problem's units."""
        images, spectra = self.parts(unknown)
        maps = self.maps(spectra)
        predicted = fft.fftshift(fft.fft2(seen_by_coils(images, maps), norm="ortho"), axes=(-2, -1))
        block = central(predicted, BLOCK)
        return spectra * self.weights, block, _dip(maps[0], self.block_images(block))

    def adjoint(
        self, residual: NDArray[np.complex64], images: NDArray[np.complex64], maps: NDArray[np.complex64]
    ) -> NDArray[np.complex64]:
        """The derivative's adjoint at images and maps, as an unknown."""
        seen = self.to_rows.conj().T @ residual @ self.to_columns.conj().T
        spectra = (self.along_ky.conj().T @ (images[:, np.newaxis].conj() * seen) @ self.along_kx.conj()) * self.weights
        return np.concatenate([np.sum(maps.conj() * seen, axis=1).ravel(), spectra.ravel()])

    def envelope(self, image: NDArray[np.complex64], maps: NDArray[np.complex64]) -> NDArray[np.float32]:
        """How bright each pixel is, smoothed, over the brightness of those that hold the energy."""
        from scipy.ndimage import gaussian_filter  # here: many commands need no maps

        seen = gaussian_filter(np.abs(image) * np.linalg.norm(maps, axis=0), _SMOOTHED, mode="wrap")
        bright = np.sqrt(np.sum(seen**4) / np.sum(seen**2)) if seen.any() else 1.0
        return np.clip(seen / bright, *_ENVELOPE).astype(np.float32)

    def preconditioner(
        self,
        image: NDArray[np.complex64],
        maps: NDArray[np.complex64],
        ridge: float,
        envelope: NDArray[np.float32],
    ) -> Callable[[NDArray[np.complex64], NDArray[np.complex64]], tuple[Any, Any]]:
        """An approximate inverse of the step's matrix of one set: pixels alone, and the long waves of a coil together.

        A wave of the maps shifts the spectrum of the image by whole samples, so that the matrix between waves, which is
        the same for all coils that were measured alike, is that of products between shifted spectra.
        """
        part = float(np.sum(self.inside)) / len(self.inside) / image.size
        of_pixels = 1 / (part * np.sum(np.abs(maps) ** 2, axis=0) + np.float32(ridge) / envelope**2)
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

        def applied(pixels: NDArray[np.complex64], spectra: NDArray[np.complex64]) -> tuple[Any, Any]:
            waves = spectra * of_waves
            long = spectra[:, near, near]
            waves[:, near, near] = (long.reshape(len(long), -1) @ together).reshape(long.shape)
            return of_pixels * pixels, waves

        return applied

    def start(self, image: NDArray[np.complex64] | complex) -> NDArray[np.complex64]:
        """The unknown that the iteration begins with and is drawn to: images, and maps of zeros.

        Sets that begin alike stay alike: further ones begin with one of the next directions of coil space everywhere.
        """
        start = np.zeros(self.pixels + self.sets * len(self.data) * self.weights.size, np.complex64)
        images, spectra = self.parts(start)
        images[:] = image
        if self.sets > 1:
            every = self.data.reshape(len(self.data), -1).astype(np.complex128)
            others = coil_directions(every @ every.conj().T)[:, 1 : self.sets]
            spectra[1:, :, _REACH, _REACH] = others.T * np.sqrt(self.grid[0] * self.grid[1])
        return start

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

        start = self.start(image)
        unknown, square, held = start.copy(), (start.size, start.size), np.ones(start.size, np.float32)
        envelopes = np.ones((self.sets, *self.grid), np.float32)
        for step, ridge in enumerate(np.geomspace(1, _LAST_RIDGE, steps, dtype=np.float32)):
            now, spectra = self.parts(unknown)
            maps = self.maps(spectra)
            if step > steps // 2:
                envelopes = np.stack([self.envelope(*one) for one in zip(now, maps, strict=True)])
                self.parts(start)[0][:] = image * envelopes
                held[: self.pixels] = (envelopes**-2).ravel()
            each = zip(now, maps, envelopes, strict=True)
            inverses = [self.preconditioner(one, its, float(ridge), envelope) for one, its, envelope in each]

            def normal(
                change: NDArray[np.complex64],
                now: NDArray[np.complex64] = now,
                maps: NDArray[np.complex64] = maps,
                weights: NDArray[np.float32] = ridge * held,
            ) -> NDArray[np.complex64]:
                of_images, of_spectra = self.parts(change)
                seen = self.samples(seen_by_coils(now, self.maps(of_spectra)) + seen_by_coils(of_images, maps))
                return self.adjoint(seen, now, maps) + weights * change

            def preconditioned(
                change: NDArray[np.complex64], inverses: Sequence[Callable[..., Any]] = inverses
            ) -> NDArray[np.complex64]:
                made = [inverse(*one) for inverse, *one in zip(inverses, *self.parts(change), strict=True)]
                return np.concatenate([part.ravel() for parts in zip(*made, strict=True) for part in parts])

            residual = self.data - self.samples(seen_by_coils(now, maps))
            right = self.adjoint(residual, now, maps) + ridge * held * (start - unknown)
            matrix, inverse = (
                LinearOperator(square, matvec=product, dtype=np.complex64) for product in (normal, preconditioned)
            )
            change = cg(matrix, right, rtol=_TOLERANCE, maxiter=inner, M=inverse)[0]
            unknown = unknown + change.astype(np.complex64)
        return unknown


MapMethod = Literal["auto", "espirit", "nlinv"]
"""How maps are estimated; see `maps_from_lines`."""

USUAL_LINES = 24
"""Centre lines from which ESPIRiT takes maps, and from which on it is preferred (results/coils/maps.md)."""
FEWEST_FOR_ESPIRIT = 8
_FEWEST = 2
"""Without neighbours at the centre, image and maps are exchangeable: folding cannot be distinguished from the image."""
_KEPT = 2
"""Estimates of `OwnMaps` that are remembered: those of the decision at hand and of the one before."""
_HELD_PART = 8
"""One in so many coils is held back of each line."""
_COILS_THAT_PREDICT = 4
BAD_PREDICTION = 0.2
"""Relative error of coils held back above which maps count as poor (results/coils/maps.md)."""
_LESS_ERROR = 0.04
"""Two sets of maps are used where the squared relative error of coils held back is less by the square of this
(results/coils/planned.md)."""

_PART, _MARGIN = 16, 4
"""The centre reaches to one part in 16 of the grid on each side; the image may reach four samples further."""
_DAMPING, _ITERATIONS = 1e-2, 20


@dataclass(frozen=True)
class CoilMapEstimate:
    """Coil maps of one slice, with the method and the lines that they were estimated from.

    Parameters
    ----------
    maps : complex64 array, shape (coil, ky, kx)
        Unit root-sum-of-squares at every pixel.
    method : {"espirit", "nlinv"}
        ESPIRiT on the gapless centre, or image and maps together (NLINV) from all lines of the central block.
    lines : int
        How many lines the maps rest on: ESPIRiT's gapless ones, or all measured ones of the central 32.
    prediction_error : float
        Relative error of coils that were held back (`error_of_held_coils`); NaN where none were.
    samples : int
        Of a plane, or of lines that stop short, the measured samples of the central 32 x 32 that NLINV took; else 0.
    second : complex64 array, shape (coil, ky, kx), optional
        A second set of maps, where one set does not explain the coils and two do: of an object that reaches beyond its
        field of view.
    smooth : SmoothMaps, optional
        Of NLINV: from which the maps can be made again.
    """

    maps: NDArray[np.complex64]
    method: Literal["espirit", "nlinv"]
    lines: int
    prediction_error: float = float("nan")
    samples: int = 0
    second: NDArray[np.complex64] | None = None
    smooth: SmoothMaps | None = field(default=None, repr=False, compare=False)

    @property
    def predicts_badly(self) -> bool:
        """Whether coils held back speak against the maps; never of fewer than four coils, which predict little."""
        return is_bad(self.prediction_error, len(self.maps))


def is_bad(prediction_error: float, n_coils: int) -> bool:
    """Whether coils held back speak against maps; see `CoilMapEstimate.predicts_badly`."""
    return n_coils >= _COILS_THAT_PREDICT and prediction_error > BAD_PREDICTION


def method_for(centre: int, lines: int, method: MapMethod) -> Literal["espirit", "nlinv"]:
    """The method by name: of ``auto`` ESPIRiT where it may use 24 gapless lines, else NLINV.

    Parameters
    ----------
    centre : int
        Side of the gapless square at the centre of k-space.
    lines : int
        Centre lines that may be used at most.
    method : {"auto", "espirit", "nlinv"}
        As requested.
    """
    if method != "auto":
        return method
    return "espirit" if min(centre, lines) >= USUAL_LINES else "nlinv"


def block_energies(kspace: NDArray[np.complex64], samples: NDArray[np.bool_]) -> NDArray[np.complex128]:
    """Sum over the measured samples s of the central block of s s^H, shape (coil, coil), for `coil_directions`."""
    inner = np.where(central(samples, BLOCK), central(kspace, BLOCK), 0).reshape(len(kspace), -1).astype(np.complex128)
    return np.asarray(inner @ inner.conj().T)


@dataclass(frozen=True)
class SmoothMaps:
    """Maps of NLINV by their waves, some hundred numbers a coil, from which they are made on the grid.

    Parameters
    ----------
    waves : complex64 array, shape (set, coil, 13, 13)
        By cycles per field of view (`joint_estimate`).
    strongest : complex array, shape (coil,)
        Direction of coil space along which the combination of the maps is real and positive.
    shape : (int, int)
        Of the grid.
    lines, prediction_error, samples
        Of the `CoilMapEstimate`.
    """

    waves: NDArray[np.complex64]
    strongest: NDArray[np.complex128]
    shape: tuple[int, int]
    lines: int
    prediction_error: float
    samples: int

    def estimate(self) -> CoilMapEstimate:
        """The maps on their grid."""
        maps = [maps_of_waves(one, self.shape) for one in self.waves]
        for one in maps:
            one *= np.exp(-1j * np.angle(np.tensordot(self.strongest.conj(), one, axes=1))).astype(np.complex64)
        second = maps[1] if len(maps) > 1 else None
        return CoilMapEstimate(maps[0], "nlinv", self.lines, self.prediction_error, self.samples, second, self)


def maps_from_lines(
    kspace: NDArray[np.complex64],
    measured: NDArray[np.bool_],
    *,
    method: MapMethod = "auto",
    directions: NDArray[np.complex128] | None = None,
    noise_variance: float = 0.0,
    check: bool = True,
    rough: bool = False,
) -> CoilMapEstimate:
    """Coil maps of one slice from the measured lines or samples only.

    The phase of the maps is that of `estimate_coil_maps`: their combination along the strongest direction of coil space
    is real and positive.

    Parameters
    ----------
    kspace : complex64 array, shape (coil, ky, kx)
        Of white coils (`prewhiten`). What stands where nothing was measured is of no account.
    measured : bool array, shape (ky,) or (ky, kx)
        Which lines or samples were measured.
    method : {"auto", "espirit", "nlinv"}
        By default ESPIRiT where 24 gapless lines were measured, and NLINV where there are fewer.
    directions : complex array, shape (coil, coil), optional
        `coil_directions`, so that the phase of the maps runs on from slice to slice; by default those of this slice.
    noise_variance : float
        Per real component of a sample, for the check alone (`error_of_held_coils`).
    check : bool
        Whether to hold coils back line by line and see how well they are predicted.
    rough : bool
        Whether NLINV may solve less accurately, with fewer iterations: for maps on the way to those of an image.

    Raises
    ------
    InputError
        Where the centre of k-space was not measured, fewer than eight gapless lines were for ESPIRiT, or the central
        samples hold no signal.
    """
    if method not in get_args(MapMethod):
        raise InputError(field="maps", got=repr(method), wanted="'auto', 'espirit' or 'nlinv'")
    samples = measured if measured.ndim == 2 else np.repeat(measured[:, None], kspace.shape[-1], axis=1)
    centre = gapless_side(samples)
    method = method_for(centre, USUAL_LINES, method)
    fewest = FEWEST_FOR_ESPIRIT if method == "espirit" else _FEWEST
    if centre < fewest:
        got = f"{centre} gapless lines and columns around the centre of k-space"
        without = f", or leave {option('maps', 'espirit')} out." if method == "espirit" else "."
        cure = f"Give coil maps ({option('maps')} or {option('maps-from')}), or measure a centre{without}"
        raise InputError("measured", got, f"at least {fewest} for coil calibration", cure)
    energies = block_energies(kspace, samples)
    if not energies.any():
        raise InputError(field="kspace", got="no signal in the central lines", wanted="signal to calibrate with")
    directions = coil_directions(energies) if directions is None else directions
    missed, sets = (
        held_back_coils(kspace, samples, noise_variance, whole=of_whole_lines(samples)) if check else (float("nan"), 1)
    )
    if method == "espirit" and sets == 1:
        whole = np.zeros(kspace.shape, np.complex64)
        central(whole, centre)[:] = np.where(central(samples, centre), central(kspace, centre), 0)
        lines = min(centre, USUAL_LINES)
        return CoilMapEstimate(espirit(whole, directions, lines), method, lines, missed)
    inside = central(samples, BLOCK)
    lines, count = int(inside.any(axis=1).sum()), int(inside.sum())
    count = 0 if count == lines * inside.shape[1] else count
    waves = joint_estimate(kspace, samples, rough=rough, sets=sets)[0]
    return SmoothMaps(waves, directions[:, 0], (samples.shape[0], samples.shape[1]), lines, missed, count).estimate()


def of_whole_lines(samples: NDArray[np.bool_]) -> bool:
    """Whether every line of the samples (ky, kx) is measured as a whole or not at all."""
    return np.array_equal(samples.any(axis=1), samples.all(axis=1))


def held_back_coils(
    kspace: NDArray[np.complex64], samples: NDArray[np.bool_], noise_variance: float, *, whole: bool
) -> tuple[float, int]:
    """Relative error of coils held back, and how many sets of maps predict them.

    Two where the samples are ``whole`` lines and two sets predict clearly better than one, and better than one set does
    for coils of odd and of even lines apart. A fault of alternate lines folds the image, too, but is no second set.
    """
    missed = error_of_held_coils(kspace, samples, noise_variance)
    if whole and len(kspace) >= _COILS_THAT_PREDICT and missed > _LESS_ERROR:
        by_two = error_of_held_coils(kspace, samples, noise_variance, sets=2)
        if missed**2 - by_two**2 > _LESS_ERROR**2 and by_two < error_of_alternate_lines(
            kspace, samples, noise_variance
        ):
            return by_two, 2
    return missed, 1


@briefly
@dataclass(frozen=True)
class OwnMaps:
    """Estimates of the coil maps of one slice, by which of its samples had been measured.

    Maps depend on the measured samples alone, so that every process and order of calls gives the same bits.
    The last ones are remembered, and the waves of all that NLINV has estimated.

    Parameters
    ----------
    method : {"auto", "espirit", "nlinv"}
        As `maps_from_lines` takes it.
    noise_variance : float
        Of the samples, likewise.
    """

    method: MapMethod = "auto"
    noise_variance: float = 0.0
    _made: dict[bytes, CoilMapEstimate] = field(default_factory=dict, init=False, repr=False, compare=False)
    _smooth: dict[bytes, SmoothMaps] = field(default_factory=dict, init=False, repr=False, compare=False)

    def of(self, kspace: NDArray[np.complex64], measured: NDArray[np.bool_], *, rough: bool = False) -> CoilMapEstimate:
        """The maps of a slice from its ``measured`` samples.

        Parameters
        ----------
        kspace : complex array, shape (coil, ky, kx)
            Of white coils, always of the same slice.
        measured : bool array, shape (ky,) or (ky, kx)
            Lines or samples to look at.
        rough : bool
            Whether the maps are those of a step on the way to an image: less accurate (`maps_from_lines`), one set, and
            not checked by coils that are held back.

        Raises
        ------
        InputError
            Where these are too few for any maps.
        """
        key = np.packbits(measured).tobytes() + bytes([rough])
        if key not in self._made:
            if key in self._smooth:
                estimate = self._smooth[key].estimate()
            else:
                settings: dict[str, Any] = {"method": self.method, "noise_variance": self.noise_variance}
                estimate = maps_from_lines(kspace, measured, **settings, check=not rough, rough=rough)
            if estimate.smooth is not None:
                self._smooth[key] = estimate.smooth
            while len(self._made) >= _KEPT:
                del self._made[next(iter(self._made))]
            self._made[key] = estimate
        return self._made[key]

    def __getstate__(self) -> dict[str, object]:
        """State without remembered maps, which another process estimates itself."""
        return {"method": self.method, "noise_variance": self.noise_variance, "_made": {}, "_smooth": {}}


def error_of_alternate_lines(
    kspace: NDArray[np.complex64], samples: NDArray[np.bool_], noise_variance: float = 0.0
) -> float:
    """`error_of_held_coils` (which see) where coils of odd and of even lines count as different coils."""
    odd = np.arange(len(samples))[:, np.newaxis] % 2 == 1
    apart = np.repeat([samples & odd, samples & ~odd], len(kspace), axis=0)
    return error_of_held_coils(np.tile(kspace, (2, 1, 1)), apart, noise_variance)


def error_of_held_coils(
    kspace: NDArray[np.complex64], samples: NDArray[np.bool_], noise_variance: float = 0.0, *, sets: int = 1
) -> float:
    """Relative error of NLINV on one in eight coils of each measured line of the block, which it does not get.

    The other coils have the same line, so that maps are judged and not the width of gaps, and few lines are enough.
    What it says holds for any maps of these lines: whether one image and smooth maps explain all coils. The noise of
    the samples that were held back is no error of maps, nor is as much again that the prediction has from the others:
    both are taken off, so that sound maps of noisy scans are not called bad (results/coils/maps.md).

    Parameters
    ----------
    kspace : complex64 array, shape (coil, ky, kx)
        Of white coils.
    samples : bool array, shape (ky, kx) or (coil, ky, kx)
        Which were measured, or may be used.
    noise_variance : float
        Per real component of a sample.
    sets : int
        Of maps.

    Returns
    -------
    float
        NaN where the samples hold no signal, or no more than noise has.
    """
    kept = np.broadcast_to(samples, kspace.shape).copy()
    inside = central(kept, BLOCK).copy()
    order = np.cumsum(inside.any(axis=(0, 2))) - 1
    held = ((np.arange(len(kspace))[:, None] + order) % _HELD_PART == 0)[:, :, None] & inside
    central(kept, BLOCK)[held] = False
    wanted = central(kspace, BLOCK)[held]
    noise = 2 * noise_variance * wanted.size
    signal = float(np.linalg.norm(wanted)) ** 2 - noise
    if not signal > 0 or not np.any(kspace[kept]):
        return float("nan")
    _, predicted, _ = joint_estimate(kspace, kept, rough=True, sets=sets)
    missed = float(np.linalg.norm(predicted[held] - wanted)) ** 2 - 2 * noise
    return float(np.sqrt(max(missed, 0.0) / signal))


def share_explained(
    kspace: NDArray[np.complex64], coil_maps: NDArray[np.complex64], noise_variance: float = 0.0
) -> float:
    r"""Share of the energy of the central samples that an image seen through coil maps explains, 0 to 1.

    The image u of low resolution minimises :math:`\|y - P F S u\|^2 + 0.01 \|u\|^2`, where P keeps the measured samples
    y of the centre of k-space, F is the Fourier transform and S multiplies with the maps. So an undersampled scan is
    judged as fairly as a complete one, as long as it has clearly more coils than its acceleration. What the noise alone
    leaves unexplained is taken off.

    The right maps explain nearly all. Maps of other coils, in another order, or with rows and columns exchanged explain
    less, far less with many coils. Two coils explain nearly everything with any smooth maps, and cannot be judged. The
    shares of several scans are in results/benchmarks/measured-once.md.

    Parameters
    ----------
    kspace, coil_maps : complex64 array, shape (slice, coil, ky, kx)
        Samples, zero where none was measured, and maps.
    noise_variance : float
        Per real component, 0 where it is not known.
    """
    grid = (kspace.shape[-2], kspace.shape[-1])
    unexplained = total = 0.0
    for stack, fine_maps in zip(kspace, coil_maps, strict=True):
        coarse = _coarse(grid)
        inner = np.ix_(*(n // 2 - m // 2 + np.arange(m) for n, m in zip(grid, coarse, strict=True)))
        samples, maps = stack[:, *inner], fine_maps[:, *_pixels(grid, coarse)]
        centre = measured_samples(samples) & _central(coarse, grid, 0)
        samples = np.where(centre, samples, 0).astype(np.complex128)
        energy = float(np.sum(np.abs(samples) ** 2))
        if energy > 0:
            support = _central(coarse, grid, _MARGIN)
            lost = energy * _residual(samples / np.sqrt(energy), maps.astype(np.complex128), centre, support)
            unexplained += max(0.0, lost - 2 * noise_variance * len(stack) * np.count_nonzero(centre))
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
    near = (np.abs(np.arange(m) - m // 2) <= _reach(n, margin) for m, n in zip(coarse, shape, strict=True))
    return np.logical_and.outer(*near)


def _residual(
    samples: NDArray[np.complex128], maps: NDArray[np.complex128], centre: NDArray[np.bool_], support: NDArray[np.bool_]
) -> float:
    """Residual energy of samples of unit energy, for the best image whose spectrum lies in the support."""
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


def places_in(
    of: tuple[int, ...], shape: tuple[int, int], ratio: tuple[float, float]
) -> tuple[NDArray[np.float64], ...]:
    """Where the pixels of a grid lie in another one around the same centre, in its pixels: rows and columns.

    Parameters
    ----------
    of, shape : (int, int)
        Rows and columns of the other grid, and of the grid whose pixels are placed.
    ratio : (float, float)
        As in `maps_on_grid`.
    """
    along = ((np.arange(n) - n // 2) / n * wide * m + m // 2 for n, m, wide in zip(shape, of, ratio, strict=True))
    rows, columns = np.meshgrid(*along, indexing="ij")
    return rows, columns


def maps_on_grid(
    maps: NDArray[np.complex64], shape: tuple[int, int], ratio: tuple[float, float] = (1.0, 1.0)
) -> NDArray[np.complex64]:
    """Coil maps between their pixels, linearly, and beyond their field of view as at its edge.

    Parameters
    ----------
    maps : complex64 array, shape (coil, row, column)
        Smooth, with pixel ``N // 2`` at the centre.
    shape : (int, int)
        Rows and columns of the new grid.
    ratio : (float, float)
        Field of view of the new grid over that of the maps, along rows and columns.

    Returns
    -------
    complex64 array, shape (coil, *shape)
        With unit root-sum-of-squares wherever there are maps.
    """
    from scipy.ndimage import map_coordinates

    places = places_in(maps.shape[-2:], shape, ratio)
    found = np.stack([map_coordinates(coil, places, order=1, mode="nearest") for coil in maps])
    strength = np.linalg.norm(found, axis=0)
    return np.asarray(found / np.where(strength > 0, strength, 1), dtype=np.complex64)
