"""The gradients that lead along the arms of a spiral, as they were designed or a whole number of times more slowly.

A scanner takes a waveform's values in the middle of its raster times and goes straight from one to the next. The arms
of `scan.trajectories` are made of just such a waveform, so that it can be found again from their samples: it
is the quadratic spline that begins at rest in the centre of k-space and goes through all of them. Played more slowly,
its steps last several raster times, and it still goes exactly through the samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError
from mri_design.sequences.orders import SpiralOrder
from mri_design.sequences.scanner import GAMMA, RASTER, Scanner, SequenceSettings

_SAMPLES_PER_STEP = (100, 50, 25, 20, 10, 5, 4, 2)
"""Into how many dwell times of whole tenths of a microsecond a step of 10 microseconds can be divided."""
_FIT = 1e-4
"""Cycles for each field of view that samples may lie off the waveform; files keep them in single precision."""
_BANDWIDTH_TOLERANCE = 0.1


@dataclass(frozen=True, eq=False)
class PlayedArms:
    """Waveforms of all arms at one speed.

    Parameters
    ----------
    corners : float array, shape (arm, corner, 2)
        Gradients (Gy, Gx) in the middle of each step, Hz/m; straight in between, zero at the beginning of the first and
        at the end of the last step. The last corners lead back to zero.
    step : float
        Seconds, a multiple of the raster time.
    dwell : float
        Seconds between samples, the first of which is taken half of it after the beginning.
    """

    corners: NDArray[np.float64]
    step: float
    dwell: float

    @property
    def areas(self) -> NDArray[np.float64]:
        """Area of each waveform, (arm, 2), 1/m."""
        return self.step * (self.corners.sum(axis=1) - self.corners[:, 0] / 4)


@dataclass(frozen=True, eq=False)
class _Spline:
    """The waveform through all samples, with one step for each raster time, and how fast it may be played."""

    corners: NDArray[np.float64]
    per_step: int
    samples: int
    amplitude: float
    slew: float
    scanner: Scanner

    @property
    def slowest_needed(self) -> int:
        """Raster times of a step with which the waveform is within the limits."""
        most = self.amplitude / self.scanner.max_gradient, np.sqrt(self.slew / self.scanner.max_slew)
        return max(1, int(np.ceil(max(most))))

    def bandwidth(self, times: int) -> float:
        """Hz for each pixel where a step lasts so many raster times."""
        return self.per_step / (times * RASTER * self.samples)


def largest_bandwidth(order: SpiralOrder, field_of_view: tuple[float, float], scanner: Scanner) -> float:
    """One over the shortest time in which a scanner can sample an arm, Hz.

    Parameters
    ----------
    order : SpiralOrder
        The arms.
    field_of_view : tuple of float
        Along ky and kx, metres.
    scanner : Scanner
        Its limits are those of the length of the gradient's vector here, so that arms can be turned.

    Raises
    ------
    InputError
        For arms along which no gradients lead.
    """
    found = _spline(order, field_of_view, scanner)
    return found.bandwidth(found.slowest_needed)


def played_arms(order: SpiralOrder, settings: SequenceSettings, scanner: Scanner) -> PlayedArms:
    """Waveforms that pass through every sample of every arm, at the speed that the bandwidth asks for.

    Parameters
    ----------
    order : SpiralOrder
        The arms.
    settings : SequenceSettings
        Its bandwidth is one over the time in which an arm is sampled.
    scanner : Scanner
        Its limits are those of the length of the gradient's vector here, so that arms can be turned.

    Raises
    ------
    InputError
        For arms along which no gradients lead, a bandwidth with which their samples are not at the places of the
        design, and one for which the scanner is too weak, naming the limit and the largest bandwidth that it has.
    """
    found = _spline(order, settings.field_of_view, scanner)
    least, asked = found.slowest_needed, settings.bandwidth
    times = max(1, round(found.bandwidth(1) / asked))
    if times < least:
        name, needed, unit, scale = "max_gradient", found.amplitude / times, "mT/m", 1e3
        if needed <= scanner.max_gradient:
            name, needed, unit, scale = "max_slew", found.slew / times**2, "T/m/s", 1.0
        raise InputError(
            f"{scanner.name}: {name}",
            f"{scale * getattr(scanner, name):g} {unit}",
            f"at least {scale * needed:.4g} {unit} for {asked:g} Hz, arms of {1e3 / asked:.4g} ms",
            f"Take a bandwidth of at most {found.bandwidth(least):.5g} Hz, or another scanner.",
        )
    if abs(found.bandwidth(times) / asked - 1) > _BANDWIDTH_TOLERANCE:
        some = ", ".join(f"{found.bandwidth(number):.5g}" for number in range(least, least + 3))
        raise InputError(
            "bandwidth",
            f"{asked:g} Hz",
            f"{some} Hz and so on: arms are played as designed, or a whole number of times more slowly",
        )
    step, corners = times * RASTER, found.corners / times
    last = corners[:, -1:]  # from where they come to rest
    count = max(1, int(np.ceil(float(np.linalg.norm(last, axis=2).max()) / GAMMA / (scanner.max_slew * step))))
    ramp = 1 - np.arange(1, count + 1) / count
    rested = np.concatenate([corners, last * ramp[:, np.newaxis]], axis=1)
    return PlayedArms(rested, step, round(step / found.per_step, 10))


def _spline(order: SpiralOrder, field_of_view: tuple[float, float], scanner: Scanner) -> _Spline:
    samples = order.arms.transpose(1, 0, 2).reshape(order.samples, -1)
    for per_step in _SAMPLES_PER_STEP:
        if per_step < order.samples:
            through, error = _through(samples, per_step)
            if error <= _FIT:
                break
    else:
        raise InputError(
            "trajectory",
            f"samples {error:.2g} cycles for each field of view or more off a waveform that begins at rest",
            f"at most {_FIT:g}: arms that gradients on the raster of {1e6 * RASTER:g} microseconds lead along",
            "Design the spirals anew; mri-design convert takes trajectory.npz to other formats.",
        )
    steps = through.reshape(len(through), order.count, 2).transpose(1, 0, 2)
    corners = steps / RASTER / np.array(field_of_view)
    amplitude = float(np.linalg.norm(corners, axis=2).max()) / GAMMA
    rises = np.diff(corners, axis=1, prepend=-corners[:, :1])  # from zero in half a step
    slew = float(np.linalg.norm(rises, axis=2).max()) / RASTER / GAMMA
    return _Spline(corners, per_step, order.samples, amplitude, slew, scanner)


def _through(samples: NDArray[np.float64], per_step: int) -> tuple[NDArray[np.float64], float]:
    """Slopes of the spline nearest to samples (sample, column) in the middle of each step, (step + 1, column).

    The last one goes on for half a step. Beside them the largest distance of a sample from the spline.
    """
    from scipy.interpolate import BSpline  # here, because the import takes longer than most sequences
    from scipy.sparse.linalg import splu

    times = (np.arange(len(samples)) + 0.5) / per_step
    end = -(-len(samples) // per_step)
    knots = np.concatenate([np.zeros(3), np.arange(end - 1) + 0.5, np.full(3, end)])
    bases = BSpline.design_matrix(times, knots, 2)[:, 2:].tocsc()  # without the two that have a value or slope at zero
    found = splu((bases.T @ bases).tocsc()).solve(bases.T @ samples)
    error = float(np.abs(bases @ found - samples).max())
    spline = BSpline(knots, np.concatenate([np.zeros((2, samples.shape[1])), found]), 2)
    return np.asarray(spline.derivative()(np.arange(end + 1) + 0.5)), error
