"""A finished design of few lines goes on to more of them, and is the design that asked for all at once."""

from pathlib import Path

import numpy as np
import pytest

import mri_design as md
from tests.cli.folders import Run, manifest

QUICK = ("--recipe", "quick-local.toml", "--no-report")
SAME = ("lines.csv", "mask.npy", "recon.npy", "std.npy", "prediction.csv", "scores.csv", "metrics.csv")


@pytest.fixture(scope="module")
def coils(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two slices of two coils, whose maps are estimated."""
    scan = md.load_phantom("brain", shape=(24, 20), n_coils=2, rng=np.random.default_rng(0))
    path = tmp_path_factory.mktemp("coils") / "coils.npz"
    np.savez(
        path, kspace=np.concatenate([scan.kspace, 1j * scan.kspace[..., ::-1]]), noise_variance=scan.noise_variance
    )
    return path


@pytest.mark.parametrize(
    ("source", "counts", "options"),
    [
        ("scan.npz", (9, 11, 13), ("--start", 6)),
        ("scan.npz", (12, 13, 17), ("--start", 6, "--block", 4)),  # the last blocks of the shorter ones are cut off
        ("coils", (9, 12), ("--start", 4)),
        ("coils", (9, 12), ("--start", 4, "--slices", "all", "--jobs", 2)),
        ("scan.npz", (9, 12), ("--start", 6, "--until-error", 1e-4)),
        ("scan.npz", (60, 90), ("--encoding", "plane", "--block", 20, "--strategy", "information-gain")),
    ],
    ids=["lines", "blocks", "coils", "slices", "rule", "plane"],
)
def test_a_finished_design_is_extended_to_that_of_more_lines(
    run: Run, coils: Path, tmp_path: Path, source: str, counts: tuple[int, ...], options: tuple[object, ...]
) -> None:
    scan = coils if source == "coils" else source
    for count in counts:
        words = ("design", scan, *QUICK, *options, "--lines", count, "--resume", "--out", tmp_path / "a")
        run(*words, code=(0, 4))
        assert (tmp_path / "a" / "state.npz").exists() and not (tmp_path / "a" / "checkpoint.npz").exists()
    run("design", scan, *QUICK, *options, "--lines", counts[-1], "--out", tmp_path / "b", code=(0, 4))
    for name in SAME if "plane" not in options else SAME[1:5]:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    found = [manifest(tmp_path / name) for name in "ab"]
    assert found[0]["settings"] == found[1]["settings"] and found[0]["lines"] == found[1]["lines"]


@pytest.fixture(scope="module")
def short(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished design of 9 lines."""
    out = tmp_path_factory.mktemp("short") / "run"
    run("design", "scan.npz", *QUICK, "--start", 6, "--lines", 9, "--out", out, code=0)
    return out


@pytest.mark.parametrize(
    "words", [("--lines", 12), ("--lines", 8, "--resume"), ("--lines", 12, "--resume", "--seed", 1)]
)
def test_what_is_no_extension_is_refused_and_changes_nothing(run: Run, short: Path, words: tuple[object, ...]) -> None:
    before = {path.name: path.read_bytes() for path in short.iterdir()}
    run("design", "scan.npz", *QUICK, "--start", 6, *words, "--out", short, code=2)
    assert {path.name: path.read_bytes() for path in short.iterdir()} == before
