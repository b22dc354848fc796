"""Where a scanner samples k-space: spirals that gradients can play, point spread, and the conventions of others.

Trajectories, samples and coil maps to and from the conventions of BART, SigPy and mri-nufft.

| | trajectory | image axes, maps | samples of the image, on even grids |
|---|---|---|---|
| here | (..., 2): ky, kx; cycles per field of view | (ky, kx), (coil, ky, kx) | scaled by 1 / sqrt(N_y N_x) |
| BART | (3, sample, shot): kx, ky, kz; the same unit | (x, y, z, coil); planes x = 1, y, z | equal |
| SigPy | (..., 2) in the order of the image's axes; the same unit | (y, x), (coil, y, x) | equal |
| mri-nufft | (shot, sample, 2) in that order; [-1/2, 1/2] | (y, x), (coil, y, x) | half of ours |

All have the image's origin at N // 2 and the sign exp(-2 pi i k.r). But ``bart nufft`` has another origin on odd grids,
and what it gives for samples less than about 1.3 cycles from the grid's rim is wrong (there its interpolation is cut
off). A radial trajectory of ``bart traj -r`` has no sample at DC but one half a sample to each side (``-c`` has one);
those are its true positions, which come through unchanged. The tests compare every translation with the package itself
where it is installed; this table is that of BART 0.8, SigPy 0.1.27 and mri-nufft 1.5.

Whether a set of samples measures k and -k twice matters because a real image has conjugate symmetric k-space: a sample
at -k adds to the one at k nothing but a second measurement of its noise. A smooth phase that the model knows or has to
learn leaves most of that redundancy. Sets that spend half of their samples on mirror images are weak baselines: an even
number of spirals over the full turn does so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # whose parts are loaded when they are first used
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import (
    InputError,
    number_array,
    positive_number,
    require_allocatable,
    require_counts,
    require_grid,
    require_instance,
    require_numbers,
)
from mri_design.operators.nonuniform import density_weights, sums_at_pixels
from mri_design.operators.trajectory import ROUNDING, checked_trajectory

PROTON = 42.577478461e6
"""gamma / (2 pi) of the proton in Hz/T (CODATA 2022)."""
BROKEN_LIMITS = "gradient amplitude", "gradient slew rate"
"""Fields of `require_playable`'s errors about a limit that a waveform breaks."""
LARGEST_FIELD_OF_VIEW = 1.0
"""Metres: more than any bore, so that a larger number was in other units."""

_MARGIN = 0.99  # of both limits: what stepping along a curve, and playing it in a sequence, may get wrong
_ROUNDING = 1e-9
_MOST_SAMPLES = 1 << 20
_RECEIVER_RASTER = 1e-7
"""Receivers take samples at multiples of it, seconds."""


@dataclass(frozen=True, kw_only=True)
class GradientLimits:
    """Limits of hardware and nerves, in SI units.

    Parameters
    ----------
    amplitude : float
        Largest gradient in T/m.
    slew : float
        Largest slew rate in T/m/s.
    raster : float
        Time between two values of a waveform in s.

    Raises
    ------
    InputError
        For values that are not positive, and for those that only other units explain: amplitudes above 1 T/m (mT/m),
        slew rates above 5000 T/m/s, rasters above 1 ms (microseconds).
    """

    amplitude: float
    slew: float
    raster: float = 10e-6

    def __post_init__(self) -> None:
        for name, most, unit in (("amplitude", 1.0, "T/m"), ("slew", 5e3, "T/m/s"), ("raster", 1e-3, "s")):
            value = positive_number(name, getattr(self, name))
            if value > most:
                raise InputError(name, f"{value:g}", f"{unit}, at most {most:g}", "Use SI units.")


@dataclass(frozen=True)
class PlayedReadout:
    """A shot as it is played.

    Parameters
    ----------
    samples : float64 array, shape (sample, 2)
        Where the receiver samples k-space, (ky, kx) in cycles per field of view, in the middle of each dwell time.
    gradients : float64 array, shape (step, 2)
        Waveform (Gy, Gx) in T/m in the middle of each raster time, and straight in between, as scanners play it. It
        begins from rest and ends where the curve does: what brings the gradients back to zero is left to the sequence.
    dwell, raster : float
        Times in s between two samples and two steps.
    """

    samples: NDArray[np.float64]
    gradients: NDArray[np.float64]
    dwell: float
    raster: float

    @property
    def duration(self) -> float:
        """Length of the waveform in s."""
        return len(self.gradients) * self.raster


