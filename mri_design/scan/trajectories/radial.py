"""Radial spokes, and the angles by which shots are turned: equispaced ones, and those of the golden ratio."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError, number_array, positive_number, require_allocatable, require_counts
from mri_design.operators.trajectory import checked_trajectory

Spread = Literal["half-turn", "full-turn", "one-missing"]
"""Equispaced over pi; over 2 pi; or over 2 pi with one more angle than shots, which is left out."""

GOLDEN_RATIO = (1 + np.sqrt(5)) / 2


def equispaced_angles(count: int, *, turn: float = np.pi) -> NDArray[np.float64]:
    """0, turn / count, 2 turn / count, ...: ``count`` angles in radians.

    Parameters
    ----------
    count : int
        Number of shots.
    turn : float
        What they share: pi for diameters. Over 2 pi an odd number of diameters is the same set as over pi, and an even
        number has every diameter twice.

    Raises
    ------
    InputError
        For no shot, more than an array may hold, or a turn that is not positive and finite.
    """
    require_counts(least=1, count=count)
    require_allocatable("count", count)
    return np.asarray(np.arange(count) * (positive_number("turn", turn) / count), dtype=np.float64)


def golden_angles(count: int, *, tiny: int = 1, turn: float = np.pi) -> NDArray[np.float64]:
    """Multiples of the (tiny) golden angle turn / (tau + tiny - 1), tau the golden ratio: any run of them is even.

    Parameters
    ----------
    count : int
        Number of shots; the angles are not wrapped, because the direction of a readout matters to a scanner.
    tiny : int
        1 is the golden angle (111.25 degrees of half a turn), larger numbers step less far: 68.75, 49.75, 39.0, 32.0,
        27.2, 23.6 degrees. Small steps calm eddy currents in steady states.
    turn : float
        pi for diameters, 2 pi for arms.

    Raises
    ------
    InputError
        For no shot, more than an array may hold, a ``tiny`` below 1, or a turn that is not positive and finite.

    Notes
    -----
    Winkelmann, Schaeffter, Koehler, Eggers & Doessel, IEEE Trans. Med. Imaging 26(1):68-76, 2007; Wundrak, Paul,
    Ulrici, Hell & Rasche, IEEE Trans. Med. Imaging 34(6):1262-1269, 2015.
    """
    require_counts(least=1, count=count, tiny=tiny)
    require_allocatable("count", count)
    step = positive_number("turn", turn) / (GOLDEN_RATIO + tiny - 1)
    return np.asarray(np.arange(count) * step, dtype=np.float64)


def interleaf_angles(count: int, spread: Spread = "half-turn") -> NDArray[np.float64]:
    """Equispaced rotations of ``count`` arms in radians.

    Parameters
    ----------
    count : int
        Number of arms.
    spread : {"half-turn", "full-turn", "one-missing"}
        Steps of pi / count, of 2 pi / count, or of 2 pi / (count + 1). Over the full turn an even number of arms
        measures k and -k twice; half a turn, or an odd number, puts the mirror images between the arms, and so does
        "one-missing" of an even number.

    Raises
    ------
    InputError
        For no arm or an unknown spread.
    """
    require_counts(least=1, count=count)
    if spread == "half-turn":
        return equispaced_angles(count)
    if spread == "full-turn":
        return equispaced_angles(count, turn=2 * np.pi)
    if spread == "one-missing":
        return equispaced_angles(count + 1, turn=2 * np.pi)[:count]
    raise InputError(field="spread", got=repr(spread), wanted=" or ".join(get_args(Spread)))


def turned(shot: ArrayLike, angles: ArrayLike) -> NDArray[np.float64]:
    """One shot turned by each angle, from +kx towards +ky.

    Parameters
    ----------
    shot : float array, shape (sample, 2)
        Columns (ky, kx) of a square grid. For another grid with pixels of the same size multiply the columns of the
        result by its lengths over the square's.
    angles : float array, shape (shot,)
        Radians.

    Returns
    -------
    float64 array, shape (shot, sample, 2)

    Raises
    ------
    InputError
        For a shot of another shape, angles that are not finite numbers, or more samples than an array may hold.
    """
    one = checked_trajectory(shot)
    if one.ndim != 2:
        raise InputError(field="shot", got=f"shape {one.shape}", wanted="one shot (sample, 2)")
    theta = number_array("angles", angles, wanted="finite numbers (shot,)")
    if theta.ndim != 1 or np.iscomplexobj(theta) or not np.isfinite(theta).all():
        raise InputError(field="angles", got=f"shape {theta.shape}", wanted="finite numbers (shot,)")
    require_allocatable("angles", len(theta), *one.shape, cure="Take fewer angles, or fewer samples of the shot.")
    cosine, sine = np.cos(theta)[:, None], np.sin(theta)[:, None]
    ky, kx = one[:, 0], one[:, 1]
    return np.stack([cosine * ky + sine * kx, cosine * kx - sine * ky], axis=-1)


def radial_spokes(
    matrix: int, angles: ArrayLike, *, oversampling: int = 1, centre_out: bool = False
) -> NDArray[np.float64]:
    """Spokes at the given angles, their samples 1 / oversampling cycles per field of view apart.

    Parameters
    ----------
    matrix : int
        Side of the square grid; spokes reach to matrix / 2 cycles per field of view.
    angles : float array, shape (spoke,)
        Radians, 0 along +kx, pi / 2 along +ky: see `angles.equispaced_angles` and `angles.golden_angles`. Diameters
        fill half a turn, spokes from the centre a full one.
    oversampling : int
        Samples per cycle along the readout; scanners take 2.
    centre_out : bool
        Begin every spoke at DC, with half as many samples.

    Returns
    -------
    float64 array, shape (spoke, sample, 2)
        Columns (ky, kx) in cycles per field of view. A diameter has ``matrix * oversampling`` samples with DC at half
        of them, as the grid has: it measures -matrix / 2 and not + matrix / 2.

    Raises
    ------
    InputError
        For a matrix below 4, more samples than an array may hold, no oversampling of 1 or more, or angles that are not
        finite numbers.
    """
    require_counts(least=4, matrix=matrix)
    require_counts(least=1, oversampling=oversampling)
    if not isinstance(centre_out, bool):
        raise InputError(field="centre_out", got=repr(centre_out), wanted="true or false")
    require_allocatable("matrix", matrix, oversampling)
    count = matrix * oversampling
    along = np.arange((count + 1) // 2) if centre_out else np.arange(count) - count // 2
    return turned(np.stack([np.zeros(len(along)), along / oversampling], axis=1), angles)
