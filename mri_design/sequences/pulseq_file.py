"""A Pulseq file: read back and compared with the design block by block, or not made at all."""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, MriDesignError, optional_package, require_counts
from mri_design.sequences.events import TIME_BANDWIDTH, Events, gradient_echo, turbo_spin_echo
from mri_design.sequences.orders import Order
from mri_design.sequences.scanner import GAMMA, Scanner, SequenceSettings

_MOST_LINES = 1024
"""The six digits of a file's amplitudes hold the lines of larger grids too coarsely."""


def pulseq_file(order: Order, settings: SequenceSettings, scanner: Scanner) -> tuple[bytes, Verified]:
    """The Pulseq file of an order of readouts, which plays exactly what was designed.

    It is written to a temporary place, read back and verified. The same request gives the same bytes.

    Parameters
    ----------
    order : Order
        Lines and echo trains, samples of a plane, spokes or arms of spirals; ``gre`` takes them one by one, and ``tse``
        takes lines.
    settings : SequenceSettings
        Geometry and times.
    scanner : Scanner
        Whose limits hold.

    Returns
    -------
    bytes, Verified
        The ``.seq`` file, and what was found when it was read back.

    Raises
    ------
    InputError
        For settings beyond the scanner's limits; names the nearest possible ones.
    SequenceError
        Where the file is not as designed, with the block.
    MissingPackageError
        Where pypulseq is not installed.

    Notes
    -----
    pypulseq 1.5 checks neither gradient amplitude nor slew rate of what it writes; `verify` does.
    """
    if order.matrix is not None:
        require_counts(least=4, most=_MOST_LINES, **{"lines of the grid": order.matrix[0]})
    rows, partitions = order.matrix or (settings.samples, 1)
    if settings.kind == "tse" and (order.matrix is None or partitions > 1):
        raise InputError("sequence", "tse", "gre for planes, spokes and spirals, which have no echo trains")
    along_y, along_x = settings.field_of_view
    definitions = {
        "Name": "lines",
        "FOV": [along_x, along_y, settings.slice_thickness],
        "Matrix": [settings.samples, rows, partitions],
        "TE": settings.echo_time,
        "TR": settings.repetition_time,
        "FlipAngle": settings.flip_angle,
        "EchoTrainLength": order.echoes if settings.kind == "tse" else 1,
        **order.definitions,
        "SliceThickness": settings.slice_thickness,
    }
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")  # pypulseq warns where it changes a requested value
        make: Callable[[Events, Any], Any] = turbo_spin_echo if settings.kind == "tse" else gradient_echo
        sequence = make(Events(scanner, settings), order)
        for key, value in definitions.items():
            sequence.set_definition(key, value)
        path = Path(folder) / "made.seq"
        sequence.write(str(path))
        return path.read_bytes(), verify(path, order, settings, scanner)


LINE_TOLERANCE = 1e-3
"""Cycles for each field of view, or for each slice thickness, that a sample may lie off its place in k-space."""
_TIME_TOLERANCE = 1e-5 + 1e-9
_PULSE_TOLERANCE = 1e-3
"""Share of the flip angle and of the slice thickness, and radians of phase."""
_ROUNDING = 1e-5
"""Share of a limit that rounding to six digits may add."""
_AXES = ("gx", "gy", "gz")


class SequenceError(MriDesignError):
    """A sequence that does not do what it was designed to, and is not kept.

    Parameters
    ----------
    what : str
        What is wrong.
    block : int, optional
        Number of the block of the Pulseq file, counted from 1.
    """

    def __init__(self, what: str, block: int | None = None) -> None:
        self.block = block
        where = "" if block is None else f" in block {block}"
        super().__init__(f"the sequence is not kept, because of a fault{where}: {what}")


def _require(good: Any, what: str, block: int | None = None) -> None:
    if not good:
        raise SequenceError(what, block)


