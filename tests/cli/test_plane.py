"""`design` and `compare` over the samples of a plane, from the command line."""

from pathlib import Path

import numpy as np

from tests.cli.folders import Run, manifest, rows, settings

PLANE = ("--encoding", "plane")


def test_a_design_leaves_a_plane_in_its_folder(run: Run, work: Path, tmp_path: Path) -> None:
    out = tmp_path / "plane"
    limits = ("-s", "constraints.forbid=corners", "--start", 4)
    words = ("--acceleration", 6, "--block", 16, *limits, "--recipe", "coarse.toml")
    run("design", "scan.npz", *PLANE, *words, "--out", out, code=(0, 4))
    mask = np.load(out / "mask.npy")
    lines = manifest(out)["lines"]
    assert mask.shape == (24, 20) and mask.sum() == 80 and mask[10:14, 8:12].all() and not mask[0, 0]
    assert sorted(lines) == np.flatnonzero(mask).tolist()
    assert [row["samples"] for row in rows(out / "metrics.csv")] == ["80"]
    samples = rows(out / "samples.csv")
    assert [int(row["sample"]) for row in samples] == lines
    assert samples[0]["ky"] == samples[0]["kz"] == "0" and int(samples[-1]["block"]) == 4
    blocks = rows(out / "blocks.csv")
    assert [row["chosen"] for row in blocks] == ["16"] * 4
    assert [bool(row["predicted"]) for row in blocks] == [False, True, True, True]
    assert all(float(row["found"]) > 0 for row in blocks)
    checked = rows(out / "prediction.csv")
    assert [row["samples"] for row in checked] == ["32", "48", "64", "80"] and "sample_ratio" in checked[0]
    assert not (out / "lines.csv").exists()


def test_positions_of_air_have_no_say_in_the_mask(run: Run, work: Path, tmp_path: Path) -> None:
    """Before it, between, and behind the object; the mask is that of the positions with signal alone."""
    with np.load(work / "scan.npz") as stored:
        head, sd = stored["kspace"].reshape(1, 1, 24, 20), np.sqrt(float(stored["noise_variance"]))
    parts = np.random.default_rng(0).standard_normal((2, 3, 1, 24, 20)) * sd
    air = parts[0] + 1j * parts[1]
    whole = np.concatenate([air[:1], head, air[1:2], np.roll(head, 1, axis=-1), air[2:]])
    for name, kspace in (("volume", whole), ("filled", whole[[1, 3]])):
        np.savez(tmp_path / f"{name}.npz", kspace=kspace.astype(np.complex64), noise_variance=np.float64(sd**2))
    words = (*PLANE, "--slices", "all", "--acceleration", 6, "--block", 20, "--recipe", "coarse.toml")
    shuffled = (*words, "--slices", "0,2,1,3,4")
    run("design", tmp_path / "volume.npz", *shuffled, "--out", tmp_path / "all", code=(0, 4))
    assert settings(tmp_path / "all")["positions_without_signal"] == [0, 2, 4]
    run("design", tmp_path / "filled.npz", *words, "--slices", "1,0", "--out", tmp_path / "alone", code=(0, 4))
    assert "positions_without_signal" not in settings(tmp_path / "alone")
    masks = [np.load(tmp_path / name / "mask.npy") for name in ("all", "alone")]
    np.testing.assert_array_equal(*masks)
    run("design", tmp_path / "volume.npz", *words, "--out", tmp_path / "refused", code=3)
