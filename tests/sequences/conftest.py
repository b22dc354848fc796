"""A small line order, settings within a modest scanner's limits, and files made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mri_design.sequences import GridOrder, Scanner, SequenceSettings, SpokeOrder, load_scanner
from mri_design.sequences.pulseq_file import pulseq_file

ORDER = GridOrder(((8, 3, 12), (9, 0), (15, 7, 1)), 16)
GRE = SequenceSettings(
    kind="gre",
    field_of_view=(0.24, 0.2),
    samples=16,
    echo_time=0.008,
    repetition_time=0.025,
    flip_angle=15.0,
    bandwidth=400.0,
    dummies=2,
)
TSE = replace(GRE, kind="tse", echo_time=0.014, repetition_time=0.1, flip_angle=150.0, dummies=1)
PLANE = GridOrder.in_trains((8 * 8 + 3, 5, 15 * 8, 8 * 8 + 4), 1, 16, 8)
SLAB = replace(GRE, slice_thickness=0.08, repetition_time=0.03)
SPOKES = SpokeOrder((0.0, 1.0, np.pi / 2, 4.0, -2.5))
ROUND = replace(GRE, field_of_view=(0.2, 0.2))

made_once = cache(pulseq_file)
Written = Callable[..., Path]
"""(settings, change of the text) -> the path of a file, see `written`."""


@pytest.fixture
def generic() -> Scanner:
    return load_scanner("generic")


@pytest.fixture(params=[GRE, TSE], ids=["gre", "tse"])
def asked(request: pytest.FixtureRequest) -> SequenceSettings:
    """Settings of either kind."""
    settings: SequenceSettings = request.param
    return settings


@pytest.fixture
def written(tmp_path: Path, generic: Scanner) -> Callable[..., Path]:
    """A file of the small order with these settings, changed by a function of its text."""
    pytest.importorskip("pypulseq")

    def write(settings: SequenceSettings, change: Callable[[str], str] = str, **others: Any) -> Path:
        content = made_once(others.get("order", ORDER), settings, generic)[0]
        path = tmp_path / "changed.seq"
        path.write_text(change(content.decode()))
        return path

    return write


def played(path: Path, settings: SequenceSettings) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Where a file measures by pypulseq's own account, and its labels.

    Places are (axis x, y, z, readout, sample), in cycles for each field of view and, along z, slice thickness.
    """
    sequence = pytest.importorskip("pypulseq").Sequence()
    sequence.read(str(path))
    along_y, along_x = settings.field_of_view
    scale = np.array([along_x, along_y, settings.slice_thickness])[:, None, None]
    trajectory = sequence.calculate_kspace()[0].reshape(3, -1, settings.samples)
    return trajectory * scale, sequence.evaluate_labels(evolution="adc")
