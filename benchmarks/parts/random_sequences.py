"""Random orders, geometries, planes, spokes and arms of spirals that a scanner can play, and requests that none can."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mri_design.errors import InputError
from mri_design.operators.trajectory import turned
from mri_design.scan.trajectories import GradientLimits, nyquist_turns, spiral_readout
from mri_design.sequences.events import largest_bandwidth
from mri_design.sequences.orders import GridOrder, Order, SpiralOrder, SpokeOrder
from mri_design.sequences.pulseq_file import pulseq_file, verify
from mri_design.sequences.scanner import GAMMA, Scanner, SequenceSettings, load_scanner, shipped_scanners

Rng = np.random.Generator
_SLOW, _FAST = 60.0, 600.0
"""Hz for each pixel."""


@dataclass(frozen=True)
class Sequence:
    """A request.

    Parameters
    ----------
    order : Order
        What is measured.
    settings : SequenceSettings
        Geometry and times, which can be had.
    scanner : Scanner
        Whose limits hold.
    """

    order: Order
    settings: SequenceSettings
    scanner: Scanner

    def content(self) -> bytes:
        """The file."""
        return pulseq_file(self.order, self.settings, self.scanner)[0]

    def least(self, field: str) -> float:
        """The shortest echo or repetition time, as the refusal of a shorter one names it."""
        shorter = {"echo_time": 0.0005} if field == "echo time" else {"repetition_time": 0.001}
        try:
            replace(self, settings=replace(self.settings, **shorter)).content()
        except InputError as refusal:
            if refusal.field == field:
                return float(refusal.wanted.split()[0])
            raise
        raise ValueError(f"{shorter} is no impossible {field}")


def random_sequence(rng: Rng, largest: int) -> Sequence:
    """Everything at random: kind, matrix, field of view, lines, order, trains, times, flip angle, bandwidth, scanner.

    Draws whose bandwidth the receiver's raster cannot give are replaced by others.

    Parameters
    ----------
    rng : numpy.random.Generator
        For all of it.
    largest : int
        Of the matrix.
    """
    while True:
        try:
            return _drawn(rng, largest)
        except InputError as refusal:
            if refusal.field != "bandwidth":
                raise


def _drawn(rng: Rng, largest: int) -> Sequence:
    scanner = load_scanner(str(rng.choice(list(shipped_scanners()))))
    n_lines = int(rng.integers(4, largest + 1))
    samples = int(rng.integers(8, largest + 1)) // scanner.samples_divisor * scanner.samples_divisor
    extents = float(rng.uniform(0.1, 0.5)), float(rng.uniform(0.1, 0.5))
    fastest = min(_FAST, 0.95 * scanner.max_gradient * GAMMA * extents[1] / samples)
    lines = rng.permutation(n_lines)[: int(rng.integers(1, n_lines + 1))].tolist()
    if rng.random() < 0.3:
        lines.sort()
    echoes = int(rng.integers(1, 17))
    order = GridOrder(tuple(tuple(lines[i : i + echoes]) for i in range(0, len(lines), echoes)), n_lines)
    kind = "gre" if rng.random() < 0.5 else "tse"
    settings = SequenceSettings(
        kind=kind,  # type: ignore[arg-type]
        field_of_view=extents,
        samples=samples,
        echo_time=0.9,
        repetition_time=50.0,
        flip_angle=float(rng.uniform(2, 60) if kind == "gre" else rng.uniform(90, 180)),
        bandwidth=float(rng.uniform(_SLOW, max(fastest, _SLOW * 1.01))),
        slice_thickness=float(rng.uniform(0.002, 0.02)),
        dummies=int(rng.integers(0, 4)),
        rf_spoiling=float(rng.choice([0.0, 50.0, 117.0, 123.0])),
    )
    return timed(Sequence(order, settings, scanner), rng)


def timed(drawn: Sequence, rng: Rng) -> Sequence:
    """A request with an echo and a repetition time that are some multiple of the shortest ones.

    Parameters
    ----------
    drawn : Sequence
        With times that are long enough.
    rng : numpy.random.Generator
        For the multiples.
    """
    echo = min(drawn.least("echo time") * float(rng.uniform(1, 2)), 0.9)
    drawn = replace(drawn, settings=replace(drawn.settings, echo_time=echo))
    repetition = drawn.least("repetition time") * float(rng.uniform(1, 3))
    return replace(drawn, settings=replace(drawn.settings, repetition_time=repetition))


def with_settings(one: Sequence, **changed: object) -> bytes:
    return replace(one, settings=replace(one.settings, **changed)).content()


def _with_train(one: Sequence, train: Callable[[GridOrder], tuple[int, ...]]) -> bytes:
    assert isinstance(one.order, GridOrder)
    return replace(one, order=GridOrder((*one.order.trains, train(one.order)), one.order.rows)).content()


def tampered(one: Sequence, folder: Path, change: Callable[[str], str]) -> bytes:
    """The file with its text changed, and then verified as every file is."""
    path = folder / "changed.seq"
    path.write_text(change(one.content().decode()))
    verify(path, one.order, one.settings, one.scanner)
    return path.read_bytes()


def _scaled(row: int, factor: float) -> Callable[[str], str]:
    """One gradient of the table of trapezoids scaled."""

    def change(text: str) -> str:
        begin = text.index("[TRAP]\n") + len("[TRAP]\n")
        rows = text[begin:].split("\n")
        words = rows[row].split()
        words[1] = f"{factor * float(words[1]):.6g}"
        rows[row] = " ".join(words)
        return text[:begin] + "\n".join(rows)

    return change


def _relabelled(text: str) -> str:
    begin = text.index("extension LABELSET")
    rows = text[begin:].split("\n")
    place = 2 if len(rows[2].split()) == 3 else 1  # behind the label with which a file begins, where there is another
    number, line, name = rows[place].split()
    rows[place] = f"{number} {int(line) + 1} {name}"
    return text[:begin] + "\n".join(rows)


IMPOSSIBLE: Mapping[str, Callable[[Sequence, Rng, Path], bytes]] = {
    "an echo time that is too short": lambda one, rng, _: with_settings(
        one, echo_time=max(one.least("echo time") * float(rng.uniform(0.3, 0.98)), 0.0005)
    ),
    "a repetition time that is too short": lambda one, rng, _: with_settings(
        one, repetition_time=one.least("repetition time") * float(rng.uniform(0.3, 0.98))
    ),
    "a bandwidth beyond the gradients": lambda one, rng, _: with_settings(
        one,
        bandwidth=float(rng.uniform(1.2, 3))
        * one.scanner.max_gradient
        * GAMMA
        / one.settings.samples
        * one.settings.field_of_view[1],
    ),
    "a transmitter that is too weak": lambda one, _, __: with_settings(
        replace(one, scanner=replace(one.scanner, max_b1=1e-7)), flip_angle=90.0
    ),
    "a line off the grid": lambda one, rng, _: _with_train(one, lambda order: (order.rows + int(rng.integers(0, 5)),)),
    "a line twice": lambda one, rng, _: _with_train(one, lambda order: (int(rng.choice(order.numbers)),)),
    "millimetres for metres": lambda one, _, __: with_settings(
        one, field_of_view=tuple(1e3 * extent for extent in one.settings.field_of_view)
    ),
    "more than an hour": lambda one, _, __: with_settings(one, repetition_time=50.0, dummies=100),
    "a written gradient that is changed": lambda one, rng, folder: tampered(
        one, folder, _scaled(int(rng.integers(0, 2)), float(rng.choice([0.99, 1.01, -1.0, 4.0])))
    ),
    "a written label that is changed": lambda one, _, folder: tampered(one, folder, _relabelled),
}
"""Requests, and files, that must be refused, by what is wrong with them."""
GENERAL = (
    "an echo time that is too short",
    "a repetition time that is too short",
    "millimetres for metres",
    "more than an hour",
    "a written gradient that is changed",
    "a written label that is changed",
)
"""Those that have a sense for any order."""


_SLOW, _FAST = 60.0, 600.0
"""Hz for each pixel of straight readouts."""
_MOST_SHOTS = 48


def random_shots(encoding: str, rng: Rng, largest: int) -> Sequence:
    """Everything at random: matrix, field of view, places, times, flip angle, bandwidth, scanner.

    Draws whose bandwidth the receiver's raster cannot give are replaced by others.

    Parameters
    ----------
    encoding : str
        One of `ENCODINGS`.
    rng : numpy.random.Generator
        For all of it.
    largest : int
        Of the matrix.
    """
    while True:
        scanner = load_scanner(str(rng.choice(list(shipped_scanners()))))
        try:
            return timed(Sequence(*ENCODINGS[encoding](scanner, rng, largest), scanner), rng)
        except InputError as refusal:
            if refusal.field != "bandwidth":
                raise


def _plane(scanner: Scanner, rng: Rng, largest: int) -> tuple[Order, SequenceSettings]:
    rows, columns = (int(side) for side in rng.integers(4, largest + 1, 2))
    chosen = rng.permutation(rows * columns)[: int(rng.integers(1, _MOST_SHOTS + 1))]
    order = GridOrder.in_trains(chosen.tolist(), 1, rows, columns)
    extents = float(rng.uniform(0.1, 0.5)), float(rng.uniform(0.1, 0.5))
    samples = int(rng.integers(8, largest + 1)) // scanner.samples_divisor * scanner.samples_divisor
    return order, _settings(rng, extents, samples, _bandwidth(scanner, rng, extents[1], samples), (0.03, 0.25))


def _spokes(scanner: Scanner, rng: Rng, largest: int) -> tuple[Order, SequenceSettings]:
    angles = rng.uniform(-2 * np.pi, 2 * np.pi, int(rng.integers(1, _MOST_SHOTS + 1)))
    order = SpokeOrder(tuple(angles.tolist()), int(rng.integers(1, 3)))
    extent = float(rng.uniform(0.1, 0.5)) * order.oversampling
    samples = int(rng.integers(8, largest + 1)) // scanner.samples_divisor * scanner.samples_divisor
    return order, _settings(rng, (extent, extent), samples, _bandwidth(scanner, rng, extent, samples), (0.002, 0.02))


def _spirals(scanner: Scanner, rng: Rng, largest: int) -> tuple[Order, SequenceSettings]:
    """Designed for other limits than the scanner's, with which they are played more slowly where they have to be."""
    matrix = int(rng.integers(12, largest + 1))
    extent, density = float(rng.uniform(0.1, 0.5)), float(rng.uniform(1.0, 2.0))
    limits = GradientLimits(amplitude=float(rng.uniform(0.015, 0.08)), slew=float(rng.uniform(50, 200)))
    turns = nyquist_turns(matrix, int(rng.integers(max(2, matrix // 16), matrix // 2)), density=density)
    arm = spiral_readout(matrix, turns, limits, field_of_view=extent, density=density).samples
    arm = arm[: len(arm) // scanner.samples_divisor * scanner.samples_divisor]
    angles = rng.uniform(0, 2 * np.pi, int(rng.integers(1, _MOST_SHOTS // 4 + 1)))
    order = SpiralOrder(turned(arm, angles).astype(np.float32).astype(np.float64), (matrix, matrix))
    bandwidth = largest_bandwidth(order, (extent, extent), scanner) / int(rng.integers(1, 4))
    return order, _settings(rng, (extent, extent), order.samples, bandwidth, (0.002, 0.02))


def _bandwidth(scanner: Scanner, rng: Rng, extent: float, samples: int) -> float:
    fastest = min(_FAST, 0.95 * scanner.max_gradient * GAMMA * extent / samples)
    return float(rng.uniform(_SLOW, max(fastest, _SLOW * 1.01)))


def _settings(
    rng: Rng, extents: tuple[float, float], samples: int, bandwidth: float, thickness: tuple[float, float]
) -> SequenceSettings:
    return SequenceSettings(
        kind="gre",
        field_of_view=extents,
        samples=samples,
        echo_time=0.9,
        repetition_time=50.0,
        flip_angle=float(rng.uniform(2, 40)),
        bandwidth=bandwidth,
        slice_thickness=float(rng.uniform(*thickness)),
        dummies=int(rng.integers(0, 4)),
        rf_spoiling=float(rng.choice([0.0, 50.0, 117.0, 123.0])),
    )


ENCODINGS: Mapping[str, Callable[[Scanner, Rng, int], tuple[Order, SequenceSettings]]] = {
    "plane": _plane,
    "spokes": _spokes,
    "spirals": _spirals,
}
"""Makers of random sequences, by encoding."""


def _misplaced(one: Sequence, rng: Rng) -> bytes:
    """A sample beyond the plane, an angle that is none, or an arm of which one sample is moved."""
    order: Order = one.order
    if isinstance(order, GridOrder):
        order = replace(order, trains=(*order.trains, (order.rows * order.partitions,)))
    elif isinstance(order, SpokeOrder):
        order = replace(order, angles=(*order.angles, float("nan")))
    elif isinstance(order, SpiralOrder):
        arms = order.arms.copy()
        arms[int(rng.integers(0, len(arms))), order.samples // 2] += 0.05
        order = replace(order, arms=arms)
    return replace(one, order=order).content()


def _faster(one: Sequence, rng: Rng) -> bytes:
    factor, settings = float(rng.uniform(1.2, 3)), one.settings
    if isinstance(one.order, SpiralOrder):
        fastest = largest_bandwidth(one.order, settings.field_of_view, one.scanner)
    else:
        fastest = one.scanner.max_gradient * GAMMA * settings.field_of_view[1] / settings.samples
    return with_settings(one, bandwidth=factor * fastest)


def _waveform_changed(one: Sequence, rng: Rng, folder: Path) -> bytes:
    """A waveform of a spiral, or the readout of a straight one, with another amplitude."""
    factor = float(rng.choice([0.99, 1.01, -1.0]))

    def change(text: str) -> str:
        name = "[GRADIENTS]\n" if "[GRADIENTS]\n" in text else "[TRAP]\n"
        begin = text.index(name) + len(name)
        rows = text[begin:].split("\n")
        words = rows[0].split()
        words[1] = f"{factor * float(words[1]):.6g}"
        rows[0] = " ".join(words)
        return text[:begin] + "\n".join(rows)

    return tampered(one, folder, change)


IMPOSSIBLE_SHOTS: Mapping[str, Callable[[Sequence, Rng, Path], bytes]] = {
    **{what: IMPOSSIBLE[what] for what in GENERAL},
    "a bandwidth beyond the gradients": lambda one, rng, _: _faster(one, rng),
    "echo trains of what are no lines": lambda one, _, __: with_settings(one, kind="tse", flip_angle=150.0),
    "a place that is none": lambda one, rng, _: _misplaced(one, rng),
    "a written waveform that is changed": _waveform_changed,
}
"""Requests, and files, that must be refused, by what is wrong with them."""
