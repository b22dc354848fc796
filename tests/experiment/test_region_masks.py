"""Masks of regions: what is no mask is refused, and one on another grid lies where both headers say."""

from pathlib import Path

import numpy as np
import pytest

from mri_design.experiment import RegionMask, region_labels
from mri_design.scan import SliceGeometry
from tests.refusals import refused

HERE = SliceGeometry((2.0, 2.0), 5.0, (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
FINER = SliceGeometry((1.0, 1.0), 5.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, -1.0))


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.zeros((4, 4)), "zeros only"),
        (np.full((4, 4), np.nan), "NaN"),
        (-np.eye(4), "negative values, -1"),
        (np.eye(4) / 2, "not whole, 0.5.*mask > 0.5"),
        (np.eye(4) * 1j, "complex128.*abs"),
        (np.eye(4) * 1e12, "a label of 1e.12"),
        (np.arange(101), "100 regions.*64 at most"),
    ],
)
def test_what_is_no_mask_is_refused_with_the_cure(array: np.ndarray, says: str) -> None:
    with refused("lesion"):
        region_labels(array, "lesion")


def test_flags_and_numbers_are_regions_on_the_grid_of_the_image(tmp_path: Path) -> None:
    flags = np.eye(4, dtype=bool)
    np.save(tmp_path / "flags.npy", flags)
    mask = RegionMask.read(tmp_path / "flags.npy")
    np.testing.assert_array_equal(mask.over([None], (1, 4, 4))[0], flags)
    with refused("flags.npy"):
        mask.over([None], (1, 6, 4))
    with refused("region"):
        RegionMask.of(np.ones(4))


def test_a_finer_mask_that_is_turned_lies_by_both_headers() -> None:
    fine = np.zeros((1, 24, 24), dtype=np.int64)
    fine[0, 4:10, 14:20] = 3  # x from -8 to -2, y from 2 to 8
    found = RegionMask("m", fine, (FINER,)).over([HERE], (1, 12, 12))[0]
    rows, columns = np.nonzero(found == 3)
    y, x = 2 * (rows - 6), 2 * (columns - 6)
    assert (y.min(), y.max(), x.min(), x.max()) == (2, 6, -8, -4)
    far = SliceGeometry((2.0, 2.0), 5.0, (0.0, 0.0, 90.0), HERE.phase, HERE.read, HERE.normal)
    with refused("m"):
        RegionMask("m", fine, (FINER,)).over([far], (1, 12, 12))