@dataclass(frozen=True, kw_only=True)
class Verified:
    """Facts about a sequence that passed verification.

    Parameters
    ----------
    seconds : float
        Its duration.
    blocks : int
        Of the file.
    largest_error : float
        Largest distance of a sample from its place in k-space, cycles for each field of view.
    gradient : float
        Largest amplitude of a gradient along one axis, T/m.
    slew : float
        Steepest slope of a gradient along one axis, T/m/s.
    b1 : float
        Largest amplitude of a pulse, T.
    echo_time : float
        From the excitation to the centre of the first readout, seconds.
    bandwidth : float
        Hz for each pixel of the readout.
    """

    seconds: float
    blocks: int
    largest_error: float
    gradient: float
    slew: float
    b1: float
    echo_time: float
    bandwidth: float


def verify(path: Path, order: Order, settings: SequenceSettings, scanner: Scanner) -> Verified:
    """Read a Pulseq file and compare everything that it plays with the designed order and settings.

    Checked are the timing, gradient amplitude, slope and continuity on the waveform itself, the peak of pulses, the
    number of readouts and their labels, the place in k-space of every sample, echo and repetition times, flip angles
    and phases.

    Parameters
    ----------
    path : Path
        The file.
    order : Order
        Lines, samples of a plane, spokes or arms of spirals as designed. Along z a plane's field of view is the
        slice's thickness, that of its slab.
    settings : SequenceSettings
        Settings that the file was made with.
    scanner : Scanner
        Whose limits hold.

    Returns
    -------
    Verified

    Raises
    ------
    SequenceError
        With the number of the first block that is wrong.
    MissingPackageError
        Where pypulseq is not installed.

    Notes
    -----
    NOT checked: the specific absorption rate, stimulation of nerves, and gradients after a rotation of the slice; the
    limits are those along the axes. Scanners check these before they play a file.
    """
    played = _read(path, scanner)
    gradient, slew = _check_gradients(played, scanner)
    b1 = _check_pulses(played, order, settings, scanner)
    readouts = [number for number, events in played.block_events.items() if events[5]]
    _check_readouts(played, readouts, order, settings)
    error, echo_time = _check_kspace(played, readouts, order, settings)
    dwell = played.get_block(readouts[0]).adc.dwell
    return Verified(
        seconds=float(sum(played.block_durations.values())),
        blocks=len(played.block_events),
        largest_error=error,
        gradient=gradient,
        slew=slew,
        b1=b1,
        echo_time=echo_time,
        bandwidth=1 / (dwell * settings.samples),
    )


def _read(path: Path, scanner: Scanner) -> Any:
    played = optional_package("pypulseq", "export").Sequence(system=scanner.opts())
    try:
        played.read(str(path))
        for number in played.block_events:
            played.get_block(number)
    except Exception as error:  # whatever pypulseq raises on a damaged file
        raise SequenceError(f"the file cannot be read back ({type(error).__name__}: {error})") from error
    _require(played.block_events, "the file has no blocks")
    _, errors = played.check_timing()
    for first in errors[:1]:
        raise SequenceError(f"the {first.field} of its {first.event} breaks the rule {first.error_type}", first.block)
    return played


def _check_gradients(played: Any, scanner: Scanner) -> tuple[float, float]:
    """Largest amplitude and slope, T/m and T/m/s."""
    largest = steepest = 0.0
    before = dict.fromkeys(_AXES, 0.0)
    for number in played.block_events:
        block, length = played.get_block(number), played.block_durations[number]
        for axis in _AXES:
            gradient = getattr(block, axis)
            times, values = _waveform(gradient, length) if gradient is not None else (np.zeros(1), np.zeros(1))
            values = values / GAMMA
            step, before[axis] = abs(float(values[0]) - before[axis]), float(values[-1])
            _require(step <= _ROUNDING * scanner.max_gradient, f"{axis} jumps by {step * 1e3:.3g} mT/m", number)
            amplitude = float(np.abs(values).max())
            limit = f"{amplitude * 1e3:.4g} mT/m, and {scanner.name} has {scanner.max_gradient * 1e3:g}"
            _require(amplitude <= scanner.max_gradient * (1 + _ROUNDING), f"{axis} reaches {limit}", number)
            with np.errstate(divide="ignore", invalid="ignore"):
                slopes = np.abs(np.diff(values) / np.diff(times))
            slope = float(np.nan_to_num(slopes, nan=0.0, posinf=math.inf).max(initial=0.0))
            limit = f"{slope:.4g} T/m/s, and {scanner.name} allows {scanner.max_slew:g}"
            _require(slope <= scanner.max_slew * (1 + _ROUNDING), f"{axis} changes by {limit}", number)
            largest, steepest = max(largest, amplitude), max(steepest, slope)
    for axis, left in before.items():
        at_rest = abs(left) <= _ROUNDING * scanner.max_gradient
        _require(at_rest, f"{axis} does not end at zero", next(reversed(played.block_events)))
    return largest, steepest


