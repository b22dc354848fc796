"""Summaries of scans: which slice they tell by, and what does not fit together."""

import numpy as np
import pytest

from mri_design import InputError, KSpaceData
from mri_design.scan.sampling import Sampling
from mri_design.scan.summary import ScanSummary, middle_slice

FULL, EMPTY = Sampling(np.ones((8, 6), dtype=bool)), Sampling(np.zeros((8, 6), dtype=bool))


@pytest.mark.parametrize(
    ("held", "index"), [("1", 0), ("111", 1), ("1111", 2), ("1000", 0), ("0011", 2), ("1101", 1), ("000", 0)]
)
def test_the_slice_nearest_to_the_middle_that_holds_lines(held: str, index: int) -> None:
    assert middle_slice([FULL if flag == "1" else EMPTY for flag in held]) == index


def test_a_summary_of_a_whole_scan_has_its_middle_slice_and_the_samples_of_all() -> None:
    kspace = np.random.default_rng(0).standard_normal((3, 2, 8, 6)).astype(np.complex64)
    kspace[0, :, 5:] = 0
    scan = KSpaceData(kspace, np.ones(8, dtype=bool), name="x", header={"anatomy": "knee"})
    told = ScanSummary.of(scan)
    assert (told.n_slices, told.n_coils, told.grid_shape, told.index, told.by_headers) == (3, 2, (8, 6), 1, False)
    assert told.part is not None and told.header == {"anatomy": "knee"} and told.name == "x"
    np.testing.assert_array_equal(told.part.kspace, kspace[1:2])
    assert [int(sampling.lines.sum()) for sampling in told.samplings] == [5, 8, 8]


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(InputError, match="slices of one size"):
        ScanSummary((FULL, Sampling(np.ones((8, 4), dtype=bool))), 1)
    with pytest.raises(InputError, match="slice 2 of 2"):
        ScanSummary((FULL, FULL), 1, index=2)
    part = KSpaceData(np.ones((1, 1, 8, 8), dtype=np.complex64), np.ones(8, dtype=bool))
    with pytest.raises(InputError, match="one slice of the grid"):
        ScanSummary((FULL,), 1, part=part)
