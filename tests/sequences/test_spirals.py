"""Arms of spirals are played through every designed sample, as fast as designed or slower; others are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mri_design import sequences
from mri_design.operators import golden_angles, radial_spokes, turned
from mri_design.scan import GradientLimits, spiral_curve, spiral_readout
from mri_design.sequences.pulseq_file import pulseq_file
from tests.refusals import refused
from tests.sequences.conftest import GRE, PLANE, ROUND, SLAB, SPOKES, TSE, Written, played

pytest.importorskip("pypulseq")

FIELD = 0.2
ANGLES = [0.0, 0.7, np.pi / 2, 4.0]


def arms(matrix: int = 32, turns: float = 3.0, amplitude: float = 0.024, slew: float = 100.0, **others: float):
    """Arms that a system with these limits can play, in the single precision of files."""
    limits = GradientLimits(amplitude=amplitude, slew=slew)
    made = spiral_readout(matrix, turns, limits, field_of_view=FIELD, **others).samples
    kept = turned(made[: len(made) // 4 * 4], ANGLES).astype(np.float32)
    return sequences.SpiralOrder(kept.astype(np.float64), (matrix, matrix))


def settings_for(order, scanner, share=1.0):
    """A share of the largest bandwidth."""
    extents = (FIELD, FIELD)
    bandwidth = share * sequences.largest_bandwidth(order, extents, scanner)
    return replace(GRE, field_of_view=extents, samples=order.samples, bandwidth=bandwidth, repetition_time=0.04)


@pytest.mark.parametrize("times", [1, 3])
def test_samples_lie_where_they_were_designed_at_any_speed(times, written, generic):
    order = arms()
    settings = settings_for(order, generic, 1 / times)
    (x, y, z), _ = played(written(settings, order=order), settings)
    np.testing.assert_allclose(np.stack([y, x], axis=-1), order.arms, atol=1e-4)
    np.testing.assert_allclose(z, 0, atol=1e-4)


@pytest.mark.parametrize(
    "shape",
    [
        {"matrix": 16, "turns": 1.0},
        {"matrix": 64, "turns": 6.0, "density": 1.5},
        {"matrix": 48, "turns": 2.5, "amplitude": 0.08, "slew": 200.0},
        {"matrix": 24, "turns": 4.0, "amplitude": 0.01, "slew": 30.0},
    ],
)
def test_every_design_is_played_within_the_limits_of_every_scanner(shape: dict[str, float]) -> None:
    order = arms(**shape)
    for name in ("low-field", "siemens-prisma"):
        scanner = sequences.load_scanner(name)
        found = pulseq_file(order, settings_for(order, scanner), scanner)[1]
        assert found.largest_error < 1e-4
        assert found.gradient <= scanner.max_gradient * (1 + 1e-5) and found.slew <= scanner.max_slew * (1 + 1e-5)


def test_a_scanner_with_the_limits_of_the_design_plays_it_as_fast_as_designed(generic: sequences.Scanner) -> None:
    limits = GradientLimits(amplitude=generic.max_gradient, slew=generic.max_slew)
    made = spiral_readout(128, 8.0, limits, field_of_view=FIELD)
    order = sequences.SpiralOrder(turned(made.samples, ANGLES), (128, 128))
    assert np.linalg.norm(made.gradients, axis=1).max() > 0.98 * limits.amplitude  # both limits count
    assert sequences.largest_bandwidth(order, (FIELD, FIELD), generic) == pytest.approx(1 / made.duration)
    weaker = replace(generic, max_slew=0.9 * generic.max_slew)
    assert sequences.largest_bandwidth(order, (FIELD, FIELD), weaker) == pytest.approx(0.5 / made.duration)


def test_the_file_is_held_against_order_echo_time_and_limits(written: Written, generic: sequences.Scanner) -> None:
    order = arms(turns=1.0)
    settings = settings_for(order, generic)
    path = written(settings, order=order)
    assert "Matrix 32 32 1" in path.read_text()
    echo_time = sequences.verify(path, order, settings, generic).echo_time  # that of the first sample
    assert echo_time == pytest.approx(settings.echo_time, abs=1e-5)
    moved = order.arms.copy()
    moved[2, -1, 0] += 0.002
    with pytest.raises(sequences.SequenceError) as caught:
        sequences.verify(path, sequences.SpiralOrder(moved, order.grid), settings, generic)
    assert caught.value.block == 4 * (settings.dummies + 2) + 3
    for changed, scanner in (
        (replace(settings, echo_time=0.0081), generic),
        (settings, replace(generic, max_slew=0.97 * generic.max_slew)),
    ):
        with pytest.raises(sequences.SequenceError):
            sequences.verify(path, order, changed, scanner)


def test_what_cannot_be_played_is_refused_with_what_could_be(generic: sequences.Scanner) -> None:
    order = arms(slew=120.0)
    fastest = settings_for(order, generic)
    with refused("generic: max_slew") as caught:
        pulseq_file(order, replace(fastest, bandwidth=2 * fastest.bandwidth), generic)
    assert f"{fastest.bandwidth:.5g} Hz" in str(caught.value)
    with refused("generic: max_gradient"):
        pulseq_file(order, fastest, replace(generic, max_gradient=2e-3, max_slew=5000.0))
    with refused("bandwidth") as caught:
        pulseq_file(order, replace(fastest, bandwidth=fastest.bandwidth / 1.25), generic)
    assert f"{fastest.bandwidth / 2:.5g}" in str(caught.value)
    with refused("sequence"):
        pulseq_file(order, replace(TSE, field_of_view=(FIELD, FIELD)), generic)
    odd = sequences.SpiralOrder(order.arms[:, :-1], order.grid)
    with refused("samples of a readout"):
        pulseq_file(odd, replace(fastest, samples=odd.samples), sequences.load_scanner("siemens-skyra"))


def test_arms_without_a_waveform_from_rest_are_refused(generic: sequences.Scanner) -> None:
    order = arms()
    times = np.arange(order.samples)
    for shape in (
        np.stack([np.interp(times, times[::4], column[::4]) for column in order.arms[0].T], axis=1),  # straight pieces
        radial_spokes(32, [0.3], centre_out=True)[0],
        spiral_curve(32, 3.0, points=200),  # in equal steps of the angle
        order.arms[0] + 0.01,
    ):
        with refused("trajectory"):
            sequences.largest_bandwidth(sequences.SpiralOrder(shape[np.newaxis], (32, 32)), (FIELD, FIELD), generic)


playable = pytest.mark.parametrize(("order", "settings"), [(PLANE, SLAB), (SPOKES, ROUND)], ids=["plane", "spokes"])


def test_samples_of_a_plane_lie_where_they_were_designed(written: Written) -> None:
    (x, y, z), labels = played(written(SLAB, order=PLANE), SLAB)
    np.testing.assert_allclose(x, np.tile(np.arange(16) - 8, (4, 1)), atol=1e-4)
    np.testing.assert_allclose(y, np.tile([[0], [-8], [7], [0]], 16), atol=1e-4)
    np.testing.assert_allclose(z, np.tile([[-1], [1], [-4], [0]], 16), atol=1e-4)
    assert labels["LIN"].tolist() == [8, 0, 15, 8] and labels["PAR"].tolist() == [3, 5, 0, 4]


def test_spokes_lie_at_their_angles(written: Written) -> None:
    (x, y, z), labels = played(written(ROUND, order=SPOKES), ROUND)
    found = x + 1j * y
    np.testing.assert_allclose(found, np.exp(1j * np.array(SPOKES.angles))[:, None] * (np.arange(16) - 8), atol=1e-4)
    np.testing.assert_allclose(z, 0, atol=1e-4)
    assert labels["LIN"].tolist() == [0, 1, 2, 3, 4]


@playable
def test_another_order_than_the_file_s_is_refused_with_the_block(order, settings, written, generic):
    if isinstance(order, sequences.GridOrder):
        other: sequences.Order = sequences.GridOrder.in_trains((8 * 8 + 3, 6, 15 * 8, 8 * 8 + 4), 1, 16, 8)
    else:
        other = sequences.SpokeOrder((0.0, 1.001, np.pi / 2, 4.0, -2.5))
    path = written(settings, order=order)
    with pytest.raises(sequences.SequenceError) as caught:
        sequences.verify(path, other, settings, generic)
    assert caught.value.block == 4 * (settings.dummies + 1) + 3
    along_y, along_x = settings.field_of_view
    with pytest.raises(sequences.SequenceError):
        sequences.verify(path, order, replace(settings, field_of_view=(1.001 * along_y, along_x)), generic)


@playable
def test_limits_hold_and_what_cannot_be_played_is_refused(order, settings, generic):
    with refused("generic: max_gradient"):
        pulseq_file(order, replace(settings, bandwidth=15_000.0), generic)
    with refused("echo time"):
        pulseq_file(order, replace(settings, echo_time=0.002), generic)
    with refused("sequence"):
        pulseq_file(order, replace(TSE, field_of_view=(0.2, 0.2)), generic)


@pytest.mark.parametrize("oversampling", [1, 2])
def test_spokes_are_known_by_their_samples(oversampling: int) -> None:
    angles = golden_angles(5)
    order = sequences.SpokeOrder.of_trajectory(radial_spokes(16, angles, oversampling=oversampling))
    assert order.oversampling == oversampling
    np.testing.assert_allclose(np.exp(1j * np.array(order.angles)), np.exp(1j * angles), atol=1e-9)


@pytest.mark.parametrize(
    "trajectory",
    [
        spiral_curve(16, 4.0, points=64)[np.newaxis],
        radial_spokes(16, golden_angles(3), centre_out=True),
        radial_spokes(16, golden_angles(3)) + 0.01,
        radial_spokes(16, golden_angles(3))[:, :1],
    ],
    ids=["spiral", "centre out", "shifted", "one sample"],
)
def test_other_readouts_are_no_spokes(trajectory: np.ndarray) -> None:
    with refused("trajectory"):
        sequences.SpokeOrder.of_trajectory(trajectory)


GRID, ARMS = sequences.GridOrder, sequences.SpiralOrder


@pytest.mark.parametrize(
    ("order", "parts", "field"),
    [
        (GRID, ((), 16), "lines"),
        (GRID, (((1,), ()), 16), "lines"),
        (GRID, (((1, 2), (16,)), 16), "lines[2]"),
        (GRID, (((1, -2),), 16), "lines[1]"),
        (GRID, (((1, 2), (1,)), 16), "lines"),
        (GRID, (((1.0,),), 16), "lines[0]"),
        (GRID, (((1,),), 2), "lines of the grid"),
        (GRID, ((), 8, 8), "number of samples"),
        (GRID, (((0,),), 8, 2), "kz of the plane"),
        (GRID, (((0,), (0,)), 8, 8), "samples"),
        (GRID, (((8,), (64,)), 8, 8), "samples[1]"),
        (GRID, (((-1,),), 8, 8), "samples[0]"),
        (sequences.SpokeOrder, ((),), "number of spokes"),
        (sequences.SpokeOrder, ((np.nan,),), "angles"),
        (sequences.SpokeOrder, ((0.0,), 0), "oversampling"),
        (sequences.SpokeOrder, ((0.0,), 17), "oversampling"),
        (ARMS, (np.ones((0, 8, 2)), (8, 8)), "number of arms"),
        (ARMS, (np.ones((2, 2, 2)), (8, 8)), "samples of an arm"),
        (ARMS, (np.ones((8, 2)), (8, 8)), "arms"),
        (ARMS, (np.ones((2, 8, 3)), (8, 8)), "arms"),
        (ARMS, (np.full((2, 8, 2), np.nan), (8, 8)), "arms"),
        (ARMS, (np.ones((2, 8, 2)), (2, 8)), "ky of the grid"),
    ],
)
def test_orders_without_sense_are_refused(order: type[sequences.Order], parts: tuple[Any, ...], field: str) -> None:
    with refused(field):
        order(*parts)