def require_playable(gradients: NDArray[np.float64], limits: GradientLimits) -> None:
    """Refuse a waveform that is too strong or changes too fast anywhere, its beginning from rest included.

    Parameters
    ----------
    gradients : float array, shape (step, axis)
        T/m on the raster of ``limits``, one axis or more.
    limits : GradientLimits
        Limits for the lengths of the gradient vectors.

    Raises
    ------
    InputError
        Saying what is broken, by how much and where.
    """
    amplitudes = np.linalg.norm(gradients, axis=1)
    slews = np.linalg.norm(np.diff(gradients, axis=0, prepend=0), axis=1) / limits.raster
    for name, values, most, unit, scale in (
        (BROKEN_LIMITS[0], amplitudes, limits.amplitude, "mT/m", 1e3),
        (BROKEN_LIMITS[1], slews, limits.slew, "T/m/s", 1.0),
    ):
        worst = int(np.argmax(values))
        if values[worst] > most * (1 + _ROUNDING):
            got = f"{scale * values[worst]:.4g} {unit} at {1e3 * worst * limits.raster:.3f} ms"
            cure = "Play it more slowly, or give the limits of a stronger system."
            raise InputError(name, got, f"at most {scale * most:.4g} {unit}", cure)


def fastest_readout(curve: ArrayLike, limits: GradientLimits, *, field_of_view: float) -> PlayedReadout:
    """The quickest way along a curve, from rest, within the limits of amplitude and slew rate.

    Parameters
    ----------
    curve : float array, shape (point, 2)
        Dense polygon of k-space positions, (ky, kx) in cycles per field of view; it fixes where the readout goes, not
        when. Points have to lie closer than the steps of a raster time, by a factor of four or so: the waveform turns
        at the points, and breaks the slew rate there where it has several raster times for one turn.
    limits : GradientLimits
        Of the gradient system.
    field_of_view : float
        Metres.

    Returns
    -------
    PlayedReadout
        Its dwell time is the longest fraction of the raster time, half of it at most, that is a multiple of 100 ns and
        for which neighbouring samples are at most one cycle per field of view apart. Its gradients are the mean ones
        between the curve's positions at the raster times. Samples lie where this
        waveform leads, which is off the curve by slew rate times raster squared over 8 at most (.02 cycles per field of
        view of .24 m, for 150 T/m/s and 10 microseconds), because the waveform cannot turn within a raster time.

    Raises
    ------
    InputError
        For a curve that stands still somewhere, wrong settings, and a waveform that breaks a limit nevertheless (a
        corner of the curve does).

    Notes
    -----
    Along the arc length s the speed v obeys v <= amplitude, v^2 curvature <= slew and, for the rest of the slew rate,
    |d(v^2)/ds| / 2 <= sqrt(slew^2 - curvature^2 v^4). A pass forward from rest and one backward give the largest speed
    everywhere: Lustig, Kim & Pauly, IEEE Trans. Med. Imaging 27(6):866-873, 2008.
    """
    k = checked_trajectory(curve)
    require_instance(GradientLimits, wanted="GradientLimits", limits=limits)
    scale = PROTON * positive_number("field_of_view", field_of_view)
    if field_of_view > LARGEST_FIELD_OF_VIEW:
        wanted = f"at most {LARGEST_FIELD_OF_VIEW:g} m"
        raise InputError("field_of_view", f"{field_of_view:g} m", wanted, "Give metres: 24 cm are 0.24.")
    if k.ndim != 2 or len(k) < 3:
        raise InputError("curve", f"shape {k.shape}", "three or more points (point, 2)")
    lengths = np.linalg.norm(np.diff(k, axis=0), axis=1)
    if not lengths.all():
        raise InputError("curve", "a point that repeats the one before", "points that move on")
    speed, acceleration = _MARGIN * scale * limits.amplitude, _MARGIN * scale * limits.slew
    curvatures = _curvatures(k)
    with np.errstate(over="ignore", divide="ignore"):
        playable = speed**2 > 0 and acceleration > 0 and bool(np.isfinite(curvatures / acceleration).all())
    if not playable:
        got = f"{limits.amplitude:g} T/m and {limits.slew:g} T/m/s over {field_of_view:g} m"
        raise InputError("limits", got, "a system that can move through k-space", "Use SI units.")
    squares = _squared_speeds(lengths, curvatures, speed, acceleration)
    positions = _at_raster_times(k, lengths, np.sqrt(squares), limits.raster)
    gradients = np.diff(positions, axis=0) / (PROTON * limits.raster * field_of_view)
    require_playable(gradients, limits)
    per_step = _samples_per_step(positions, limits.raster)
    samples = _played(np.diff(positions, axis=0), per_step)
    return PlayedReadout(samples, gradients, limits.raster / per_step, limits.raster)


