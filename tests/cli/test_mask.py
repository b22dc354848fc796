"""`design` on a bare grid: a mask without a scan, in the folder of a run that other verbs take."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mri_design.evaluation import read_csv
from tests.cli.folders import Run, cited, manifest


@pytest.mark.parametrize(
    ("words", "shape", "count", "works"),
    [
        ("24x20 --strategy vd --encoding lines --acceleration 2 --seed 3", (24,), 12, {"lustig2007"}),
        ("24x20 --strategy poisson-disc --acceleration 4 --start 4", (24, 20), 120, {"cook1986"}),
        ("16 --strategy regular:4 --lines 4 --start 0", (16,), 4, set()),
    ],
)
def test_the_folder_has_the_mask_the_order_and_a_picture(
    run: Run, tmp_path: Path, words: str, shape: tuple[int, ...], count: int, works: set[str]
) -> None:
    out = tmp_path / "mask"
    run("design", *words.split(), "--out", out, drawn=True, code=0)
    mask = np.load(out / "mask.npy")
    assert mask.shape == shape and mask.dtype == bool and mask.sum() == count
    assert sorted(manifest(out)["lines"]) == np.flatnonzero(mask).tolist()
    assert (out / "figures" / "mask.svg").is_file() and cited(out) == works | {"mri_design"}
    run("design", *words.split(), "--out", out, "--no-report", "--overwrite", code=0)
    assert not (out / "report.html").exists()


def test_export_takes_its_lines_in_the_order_of_measurement(run: Run, tmp_path: Path) -> None:
    words = ("design", 32, "--strategy", "regular", "--acceleration", 4, "--start", 4, "--no-report")
    run(*words, "--order", "ascending", "--out", tmp_path / "mask", code=0)
    run("export", tmp_path / "mask", tmp_path / "mask.csv", code=0)
    rows = read_csv(tmp_path / "mask.csv")
    lines = [int(str(row["line"])) for row in rows]
    assert lines == sorted(lines) and len(lines) == 8 and {14, 15, 16, 17} <= set(lines)
    assert [row["ky"] for row in rows] == [line - 16 for line in lines]


def test_shots_have_their_angles_and_their_trajectory(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("finufft")
    words = ("design", 32, "--encoding", "radial", "--strategy", "golden", "--shots", 3, "--no-report")
    run(*words, "--out", tmp_path / "spokes", code=0)
    degrees = [row["angle_degrees"] for row in read_csv(tmp_path / "spokes" / "shots.csv")]
    assert degrees == pytest.approx([0, 111.246, 222.492], abs=1e-3)
    shots = np.load(tmp_path / "spokes" / "trajectory.npz")["trajectory"]
    assert shots.shape == (3, 32, 2)
    run("export", tmp_path / "spokes", tmp_path / "spokes.cfl", code=0)
    bart = np.fromfile(tmp_path / "spokes.cfl", dtype=np.complex64).reshape(3, 32, 3, order="F")
    np.testing.assert_allclose(bart[0].T.real, shots[..., 1], atol=1e-6)  # kx first


def test_a_sequence_is_verified_and_says_what_it_plays(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("pypulseq")
    words = ("design", "16x12", "--strategy", "caipi", "--acceleration", 4, "--start", 4, "--no-report")
    run(*words, "--out", tmp_path / "mask", code=0)
    run("export", tmp_path / "mask", tmp_path / "mask.seq", "--fov", 0.24, "--thickness", 0.1, code=0)
    assert "\nMatrix 16 16 12" in (tmp_path / "mask.seq").read_text()
