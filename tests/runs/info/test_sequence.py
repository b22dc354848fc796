"""Pulseq files are described by what they say of themselves."""

from pathlib import Path

import pytest

from mri_design.errors import InputError
from mri_design.runs.info.sequence import describe_sequence, is_sequence
from mri_design.scan.io.formats import read

TEXT = """# Pulseq sequence file
# Created by nobody

[VERSION]
major 1
minor 4
revision 1

[DEFINITIONS]
FOV 0.24 0.24 0.005
TE 0.01
kSpaceCenterLine 8

# Format of blocks
[BLOCKS]
1 10 1 0 0 0 0 0
2 20 0 3 0 0 1 0

[RF]
1 250 1 2 0 100 0 0
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "lines.seq"
    file.write_text(TEXT)
    return file


def test_version_definitions_and_blocks_are_told(path: Path) -> None:
    assert is_sequence(path)
    rows = describe_sequence(path)
    assert rows["sequence"] == "Pulseq 1.4.1, 2 blocks"
    assert rows["FOV"] == "0.24 0.24 0.005" and rows["TE"] == "0.01 s" and rows["kSpaceCenterLine"] == "8"
    assert rows["samples"].startswith("none")


def test_half_a_sequence_and_other_files_are_refused(path: Path, tmp_path: Path) -> None:
    path.write_text(TEXT.partition("# Format of blocks")[0])
    with pytest.raises(InputError, match="no list of blocks"):
        describe_sequence(path)
    (tmp_path / "text.txt").write_text("[BLOCKS]\n1\n")
    assert not is_sequence(tmp_path / "text.txt") and not is_sequence(tmp_path) and not is_sequence(tmp_path / "absent")


def test_as_a_scan_it_is_refused_with_the_way_out(path: Path) -> None:
    with pytest.raises(InputError, match=r"Pulseq sequence, without samples.*Give the raw data"):
        read(path)
