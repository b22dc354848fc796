"""Trajectories: their convention, guesses at that of an array which breaks it, angles of shots, and radial spokes.

A trajectory is a real array (..., 2) whose last axis holds (ky, kx) in cycles per field of view: DC is 0, whole numbers
are the samples of the Cartesian grid, and a grid of N samples reaches from -N / 2 to N / 2. A sample of the image u is
sum_r u(r) exp(-2 pi i k.r) / sqrt(N_y N_x) with r = (n - N // 2) / N. `scan.trajectories` translates.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import (
    InputError,
    number_array,
    positive_number,
    require_allocatable,
    require_counts,
    require_grid,
)

_WANTED = "real numbers (..., 2), columns (ky, kx), in cycles per field of view"
ROUNDING = 1e-5  # relative: trajectories come in single precision, too
_METRES = 2.5, 12.0  # reach in units of the grid's: one over fields of view below 0.4 m, 2 pi over those below 0.5 m
_CURES = {  # of every convention that is guessed
    "cycles per field of view": "",
    "cycles per pixel": "Multiply the columns by the grid's lengths: md.exchange.from_mri_nufft(trajectory, shape).",
    "radians per pixel": "Multiply by the grid's lengths / (2 pi): md.exchange.from_mri_nufft(trajectory, shape).",
    "fractions of the largest frequency": "Multiply the columns by half the grid's lengths.",
    "cycles per field of view of a larger grid": "Give the larger grid, or leave out the samples beyond this one.",
    "cycles per metre": "Multiply by the field of view in metres.",
    "radians per metre": "Multiply by the field of view in metres / (2 pi).",
    "swapped columns": "Swap the columns: trajectory[..., ::-1].",
    "coordinates on the first axis": "Use md.exchange.from_bart for rows kx, ky, kz; else move the axis to the end.",
    "complex kx + i ky": "Stack the parts: np.stack([k.imag, k.real], axis=-1).",
    "three columns": "Take the two columns of the slice's plane, ky first.",
    "unknown": "",
}


def look_of_trajectory(trajectory: ArrayLike, shape: tuple[int, int]) -> tuple[str, float, str]:
    """Guess from layout and range which convention an array of k-space positions follows.

    Parameters
    ----------
    trajectory : array
        Positions in any layout.
    shape : (int, int)
        Grid (ky, kx) of the image.

    Returns
    -------
    convention : str
        The likeliest one, a guess; "cycles per field of view" is this package's own. Which column is ky cannot be seen
        where both reach equally far and the grid is square; small trajectories around the centre of k-space look like
        cycles per pixel.
    largest : float
        Largest absolute value of a coordinate.
    cure : str
        How to turn it into this package's convention; empty if it is in this convention, or in none that is known.

    Raises
    ------
    InputError
        For anything that is no array of finite numbers, or no grid.
    """
    k = number_array("trajectory", trajectory)
    lengths = np.array(require_grid("shape", shape, axes=2), dtype=float)
    if not k.size or not np.isfinite(k).all():
        raise InputError("trajectory", "no number, NaN or an infinite value", "finite numbers")
    largest = float(max(np.abs(k.real).max(), np.abs(k.imag).max()))
    kind = _layout(k) or _units(k, lengths, largest)
    return kind, largest, _CURES[kind]


def _layout(k: NDArray[Any]) -> str | None:
    if np.iscomplexobj(k):
        return "coordinates on the first axis" if len(k) == 3 and not k.imag.any() else "complex kx + i ky"
    if k.ndim and k.shape[-1] == 2:
        return None
    if k.ndim > 1 and k.shape[0] in (2, 3):
        return "coordinates on the first axis"
    return "three columns" if k.ndim and k.shape[-1] == 3 else "unknown"


def _units(k: NDArray[np.float64], lengths: NDArray[np.float64], largest: float) -> str:
    reach = np.abs(k).reshape(-1, 2).max(axis=0)
    limit, slack = lengths / 2, 1 + ROUNDING
    if largest == 0:
        return "cycles per field of view"
    if largest <= 0.5 * slack:
        return "cycles per pixel"
    if 0.9 < largest <= slack and limit.min() > 2:
        return "fractions of the largest frequency"
    if 0.9 * np.pi < largest <= np.pi * slack and limit.min() > 2 * np.pi:
        return "radians per pixel"
    if (reach <= limit * slack).all():
        return "cycles per field of view"
    if (reach[::-1] <= limit * slack).all():
        return "swapped columns"
    beyond = float((reach / limit).max())
    if beyond < _METRES[0]:
        return "cycles per field of view of a larger grid"
    return "cycles per metre" if beyond < _METRES[1] else "radians per metre"


def checked_samples(trajectory: ArrayLike, shape: tuple[int, int]) -> NDArray[np.float64]:
    """As `checked_trajectory`, for samples in one list: shape (sample, 2).

    Raises
    ------
    InputError
        As `checked_trajectory`, and for samples in more than one axis.
    """
    k = checked_trajectory(trajectory, shape)
    if k.ndim != 2:
        wanted = f"(sample, 2): {k.size // 2} samples in one list"
        raise InputError("trajectory", f"shape {k.shape}", wanted, "trajectory.reshape(-1, 2)")
    return k


def checked_trajectory(trajectory: ArrayLike, shape: tuple[int, int] | None = None) -> NDArray[np.float64]:
    """A trajectory in double precision, refused where it cannot be one in cycles per field of view.

    Parameters
    ----------
    trajectory : float array, shape (..., 2)
        Columns (ky, kx).
    shape : (int, int), optional
        Grid (ky, kx) that the samples must lie on or between. By default only layout and finiteness are checked.

    Returns
    -------
    float64 array, shape (..., 2)

    Raises
    ------
    InputError
        For another layout, no sample, NaN or infinite positions; given a grid, for samples beyond it and for positions
        that fill exactly the range of another unit (half a cycle, one, pi); with the convention that it looks like.
    """
    k = number_array("trajectory", trajectory, wanted=_WANTED)
    if not k.size:
        raise InputError("trajectory", "no sample", _WANTED)
    bad = np.argwhere(~np.isfinite(k))
    if len(bad):
        got = f"{len(bad)} values that are not finite, the first at {tuple(bad[0].tolist())}"
        raise InputError("trajectory", got, _WANTED)
    kind = _layout(k) if shape is None else look_of_trajectory(k, shape)[0]
    if kind in (None, "cycles per field of view"):
        return k.astype(np.float64)
    got = f"shape {k.shape}, values up to {np.abs(k).max():.4g}"
    raise InputError(
        "trajectory",
        got if kind == "unknown" else f"{got}, which looks like {kind}",
        _WANTED if shape is None else f"{_WANTED}, up to {shape[0] / 2:g} and {shape[1] / 2:g}",
        _CURES[kind or "unknown"],
    )


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
        Radians, 0 along +kx, pi / 2 along +ky: see `equispaced_angles` and `golden_angles`. Diameters
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
