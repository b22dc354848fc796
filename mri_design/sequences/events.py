"""Sequences and their events: pulses with slice gradients, readouts, spirals; gradient echoes and turbo spin echoes.

A gradient echo has one spoiled readout after each excitation, a turbo spin echo a train of spin echoes; lines come in
any order. The arms of a spiral are played as they were designed, or a whole number of times more slowly. A scanner
takes a waveform's values in the middle of its raster times and goes straight from one to the next. The arms of
`scan.trajectories` are made of such a waveform, so that it can be found again from their samples: it is the quadratic
spline that begins at rest in the centre of k-space and goes through all of them. Played more slowly, its steps last
several raster times, and it still goes exactly through the samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, optional_package
from mri_design.sequences.orders import GridOrder, Order, SpiralOrder, SpokeOrder
from mri_design.sequences.scanner import BEHIND, GAMMA, RASTER, Scanner, SequenceSettings, require_samples

_RECEIVER_RASTER, _PULSE_RASTER = 1e-7, 1e-6
_HEADROOM = 0.99
"""Share of the gradient and slew limits that is used: files hold six digits."""
_SHORTEST_PULSE, _LONGEST_PULSE = 2e-3, 20e-3
TIME_BANDWIDTH = 4.0
"""Duration of a pulse times the bandwidth that it selects."""
_BANDWIDTH_TOLERANCE = 0.1
_DIGITS_ERROR = 2.5e-4
"""Cycles for each field of view that rounding the readout's amplitude to the six digits of a file may add."""
_MOST_STRAIGHT_SAMPLES = 1024
"""Most samples of a straight readout; the six digits of a file hold longer ones too coarsely."""
_STEEPEST_MOMENT = 999_999.0
"""Hz/m: gradients that move in k-space stay below, because six digits become coarse above."""


def on_raster(time: float, raster: float = RASTER) -> float:
    """The first time at or after ``time`` on a raster; what rounding adds does not count."""
    return round(math.ceil(time / raster - 1e-6) * raster, 9)


def _as_written(amplitude: float) -> float:
    """With the six digits that a file has."""
    return float(f"{amplitude:.6g}")