def _played(steps: NDArray[np.float64], per_step: int) -> NDArray[np.float64]:
    """Samples along a waveform from rest that is straight between the middles of its steps.

    Parameters
    ----------
    steps : float array, shape (step, axis)
        Gradients in the middle of each raster time, as cycles per field of view for each raster time.
    per_step : int
        Samples of a raster time; each is taken in the middle of its part.

    Returns
    -------
    float64 array, shape (step * per_step, axis)
    """
    count = len(steps)
    corners = np.concatenate([[0.0], np.arange(count) + 0.5, [count]])
    last = steps[-1] + (steps[-1] - steps[-2]) / 2 if count > 1 else 2 * steps[-1]
    values = np.concatenate([np.zeros((1, steps.shape[1])), steps, [last]])
    lengths = np.diff(corners)[:, None]
    until = np.concatenate([np.zeros((1, steps.shape[1])), np.cumsum(lengths * (values[1:] + values[:-1]) / 2, axis=0)])
    times = (np.arange(count * per_step) + 0.5) / per_step
    piece = np.searchsorted(corners, times, side="right") - 1
    since = (times - corners[piece])[:, None]
    slopes = np.diff(values, axis=0) / lengths
    return np.asarray(until[piece] + since * (values[piece] + since / 2 * slopes[piece]))


def _curvatures(k: NDArray[np.float64]) -> NDArray[np.float64]:
    """One over the radius of the circle through each point and its neighbours; the ends have their neighbours'."""
    before, after, chord = k[1:-1] - k[:-2], k[2:] - k[1:-1], k[2:] - k[:-2]
    doubled_area = np.abs(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0])
    sides = [np.linalg.norm(side, axis=1) for side in (before, after, chord)]
    inside = 2 * doubled_area / np.maximum(sides[0] * sides[1] * sides[2], np.finfo(float).tiny)
    return np.concatenate([inside[:1], inside, inside[-1:]])


def _squared_speeds(
    lengths: NDArray[np.float64], curvatures: NDArray[np.float64], speed: float, acceleration: float
) -> NDArray[np.float64]:
    """Largest v^2 at every point: limited by speed and curvature, rising and falling as the acceleration allows."""
    bends = curvatures / acceleration
    limit = 1 / np.maximum(1 / speed**2, bends)
    doubled, squares, bent = 2 * acceleration * lengths, limit.tolist(), bends.tolist()
    rises = doubled.tolist()
    squares[0] = 0.0
    for i, rise in enumerate(rises):
        most = squares[i] + rise * max(1 - (bent[i] * squares[i]) ** 2, 0.0) ** 0.5
        squares[i + 1] = min(squares[i + 1], most)
    for i in range(len(rises) - 1, -1, -1):
        most = squares[i + 1] + rises[i] * max(1 - (bent[i + 1] * squares[i + 1]) ** 2, 0.0) ** 0.5
        squares[i] = min(squares[i], most)
    return np.array(squares)


