"""What `info` tells of a scan: sizes, place, lines and noise, without making coil maps."""

from dataclasses import replace

import numpy as np
import pytest

from mri_design.experiment import inputs
from mri_design.experiment.description import describe_scan
from mri_design.experiment.recipe import Recipe
from mri_design.scan.data import KSpaceData
from mri_design.scan.geometry import SliceGeometry


def scan(measured: int = 24) -> KSpaceData:
    rng = np.random.default_rng(0)
    kspace = (rng.standard_normal((3, 2, 32, 32)) + 1j * rng.standard_normal((3, 2, 32, 32))).astype(np.complex64)
    lines = np.abs(np.arange(32) - 16) <= measured // 2
    kspace[:, :, ~lines] = 0
    kspace[1] *= 5
    return KSpaceData(kspace, lines, noise_variance=1.0)


def test_no_maps_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("maps were estimated")

    monkeypatch.setattr(inputs, "estimate_coil_maps", refused)
    rows = describe_scan(scan(), Recipe())
    assert rows["coil maps"] == "estimated from 24 centre lines at most"
    peak = float(np.abs(scan().kspace[1]).max())
    assert rows["noise"].endswith(f"largest sample {peak:.4g} in slice 1")


def test_too_small_a_centre_is_said_all_the_same() -> None:
    assert "at least 8 for coil calibration" in describe_scan(scan(4), Recipe())["calibration"]


def test_size_place_and_acceleration_are_told() -> None:
    oblique = SliceGeometry((2.0, 1.5), 5.0, (1.0, 2.0, 3.0), (0.0, 0.8, 0.6), (1.0, 0.0, 0.0), (0.0, -0.6, 0.8))
    rows = describe_scan(replace(scan(14), geometry=(oblique,) * 3), Recipe())
    assert rows["field of view"] == "64 x 48 mm, pixels of 2 x 1.5 mm, 5 mm thick"
    assert rows["orientation"] == "oblique, nearest to transverse, phase encoding front to back"
    assert rows["measured lines"] == "15 of 32, missing 0-8, 24-31: acceleration 2.13"
    straight = SliceGeometry((2.0, 1.5), None, (0.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
    assert straight.orientation == "sagittal, phase encoding foot to head"
    assert "orientation" not in describe_scan(
        replace(scan(), geometry=(SliceGeometry((2.0, 1.5), None),) * 3), Recipe()
    )
    assert "field of view" not in describe_scan(scan(), Recipe())