def _rounded_at_its_peak(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A waveform cut off at the next number of six digits below its peak, by which a file scales all of it."""
    peak = float(np.abs(values).max())
    written = _as_written(peak)
    limit = written if written <= peak else _as_written(peak * (1 - 5e-6))
    return np.clip(values, -limit, limit)


@dataclass(frozen=True)
class Block:
    """A slice-selective pulse, or the samples of a readout, with the gradients that are played in the same block.

    Parameters
    ----------
    event : pypulseq event
        The pulse, or the receiver's.
    gradients : tuple of pypulseq events
        One, or two along an arm of a spiral.
    before, after : float
        Seconds from the beginning of the block to the middle of the pulse or to the sample at the centre of k-space
        (the one at ``samples // 2``, or the first one of an arm), and from there to the end.
    area : float
        Of the gradient on either side of the middle of a pulse, or until the centre of a readout, 1/m.
    """

    event: Any
    gradients: tuple[Any, ...]
    before: float
    after: float
    area: float

    @property
    def duration(self) -> float:
        """Seconds, on the raster."""
        return round(self.before + self.after, 9)


class Events:
    """Makes events within a scanner's limits.

    Parameters
    ----------
    scanner : Scanner
        Whose limits hold.
    settings : SequenceSettings
        Geometry and bandwidth.

    Raises
    ------
    MissingPackageError
        Where pypulseq is not installed.
    """

    def __init__(self, scanner: Scanner, settings: SequenceSettings) -> None:
        self.pp = optional_package("pypulseq", "export")
        self.scanner, self.settings = scanner, settings
        self.system = scanner.opts(_HEADROOM)
        self.recorded = scanner.opts()
        """Limits that the sequence is checked against."""

    def trapezoid(self, channel: str, area: float) -> Any:
        """The shortest gradient with an area, 1/m."""
        return self.trapezoids(channel, area)(area)

    def trapezoids(self, channel: str, largest: float) -> Callable[[float], Any]:
        """Gradients of any area up to ``largest`` (1/m), all as long as the largest one."""
        steepest = min(self.system.max_grad, _STEEPEST_MOMENT)
        shape = self.pp.make_trapezoid(
            channel, area=max(abs(largest), 1e-6), max_grad=steepest, max_slew=self.system.max_slew, system=self.system
        )
        effective = shape.flat_time + (shape.rise_time + shape.fall_time) / 2
        return lambda area: self.like(shape, channel, area / effective)

    def like(self, gradient: Any, channel: str, amplitude: float) -> Any:
        """A trapezoid with the times of another one and an amplitude of its own (Hz/m), along any axis."""
        times = {name: getattr(gradient, name) for name in ("rise_time", "flat_time", "fall_time")}
        return self.pp.make_trapezoid(channel, amplitude=_as_written(amplitude), system=self.system, **times)

    def labels(self, **values: int) -> list[Any]:
        """Events that set labels of these names."""
        return [self.pp.make_label(name, "SET", value) for name, value in values.items()]

    def duration(self, *events: Any) -> float:
        """Shortest duration of a block that holds these events, on the raster."""
        return on_raster(max(self.pp.calc_duration(event) for event in events))

    def pulse(self, flip_angle: float, use: str, phase: float = 0.0) -> Block:
        """A slice-selective pulse, so long that it keeps to the limits on B1 and on the slice gradient.

        Parameters
        ----------
        flip_angle : float
            Degrees.
        use : str
            "excitation" or "refocusing".
        phase : float
            Radians.

        Raises
        ------
        InputError
            Where the pulse would be longer than 20 ms, naming the limit that makes it so.
        """
        thickness = self.settings.slice_thickness
        longest_b1 = self._sinc(flip_angle, use, _SHORTEST_PULSE, 0.0, phase)
        peak = float(np.abs(longest_b1.signal).max()) / (_HEADROOM * self.scanner.max_b1 * GAMMA)
        steepest = TIME_BANDWIDTH / (thickness * self.system.max_grad)
        duration = on_raster(max(_SHORTEST_PULSE, _SHORTEST_PULSE * peak, steepest), 2 * RASTER)
        if duration > _LONGEST_PULSE:
            limit, scale, unit, easier = "max_gradient", 1e3, "mT/m", "thicker slice"
            if (by_power := peak * _SHORTEST_PULSE) > steepest:
                limit, scale, unit, easier = "max_b1", 1e6, "uT", "smaller flip angle"
            had = scale * getattr(self.scanner, limit)
            wanted = f"at least {had * max(by_power, steepest) / _LONGEST_PULSE:.3g} {unit} for {flip_angle:g} degrees"
            cure = f"Take a {easier}, or another scanner."
            raise InputError(f"{self.scanner.name}: {limit}", f"{had:g} {unit}", wanted, cure, BEHIND[limit])
        amplitude = _as_written(TIME_BANDWIDTH / duration / thickness)
        gradient = self.pp.make_trapezoid("z", amplitude=amplitude, flat_time=duration, system=self.system)
        delay = on_raster(max(self.scanner.rf_dead_time, gradient.rise_time))
        gradient.delay = round(delay - gradient.rise_time, 9)
        rf = self._sinc(flip_angle, use, duration, delay, phase)
        whole = on_raster(delay + duration + max(self.scanner.rf_ringdown_time, gradient.fall_time))
        before = delay + rf.center
        area = amplitude * (duration + gradient.fall_time) / 2
        return Block(rf, (gradient,), before, round(whole - before, 9), area)

    def _sinc(self, flip_angle: float, use: str, duration: float, delay: float, phase: float) -> Any:
        return self.pp.make_sinc_pulse(
            flip_angle=math.radians(flip_angle),
            duration=duration,
            delay=max(delay, self.scanner.rf_dead_time),
            apodization=0.5,
            time_bw_product=TIME_BANDWIDTH,
            phase_offset=phase,
            system=self.system,
            use=use,
        )

    def readout(self, dwell_raster: float = _RECEIVER_RASTER) -> Block:
        """A readout whose gradient is symmetric about the sample at ``samples // 2``, as far as the rasters allow.

        With a dwell time on a raster of 2 microseconds it is exactly symmetric, as samples begin at whole microseconds.

        Raises
        ------
        InputError
            Where the scanner's gradients are too weak for the bandwidth, naming the limit, the bandwidth cannot be had
            on the raster, or the scanner does not take this number of samples.
        """
        settings, scanner = self.settings, self.scanner
        require_samples(settings.samples, _MOST_STRAIGHT_SAMPLES)
        self._require_divisor()
        dwell = self._dwell(dwell_raster)
        amplitude = _as_written(1 / (dwell * settings.field_of_view[1]))
        if amplitude > self.system.max_grad:
            most = self.system.max_grad * settings.field_of_view[1] / settings.samples
            got, needed = f"{scanner.max_gradient * 1e3:g} mT/m", amplitude / GAMMA / _HEADROOM * 1e3
            wanted = f"at least {needed:.4g} mT/m for {1 / (dwell * settings.samples):.5g} Hz for each pixel"
            cure = f"Take a bandwidth of at most {most:.5g} Hz, larger pixels, or another scanner."
            raise InputError(f"{scanner.name}: max_gradient", got, wanted, cure, BEHIND["max_gradient"])
        rise = on_raster(amplitude / self.system.max_slew)
        first = (settings.samples // 2 + 0.5) * dwell
        longer = max(first, settings.samples * dwell - first)
        half_flat = on_raster(max(longer, scanner.adc_dead_time + longer - rise) + _PULSE_RASTER)
        gradient = self.pp.make_trapezoid(
            *("x", amplitude), flat_time=2 * half_flat, rise_time=rise, fall_time=rise, system=self.system
        )
        delay = round(math.floor((rise + half_flat - first) / _PULSE_RASTER + 1e-6) * _PULSE_RASTER, 9)
        adc = self.pp.make_adc(settings.samples, dwell=dwell, delay=delay, system=self.system)
        centre = delay + first
        return Block(adc, (gradient,), centre, 2 * (rise + half_flat) - centre, amplitude * (centre - rise / 2))

    def along(self, corners: NDArray[np.float64], step: float) -> tuple[Any, Any]:
        """Gradients along x and y that play one of the `played_arms` after the receiver's dead time.

        Steps of an odd number of raster times have their corners in the middle of raster times, where waveforms have
        theirs; those of an even number have them at the ends, where extended trapezoids have theirs.
        """
        times, count = round(step / RASTER), len(corners)
        at = np.concatenate([[0.0], (np.arange(count) + 0.5) * times, [count * times]])
        made = []
        for axis, column in (("x", 1), ("y", 0)):
            values = np.concatenate([[0.0], _rounded_at_its_peak(corners[:, column]), [0.0]])
            if times % 2:
                waveform = np.interp(np.arange(count * times) + 0.5, at, values)
                gradient = self.pp.make_arbitrary_grad(axis, waveform, first=0.0, last=0.0, system=self.recorded)
            else:
                gradient = self.pp.make_extended_trapezoid(
                    axis, amplitudes=values, times=np.round(at * RASTER, 9), system=self.recorded
                )
            gradient.delay = on_raster(self.scanner.adc_dead_time)
            made.append(gradient)
        return made[0], made[1]

    def arm_readout(self, gradients: tuple[Any, Any], dwell: float) -> Block:
        """The samples of an arm, the first of them half a ``dwell`` time after the gradients begin.

        Raises
        ------
        InputError
            Where the scanner does not take this number of samples.
        """
        self._require_divisor()
        delay = gradients[0].delay
        adc = self.pp.make_adc(self.settings.samples, dwell=dwell, delay=delay, system=self.system)
        centre = delay + dwell / 2
        return Block(adc, gradients, centre, self.duration(*gradients, adc) - centre, 0.0)

    def _require_divisor(self) -> None:
        samples, divisor, extent = self.settings.samples, self.scanner.samples_divisor, self.settings.field_of_view[1]
        if samples % divisor:
            counts = (samples // divisor * divisor, (samples // divisor + 1) * divisor)
            some = " or ".join(f"--resolution {extent / n:.7g} ({n} samples)" for n in counts if n >= 4)
            cure = f"Of lines and planes choose {some}; design others anew."
            wanted = f"a multiple of {divisor} on this scanner"
            raise InputError("samples of a readout", str(samples), wanted, cure, ("resolution",))

    def _dwell(self, raster: float) -> float:
        """Seconds between samples: the nearest to the wanted bandwidth for which six digits are exact enough."""
        settings = self.settings
        asked = 1 / (settings.bandwidth * settings.samples)
        steps = range(max(1, math.floor(asked / 2 / raster)), math.ceil(2 * asked / raster) + 1)
        for step in sorted(steps, key=lambda step: abs(math.log(step * raster / asked))):
            amplitude = 1 / (step * raster * settings.field_of_view[1])
            if abs(_as_written(amplitude) / amplitude - 1) * settings.samples / 2 <= _DIGITS_ERROR:
                break
        dwell = round(step * raster, 10)
        found = 1 / (dwell * settings.samples)
        if abs(found / settings.bandwidth - 1) > _BANDWIDTH_TOLERANCE:
            wanted = f"a bandwidth that the receiver can sample with, the nearest of which is {found:.5g} Hz"
            raise InputError("bandwidth", f"{settings.bandwidth:g} Hz", wanted, "Take another one, or field of view.")
        return dwell


LONGEST = 3600.0
"""Seconds that a sequence may take."""


def fill(
    field: str, asked: float, intervals: Sequence[tuple[float, float]], *, share: int = 1, cure: str = ""
) -> list[float]:
    """How long the variable blocks are to be, so that every interval takes the wanted time; on the raster.

    Parameters
    ----------
    field : str
        What the time is, for the message.
    asked : float
        Seconds.
    intervals : sequence of (float, float)
        Spans of time, each of which is to last ``asked / share``: seconds that fixed events take, and seconds that the
        one block of variable length needs at least, on the raster.
    share : int
        How many of them make the time.
    cure : str
        For the message.

    Raises
    ------
    InputError
        Where the time is too short for one of them.
    """
    each = round(asked / share / RASTER) * RASTER
    left = [round(round((each - rest) / RASTER) * RASTER, 9) for rest, _ in intervals]
    if any(time < shortest - RASTER / 2 for time, (_, shortest) in zip(left, intervals, strict=True)):
        least = share * max(on_raster(sum(interval)) for interval in intervals)
        raise InputError(field, f"{asked:g} s", f"{least:.6g} s or more with these settings", cure)
    return left


def require_time(seconds: float) -> None:
    """Refuse a sequence of more than an hour.

    Raises
    ------
    InputError
        Saying how long it would take.
    """
    if seconds > LONGEST:
        raise InputError("repetition time", f"a sequence of {seconds:.0f} s", f"at most {LONGEST:g} s")


_SAMPLES_PER_STEP = (100, 50, 25, 20, 10, 5, 4, 2)
"""Into how many dwell times of whole tenths of a microsecond a step of 10 microseconds can be divided."""
_FIT = 1e-4
"""Cycles for each field of view that samples may lie off the waveform; files keep them in single precision."""


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
    _, per_step, amplitude, slew = _spline(order, field_of_view)
    return per_step / (_slowest(amplitude, slew, scanner) * RASTER * order.samples)


def played_arms(
    order: SpiralOrder, settings: SequenceSettings, scanner: Scanner
) -> tuple[NDArray[np.float64], float, float]:
    """Waveforms that pass through every sample of every arm, at the speed that the bandwidth requires.

    Parameters
    ----------
    order : SpiralOrder
        The arms.
    settings : SequenceSettings
        Its bandwidth is one over the time in which an arm is sampled.
    scanner : Scanner
        Its limits are those of the length of the gradient's vector here, so that arms can be turned.

    Returns
    -------
    corners : float array, shape (arm, corner, 2)
        Gradients (Gy, Gx) in the middle of each step, Hz/m; straight in between, zero at the beginning of the first and
        at the end of the last step. The last corners lead back to zero.
    step : float
        Seconds, a multiple of the raster time.
    dwell : float
        Seconds between samples, the first of which is taken half of it after the beginning.

    Raises
    ------
    InputError
        For arms along which no gradients lead, a bandwidth with which their samples are not at the places of the
        design, and one for which the scanner is too weak, naming the limit and the largest bandwidth that it has.
    """
    designed, per_step, amplitude, slew = _spline(order, settings.field_of_view)
    least, asked, fastest = _slowest(amplitude, slew, scanner), settings.bandwidth, per_step / (RASTER * order.samples)
    times = max(1, round(fastest / asked))
    if times < least:
        name, needed, unit, scale = "max_gradient", amplitude / times, "mT/m", 1e3
        if needed <= scanner.max_gradient:
            name, needed, unit, scale = "max_slew", slew / times**2, "T/m/s", 1.0
        had, wanted = f"{scale * getattr(scanner, name):g} {unit}", f"at least {scale * needed:.4g} {unit}"
        cure = f"Take a bandwidth of at most {fastest / least:.5g} Hz, or another scanner."
        wanted = f"{wanted} for arms of {1e3 / asked:.4g} ms"
        raise InputError(f"{scanner.name}: {name}", had, wanted, cure, BEHIND[name])
    if abs(fastest / times / asked - 1) > _BANDWIDTH_TOLERANCE:
        some = ", ".join(f"{fastest / number:.5g}" for number in range(least, least + 3))
        raise InputError("bandwidth", f"{asked:g} Hz", f"the arms as designed or times more slowly: {some} Hz, ...")
    step, corners = times * RASTER, designed / times
    last = corners[:, -1:]  # from where they come to rest
    count = max(1, int(np.ceil(float(np.linalg.norm(last, axis=2).max()) / GAMMA / (scanner.max_slew * step))))
    ramp = 1 - np.arange(1, count + 1) / count
    rested = np.concatenate([corners, last * ramp[:, np.newaxis]], axis=1)
    return rested, step, round(step / per_step, 10)


def _slowest(amplitude: float, slew: float, scanner: Scanner) -> int:
    """Raster times of a step with which a waveform (T/m, T/m/s) is within the limits."""
    return max(1, int(np.ceil(max(amplitude / scanner.max_gradient, np.sqrt(slew / scanner.max_slew)))))


def _spline(order: SpiralOrder, field_of_view: tuple[float, float]) -> tuple[NDArray[np.float64], int, float, float]:
    """Corners of the waveform through all samples, one step a raster time; samples a step, amplitude, and slew rate."""
    samples = order.arms.transpose(1, 0, 2).reshape(order.samples, -1)
    for per_step in _SAMPLES_PER_STEP:
        if per_step < order.samples:
            through, error = _through(samples, per_step)
            if error <= _FIT:
                break
    else:
        got, wanted = f"samples {error:.2g} cycles off a waveform that begins at rest", f"at most {_FIT:g}"
        raise InputError("trajectory", got, wanted, "Design the spirals anew, or take mri-design export.")
    steps = through.reshape(len(through), order.count, 2).transpose(1, 0, 2)
    corners = steps / RASTER / np.array(field_of_view)
    amplitude = float(np.linalg.norm(corners, axis=2).max()) / GAMMA
    rises = np.diff(corners, axis=1, prepend=-corners[:, :1])  # from zero in half a step
    slew = float(np.linalg.norm(rises, axis=2).max()) / RASTER / GAMMA
    return corners, per_step, amplitude, slew


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


_SPOILER = 2.0
"""Cycles of phase across a pixel of the readout at the end of a repetition."""
_SLICE_SPOILER = 4.0
"""Cycles of phase at the end of a repetition across the slice, or across a partition of a slab."""


Gradients = tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]
"""Of three blocks, which are equally long in all repetitions: between pulse and readout, during it, and after it."""
Repetitions = tuple[Block, Callable[[int | None], Gradients]]
"""The readout of all repetitions; and a function that takes the number of a readout, or None for one that is not
measured, and gives its gradients."""


def encoded_repetitions(events: Events, order: GridOrder, pulse: Block) -> Repetitions:
    """Readouts along x after phase encoding along y and, of a plane, along z.

    Parameters
    ----------
    events : Events
        Scanner and settings; a plane's field of view along kz is the thickness of the slice.
    order : GridOrder
        What is measured.
    pulse : Block
        Of every repetition.
    """
    settings, offsets, readout = events.settings, order.offsets, events.readout()
    rows, partitions = order.matrix
    steps = np.array([1 / settings.field_of_view[0], 1 / settings.slice_thickness])
    farthest = np.array([rows // 2, partitions // 2]) * steps
    encode = events.trapezoids("y", farthest[0])
    prephase = events.trapezoid("x", -readout.area)
    rephase = events.trapezoids("z", pulse.area + farthest[1])
    spoil = events.trapezoid("x", _SPOILER * settings.samples / settings.field_of_view[1])
    spoiler = _SLICE_SPOILER * partitions / settings.slice_thickness
    spoil_slice = events.trapezoids("z", spoiler + farthest[1])

    def make(number: int | None) -> Gradients:
        along_y, along_z = (0.0, 0.0) if number is None else (offsets[number] * steps).tolist()
        before = (prephase, encode(along_y), rephase(along_z - pulse.area))
        return before, readout.gradients, (spoil, encode(-along_y), spoil_slice(spoiler - along_z))

    return readout, make


def spoke_repetitions(events: Events, order: SpokeOrder, pulse: Block) -> Repetitions:
    """Readouts through the centre of k-space at the angles of the spokes.

    The readout gradient is shared out to x and y, as is what comes before it. After it the spoke is rewound, so that
    all repetitions end at the same place, and spoiled along x and across the slice.

    Parameters
    ----------
    events, order, pulse
        As for `encoded_repetitions`; the settings' field of view is that of the readout.
    """
    readout = events.readout()
    (whole,) = readout.gradients
    flat = whole.flat_time + (whole.rise_time + whole.fall_time) / 2
    area_after = whole.amplitude * flat - readout.area
    prephase = {axis: events.trapezoids(axis, readout.area) for axis in "xy"}
    rephase, end = _rewinding(events, pulse, events.settings.samples, area_after)

    def make(number: int | None) -> Gradients:
        angle = order.angles[number or 0]
        shares = ("x", math.cos(angle)), ("y", math.sin(angle))
        during = tuple(events.like(whole, axis, share * whole.amplitude) for axis, share in shares)
        along = {axis: played.amplitude / whole.amplitude for axis, played in zip("xy", during, strict=True)}
        before = (prephase[axis](-exact * readout.area) for axis, exact in along.items())  # as it is written
        return (*before, rephase), during, end(*(0.0 - exact * area_after for exact in along.values()))

    return readout, make


def arm_repetitions(events: Events, order: SpiralOrder, pulse: Block) -> Repetitions:
    """Readouts along arms from the centre of k-space, which are rewound and spoiled as spokes are.

    Parameters
    ----------
    events, order, pulse
        As for `encoded_repetitions`.
    """
    corners, step, dwell = played_arms(order, events.settings, events.scanner)
    areas = step * (corners.sum(axis=1) - corners[:, 0] / 4)
    rephase, end = _rewinding(events, pulse, order.grid[1], float(np.abs(areas).max()))

    def make(number: int | None) -> Gradients:
        along_y, along_x = areas[number or 0].tolist()
        return (rephase,), events.along(corners[number or 0], step), end(-along_x, -along_y)

    return events.arm_readout(events.along(corners[0], step), dwell), make


def _rewinding(
    events: Events, pulse: Block, across: int, largest: float
) -> tuple[Any, Callable[[float, float], tuple[Any, ...]]]:
    """What rephases the slice; and gradients of two areas, along x and y, which rewind, with spoilers of the pixels."""
    spoiler = _SPOILER * across / events.settings.field_of_view[1]
    along_x, along_y = (events.trapezoids(axis, largest + spoiler) for axis in "xy")
    spoil_slice = events.trapezoid("z", _SLICE_SPOILER / events.settings.slice_thickness)
    rephase = events.trapezoid("z", -pulse.area)
    return rephase, lambda x, y: (along_x(spoiler + x), along_y(y), spoil_slice)


_REPETITIONS: dict[type[Order], Callable[..., Repetitions]] = {
    GridOrder: encoded_repetitions,
    SpokeOrder: spoke_repetitions,
    SpiralOrder: arm_repetitions,
}


def gradient_echo(events: Events, order: Order) -> Any:
    """A spoiled gradient-echo sequence.

    Each repetition has four blocks: the pulse; prephasing, phase encoding and rephasing of the slice; the readout;
    spoiling and rewinding of what was encoded. The first block sets all labels to 0, so that they are known from the
    beginning on, also where excitations without measurement come first.

    Parameters
    ----------
    events : Events
        Scanner and settings.
    order : GridOrder, SpokeOrder or SpiralOrder
        What is measured; trains do not matter.

    Returns
    -------
    pypulseq.Sequence

    Raises
    ------
    InputError
        For an echo time or repetition time that is too short, or what `Events` refuses.
    """
    pp, settings = events.pp, events.settings
    pulse = events.pulse(settings.flip_angle, "excitation")
    readout, repetition_of = _REPETITIONS[type(order)](events, order, pulse)
    silent = repetition_of(None)
    echo = (pulse.after + readout.before, events.duration(*silent[0]))
    cure = f"Take a longer echo time, a larger bandwidth or a faster scanner than {events.scanner.name}."
    (before_readout,) = fill("echo time", settings.echo_time, [echo], cure=cure)
    spent = pulse.duration + before_readout + readout.duration
    (after_readout,) = fill("repetition time", settings.repetition_time, [(spent, events.duration(*silent[2]))])
    require_time(settings.repetition_time * (order.count + settings.dummies))

    sequence, labels = pp.Sequence(system=events.recorded), order.labels
    begin = events.labels(**dict.fromkeys(labels, 0))
    for number in range(-settings.dummies, order.count):
        pulse.event.phase_offset = readout.event.phase_offset = settings.spoiling_phase(number + settings.dummies)
        before, during, after = silent if number < 0 else repetition_of(number)
        sequence.add_block(pulse.event, *pulse.gradients, *begin, pp.make_delay(pulse.duration))
        begin = []
        sequence.add_block(*before, pp.make_delay(before_readout))
        named = {name: values[number] for name, values in labels.items()} if number >= 0 else {}
        measured = () if number < 0 else (readout.event, *events.labels(**named))
        sequence.add_block(*during, *measured, pp.make_delay(readout.duration))
        sequence.add_block(*after, pp.make_delay(after_readout))
    return sequence


_CRUSHER = 4.0
"""Cycles of phase across the slice on either side of a refocusing pulse."""
_TRAIN_SPOILER = 8.0
"""Cycles of phase across the slice at the end of a train."""
_SYMMETRIC = 2e-6
"""Raster of the dwell time on which readouts are exactly symmetric."""


def turbo_spin_echo(events: Events, order: GridOrder) -> Any:
    """A turbo spin echo sequence whose echoes meet the conditions of Carr, Purcell, Meiboom and Gill.

    The readout gradient is symmetric about the sample at the centre of k-space, so that odd and even echoes sample the
    same places; every echo's phase encoding is rewound before the next refocusing pulse. Trains that are shorter than
    the longest one have all refocusing pulses, so that the magnetisation is the same in all. The first block sets the
    label to 0.

    Parameters
    ----------
    events : Events
        Scanner and settings.
    order : GridOrder
        Lines, of one partition, and echo trains.

    Returns
    -------
    pypulseq.Sequence

    Raises
    ------
    InputError
        For an echo time or repetition time that is too short, or what `Events` refuses.
    """
    pp, settings = events.pp, events.settings
    excite = events.pulse(90.0, "excitation", phase=math.pi / 2)
    refocus = events.pulse(settings.flip_angle, "refocusing")
    readout = events.readout(_SYMMETRIC)
    step, middle = 1 / settings.field_of_view[0], order.rows // 2
    encode = events.trapezoids("y", step * middle)
    prephase = events.trapezoid("x", readout.area)
    crusher = _CRUSHER / settings.slice_thickness
    crush, rephase = events.trapezoid("z", crusher), events.trapezoid("z", crusher - excite.area)
    spoil = events.trapezoid("z", _TRAIN_SPOILER / settings.slice_thickness)
    between = events.duration(crush, encode(0.0))
    intervals = [
        (excite.after + refocus.before, events.duration(prephase, rephase)),
        (refocus.after + readout.before, between),
        (readout.after + refocus.before, between),
    ]
    cure = f"Take a longer echo time, a larger bandwidth or a faster scanner than {events.scanner.name}."
    first, before, after = fill("echo time", settings.echo_time, intervals, share=2, cure=cure)
    train = refocus.duration + before + readout.duration + after
    spent = excite.duration + first + order.echoes * train
    (last,) = fill("repetition time", settings.repetition_time, [(spent, events.duration(spoil))])
    require_time(settings.repetition_time * (len(order.trains) + settings.dummies))

    sequence = pp.Sequence(system=events.recorded)
    silent: tuple[int, ...] = ()
    begin = events.labels(LIN=0)
    for lines in [*[silent] * settings.dummies, *order.trains]:
        sequence.add_block(excite.event, *excite.gradients, *begin, pp.make_delay(excite.duration))
        begin = []
        sequence.add_block(prephase, rephase, pp.make_delay(first))
        for echo in range(order.echoes):
            line = lines[echo] if echo < len(lines) else None
            area = 0.0 if line is None else step * (line - middle)
            sequence.add_block(refocus.event, *refocus.gradients, pp.make_delay(refocus.duration))
            sequence.add_block(crush, encode(area), pp.make_delay(before))
            measured = () if line is None else (readout.event, *events.labels(LIN=line))
            sequence.add_block(*readout.gradients, *measured, pp.make_delay(readout.duration))
            sequence.add_block(crush, encode(-area), pp.make_delay(after))
        sequence.add_block(spoil, pp.make_delay(last))
    return sequence