def _waveform(gradient: Any, length: float) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Corners of a gradient in its block: seconds, and Hz/m."""
    if gradient.type == "trap":
        times = np.cumsum([0.0, gradient.rise_time, gradient.flat_time, gradient.fall_time])
        values = gradient.amplitude * np.array([0.0, 1.0, 1.0, 0.0])
    else:
        times, values = np.asarray(gradient.tt), np.asarray(gradient.waveform)
        if times[0] > 0:  # values in the middle of raster times: those of the ends are separate
            times = np.concatenate([[0.0], times, [gradient.shape_dur]])
            values = np.concatenate([[gradient.first], values, [gradient.last]])
    times = times + gradient.delay
    if gradient.delay > 0:
        times, values = np.concatenate([[0.0], times]), np.concatenate([[0.0], values])
    if times[-1] < length - 1e-9:
        times, values = np.concatenate([times, [length]]), np.concatenate([values, [0.0]])
    same = np.concatenate([[False], (np.diff(times) <= 0) & (np.diff(values) == 0)])
    return times[~same], values[~same]


def _check_pulses(played: Any, order: Order, settings: SequenceSettings, scanner: Scanner) -> float:
    """Largest amplitude, T."""
    wanted, largest = _designed_pulses(order, settings), 0.0
    for number in played.block_events:
        block = played.get_block(number)
        rf = block.rf
        if rf is None:
            continue
        peak = float(np.abs(rf.signal).max()) / GAMMA
        limit = f"{peak * 1e6:.3g} uT, and {scanner.name} has {scanner.max_b1 * 1e6:g}"
        _require(peak <= scanner.max_b1 * (1 + _ROUNDING), f"a pulse of {limit}", number)
        largest = max(largest, peak)
        use, angle, phase = next(wanted, ("", 0.0, 0.0))
        _require(rf.use == use, f"a pulse for {rf.use}, where {use or 'none'} was designed", number)
        flip = math.degrees(2 * math.pi * abs(complex(np.sum(rf.signal))) * float(rf.t[1] - rf.t[0]))
        found = f"a pulse of {flip:.4g} degrees, where {angle:g} were designed"
        _require(abs(flip - angle) <= _PULSE_TOLERANCE * angle, found, number)
        found = f"a pulse of phase {rf.phase_offset:.4g}, where {phase:.4g} was designed"
        _require(_same_angle(rf.phase_offset, phase), found, number)
        thickness, designed = _selected(rf, block.gz), settings.slice_thickness
        found = f"a pulse that selects {thickness * 1e3:.4g} mm, where {designed * 1e3:g} mm were designed"
        _require(abs(thickness / designed - 1) <= _PULSE_TOLERANCE, found, number)  # not so of NaN
    _require(next(wanted, None) is None, "pulses are missing", next(reversed(played.block_events)))
    return largest


def _selected(rf: Any, gradient: Any) -> float:
    """Thickness of the slice that a pulse selects, metres; NaN where the gradient changes during the pulse."""
    if gradient is None or gradient.type != "trap" or gradient.amplitude == 0:
        return math.nan
    begin, end = rf.delay, rf.delay + rf.shape_dur
    flat = gradient.delay + gradient.rise_time
    if flat > begin + 1e-9 or flat + gradient.flat_time < end - 1e-9:
        return math.nan
    return float(TIME_BANDWIDTH / rf.shape_dur / gradient.amplitude)


def _designed_pulses(order: Order, settings: SequenceSettings) -> Iterator[tuple[str, float, float]]:
    """Use, flip angle in degrees and phase in radians of every RF pulse that the sequence must play, in order."""
    if settings.kind == "gre":
        for number in range(settings.dummies + order.count):
            yield "excitation", settings.flip_angle, settings.spoiling_phase(number)
        return
    for _ in range(settings.dummies + len(order.train_lengths)):
        yield "excitation", 90.0, math.pi / 2
        for _ in range(order.echoes):
            yield "refocusing", settings.flip_angle, 0.0


def _same_angle(found: float, wanted: float) -> bool:
    return abs(math.remainder(found - wanted, 2 * math.pi)) <= _PULSE_TOLERANCE


def _check_readouts(played: Any, readouts: list[int], order: Order, settings: SequenceSettings) -> None:
    last = readouts[-1] if readouts else None
    _require(len(readouts) == order.count, f"{len(readouts)} readouts, where {order.count} were designed", last)
    began = {
        label.label: label.value for label in (played.get_block(next(iter(played.block_events))).label or {}).values()
    }
    found = f"labels that begin as {began}, where {', '.join(order.labels)} begin with 0"
    _require(began == dict.fromkeys(order.labels, 0), found, 1)
    played_labels = played.evaluate_labels(evolution="adc")
    for name, wanted in order.labels.items():
        values = np.asarray(played_labels.get(name, np.full(len(readouts), -1)))
        for index in np.flatnonzero(values != np.asarray(wanted))[:1]:
            what = f"the label {name} {int(values[index])}, where {order.described(index)} was designed"
            raise SequenceError(what, readouts[index])
    for index, number in enumerate(readouts):
        adc = played.get_block(number).adc
        found = f"{adc.num_samples} samples, where {settings.samples} were designed"
        _require(adc.num_samples == settings.samples, found, number)
        phase = settings.spoiling_phase(settings.dummies + index) if settings.kind == "gre" else 0.0
        same = _same_angle(adc.phase_offset, phase) and not adc.freq_offset
        _require(same, "a receiver phase or frequency other than that of the pulse", number)


def _check_kspace(played: Any, readouts: list[int], order: Order, settings: SequenceSettings) -> tuple[float, float]:
    """Largest error in k-space, cycles for each field of view, and the first echo's time in seconds."""
    try:
        trajectory, _, excitations, _, times = played.calculate_kspace()
    except Exception as error:  # pypulseq raises warnings, too
        raise SequenceError(f"its k-space cannot be computed ({type(error).__name__}: {error})") from error
    along_y, along_x = settings.field_of_view
    scale = np.array([along_x, along_y, settings.slice_thickness])[:, np.newaxis, np.newaxis]
    found = np.asarray(trajectory).reshape(3, len(readouts), settings.samples) * scale
    wanted = order.places(settings.samples)
    distance = np.abs(found - wanted).max(axis=2)
    for axis, readout in np.argwhere(~(distance <= LINE_TOLERANCE)):
        off = f"{distance[axis, readout]:.3g} cycles for each field of view off its place along {'xyz'[axis]}"
        raise SequenceError(f"{order.described(readout)} is measured {off}", readouts[readout])
    centres = np.asarray(times).reshape(len(readouts), settings.samples)[:, order.centre(settings.samples)]
    for first, second in pairwise(np.asarray(excitations)):
        if abs(second - first - settings.repetition_time) > _TIME_TOLERANCE:
            took = f"{second - first:.6g} s between excitations, where {settings.repetition_time:g} were designed"
            raise SequenceError(took, next((n for n, at in zip(readouts, centres, strict=True) if at > first), None))
    lengths = order.train_lengths if settings.kind == "tse" else [1] * order.count
    places = [(train, echo) for train, length in enumerate(lengths) for echo in range(1, length + 1)]
    for number, at, (train, echo) in zip(readouts, centres, places, strict=True):
        after, designed = at - excitations[settings.dummies + train], echo * settings.echo_time
        late = f"echo {echo} after {after:.6g} s, designed for {designed:g}"
        _require(abs(after - designed) <= echo * _TIME_TOLERANCE, late, number)
    return float(distance.max()), float(centres[0] - excitations[settings.dummies])
