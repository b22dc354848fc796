"""The convention of trajectories in this package, and guesses at that of an array which breaks it.

A trajectory is a real array (..., 2) whose last axis holds (ky, kx) in cycles per field of view: DC is 0, whole numbers
are the samples of the Cartesian grid, and a grid of N samples reaches from -N / 2 to N / 2. A sample of the image u is
sum_r u(r) exp(-2 pi i k.r) / sqrt(N_y N_x) with r = (n - N // 2) / N. `scan.trajectories.exchange` translates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError, number_array, require_grid

Convention = Literal[
    "cycles per field of view",
    "cycles per pixel",
    "radians per pixel",
    "fractions of the largest frequency",
    "cycles per field of view of a larger grid",
    "cycles per metre",
    "radians per metre",
    "swapped columns",
    "coordinates on the first axis",
    "complex kx + i ky",
    "three columns",
    "unknown",
]

_WANTED = "real numbers (..., 2), columns (ky, kx), in cycles per field of view"
ROUNDING = 1e-5  # relative: trajectories come in single precision, too
_METRES = 2.5, 12.0  # reach in units of the grid's: one over fields of view below 0.4 m, 2 pi over those below 0.5 m
_CURES: dict[Convention, str] = {
    "cycles per field of view": "",
    "cycles per pixel": "Multiply the columns by the grid's lengths: md.from_mri_nufft(trajectory, shape).",
    "radians per pixel": "Multiply by the grid's lengths / (2 pi): md.from_mri_nufft(trajectory, shape).",
    "fractions of the largest frequency": "Multiply the columns by half the grid's lengths.",
    "cycles per field of view of a larger grid": "Give the larger grid, or leave out the samples beyond this one.",
    "cycles per metre": "Multiply by the field of view in metres.",
    "radians per metre": "Multiply by the field of view in metres / (2 pi).",
    "swapped columns": "Swap the columns: trajectory[..., ::-1].",
    "coordinates on the first axis": "Use md.from_bart for 3 rows kx, ky, kz; otherwise move the axis to the end.",
    "complex kx + i ky": "Stack the parts: np.stack([k.imag, k.real], axis=-1).",
    "three columns": "Take the two columns of the slice's plane, ky first.",
    "unknown": "",
}


@dataclass(frozen=True)
class Look:
    """What an array of k-space positions looks like.

    Parameters
    ----------
    convention : str
        The likeliest one; "cycles per field of view" is this package's own.
    largest : float
        Largest absolute value of a coordinate.
    cure : str
        How to turn it into this package's convention; empty where nothing is to be done, or nothing is known.
    """

    convention: Convention
    largest: float
    cure: str


def look_of_trajectory(trajectory: ArrayLike, shape: tuple[int, int]) -> Look:
    """Guess from layout and range which convention an array of k-space positions follows.

    Parameters
    ----------
    trajectory : array
        Positions in any layout.
    shape : (int, int)
        Grid (ky, kx) of the image.

    Returns
    -------
    Look
        A guess, for messages. Which column is ky cannot be seen where both reach equally far and the grid is square;
        small trajectories around the centre of k-space look like cycles per pixel.

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
    return Look(kind, largest, _CURES[kind])


def _layout(k: NDArray[Any]) -> Convention | None:
    if np.iscomplexobj(k):
        return "coordinates on the first axis" if len(k) == 3 and not k.imag.any() else "complex kx + i ky"
    if k.ndim and k.shape[-1] == 2:
        return None
    if k.ndim > 1 and k.shape[0] in (2, 3):
        return "coordinates on the first axis"
    return "three columns" if k.ndim and k.shape[-1] == 3 else "unknown"


def _units(k: NDArray[np.float64], lengths: NDArray[np.float64], largest: float) -> Convention:
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
        Grid (ky, kx) that the samples must lie on or between. Without one only layout and finiteness are looked at.

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
    kind = _layout(k) if shape is None else look_of_trajectory(k, shape).convention
    if kind in (None, "cycles per field of view"):
        return k.astype(np.float64)
    got = f"shape {k.shape}, values up to {np.abs(k).max():.4g}"
    raise InputError(
        "trajectory",
        got if kind == "unknown" else f"{got}, which looks like {kind}",
        _WANTED if shape is None else f"{_WANTED}, up to {shape[0] / 2:g} and {shape[1] / 2:g}",
        _CURES[kind or "unknown"],
    )
