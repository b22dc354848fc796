"""The verb `mask`: a mask without a scan, in every format, with a picture, and taken by other verbs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mri_design.evaluation import read_csv
from tests.cli.folders import Run


def make(run: Run, out: Path, *words: object, code: int = 0) -> None:
    run("mask", *words, "--out", out, code=code)


def test_the_mask_is_written_and_drawn(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "mask.npy"
    make(run, out, "--kind", "vd", "--shape", "24x20", "--encoding", "lines", "--acceleration", 2, "--seed", 3)
    mask = np.load(out)
    assert mask.shape == (24,) and mask.dtype == bool and mask.sum() == 12
    assert (tmp_path / "mask.png").read_bytes().startswith(b"\x89PNG")


def test_a_table_has_the_lines_in_their_order(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "mask.csv"
    words = ("--kind", "regular", "--shape", 32, "--acceleration", 4, "--calibration", 4, "--no-picture")
    make(run, out, *words, "--order", "ascending")
    rows = read_csv(out)
    lines = [int(str(row["line"])) for row in rows]
    assert lines == sorted(lines) and len(lines) == 8 and {14, 15, 16, 17} <= set(lines)
    assert [row["ky"] for row in rows] == [line - 16 for line in lines]
    make(run, out, *words, "--overwrite")
    assert [row["line"] for row in read_csv(out)][:3] == [16, 15, 17]
    make(run, out, "--kind", "radial:golden", "--shape", 32, "--shots", 3, "--no-picture", "--overwrite")
    assert [row["degrees"] for row in read_csv(out)] == pytest.approx([0, 111.246, 222.492], abs=1e-3)


def test_shots_are_written_as_their_trajectory(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("finufft")
    make(run, tmp_path / "r.npy", "--kind", "radial", "--shape", 32, "--acceleration", 4)
    shots = np.load(tmp_path / "r.npy")
    assert shots.shape == (8, 32, 2)
    make(run, tmp_path / "r.cfl", "--kind", "radial", "--shape", 32, "--acceleration", 4, "--no-picture")
    bart = np.fromfile(tmp_path / "r.cfl", dtype=np.complex64).reshape(3, 32, 8, order="F")
    np.testing.assert_allclose(bart[0].T.real, shots[..., 1], atol=1e-6)  # kx first


def test_a_sequence_is_verified_and_says_what_it_plays(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("pypulseq")
    words = ("--kind", "caipi", "--shape", "16x12", "--acceleration", 4, "--calibration", 4, "--thickness", 0.1)
    make(run, tmp_path / "mask.seq", *words, "--fov", 0.24, "--no-picture")
    assert "\nMatrix 16 16 12" in (tmp_path / "mask.seq").read_text()


def test_names_and_files_that_are_there_are_kept(run: Run, tmp_path: Path) -> None:
    words = ("--kind", "vd", "--shape", 32, "--acceleration", 4)
    (tmp_path / "mask.png").write_bytes(b"mine")
    for name in ("mask.txt", "mask.seq", "mask.npy"):  # no format, no field of view, a picture that is there
        make(run, tmp_path / name, *words, code=2)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("mask.png", b"mine")]
