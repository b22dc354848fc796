"""What `info` tells of a scan: which rows there are, and the numbers in them; no coil maps are made for it."""

from dataclasses import replace

import numpy as np
import pytest

from mri_design import KSpaceData, Recipe, TrajectoryData
from mri_design.experiment import calibration, load_input
from mri_design.runs.info import describe_scan, measured_how
from mri_design.scan import Sampling, ScanSummary, SliceGeometry, SourceImage
from tests.numbers_in_text import numbers_in

ESPIRIT = Recipe().replacing("coils", maps="espirit")
OBLIQUE = SliceGeometry((2.0, 1.5), 5.0, (1.0, 2.0, 3.0), (0.0, 0.8, 0.6), (1.0, 0.0, 0.0), (0.0, -0.6, 0.8))
STRAIGHT = SliceGeometry((2.0, 1.5), None, (0.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))


def scan(measured: int = 24, **changes: object) -> KSpaceData:
    """Noise in three slices and two coils; by default its central 25 lines."""
    rng = np.random.default_rng(0)
    kspace = (rng.standard_normal((3, 2, 32, 32)) + 1j * rng.standard_normal((3, 2, 32, 32))).astype(np.complex64)
    lines = np.abs(np.arange(32) - 16) <= measured // 2
    kspace[:, :, ~lines] = 0
    kspace[1] *= 5
    return replace(KSpaceData(kspace, lines, noise_variance=1.0), **changes)  # type: ignore[arg-type]


def rows_of(data: KSpaceData, recipe: Recipe = ESPIRIT) -> dict[str, str]:
    return describe_scan(ScanSummary.of(data), recipe)


@pytest.mark.parametrize(
    ("data", "recipe", "row", "numbers"),
    [
        (scan(), ESPIRIT, "coil maps", "ESPIRiT 24"),
        (scan(14), ESPIRIT, "coil maps", "ESPIRiT 15"),
        (scan(6), Recipe(), "coil maps", "NLINV 7"),
        (scan(4), ESPIRIT, "calibration", "8"),
        (scan(), ESPIRIT, "centre", "16 25 4-28"),
        (scan(), ESPIRIT, "field of view", ""),
        (scan(14, geometry=(OBLIQUE,) * 3), ESPIRIT, "field of view", "64 48 2 1.5 5"),
        (scan(14, geometry=(STRAIGHT, STRAIGHT, OBLIQUE)), ESPIRIT, "orientation", "sagittal oblique"),
        (scan(14), ESPIRIT, "measured lines", "15 32 0-8 24-31 2.13"),
        (scan(14), ESPIRIT, "fully sampled", "9 23 0-8"),
        (load_input("phantom:lf-gre"), ESPIRIT, "measured lines", "195 196 1.01"),
        (scan(source=SourceImage({"EchoTime": "12.5"}, image=False)), ESPIRIT, "sequence", "12.5"),
        (scan(source=SourceImage({"StudyDate": "20200304"}, image=False)), ESPIRIT, "date", "2020-03-04"),
    ],
)
def test_rows_and_their_numbers(
    data: KSpaceData, recipe: Recipe, row: str, numbers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "estimate_coil_maps", None)  # making maps would fail
    text = rows_of(data, recipe)[row]
    assert all(number in text for number in numbers.split())


def test_rows_that_are_left_out() -> None:
    assert not {"orientation", "sequence", "date", "samples", "told by", "slices differ"} & set(rows_of(scan()))
    assert measured_how(SourceImage({"FlipAngle": "15"}, image=False)).keys() == {"sequence"}


def test_samples_of_a_plane_are_counted_one_by_one() -> None:
    plane = np.zeros((1, 1, 32, 32), np.complex64)
    held = np.random.default_rng(1).random((32, 32)) < 0.2
    held[12:20, 12:20] = True  # the calibration square counts like the others
    plane[0, 0, held] = scan(32).kspace[0, 0][held]
    rows = rows_of(KSpaceData(plane, held.any(axis=1), noise_variance=1.0))
    count = int(held.sum())
    assert f"{count} of 1024" in rows["samples"] and f"{1024 / count:.3g}" in rows["samples"]
    assert "acceleration" not in rows["measured lines"]


def test_noise_of_coils_is_told_as_it_is_in_the_file() -> None:
    rng = np.random.default_rng(1)
    noise = (rng.standard_normal((1, 2, 64, 64)) + 1j * rng.standard_normal((1, 2, 64, 64))).astype(np.complex64)
    covariance = np.array([[4.0, 3.0], [3.0, 9.0]], dtype=np.complex128)
    data = KSpaceData(1e3 * noise, np.ones(64, dtype=bool), noise_covariance=covariance)
    told = rows_of(data)["noise of coils"]
    assert {2, 3, 2.5, 0.5} <= {*numbers_in(told)}
    assert "noise of coils" not in rows_of(replace(data, noise_covariance=None, noise_variance=0.5))


def test_of_other_slices_the_headers_tell() -> None:
    whole = ScanSummary.of(scan(28))
    short = Sampling(whole.samplings[0].samples & (np.abs(np.arange(32) - 16) < 3)[:, np.newaxis])
    some = replace(whole, samplings=(short, *whole.samplings[1:]), by_headers=True)
    rows = describe_scan(some, Recipe())
    assert {"told by", "slices differ"} < set(rows) and "NLINV" in rows["coil maps"]
    assert "5" in describe_scan(some, ESPIRIT)["calibration"]


@pytest.mark.parametrize("coils", [1, 2])
def test_samples_along_a_trajectory(coils: int) -> None:
    radius, angles = np.arange(-16, 16) / 1.0, np.pi * np.arange(12)[:, None] / 12
    points = np.stack([radius * np.sin(angles), radius * np.cos(angles)], axis=-1).reshape(-1, 2)
    samples = np.random.default_rng(0).standard_normal((1, coils, len(points))).astype(np.complex64)
    data = TrajectoryData(samples, points, (32, 32), n_readouts=12, noise_variance=1.0)
    rows = describe_scan(data, Recipe())
    assert [numbers_in(rows[name])[:2] for name in ("trajectory", "grid")] == [[12, 32], [32, 32]]
    alone = describe_scan(data.select_readouts(np.arange(12) < 1), Recipe())
    assert 12 in numbers_in(rows["samples"]) and 12 not in numbers_in(alone["samples"])
    assert ("calibration" in alone) == (coils > 1) and ("noise" in rows) != ("calibration" in rows)
