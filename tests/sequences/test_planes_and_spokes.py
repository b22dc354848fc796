"""Samples of a plane and spokes are played where they were designed; other readouts and faults are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from mri_design import golden_angles, radial_spokes, sequences
from mri_design.scan import spiral_curve
from mri_design.sequences.pulseq_file import pulseq_file
from tests.refusals import refused
from tests.sequences.conftest import PLANE, ROUND, SLAB, SPOKES, TSE, Written, played

pytest.importorskip("pypulseq")


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
    moved_plane = sequences.PlaneOrder(((8, 3), (0, 6), (15, 0), (8, 4)), (16, 8))
    other = (
        moved_plane
        if isinstance(order, sequences.PlaneOrder)
        else sequences.SpokeOrder((0.0, 1.001, np.pi / 2, 4.0, -2.5))
    )
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


@pytest.mark.parametrize(
    ("made", "field"),
    [
        *(
            (lambda trains=trains: sequences.LineOrder(trains, 16), field)  # type: ignore[misc]
            for trains, field in (
                *(((), "lines"), (((1,), ()), "lines"), (((1, 2), (16,)), "lines[2]"), (((1, -2),), "lines[1]")),
                *((((1, 2), (1,)), "lines"), (((1.0,),), "lines[0]")),
            )
        ),
        (lambda: sequences.LineOrder(((1,),), 2), "lines of the grid"),
        (lambda: sequences.PlaneOrder((), (8, 8)), "number of samples"),
        (lambda: sequences.PlaneOrder(((0, 0),), (8, 2)), "kz of the plane"),
        (lambda: sequences.PlaneOrder(((0, 0), (0, 0)), (8, 8)), "samples"),
        (lambda: sequences.PlaneOrder(((1, 0), (0, 8)), (8, 8)), "samples[1]"),
        (lambda: sequences.PlaneOrder(((-1, 0),), (8, 8)), "samples[0]"),
        (lambda: sequences.SpokeOrder(()), "number of spokes"),
        (lambda: sequences.SpokeOrder((np.nan,)), "angles"),
        *((lambda often=often: sequences.SpokeOrder((0.0,), often), "oversampling") for often in (0, 17)),  # type: ignore[misc]
        (lambda: sequences.SpiralOrder(np.ones((0, 8, 2)), (8, 8)), "number of arms"),
        (lambda: sequences.SpiralOrder(np.ones((2, 2, 2)), (8, 8)), "samples of an arm"),
        (lambda: sequences.SpiralOrder(np.ones((8, 2)), (8, 8)), "arms"),
        (lambda: sequences.SpiralOrder(np.ones((2, 8, 3)), (8, 8)), "arms"),
        (lambda: sequences.SpiralOrder(np.full((2, 8, 2), np.nan), (8, 8)), "arms"),
        (lambda: sequences.SpiralOrder(np.ones((2, 8, 2)), (2, 8)), "ky of the grid"),
    ],
)
def test_orders_without_sense_are_refused(made: Callable[[], sequences.Order], field: str) -> None:
    with refused(field):
        made()
