"""Spiral readouts, played as fast as the limits of gradients allow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import (
    InputError,
    positive_number,
    require_allocatable,
    require_counts,
    require_instance,
    require_numbers,
)
from mri_design.operators.trajectory import checked_trajectory

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
                raise InputError(field=name, got=f"{value:g}", wanted=f"{unit}, at most {most:g}", cure="Use SI units.")


@dataclass(frozen=True)
class Readout:
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

    @property
    def largest_step(self) -> float:
        """Largest distance of neighbouring samples in cycles per field of view; above 1 the readout itself aliases."""
        return float(np.linalg.norm(np.diff(self.samples, axis=0), axis=1).max())


def gradients_of(positions: ArrayLike, *, raster: float, field_of_view: float) -> NDArray[np.float64]:
    """Gradients in T/m that lead from each position to the next in one raster time.

    Parameters
    ----------
    positions : float array, shape (time, 2)
        k-space positions at the raster's times, (ky, kx) in cycles per field of view.
    raster : float
        Seconds.
    field_of_view : float
        Metres.

    Returns
    -------
    float64 array, shape (time - 1, 2)

    Raises
    ------
    InputError
        For fewer than two positions, and times or lengths that are not positive.
    """
    k = checked_trajectory(positions)
    scale = PROTON * positive_number("raster", raster) * positive_number("field_of_view", field_of_view)
    if k.ndim != 2 or len(k) < 2:
        raise InputError(field="positions", got=f"shape {k.shape}", wanted="two or more positions (time, 2)")
    return np.diff(k, axis=0) / scale


def require_playable(gradients: ArrayLike, limits: GradientLimits) -> None:
    """Refuse a waveform that is too strong or changes too fast anywhere, its beginning from rest included.

    Parameters
    ----------
    gradients : float array, shape (step, axis)
        T/m on the raster of ``limits``, one axis or more.
    limits : GradientLimits
        What is allowed; lengths of the vectors are held against it.

    Raises
    ------
    InputError
        Saying what is broken, by how much and where.
    """
    require_instance(GradientLimits, wanted="GradientLimits", limits=limits)
    waveform = np.asarray(gradients, dtype=np.float64)
    if waveform.ndim != 2 or not waveform.size or not np.isfinite(waveform).all():
        raise InputError(field="gradients", got=f"shape {waveform.shape}", wanted="finite numbers (step, axis)")
    amplitudes = np.linalg.norm(waveform, axis=1)
    slews = np.linalg.norm(np.diff(waveform, axis=0, prepend=0), axis=1) / limits.raster
    for name, values, most, unit, scale in (
        (BROKEN_LIMITS[0], amplitudes, limits.amplitude, "mT/m", 1e3),
        (BROKEN_LIMITS[1], slews, limits.slew, "T/m/s", 1.0),
    ):
        worst = int(np.argmax(values))
        if values[worst] > most * (1 + _ROUNDING):
            raise InputError(
                field=name,
                got=f"{scale * values[worst]:.4g} {unit} at {1e3 * worst * limits.raster:.3f} ms",
                wanted=f"at most {scale * most:.4g} {unit}",
                cure="Play it more slowly, or give the limits of a stronger system.",
            )


def fastest_readout(
    curve: ArrayLike, limits: GradientLimits, *, field_of_view: float, dwell: float | None = None
) -> Readout:
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
    dwell : float, optional
        Seconds between samples of the receiver; by default the longest fraction of the raster time, half of it at
        most, that is a multiple of 100 ns and for which neighbouring samples are at most one cycle per field of view
        apart.

    Returns
    -------
    Readout
        Its gradients are the mean ones between the curve's positions at the raster times. Samples lie where this
        waveform leads, which is off the curve by slew rate times raster squared over 8 at most (.02 cycles per field of
        view of .24 m, for 150 T/m/s and 10 microseconds), because the waveform cannot turn within a raster time.

    Raises
    ------
    InputError
        For a curve that stands still somewhere, wrong settings, a dwell time longer than the raster, and a waveform
        that breaks a limit nevertheless (a corner of the curve does).

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
        raise InputError(
            field="field_of_view",
            got=f"{field_of_view:g} m",
            wanted=f"at most {LARGEST_FIELD_OF_VIEW:g} m",
            cure="Give metres: 24 cm are 0.24.",
        )
    if k.ndim != 2 or len(k) < 3:
        raise InputError(field="curve", got=f"shape {k.shape}", wanted="three or more points (point, 2)")
    lengths = np.linalg.norm(np.diff(k, axis=0), axis=1)
    if not lengths.all():
        raise InputError(field="curve", got="a point that repeats the one before", wanted="points that move on")
    speed, acceleration = _MARGIN * scale * limits.amplitude, _MARGIN * scale * limits.slew
    curvatures = _curvatures(k)
    with np.errstate(over="ignore", divide="ignore"):
        playable = speed**2 > 0 and acceleration > 0 and bool(np.isfinite(curvatures / acceleration).all())
    if not playable:
        raise InputError(
            field="limits",
            got=f"{limits.amplitude:g} T/m and {limits.slew:g} T/m/s over {field_of_view:g} m",
            wanted="a system that can move through k-space",
            cure="Use SI units.",
        )
    squares = _squared_speeds(lengths, curvatures, speed, acceleration)
    positions = _at_raster_times(k, lengths, np.sqrt(squares), limits.raster)
    gradients = gradients_of(positions, raster=limits.raster, field_of_view=field_of_view)
    require_playable(gradients, limits)
    per_step = _samples_per_step(positions, limits.raster, dwell)
    samples = _played(np.diff(positions, axis=0), per_step)
    return Readout(samples, gradients, limits.raster / per_step, limits.raster)


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
        raise InputError(
            field="raster",
            got=f"{count} raster times along the curve",
            wanted=f"2 to {_MOST_SAMPLES}",
            cure="Check the units: metres, seconds, tesla.",
        )
    times = np.arange(count) * raster
    piece = np.clip(np.searchsorted(ends, times, side="right") - 1, 0, len(lengths) - 1)
    since = times - ends[piece]
    gained = since * (speeds[piece] + 0.5 * since * (speeds[piece + 1] - speeds[piece]) / durations[piece])
    share = np.clip(gained / lengths[piece], 0, 1)[:, None]
    return np.asarray((1 - share) * k[piece] + share * k[piece + 1])


def _samples_per_step(positions: NDArray[np.float64], raster: float, dwell: float | None) -> int:
    if dwell is None:
        least = max(2, int(np.ceil(np.linalg.norm(np.diff(positions, axis=0), axis=1).max())))
        ticks = round(raster / _RECEIVER_RASTER)
        return next((count for count in range(least, ticks + 1) if ticks % count == 0), least)
    shortest = len(positions) * raster / _MOST_SAMPLES
    if positive_number("dwell", dwell) < shortest:
        raise InputError(field="dwell", got=f"{dwell:g} s", wanted=f"seconds, {shortest:.3g} or more for this curve")
    per_step = round(raster / dwell)
    if per_step < 1 or abs(per_step * dwell - raster) > 1e-6 * raster:
        raise InputError(field="dwell", got=f"{dwell:g} s", wanted=f"a whole fraction of the raster time, {raster:g} s")
    return per_step


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
