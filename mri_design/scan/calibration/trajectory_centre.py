"""Calibration from samples along a trajectory: the centre of k-space on the grid (ACS), and the noise."""

from __future__ import annotations

import math

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.operators.conventions import to_kspace
from mri_design.operators.nonuniform import NonUniformFourier, density_weights
from mri_design.scan.data import KSpaceData, TrajectoryData

_NEAR = 0.75
"""Cycles from any place to the nearest sample up to which samples count as dense: those of a grid are .71 at most."""
_FEWEST = 8
"""Side of the smallest centre from which coil maps are estimated."""
_MARGIN = 4.0
"""Cycles beyond the centre that are gridded with it, so that weights at its edge are right."""
_RIM = 8
"""One part in so many of the samples is the rim, from which the noise is taken."""
_SURE = 4.0
"""Standard deviations of chance by which power must fall towards the rim to be that of signal."""


def dense_centre(data: TrajectoryData, most: int) -> int:
    """Side of the largest square around DC, up to ``most``, in which no place is far from all samples.

    Parameters
    ----------
    data : TrajectoryData
        Whose trajectory is looked at.
    most : int
        Largest side wanted.
    """
    most = min(most, *data.grid_shape)
    offsets = np.arange(0, most, 0.5) - most // 2
    points = np.stack(np.meshgrid(offsets, offsets, indexing="ij"), axis=-1).reshape(-1, 2)
    far = scipy.spatial.cKDTree(data.trajectory).query(points)[0] > _NEAR
    reaching = np.where(points < 0, -2 * points, 2 * points + 1).max(axis=1)  # side of the square that reaches there
    return min(most, int(np.ceil(reaching[far].min(initial=most + 1))) - 1)


def gridded_centre(data: TrajectoryData, most: int) -> KSpaceData:
    """The centre of k-space on the grid, in all coils: what coil maps are estimated from.

    Parameters
    ----------
    data : TrajectoryData
        Dense around DC.
    most : int
        Lines and columns at most.

    Returns
    -------
    KSpaceData
        Zero but for a square around DC, which is made of density-compensated samples.

    Raises
    ------
    InputError
        Where the samples are dense in a square of fewer than eight lines only.
    """
    side = dense_centre(data, most)
    if side < _FEWEST:
        raise InputError(
            field="trajectory",
            got=f"samples that are dense in the {side} central lines and columns only",
            wanted=f"at least {_FEWEST} for coil calibration",
            cure="Give coil maps, or measure the centre more densely.",
        )
    reach = side / 2 + _MARGIN
    near = (np.abs(data.trajectory) <= reach).all(axis=1)
    points = data.trajectory[near]
    weights = density_weights(points, data.grid_shape).astype(np.float32)
    X = NonUniformFourier(points, data.grid_shape)
    images = X.adjoint((weights * data.kspace[..., near])[..., np.newaxis, :])
    spectrum = to_kspace(images)
    inside = np.zeros(data.grid_shape, dtype=bool)
    inside[tuple(slice(n // 2 - side // 2, n // 2 - side // 2 + side) for n in data.grid_shape)] = True
    centre = np.where(inside, spectrum, 0).astype(np.complex64)
    measured: NDArray[np.bool_] = np.any(inside, axis=1)
    return KSpaceData(centre, measured, name=data.name, header=data.header)


def rim_noise_variance(data: TrajectoryData) -> float:
    """Noise variance per real component, from the samples that are farthest from DC; signal in them is included.

    Parameters
    ----------
    data : TrajectoryData
        Of any number of coils.

    Returns
    -------
    float
        Mean over the coils of a median over samples, in units of ``kspace`` squared.

    Raises
    ------
    InputError
        Where these samples are zero.
    """
    scale = float(np.abs(data.kspace).max())
    # The median of an exponential distribution.
    variance = float(_median_powers(data, scale)[0].mean()) / (2 * math.log(2)) * scale**2
    if not (math.isfinite(variance) and variance > 0):
        raise InputError(
            field="noise_variance",
            got="no noise in the outermost samples",
            wanted="measured noise",
            cure="Give noise_variance in the file, or under [noise] in the recipe.",
        )
    return variance


def rim_holds_signal(data: TrajectoryData) -> bool:
    """Whether the samples behind `rim_noise_variance` hold signal: power still falls with the distance from DC there.

    A doubt and no proof: signal that is level over these shells is missed, and one that ends between them is taken for
    signal at the rim.

    Noise is as strong everywhere. So the median power of the outermost samples is held against the largest of the
    three shells further in that have as many, beyond what chance makes of either.
    """
    count = max(len(data.trajectory) // _RIM, 1)
    scale = float(np.abs(data.kspace).max())
    outer, *further = (float(powers.mean()) for powers in _median_powers(data, scale, shells=4))
    # The median of n exponential variates has a relative standard deviation of 1 / (log(2) sqrt(n)).
    chance = math.sqrt(2 / (count * data.n_coils * len(data.kspace))) / math.log(2)
    return max(further) > (1 + _SURE * chance) * outer


def _median_powers(data: TrajectoryData, scale: float, shells: int = 1) -> list[NDArray[np.float64]]:
    """Median power of every coil, over scale^2, of an eighth of the samples each: those farthest from DC, the next."""
    radius = np.hypot(*(data.trajectory / data.grid_shape).T)
    count = max(len(radius) // _RIM, 1)
    inwards = np.argsort(-radius, kind="stable")
    found: list[NDArray[np.float64]] = []
    for shell in range(shells):
        chosen = inwards[shell * count : (shell + 1) * count]
        power = np.abs(data.kspace[..., chosen] / np.float32(scale)).astype(np.float64) ** 2
        found.append(np.median(np.moveaxis(power, 1, 0).reshape(data.n_coils, -1), axis=1))
    return found
