"""Where one slice of several is taken, everybody who asks is told which: terminal, manifest, report, status, files."""

import json
from pathlib import Path

import numpy as np
import pytest

from mri_design.evaluation.run_folder import RunFolder
from tests.cli.folders import Run

SLICE = "slice 1 of 3, numbered from 0"
PLAIN = '[reconstruction]\nmethod = "zero-filled"\n[inference]\nsamples = 2\nloops = 1\ntolerance = 0.5\n'


@pytest.fixture(scope="module")
def stack(work: Path) -> Path:
    """Three slices of one coil, and a recipe that ends soon."""
    kspace = np.load(work / "scan.npz")["kspace"]
    np.savez(work / "stack.npz", kspace=np.concatenate([kspace, 2 * kspace, 3 * kspace]))
    (work / "plain.toml").write_text(PLAIN)
    return work / "stack.npz"


@pytest.mark.parametrize("verb", [("recon",), ("design", "--lines", 8, "--strategy", "low-pass")])
def test_one_slice_of_several_is_named_everywhere(
    run: Run, stack: Path, work: Path, tmp_path: Path, verb: tuple[object, ...]
) -> None:
    out, words = tmp_path / "run", (*verb[1:], "--recipe", work / "plain.toml")
    result = run(verb[0], stack, "--slice", 1, *words, "--out", out, code=(0, 4))
    assert result.stderr.splitlines()[0] == f"mri-design: stack[1]: {SLICE}"
    assert json.loads((out / "manifest.json").read_text())["settings"]["part_of_scan"] == SLICE
    assert "part of the scan" in (out / "report.html").read_text() and SLICE in (out / "report.html").read_text()
    assert run("status", out).stdout.rstrip().endswith(f"; {SLICE}")
    said = run("export", out, "--to", "csv", "--out", tmp_path / "lines.csv").stdout
    assert f"Of the run's scan: {SLICE}." in said
    quiet = run(verb[0], stack, "--slices", 0, *words, "--out", tmp_path / "first", "--quiet")
    assert quiet.stderr == "" and "slice 0 of 3" in (tmp_path / "first" / "manifest.json").read_text()


def test_a_scan_of_one_slice_needs_no_number(run: Run, work: Path, stack: Path, tmp_path: Path) -> None:
    result = run("recon", "scan.npz", "--recipe", work / "plain.toml", "--out", tmp_path / "run")
    assert "slice" not in result.stderr and "part_of_scan" not in (tmp_path / "run" / "manifest.json").read_text()
    assert "; slice" not in run("status", tmp_path / "run").stdout


def test_of_several_repetitions_the_one_that_is_read_is_named_likewise(
    run: Run, work: Path, stack: Path, tmp_path: Path
) -> None:
    twice = np.stack([np.load(stack)["kspace"]] * 2)
    np.save(tmp_path / "twice.npy", twice)
    (tmp_path / "twice.json").write_text(json.dumps({"dims": ["rep", "slice", "coil", "ky", "kx"]}))
    result = run(
        "recon", tmp_path / "twice.npy", "--slice", 1, "--recipe", work / "plain.toml", "--out", tmp_path / "run"
    )
    line = result.stderr.splitlines()[0]
    assert f"{SLICE}. repetition: first of 2; the others were not read" in line
    about = f"{SLICE}; repetition first of 2"
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["settings"]["part_of_scan"] == about
    assert run("status", tmp_path / "run").stdout.rstrip().endswith(f"; {about}")


def test_a_run_that_goes_on_is_told_with_its_slice(run: Run, tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run", command=["recon", "scan.h5"]) as folder:
        folder.progress.note(SLICE)
        folder.progress.show("outer loops", 1, 3)
        told = run("status", tmp_path / "run").stdout
    assert told.startswith("run: running; outer loops 1 of 3") and f"; {SLICE}; " in told


def test_a_conversion_of_one_slice_says_which(run: Run, stack: Path, tmp_path: Path) -> None:
    one = run("convert", stack, tmp_path / "one.npz", "--slice", -2)
    assert one.stderr == f"mri-design: stack[1]: {SLICE}\n"
    assert run("convert", stack, tmp_path / "all.npz").stderr == ""


def test_a_conversion_takes_the_slices_that_are_named_in_their_order(run: Run, stack: Path, tmp_path: Path) -> None:
    run("convert", stack, tmp_path / "two.npz", "--slices", "2,0", code=0)
    np.testing.assert_array_equal(np.load(tmp_path / "two.npz")["kspace"], np.load(stack)["kspace"][[2, 0]])
    refused = run("convert", stack, tmp_path / "none.npz", "--slices", "1-3", code=2)
    assert "got 1-3; wanted 0 to 2" in refused.stderr and not (tmp_path / "none.npz").exists()
