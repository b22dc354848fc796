"""Folders of runs are described by their manifest and their files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mri_design import InputError
from mri_design.runs.info import describe_folder
from mri_design.runs.stored_run import read_images

MANIFEST = {
    "command": ["design", "scan.h5", "--lines", "30"],
    "status": "converged",
    "inputs": [{"name": "scan.h5", "sha256": "0"}],
    "lines": list(range(30)),
}


def folder(path: Path, files: str = "mask.npy lines.csv report.html", **changes: Any) -> Path:
    (path / "run").mkdir()
    for name in files.split():
        (path / "run" / name).touch()
    (path / "run/manifest.json").write_text(json.dumps({**MANIFEST, **changes}))
    return path / "run"


def test_a_finished_design_names_its_verb_its_lines_and_what_takes_it(tmp_path: Path) -> None:
    rows = describe_folder(folder(tmp_path))
    assert rows["run"] == "mri-design design scan.h5 --lines 30" and rows["ended"] == "converged"
    assert rows["inputs"] == "scan.h5" and rows["lines"].startswith("30: 0, 1, 2,") and rows["lines"].endswith(", ...")
    assert rows["holds"] == "lines.csv, manifest.json, mask.npy, report.html"
    for word in ("report.html", "mri-design recon SCAN --mask", "mri-design export"):
        assert word in rows["next"]


def test_a_study_has_no_mask_to_go_on_with(tmp_path: Path) -> None:
    rows = describe_folder(folder(tmp_path, "report.html", command=["compare", "x.h5"], lines=[]))
    assert "lines" not in rows and rows["next"] == f"open {tmp_path / 'run/report.html'}"


def test_a_design_of_a_plane_counts_samples_and_goes_to_a_sequence(tmp_path: Path) -> None:
    rows = describe_folder(folder(tmp_path, "mask.npy samples.csv recon.npy"))
    assert rows["samples"].startswith("30: 0, 1, 2,") and "lines" not in rows
    assert f"mri-design recon SCAN --mask {tmp_path / 'run/mask.npy'}" in rows["next"]
    assert "to a Pulseq sequence (--to seq), and its image to nifti and dicom" in rows["next"]


def test_a_reconstruction_of_a_plane_counts_samples_as_its_export_does(tmp_path: Path) -> None:
    made = folder(tmp_path, "recon.npy", command=["recon", "x.npz"], settings={"identity": "x"})
    mask = np.zeros((12, 10), dtype=bool)
    mask.flat[:30] = True
    np.save(made / "mask.npy", mask)
    np.save(made / "recon.npy", np.ones((12, 10), np.complex64))
    rows = describe_folder(made)
    assert read_images(made).measured == "30 of 120 samples" and rows["samples"].startswith("30: 0, 1, 2,")
    assert "lines" not in rows and "--to seq" not in rows["next"] and "its image to nifti and dicom" in rows["next"]


def test_a_design_of_shots_is_reconstructed_from_its_trajectory(tmp_path: Path) -> None:
    rows = describe_folder(folder(tmp_path, "mask.npy shots.csv trajectory.npz"))
    assert rows["shots"].startswith("30: 0, 1, 2,") and "lines" not in rows and "--mask" not in rows["next"]
    assert f"mri-design recon {tmp_path / 'run/trajectory.npz'} reconstructs" in rows["next"]
    assert rows["next"].endswith("takes it to a Pulseq sequence (--to seq)")


def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.npz").touch()
    rows = describe_folder(tmp_path)
    assert rows["run"].startswith("interrupted") and "--resume" in rows["next"]


@pytest.mark.parametrize("change", [{"lines": "all"}, {"command": None}, {"status": 3}])
def test_a_damaged_manifest_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"manifest.json: {next(iter(change))}"):
        describe_folder(folder(tmp_path, **change))


def test_other_folders_are_refused_with_what_would_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a folder without a run of this program.*DICOM"):
        describe_folder(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(InputError, match="the manifest of a run"):
        describe_folder(tmp_path)
