"""Samples that no receiver has measured: recon refuses them, info and convert say so."""

import re
from pathlib import Path

import numpy as np

from tests.cli.folders import Run


def test_recon_refuses_the_slice_and_info_and_convert_say_the_same_numbers_of_all(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    kspace = (10 ** rng.uniform(-30, 30, (3, 2, 32, 32))).astype(np.complex64)
    kspace[0, 0, 3, 5] = 3e38  # beside the slice in the middle, which alone is read otherwise
    np.save(tmp_path / "u.npy", kspace)
    np.save(tmp_path / "maps.npy", np.ones((2, 32, 32), dtype=np.complex64))
    refused = run("recon", tmp_path / "u.npy", "--out", tmp_path / "r")
    assert refused.exit_code != 0 and "a 24-bit receiver, even summed over a million averages" in refused.stderr
    assert re.search(r"slice 0: .*samples up to 3e\+38, .* beyond 1e10 times the median;", refused.stderr)
    told = run("info", tmp_path / "u.npy", "--maps", tmp_path / "maps.npy", code=0)
    numbers = re.search(r"^samples +(up to 3e\+38, .* beyond 1e10 times the median): ", told.stdout, re.M)
    assert numbers is not None
    sentence = f"{numbers[1]}: nothing that a receiver measures. recon and design refuse them."
    assert sentence in told.stdout
    assert "calibration" not in told.stdout and "measured lines" not in told.stdout
    for name in ("u.h5", "v.npz"):
        made = run("convert", tmp_path / "u.npy", tmp_path / name, code=0)
        assert f"u: samples {sentence}" in made.stderr
