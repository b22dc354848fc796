"""Scans and stacks of images are checked when they are made, and say what of a file they are; summaries of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mri_design import ImageStack, KSpaceData, TrajectoryData
from mri_design.readouts import LineReadouts, PlaneReadouts
from mri_design.scan import Sampling, ScanSummary, middle_slice
from mri_design.scan.io import read
from tests.refusals import refused, refuses

RNG = np.random.default_rng(0)
SAMPLES = (RNG.standard_normal((3, 2, 8, 5)) + 1j * RNG.standard_normal((3, 2, 8, 5))).astype(np.complex64)


@pytest.fixture
def data() -> KSpaceData:
    return KSpaceData(SAMPLES, np.ones(8, dtype=bool), reference=SAMPLES[:, 0], coil_maps=SAMPLES)


def test_sizes_and_readouts(data: KSpaceData) -> None:
    assert (data.n_slices, data.n_coils, data.grid_shape) == (3, 2, (8, 5))
    assert data.readouts == LineReadouts((8, 5)) and data.measured_readouts.shape == (8,)
    plane = data.encoded("plane")
    assert plane.readouts == PlaneReadouts((8, 5)) and plane.measured_readouts.shape == (40,)
    points = np.random.default_rng(1).uniform(-2, 2, (40, 2))
    along = TrajectoryData(data.kspace.reshape(3, 2, 40), points, (8, 8), n_readouts=4)
    np.testing.assert_array_equal(along.readouts.shots, points.reshape(4, 10, 2))
    assert along.by_readout.shape == (3, 2, 4, 10) and along.measured_readouts.tolist() == [True] * 4


@pytest.mark.parametrize("dtype", [int, np.uint8, np.float64])
def test_measured_lines_are_a_mask_in_any_type(data: KSpaceData, tmp_path: Path, dtype: type) -> None:
    flags = np.arange(8) > 2
    kept = np.where(flags[:, None], data.kspace, 0)
    for given in (flags, flags.astype(dtype), np.flatnonzero(flags), flags[None].astype(dtype)):
        np.testing.assert_array_equal(KSpaceData(kept, given).measured, flags)
    np.savez(tmp_path / "scan.npz", kspace=kept, measured=flags.astype(dtype))
    np.testing.assert_array_equal(read(tmp_path / "scan.npz").measured, flags)


def test_other_units_scale_all_samples_and_the_noise_by_the_square(data: KSpaceData) -> None:
    known = replace(data, noise_variance=0.5, noise_covariance=np.eye(2, dtype=complex), calibration=data.kspace)
    twice = known.scaled(2.0)
    assert twice.noise_variance == 2.0
    np.testing.assert_array_equal(twice.noise_covariance, 4 * np.eye(2))
    for name in ("kspace", "reference", "calibration"):
        np.testing.assert_array_equal(getattr(twice, name), 2 * getattr(known, name))


@pytest.mark.parametrize("index", [0, 2, -1, -3])
def test_a_slice_keeps_everything_that_belongs_to_it(data: KSpaceData, index: int) -> None:
    one = data.select_slice(index)
    np.testing.assert_array_equal(one.kspace[0], data.kspace[index])
    np.testing.assert_array_equal(one.coil_maps[0], data.kspace[index])
    np.testing.assert_array_equal(one.reference[0], data.kspace[index, 0])
    assert one.name == f"scan[{index % 3}]"
    for missing in (3, -4):
        refuses("slice", data.select_slice, missing)


def not_finite(bad: float) -> np.ndarray:
    samples = SAMPLES.copy()
    samples[1, 0, 2, 3] = samples[2, 1, 0, 0] = bad
    return samples


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"kspace": np.zeros((1, 1, 8, 5), np.complex64)}, "kspace"),
        ({"kspace": np.ones((8, 5), np.complex64)}, "kspace"),
        ({"kspace": np.ones((1, 1, 1, 1), np.complex64)}, "kspace"),
        ({"kspace": np.ones((1, 1, 8, 5), np.float32)}, "kspace"),
        *(({"kspace": not_finite(bad)}, "kspace") for bad in (np.nan, np.inf, -np.inf)),
        *((case, "measured") for case in ({"measured": np.ones(7, dtype=bool)}, {"measured": np.full(8, 0.5)})),
        ({"measured": np.zeros(8, dtype=bool)}, "kspace"),
        *((case, "noise_variance") for case in ({"noise_variance": 0.0}, {"noise_variance": -1.0})),
        ({"noise_variance": float("nan")}, "noise_variance"),
        ({"coil_maps": np.ones((3, 1, 8, 5), np.complex64)}, "coil_maps"),
        ({"reference": np.ones((3, 5, 8), np.complex64)}, "reference"),
    ],
)
def test_what_cannot_be_used_is_named(data: KSpaceData, changes: dict[str, Any], field: str) -> None:
    with refused(field) as caught:
        replace(data, **changes)
    if not np.isfinite(changes.get("kspace", 0)).all():  # with their count and the place of the first
        assert "2 " in caught.value.got and "(1, 0, 2, 3)" in caught.value.got


@pytest.mark.parametrize(
    "images", [np.zeros((2, 4, 4), np.float32), np.ones((4, 4), np.float32), np.full((1, 4, 4), np.nan, np.float32)]
)
def test_image_stacks_are_held_to_the_same(images: np.ndarray) -> None:
    refuses("images", ImageStack, images)


FULL, EMPTY = Sampling(np.ones((8, 6), dtype=bool)), Sampling(np.zeros((8, 6), dtype=bool))


@pytest.mark.parametrize(
    ("held", "index"), [("1", 0), ("111", 1), ("1111", 2), ("1000", 0), ("0011", 2), ("1101", 1), ("000", 0)]
)
def test_the_slice_nearest_to_the_middle_that_holds_lines(held: str, index: int) -> None:
    assert middle_slice([FULL if flag == "1" else EMPTY for flag in held]) == index


def test_a_summary_has_the_middle_slice_and_the_samples_of_all() -> None:
    kspace = np.random.default_rng(0).standard_normal((3, 2, 8, 6)).astype(np.complex64)
    kspace[0, :, 5:] = 0
    summary = ScanSummary.of(KSpaceData(kspace, np.ones(8, dtype=bool), name="x", header={"anatomy": "knee"}))
    sizes = (summary.n_slices, summary.n_coils, summary.grid_shape, summary.index, summary.by_headers)
    assert sizes == (3, 2, (8, 6), 1, False) and (summary.header, summary.name) == ({"anatomy": "knee"}, "x")
    np.testing.assert_array_equal(summary.part.kspace, kspace[1:2])
    assert [int(sampling.lines.sum()) for sampling in summary.samplings] == [5, 8, 8]
    part = KSpaceData(np.ones((1, 1, 8, 8), dtype=np.complex64), np.ones(8, dtype=bool))
    for samplings, more, field in (
        ((FULL, Sampling(np.ones((8, 4), dtype=bool))), {}, "summary"),
        ((FULL, FULL), {"index": 2}, "summary"),
        ((FULL,), {"part": part}, "part"),
    ):
        refuses(field, ScanSummary, samplings, 1, **more)
