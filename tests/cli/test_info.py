"""`info` of what is no scan, and what a physicist asks of one first."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from mri_design import load_phantom
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.writing.mrd import mrd_scan_bytes, mrd_skeleton_bytes
from mri_design.scan.writing.nifti import nifti_bytes

Run = Callable[..., Result]
PLACE = SliceGeometry((2.0, 1.5), 5.0, (1.0, 2.0, 3.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
SIMULATED = ("0.007 per real component", "256 phase-encode lines", "\nfully sampled ", "\nmeasured lines ")


@pytest.mark.parametrize("form", ["npz", "npy", "nii"])
def test_images_are_described_and_not_the_simulation(run: Run, tmp_path: Path, form: str) -> None:
    images = np.random.default_rng(0).uniform(0, 9, (3, 20, 18)).astype(np.float32)
    path = tmp_path / f"head.{form}"
    if form == "npz":
        np.savez(path, image=images)
    elif form == "npy":
        np.save(path, images)
    else:
        path.write_bytes(nifti_bytes(images, PLACE, "head", compressed=False))
    result = run("info", path)
    assert result.exit_code == 0, result.output
    assert "images          3 of 20 x 18 pixels" in result.stdout and "simulation only" in result.stdout
    assert not [words for words in SIMULATED if words in result.stdout]
    assert ("40 x 27 mm, voxels of 2 x 1.5 x 5 mm" in result.stdout) == (form == "nii")
    refused = run("info", path, "--maps", tmp_path / "maps.npy")
    assert refused.exit_code == 2 and "images" in refused.stderr


def test_raw_data_tell_centre_oversampling_and_the_noise_of_coils(run: Run, tmp_path: Path) -> None:
    data = load_phantom("brain", shape=(24, 20), n_coils=4, rng=np.random.default_rng(1))
    kspace = data.kspace.copy()
    kspace[:, :, :1] = 0
    measured = np.arange(24) > 0
    path = tmp_path / "scan.h5"
    path.write_bytes(mrd_scan_bytes(replace(data, kspace=kspace, measured=measured), [PLACE]))
    text = run("info", path).stdout
    assert "measured lines  23 of 24, missing 0" in text
    assert "fully sampled   yes from line 1 to 23; empty at the edges of k-space: 0\n" in text
    assert "centre          line 12, sample 10, counted from 0; 23 lines without a gap around it (1-23), of" in text
    assert "centre_in_file  kspace_encode_step_1 = 12" in text
    assert "before whitening" in text and "orientation     transverse" in text


def test_a_design_without_data_is_named_as_one(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "labels.h5"
    path.write_bytes(mrd_skeleton_bytes(((6, 3), (1,)), (12, 16), PLACE))
    result = run("info", path)
    assert result.exit_code == 0, result.output
    assert "measured lines  3 labelled of 12, missing 0, 2, 4-5, 7-11" in result.stdout
    assert "labels without samples" in result.stdout and "fully sampled   no" in result.stdout
    assert "\nnoise " not in result.stdout


def test_sequences_and_run_folders_are_described(run: Run, designed: tuple[Path, Result], tmp_path: Path) -> None:
    (tmp_path / "lines.seq").write_text("# Pulseq sequence file\n[VERSION]\nmajor 1\n[BLOCKS]\n1 1 1 1 1 1 1 1\n")
    assert "Pulseq 1, 1 blocks" in run("info", tmp_path / "lines.seq").stdout
    text = run("info", designed[0]).stdout
    assert "\nlines           " in text and "report.html" in text and "mri-design recon SCAN --mask" in text
    for other in (tmp_path / "lines.seq", designed[0]):
        refused = run("info", other, "--maps", tmp_path / "maps.npy")
        assert refused.exit_code == 2 and "--maps belongs to a scan" in refused.stderr
    nothing = run("info", tmp_path)
    assert nothing.exit_code == 3 and "a folder without a run" in nothing.stderr