def _at_raster_times(
    k: NDArray[np.float64], lengths: NDArray[np.float64], speeds: NDArray[np.float64], raster: float
) -> NDArray[np.float64]:
    """Positions on the polygon at multiples of the raster time; between two points the acceleration is constant."""
    durations = 2 * lengths / (speeds[:-1] + speeds[1:])
    ends = np.concatenate([[0.0], np.cumsum(durations)])
    count = int(ends[-1] / raster) + 1
    if not 2 <= count <= _MOST_SAMPLES:
        cure = "Check the units: metres, seconds, tesla."
        raise InputError("raster", f"{count} raster times along the curve", f"2 to {_MOST_SAMPLES}", cure)
    times = np.arange(count) * raster
    piece = np.clip(np.searchsorted(ends, times, side="right") - 1, 0, len(lengths) - 1)
    since = times - ends[piece]
    gained = since * (speeds[piece] + 0.5 * since * (speeds[piece + 1] - speeds[piece]) / durations[piece])
    share = np.clip(gained / lengths[piece], 0, 1)[:, None]
    return np.asarray((1 - share) * k[piece] + share * k[piece + 1])


def _samples_per_step(positions: NDArray[np.float64], raster: float) -> int:
    least = max(2, int(np.ceil(np.linalg.norm(np.diff(positions, axis=0), axis=1).max())))
    ticks = round(raster / _RECEIVER_RASTER)
    return next((count for count in range(least, ticks + 1) if ticks % count == 0), least)


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
        raise InputError("interleaves", str(interleaves), f"at most half the matrix, {matrix // 2}")
    gap = 1 - (1 - 2 * interleaves / matrix) ** (1 / density)
    if not gap > 0:
        got = f"{matrix} with {interleaves} interleaves of density {density:g}, which have no gap at the rim"
        raise InputError("matrix", got, "interleaves whose turns are apart", "Give a smaller matrix or density.")
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
) -> PlayedReadout:
    """`spiral_curve` as fast as a gradient system can play it.

    Parameters
    ----------
    matrix, turns, density
        As for `spiral_curve`.
    limits : GradientLimits
        Amplitude, slew rate and raster of the system, in SI units, which the waveform has to keep.
    field_of_view : float
        Metres.

    Returns
    -------
    PlayedReadout
        Within the limits. It is made from 1024 points of the curve for each turn, or from twice as many until it keeps
        the slew rate: weak systems have raster times whose steps are shorter than the points are apart.

    Raises
    ------
    InputError
        For wrong settings, more than 4096 turns, and for limits that the waveform would break with four million points,
        too.
    """
    if positive_number("turns", turns) > _MOST_TURNS:
        cure = "Measure more interleaves (md.scan.nyquist_turns)."
        raise InputError("turns", f"{turns:.4g} of one interleaf", f"at most {_MOST_TURNS}", cure)
    points = max(64, int(np.ceil(_POINTS_PER_TURN * turns)))
    while True:
        curve = spiral_curve(matrix, turns, density=density, points=points)
        try:
            return fastest_readout(curve, limits, field_of_view=field_of_view)
        except InputError as refusal:
            points *= 2
            if refusal.field not in BROKEN_LIMITS or points > _MOST_POINTS:
                raise


def conjugate_redundancy(trajectory: ArrayLike) -> float:
    """Share of the cells of k-space that a trajectory visits whose mirror image it visits, too.

    Cells are squares of one cycle per field of view, one of them centred on DC: an object that fills the field of view
    has k-space that changes over that distance.

    1 where everything is measured twice, 0 where nothing is (DC aside). Sets that cover all of k-space have 1 of
    necessity: compare sets of equal numbers of samples.

    Parameters
    ----------
    trajectory : float array, shape (..., 2)
        All samples of a set of shots, in cycles per field of view.

    Raises
    ------
    InputError
        For what is no trajectory.
    """
    k = checked_trajectory(trajectory).reshape(-1, 2)
    # rint rounds halves to even numbers, so that k and -k fall into mirrored cells.
    visited = np.unique(np.rint(k).astype(np.int64), axis=0)
    off_centre = visited[visited.any(axis=1)]
    if not len(off_centre):
        return 0.0
    # Of each cell and its mirror image the larger (ky, kx) counts.
    lower = (off_centre[:, 0] < 0) | ((off_centre[:, 0] == 0) & (off_centre[:, 1] < 0))
    folded = len(np.unique(np.where(lower[:, np.newaxis], -off_centre, off_centre), axis=0))
    return 2 * (1 - folded / len(off_centre))


_NEGLIGIBLE = 1e-9
"""Of the point: what is smaller is no artefact but the error of a transform."""
_AT_ONCE = 4096
"""Samples whose waves are held in memory."""


