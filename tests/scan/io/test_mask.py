"""Masks as BART has them, in the place of this package's own."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mri_design import InputError
from mri_design.scan.io.companions import read_mask
from tests.scan.io.test_bart import complex_numbers, write_pair

LINES = np.array([False, True, True, False, True, True, False, True])
SAMPLES = np.random.default_rng(1).random((8, 6)) < 0.4
EVERYWHERE = np.ones((8, 6), dtype=bool)


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (LINES[None], LINES),  # one column, as of a run without an image
        (np.broadcast_to(LINES, (6, 8)), LINES),
        (SAMPLES.T, SAMPLES),  # samples inside lines
        (SAMPLES[None], SAMPLES),  # a plane
        (np.broadcast_to(SAMPLES, (5, 8, 6)), SAMPLES),
    ],
)
def test_a_mask_of_bart_is_one_of_lines_or_of_samples(tmp_path: Path, stored: np.ndarray, wanted: np.ndarray) -> None:
    path = write_pair(tmp_path / "mask", stored)
    np.testing.assert_array_equal(read_mask(path, EVERYWHERE[:, 0], EVERYWHERE), wanted)


@pytest.mark.parametrize(
    ("stored", "match"),
    [
        (complex_numbers(6, 8), "other samples than zeros and ones.*bart pattern"),
        (np.ones((6, 8, 1, 2)), "got 2 along coil; wanted one mask for all coils"),
        (np.random.default_rng(2).random((5, 8, 6)) < 0.5, "readouts that are measured in part"),
        (np.ones((6, 7)), r"bool \(7,\); wanted bool \(8,\)"),
        (np.zeros((6, 8)), "no line"),
    ],
)
def test_what_is_no_mask_of_this_scan_is_refused(tmp_path: Path, stored: np.ndarray, match: str) -> None:
    with pytest.raises(InputError, match=match):
        read_mask(write_pair(tmp_path / "mask", stored), EVERYWHERE[:, 0], EVERYWHERE)


@pytest.mark.skipif(shutil.which("bart") is None, reason="needs BART")
def test_the_pattern_that_bart_makes_is_read(tmp_path: Path) -> None:
    write_pair(tmp_path / "ksp", SAMPLES[None, ..., None] * complex_numbers(1, 8, 6, 3))
    subprocess.run(["bart", "pattern", "ksp", "mask"], cwd=tmp_path, check=True, capture_output=True)
    np.testing.assert_array_equal(read_mask(tmp_path / "mask", EVERYWHERE[:, 0], EVERYWHERE), SAMPLES)
