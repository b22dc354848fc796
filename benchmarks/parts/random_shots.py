"""Random samples of planes, spokes and arms of spirals that a scanner can play, and requests that none can."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from parts.random_sequences import GENERAL, IMPOSSIBLE, Rng, Sequence, tampered, timed, with_settings

from mri_design.errors import InputError
from mri_design.scan.trajectories.radial import turned
from mri_design.scan.trajectories.spiral import GradientLimits, nyquist_turns, spiral_readout
from mri_design.sequences.arms import largest_bandwidth
from mri_design.sequences.orders import Order, PlaneOrder, SpiralOrder, SpokeOrder
from mri_design.sequences.scanner import GAMMA, Scanner, load_scanner, shipped_scanners
from mri_design.sequences.settings import SequenceSettings

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
        scanner = load_scanner(str(rng.choice(shipped_scanners())))
        try:
            return timed(Sequence(*ENCODINGS[encoding](scanner, rng, largest), scanner), rng)
        except InputError as refusal:
            if refusal.field != "bandwidth":
                raise


def _plane(scanner: Scanner, rng: Rng, largest: int) -> tuple[Order, SequenceSettings]:
    rows, columns = (int(side) for side in rng.integers(4, largest + 1, 2))
    chosen = rng.permutation(rows * columns)[: int(rng.integers(1, _MOST_SHOTS + 1))]
    order = PlaneOrder(tuple((int(one) // columns, int(one) % columns) for one in chosen), (rows, columns))
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
    if isinstance(order, PlaneOrder):
        order = replace(order, samples=(*order.samples, (order.shape[0], 0)))
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
