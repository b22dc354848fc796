"""Designs with several coils: the centre that maps take, and what is said where it is most of the mask."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mri_design import load_phantom
from tests.cli.folders import Run, settings


def test_few_lines_begin_with_fewer_for_the_maps_and_a_mask_that_is_mostly_calibration_says_so(
    run: Run, tmp_path: Path
) -> None:
    data = load_phantom("brain", shape=(48, 40), n_coils=3, rng=np.random.default_rng(0))
    np.savez(tmp_path / "coils.npz", kspace=data.kspace, noise_variance=np.float64(data.noise_variance or 0))
    words = ("design", tmp_path / "coils.npz", "--recipe", "fast.toml", "--strategy", "low-pass")
    run(*words, "--acceleration", 2, "--no-report", "--out", tmp_path / "few", code=0)
    assert settings(tmp_path / "few")["start"] == 12
    assert settings(tmp_path / "few")["coil_maps_source"].startswith(
        "estimated by ESPIRiT from 24 gapless centre lines"
    )
    run(*words, "--lines", 12, "--start", 12, "--out", tmp_path / "all", code=0)
