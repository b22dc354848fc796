"""Pulseq files are described by what they say of themselves."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from mri_design import InputError, read
from mri_design.runs.info import describe_sequence, is_sequence
from mri_design.sequences.orders import LineOrder
from mri_design.sequences.pulseq_file import pulseq_file
from mri_design.sequences.scanner import load_scanner
from mri_design.sequences.settings import SequenceSettings

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
    assert rows["FOV"] == "0.24 0.24 0.005 m" and rows["TE"] == "0.01 s" and rows["kSpaceCenterLine"] == "8"
    assert rows["samples"].startswith("none")


def test_half_a_sequence_and_other_files_are_refused(path: Path, tmp_path: Path) -> None:
    path.write_text(TEXT.partition("# Format of blocks")[0])
    with pytest.raises(InputError, match="no list of blocks"):
        describe_sequence(path)
    (tmp_path / "text.txt").write_text("[BLOCKS]\n1\n")
    assert not is_sequence(tmp_path / "text.txt") and not is_sequence(tmp_path) and not is_sequence(tmp_path / "absent")


def signed(text: str, kind: str = "md5", ends: str = "\n") -> bytes:
    hashed = hashlib.md5(text.encode()).hexdigest()
    return f"{text}\n[SIGNATURE]\n# About it\nType {kind}\nHash {hashed}\n".replace("\n", ends).encode()


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_the_signature_is_checked(path: Path, ends: str) -> None:
    assert describe_sequence(path)["signature"].startswith("none, so whether the file is whole cannot be told")
    path.write_bytes(signed(TEXT, ends=ends))
    assert describe_sequence(path)["signature"].startswith("matches")
    path.write_bytes(signed(TEXT, kind="sha1"))
    assert "sha1, which is not checked" in describe_sequence(path)["signature"]


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.replace(b"TE 0.01", b"TE 0.02"),
        lambda content: content.replace(b"2 20 0 3 0 0 1 0\n", b""),
        lambda content: content[:-4],
        lambda content: content[: content.index(b"Type")],
    ],
)
def test_a_sequence_that_was_changed_is_refused(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(signed(TEXT)))
    with pytest.raises(InputError, match=r"lines\.seq: signature: got .*does not match: the file was changed after it"):
        describe_sequence(path)


def test_what_the_package_writes_is_signed(tmp_path: Path) -> None:
    pytest.importorskip("pypulseq")
    settings = SequenceSettings(
        kind="gre",
        field_of_view=(0.24, 0.24),
        samples=16,
        echo_time=0.015,
        repetition_time=0.2,
        flip_angle=20.0,
        bandwidth=300.0,
    )
    made = pulseq_file(LineOrder.of_lines([3, 8], 16), settings, load_scanner("generic"))
    (tmp_path / "a.seq").write_bytes(made.content)
    assert describe_sequence(tmp_path / "a.seq")["signature"].startswith("matches")


def test_as_a_scan_it_is_refused_with_the_way_out(path: Path) -> None:
    with pytest.raises(InputError, match=r"Pulseq sequence, without samples.*Give the raw data"):
        read(path)
