"""Telling what a scan holds takes no coil maps and no copy of every slice."""

import numpy as np
import pytest

from mri_design.experiment import inputs
from mri_design.experiment.description import describe_scan
from mri_design.experiment.recipe import Recipe
from mri_design.scan.data import KSpaceData


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
