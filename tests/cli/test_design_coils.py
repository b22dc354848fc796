"""Designs with several coils: the centre that maps take, and what is said where it is most of the mask."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mri_design import load_phantom
from tests.cli.folders import Run, page, settings


def test_few_lines_begin_with_fewer_for_the_maps_and_a_mask_that_is_mostly_calibration_says_so(
    run: Run, tmp_path: Path
) -> None:
    data = load_phantom("brain", shape=(48, 40), n_coils=3, rng=np.random.default_rng(0))
    np.savez(tmp_path / "coils.npz", kspace=data.kspace, noise_variance=np.float64(data.noise_variance or 0))
    words = ("design", tmp_path / "coils.npz", "--recipe", "fast.toml", "--strategy", "low-pass")
    result = run(*words, "--acceleration", 2, "--no-report", "--out", tmp_path / "few", code=0)
    assert (
        "from the lines as they are measured, beginning with 12 at the centre; --start sets how many" in result.stdout
    )
    assert settings(tmp_path / "few")["start"] == 12
    assert settings(tmp_path / "few")["coil_maps_source"].startswith(
        "estimated by ESPIRiT from 24 gapless centre lines"
    )
    result = run(*words, "--lines", 12, "--start", 12, "--out", tmp_path / "all", code=0)
    sentence = "12 of 12 lines are measured for the coil maps, so that strategies differ in 0 only"
    assert sentence in result.stderr and sentence in page(tmp_path / "all")
    assert "nothing was chosen: all 12 lines are those of the start" in result.stdout


def test_a_comparison_whose_masks_are_tried_with_few_centre_lines_does_not_say_that_little_is_left(
    run: Run, tmp_path: Path
) -> None:
    data = load_phantom("brain", shape=(48, 40), n_coils=3, rng=np.random.default_rng(0))
    np.savez(tmp_path / "coils.npz", kspace=data.kspace, noise_variance=np.float64(data.noise_variance or 0))
    words = ("compare", tmp_path / "coils.npz", "--recipe", "fast.toml", "--strategies", "low-pass", "--lines", 26)
    words = (*words, "--method", "zero-filled", "--jobs", 1, "--no-report")
    assert "differ" not in run(*words, "--out", tmp_path / "few", code=0).stderr
    assert "differ in 2 only" in run(*words, "--start", 24, "--out", tmp_path / "one", code=0).stderr
