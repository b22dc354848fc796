"""`design` over spokes and arms of spirals, from the command line."""

import json
from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from tests.cli.folders import Run, manifest, rows

pytest.importorskip("finufft")


@pytest.mark.slow
def test_a_design_of_spokes_leaves_its_angles_and_what_each_told(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "radial"
    words = ("--encoding", "radial", "--shots", 7, "--recipe", "coarse.toml")
    run("design", "phantom:brain", *words, "--out", out, code=(0, 4))
    chosen, shots = manifest(out)["lines"], rows(out / "shots.csv")
    assert len(set(chosen)) == 7 and max(chosen) < 28
    assert np.flatnonzero(np.load(out / "mask.npy")).tolist() == sorted(chosen)
    assert [float(row["angle_degrees"]) for row in shots] == pytest.approx(
        [180 * shot / 28 for shot in chosen], rel=1e-5
    )
    assert all(row["information_nats"] == "" for row in shots[:4])
    assert all(float(row["information_nats"]) > 0 for row in shots[4:])
    assert md.load_run(out).lines == tuple(chosen)
    metrics = rows(out / "metrics.csv")
    assert metrics[0]["shots"] == "7" and "lines" not in metrics[0]


def test_a_comparison_of_shots_that_learns_takes_angles_and_training_scans(run: Run, tmp_path: Path) -> None:
    words = ("compare", "phantom:brain", "--encoding", "radial", "--shots", 5, "--recipe", "coarse.toml", "--jobs", 1)
    chosen = ("--strategies", "information-gain,golden", "--train", "phantom:shepp-logan")
    run(*words, *chosen, "--out", tmp_path / "study", code=(0, 4))
    masks = json.loads((tmp_path / "study" / "masks.json").read_text())
    assert [mask["strategy"] for mask in masks] == ["information-gain", "information-gain@train", "golden"]
