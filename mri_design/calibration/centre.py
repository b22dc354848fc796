"""The centre of k-space, which calibration looks at: what of it was measured, and on the grid from any trajectory."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

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
