"""Spirals from the centre of k-space, denser there if wanted, as bare curves or within the limits of hardware."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, positive_number, require_allocatable, require_counts, require_numbers
from mri_design.scan.trajectories.gradients import BROKEN_LIMITS, GradientLimits, Readout, fastest_readout

_POINTS_PER_TURN = 1024
_MOST_POINTS = 1 << 22
_MOST_TURNS = _MOST_POINTS // _POINTS_PER_TURN
_DENSITIES = 0.01, 100.0
"""Beyond these the spiral is a circle, or a point, in double precision."""


def nyquist_turns(matrix: int, interleaves: int, *, density: float = 1.0) -> float:
    """Turns of one interleaf for which ``interleaves`` of them leave gaps of one cycle per field of view at the rim.

    Parameters
    ----------
    matrix : int
        Side of the square grid.
    interleaves : int
        Those of the whole set; measure every R-th of them for an acceleration of R at the rim, or ask for fewer
        interleaves with the same number of turns.
    density : float
        As for `spiral_curve`: 1 has gaps of one cycle everywhere, larger ones narrower gaps at the centre.

    Raises
    ------
    InputError
        For more interleaves than half the matrix, settings that are not positive, and more turns than numbers can say.

    Notes
    -----
    n = 1 / (1 - (1 - 2 m / N)^(1 / density)): Kim, Adalsteinsson & Spielman, Magn. Reson. Med. 50:214-219, 2003.
    """
    require_counts(least=4, matrix=matrix)
    require_counts(least=1, interleaves=interleaves)
    positive_number("density", density)
    if 2 * interleaves > matrix:
        raise InputError(field="interleaves", got=str(interleaves), wanted=f"at most half the matrix, {matrix // 2}")
    gap = 1 - (1 - 2 * interleaves / matrix) ** (1 / density)
    if not gap > 0:
        raise InputError(
            field="matrix",
            got=f"{matrix} with {interleaves} interleaves of density {density:g}, which have no gap at the rim",
            wanted="interleaves whose turns are apart",
            cure="Give a smaller matrix or density.",
        )
    return float(1 / gap)


def spiral_curve(matrix: int, turns: float, *, density: float = 1.0, points: int) -> NDArray[np.float64]:
    """Points k(t) = matrix / 2 * t^density * exp(2 pi i turns t), t from 0 to 1 in equal steps, along a spiral.

    Parameters
    ----------
    matrix : int
        Side of the square grid; the spiral ends at matrix / 2 cycles per field of view.
    turns : float
        How often it goes around the centre: see `nyquist_turns`.
    density : float
        1 is the spiral of Archimedes, whose turns are equally far apart; above 1 they are closer at the centre (about
        1.5 is good for sparse reconstruction), below 1 at the rim.
    points : int
        How many, both ends included.

    Returns
    -------
    float64 array, shape (point, 2)
        Columns (ky, kx) in cycles per field of view. Equal steps of the angle suit tests and designs, no scanner: see
        `spiral_readout`. `angles.turned` makes the interleaves.

    Raises
    ------
    InputError
        For settings that are not positive, a density below 0.01 or above 100, fewer than two points, or more of them
        than an array may hold.
    """
    require_counts(least=4, matrix=matrix)
    require_counts(least=2, points=points)
    require_allocatable("points", points, 2)
    positive_number("turns", turns)
    require_numbers(least=_DENSITIES[0], most=_DENSITIES[1], density=density)
    t = np.linspace(0, 1, points)
    radius, angle = matrix / 2 * t ** positive_number("density", density), 2 * np.pi * turns * t
    return np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=1)


def spiral_readout(
    matrix: int,
    turns: float,
    limits: GradientLimits,
    *,
    field_of_view: float,
    density: float = 1.0,
    dwell: float | None = None,
) -> Readout:
    """`spiral_curve` as fast as a gradient system can play it.

    Parameters
    ----------
    matrix, turns, density
        As for `spiral_curve`.
    limits : GradientLimits
        Amplitude, slew rate and raster of the system, in SI units; the waveform is held against them.
    field_of_view : float
        Metres.
    dwell : float, optional
        Seconds between samples, a whole fraction of the raster time: see `gradients.fastest_readout`.

    Returns
    -------
    Readout
        Within the limits. It is made from 1024 points of the curve for each turn, or from twice as many until it keeps
        the slew rate: weak systems have raster times whose steps are shorter than the points are apart.

    Raises
    ------
    InputError
        For wrong settings, more than 4096 turns, and for limits that the waveform would break with four million points,
        too.
    """
    if positive_number("turns", turns) > _MOST_TURNS:
        raise InputError(
            field="turns",
            got=f"{turns:.4g} of one interleaf",
            wanted=f"at most {_MOST_TURNS}",
            cure="Measure more interleaves (md.nyquist_turns).",
        )
    points = max(64, int(np.ceil(_POINTS_PER_TURN * turns)))
    while True:
        curve = spiral_curve(matrix, turns, density=density, points=points)
        try:
            return fastest_readout(curve, limits, field_of_view=field_of_view, dwell=dwell)
        except InputError as refusal:
            points *= 2
            if refusal.field not in BROKEN_LIMITS or points > _MOST_POINTS:
                raise