def point_spread(trajectory: ArrayLike, shape: tuple[int, int]) -> NDArray[np.complex128]:
    """Image of a point in the middle: mean of exp(2 pi i k.r) over the samples, all of which count alike.

    Parameters
    ----------
    trajectory : float array, shape (..., 2)
        Samples, (ky, kx) in cycles per field of view.
    shape : (int, int)
        Grid (ky, kx); the pixels' positions are (n - N // 2) / N fields of view.

    Returns
    -------
    complex128 array, shape (ky, kx)
        1 at the middle. Real where every k has its -k.

    Raises
    ------
    InputError
        For what is no trajectory, and samples beyond the grid.

    Notes
    -----
    A direct sum, as products of two matrices of waves: samples times pixels operations, and memory for the waves of
    some thousand samples at a time.
    """
    rows, columns = require_grid("shape", shape, axes=2)
    flat = checked_trajectory(trajectory, (rows, columns)).reshape(-1, 2)
    y, x = (np.arange(rows) - rows // 2) / rows, (np.arange(columns) - columns // 2) / columns
    spread = np.zeros((rows, columns), dtype=np.complex128)
    for first in range(0, len(flat), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        waves_y = np.exp(2j * np.pi * np.outer(y, flat[some, 0]))
        waves_x = np.exp(2j * np.pi * np.outer(flat[some, 1], x))
        spread += (waves_y / len(flat)) @ waves_x
    return spread


def compensated_spread(
    trajectory: NDArray[np.floating], grid: tuple[int, int], density: NDArray[np.float64] | None = None
) -> NDArray[np.complex128]:
    """`point_spread` (ky, kx) of a trajectory (sample, 2) with `density_weights`, by the fast transform; 1 at its peak.

    Raises
    ------
    InputError
        As `density_weights`.
    """
    weights = density_weights(trajectory, grid, given=density, tolerance=_NEGLIGIBLE)
    return sums_at_pixels(weights / weights.sum(), 2 * np.pi * trajectory / grid, grid).astype(np.complex128)


def spread_of_mask(mask: NDArray[np.bool_]) -> NDArray[np.complex128]:
    """Point-spread function of a mask of lines (ky,) or of samples (ky, kz), of its shape; 1 at the point, ``N // 2``.

    Parameters
    ----------
    mask : bool array
        True where measured, one sample at least; DC at ``N // 2``.
    """
    return np.asarray(np.fft.fftshift(np.fft.ifftn(np.fft.ifftshift(mask))) * (mask.size / np.count_nonzero(mask)))


def decibels(height: float) -> float:
    """A height relative to the point in decibels."""
    return 20 * math.log10(height) if height else -math.inf


def largest_side_lobe(spread: NDArray[np.complexfloating]) -> tuple[float, tuple[int, ...]]:
    """The largest side lobe of a point-spread function: its largest local maximum outside the main lobe.

    Parameters
    ----------
    spread : complex array, shape (y,) or (y, x)
        The point at ``N // 2`` of every axis, which is periodic.

    Returns
    -------
    height : float
        Relative to the peak; 0 without side lobes.
    place : tuple of int
        Pixels from the point.

    Notes
    -----
    A pixel is a local maximum where none of its neighbours, diagonal ones included, is larger. So what the point itself
    spreads over counts as no side lobe, however many pixels these are. Of lobes that are equally high, as those at
    r and -r mostly are, the first one is named.
    """
    size = np.abs(spread)
    middle = tuple(n // 2 for n in size.shape)
    size = size / size[middle]
    around = scipy.ndimage.maximum_filter(size, 3, mode="wrap")
    lobes = np.where((size >= around) & (size > _NEGLIGIBLE), size, 0.0)
    lobes[middle] = 0.0
    highest = np.unravel_index(int(np.argmax(lobes >= lobes.max() - _NEGLIGIBLE)), lobes.shape)
    place = tuple(int(at) - centre for at, centre in zip(highest, middle, strict=True))
    return float(lobes[highest]), place if lobes[highest] else (0,) * size.ndim


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
    wanted = "(sample, 2) or (shot, sample, 2)"
    ky, kx = _axes("trajectory", checked_trajectory(trajectory), 3, wanted, optional=0).T
    return np.stack([kx, ky, np.zeros_like(kx)]).astype(np.complex64)


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
    k = _four_axes("trajectory", trajectory, "BART's (3, sample, shot)", single=3)[..., 0]
    if len(k) != 3 or not k.size:
        raise InputError("trajectory", f"shape {k.shape}", "BART's (3, sample, shot)")
    if np.any(k.imag):
        raise InputError("trajectory", "imaginary parts", "real positions")
    if np.any(k[2]):
        raise InputError("trajectory", "positions with kz", "those of one plane, kz = 0")
    return checked_trajectory(np.stack([k.real[1].T, k.real[0].T], axis=-1))


def to_mri_nufft(trajectory: ArrayLike, shape: tuple[int, int]) -> NDArray[np.float64]:
    """A trajectory in the normalised units of mri-nufft, [-1/2, 1/2]; times 2 pi it is in radians.

    Parameters
    ----------
    trajectory : float array, shape (..., 2)
        Columns (ky, kx) in cycles per field of view.
    shape : (int, int)
        Grid (ky, kx).

    Raises
    ------
    InputError
        For what is no trajectory on that grid.
    """
    return checked_trajectory(trajectory, shape) / np.array(shape, dtype=float)


def from_mri_nufft(samples: ArrayLike, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Normalised positions of mri-nufft as ours.

    Parameters
    ----------
    samples : float array, shape (..., 2)
        In the order of the image's axes, in [-1/2, 1/2].
    shape : (int, int)
        Grid (ky, kx).

    Returns
    -------
    float64 array, shape (..., 2)
        In cycles per field of view. Values that mri-nufft's operators computed are `MRI_NUFFT_SAMPLES` times ours.

    Raises
    ------
    InputError
        For positions outside that range.
    """
    lengths = np.array(require_grid("shape", shape, axes=2), dtype=float)
    k = checked_trajectory(samples)
    if (largest := float(np.abs(k).max())) > 0.5 * (1 + ROUNDING):
        cure = "Divide radians by 2 pi; cycles per field of view need no translation."
        raise InputError("samples", f"values up to {largest:.4g}", "positions in [-1/2, 1/2]", cure)
    return k * lengths


def samples_to_bart(kspace: ArrayLike) -> NDArray[np.complex64]:
    """Non-uniform samples as BART has them: (coil, sample) or (coil, shot, sample) becomes (1, sample, shot, coil).

    Raises
    ------
    InputError
        For other numbers of axes.
    """
    shots = _axes("kspace", kspace, 3, "(coil, sample) or (coil, shot, sample)", optional=1)
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
    return _axes("maps", maps, 3, "(coil, ky, kx)").T[:, :, np.newaxis].astype(np.complex64)


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
    values = _axes("planes", planes, 4, "(x, coil, ky, kz) or (coil, ky, kz)", optional=0)
    return np.moveaxis(values, 1, 3).astype(np.complex64)


def planes_from_bart(planes: ArrayLike) -> NDArray[Any]:
    """BART's (x, ky, kz, coil) as planes of ours, (x, coil, ky, kz); trailing axes may be left out.

    Raises
    ------
    InputError
        For other shapes.
    """
    return np.moveaxis(_four_axes("planes", planes, "BART's (x, ky, kz, coil)"), 3, 1)


def _axes(field: str, array: ArrayLike, count: int, wanted: str, *, optional: int | None = None) -> NDArray[Any]:
    """An array of so many axes; the ``optional`` axis may be missing and then has length 1."""
    values = number_array(field, array)
    if optional is not None and values.ndim == count - 1:
        values = np.expand_dims(values, optional)
    return number_array(field, values, wanted=wanted, shape=(None,) * count)


def _four_axes(field: str, array: ArrayLike, wanted: str, *, single: int | None = None) -> NDArray[Any]:
    """BART's first four axes; further axes, and the ``single`` axis, must have length 1."""
    values = number_array(field, array)
    lengths = [*values.shape, 1, 1, 1, 1]
    alone = single is None or lengths[single] == 1
    if values.ndim < 2 or not alone or int(np.prod(lengths[4:])) != 1:
        raise InputError(field, f"shape {values.shape}", wanted)
    return values.reshape(lengths[:4])
