"""KSpaceData and ImageStack validate what comes from outside, and say what of a file they are."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mri_design import ImageStack, InputError, KSpaceData, TrajectoryData, read
from mri_design.readouts import LineReadouts, PlaneReadouts
from mri_design.scan.data import left_out, left_out_text


@pytest.fixture
def data() -> KSpaceData:
    rng = np.random.default_rng(0)
    kspace = (rng.standard_normal((3, 2, 8, 5)) + 1j * rng.standard_normal((3, 2, 8, 5))).astype(np.complex64)
    return KSpaceData(kspace, np.ones(8, dtype=bool), reference=kspace[:, 0], coil_maps=kspace)


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
    assert one.coil_maps is not None
    assert one.reference is not None
    np.testing.assert_array_equal(one.kspace[0], data.kspace[index])
    np.testing.assert_array_equal(one.coil_maps[0], data.kspace[index])
    np.testing.assert_array_equal(one.reference[0], data.kspace[index, 0])
    assert one.name == f"scan[{index % 3}]"


@pytest.mark.parametrize("index", [3, -4])
def test_a_slice_that_does_not_exist_is_refused(data: KSpaceData, index: int) -> None:
    with pytest.raises(InputError, match="0 to 2"):
        data.select_slice(index)


def test_zero_filled_edges_are_still_fully_sampled_but_gaps_are_not(data: KSpaceData) -> None:
    edges = np.array([0, 1, 1, 1, 1, 1, 1, 0], dtype=bool)
    gap = np.array([1, 1, 0, 1, 1, 1, 1, 1], dtype=bool)
    assert replace(data, measured=edges).fully_sampled
    assert not replace(data, measured=gap).fully_sampled


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_samples_are_refused_with_count_and_place(data: KSpaceData, bad: float) -> None:
    kspace = data.kspace.copy()
    kspace[1, 0, 2, 3] = bad
    kspace[2, 1, 0, 0] = bad
    with pytest.raises(InputError, match=r"2 NaN or infinite values, the first at index \(1, 0, 2, 3\)"):
        replace(data, kspace=kspace)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"kspace": np.zeros((1, 1, 8, 5), np.complex64)}, "kspace"),
        ({"kspace": np.ones((8, 5), np.complex64)}, "kspace"),
        ({"kspace": np.ones((1, 1, 1, 1), np.complex64)}, "kspace"),
        ({"kspace": np.ones((1, 1, 8, 5), np.float32)}, "kspace"),
        ({"measured": np.ones(7, dtype=bool)}, "measured"),
        ({"measured": np.full(8, 0.5)}, "measured"),
        ({"measured": np.zeros(8, dtype=bool)}, "kspace"),
        ({"noise_variance": 0.0}, "noise_variance"),
        ({"noise_variance": -1.0}, "noise_variance"),
        ({"noise_variance": float("nan")}, "noise_variance"),
        ({"coil_maps": np.ones((3, 1, 8, 5), np.complex64)}, "coil_maps"),
        ({"reference": np.ones((3, 5, 8), np.complex64)}, "reference"),
    ],
)
def test_what_cannot_be_used_is_named(data: KSpaceData, changes: dict[str, object], field: str) -> None:
    with pytest.raises(InputError) as caught:
        replace(data, **changes)  # type: ignore[arg-type]
    assert caught.value.field == field


@pytest.mark.parametrize(
    "images", [np.zeros((2, 4, 4), np.float32), np.ones((4, 4), np.float32), np.full((1, 4, 4), np.nan, np.float32)]
)
def test_image_stacks_are_held_to_the_same(images: np.ndarray) -> None:
    with pytest.raises(InputError):
        ImageStack(images)


HEADER = {
    "file": "raw.h5",
    "coils_dropped": "coil 1 holds zeros only",
    "repetition": "0, the first of 2 (0, 1); the others were not read",
    "contrast": "T2-weighted",
    "oversampling_removed": "readouts of 32 samples were cut",
}


def test_what_readers_left_out_is_told_and_nothing_else() -> None:
    assert list(left_out(HEADER)) == ["coils_dropped", "repetition"]
    assert left_out({"file": "raw.h5", "contrast": "T2-weighted"}) == {}


def test_a_chosen_series_is_no_news() -> None:
    assert left_out_text(HEADER, asked={"repetition": 0}) == "coils dropped: coil 1 holds zeros only"
    assert left_out_text(HEADER).endswith("repetition: 0, the first of 2 (0, 1); the others were not read")
    assert left_out_text({"file": "raw.h5"}) == ""
