"""Every exported kind of sequence, read by pypulseqpp, another program than the one that wrote it.

It is no dependency: ``pip install pypulseqpp`` in an environment of your own lets these tests run. It reads in a
process of its own, because importing it changes what pypulseq computes. What MRzeroCore simulates of such files is in
`benchmarks/bloch.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from mri_design import GradientLimits, interleaf_angles, nyquist_turns, spiral_readout, turned
from mri_design.sequences.arms import largest_bandwidth
from mri_design.sequences.orders import LineOrder, Order, PlaneOrder, SpiralOrder, SpokeOrder
from mri_design.sequences.scanner import SequenceSettings, load_scanner
from tests.sequences.conftest import GRE, TSE

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(
    find_spec("pypulseqpp") is None or not BENCHMARKS.is_dir(), reason="needs pypulseqpp and the benchmarks"
)

SQUARE = replace(GRE, field_of_view=(0.2, 0.2))


def spiral() -> tuple[Order, SequenceSettings]:
    limits = GradientLimits(amplitude=0.02, slew=80.0)
    arm = spiral_readout(24, nyquist_turns(24, 8), limits, field_of_view=0.2).samples
    order = SpiralOrder(turned(arm, interleaf_angles(3, "half-turn")), (24, 24))
    fastest = largest_bandwidth(order, (0.2, 0.2), load_scanner("generic"))
    return order, replace(SQUARE, samples=order.samples, bandwidth=fastest, repetition_time=0.05)


KINDS: dict[str, Callable[[], tuple[Order, SequenceSettings]]] = {
    "gre": lambda: (LineOrder.of_lines((3, 12, 8, 9, 0), 16), GRE),
    "tse": lambda: (LineOrder(((3, 9), (0, 12), (8,)), 16), TSE),
    "plane": lambda: (
        PlaneOrder(((8, 3), (0, 5), (15, 0), (8, 4)), (16, 8)),
        replace(GRE, slice_thickness=0.08, repetition_time=0.03),
    ),
    "spokes": lambda: (SpokeOrder((0.0, 1.0, np.pi / 2, 4.0, -2.5)), SQUARE),
    "spirals": spiral,
}


@pytest.mark.parametrize("kind", KINDS)
def test_another_reader_finds_the_places_and_labels_of_the_design(
    written: Callable[..., Path], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    order, settings = KINDS[kind]()
    found, labels = import_module("parts.second_reader").read_by_pypulseqpp(written(settings, order=order))
    along_y, along_x = settings.field_of_view
    scale = np.array([along_x, along_y, settings.slice_thickness])[:, None, None]
    places = found.reshape(3, order.count, settings.samples) * scale
    np.testing.assert_allclose(places, order.places(settings.samples), atol=1e-3)
    for name, wanted in order.labels.items():
        assert labels[name] == list(wanted)
