"""`info` of what is no scan, and what a physicist asks of one first."""

from pathlib import Path

from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.writing.mrd import mrd_skeleton_bytes
from tests.cli.folders import Designed, Run

PLACE = SliceGeometry((2.0, 1.5), 5.0, (1.0, 2.0, 3.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))


def test_a_design_without_data_is_named_as_one(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "labels.h5"
    path.write_bytes(mrd_skeleton_bytes(((6, 3), (1,)), (12, 16), PLACE))
    result = run("info", path, code=0)
    assert "measured lines  3 labelled of 12, without lines 0, 2, 4-5, 7-11" in result.stdout
    assert "labels without samples" in result.stdout and "fully sampled   no" in result.stdout
    assert "\nnoise " not in result.stdout


def test_sequences_and_run_folders_are_described(run: Run, designed: Designed, tmp_path: Path) -> None:
    (tmp_path / "lines.seq").write_text("# Pulseq sequence file\n[VERSION]\nmajor 1\n[BLOCKS]\n1 1 1 1 1 1 1 1\n")
    assert "Pulseq 1, 1 blocks" in run("info", tmp_path / "lines.seq").stdout
    text = run("info", designed[0]).stdout
    assert "\nlines           " in text and "report.html" in text and "mri-design recon SCAN --mask" in text
    for other in (tmp_path / "lines.seq", designed[0]):
        refused = run("info", other, "--maps", tmp_path / "maps.npy", code=2)
        assert "--maps belongs to a scan" in refused.stderr
    nothing = run("info", tmp_path, code=3)
    assert "a folder without a run" in nothing.stderr
