from pathlib import Path

from mri_design.evaluation.page import Links, files_section


def test_the_files_that_are_there_are_linked_and_no_others(tmp_path: Path) -> None:
    for name in ("mask.npy", "lines.csv", "checkpoint.npz", "report.html", ".lock"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "recon.npy").mkdir()
    links = files_section(tmp_path).blocks[0]
    assert isinstance(links, Links)
    assert list(links.targets) == ["mask.npy", "lines.csv"]
    assert all(links.targets.values())
