"""What a Pulseq sequence says of itself, in words. Its blocks are not played: `verify` of the export does that."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from mri_design.errors import InputError
from mri_design.scan.io.safe import check_file

_START = b"# Pulseq sequence file"
_SIGNATURE = re.compile(rb"^\[SIGNATURE\][ \r]*$", re.MULTILINE)
_MOST = 64 * 2**20
_UNITS = {"FOV": "m", "TE": "s", "TR": "s", "TotalDuration": "s", "FlipAngle": "degrees", "SliceThickness": "m"}
_MOST_DEFINITIONS, _LONGEST = 40, 200


def is_sequence(path: Path) -> bool:
    """Whether a file begins as Pulseq files do."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(_START)) == _START


def describe_sequence(path: Path) -> dict[str, str]:
    """Version, definitions and number of blocks of a Pulseq file, whose signature is checked where it has one.

    Parameters
    ----------
    path : Path
        A file that `is_sequence` recognised.

    Returns
    -------
    dict of str to str
        Label to text.

    Raises
    ------
    InputError
        Where the file is longer than 64 MiB, has no list of blocks, or is not the one that its signature is of.
    """
    size = check_file(path)
    if size > _MOST:
        raise InputError(field=str(path), got=f"{size} bytes", wanted=f"a sequence of at most {_MOST} bytes")
    content = path.read_bytes()
    sections = _sections(content.decode("utf-8", errors="replace"))
    if not sections.get("BLOCKS"):
        raise InputError(
            field=str(path), got="no list of blocks", wanted="a whole Pulseq file", cure="Copy or export it again."
        )
    version = ".".join(line.split()[-1] for line in sections.get("VERSION", [])[:3])
    said = dict(line.partition(" ")[::2] for line in sections.get("DEFINITIONS", [])[:_MOST_DEFINITIONS])
    return {
        "name": path.stem,
        "sequence": f"Pulseq {version}, {len(sections['BLOCKS'])} blocks",
        **{name: f"{text.strip()[:_LONGEST]} {_UNITS.get(name, '')}".rstrip() for name, text in said.items()},
        "signature": _signature(path, content, sections.get("SIGNATURE", [])),
        "samples": "none: a sequence measures, and is no scan. Give the raw data that the scanner made with it",
        "file": path.name,
    }


def _signature(path: Path, content: bytes, lines: list[str]) -> str:
    """Whether the file is as it was written: the last section has the MD5 sum of all that stands before it.

    Source: specification of the Pulseq format, version 1.4 and later, section [SIGNATURE].
    """
    begins = [found.start() for found in _SIGNATURE.finditer(content)]
    if not begins:
        return "none, so whether the file is whole cannot be told; those that mri-design export writes have one"
    said = dict(line.partition(" ")[::2] for line in lines)
    kind, wanted = said.get("Type", "").strip().lower(), said.get("Hash", "").strip().lower()
    if kind not in ("md5", ""):
        return f"of type {kind[:20]}, which is not checked here"
    signed = content[: begins[-1]].removesuffix(b"\n").removesuffix(b"\r")
    # A transfer as text may have changed the ends of lines, which mean nothing.
    sums = {hashlib.md5(text, usedforsecurity=False).hexdigest() for text in (signed, signed.replace(b"\r\n", b"\n"))}
    if wanted not in sums:
        raise InputError(
            field=f"{path}: signature",
            got=f"{wanted[:40] or 'none'}, which does not match: the file was changed after it was written, or cut",
            wanted=f"md5 {min(sums)}" if len(sums) == 1 else "that of the file",
            cure="Copy or export it again.",
        )
    return "matches: the file is as it was written"


def _sections(text: str) -> dict[str, list[str]]:
    """Lines of every section that are no comments."""
    sections: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("["):
            name = line.strip("[] ")
        elif line.strip() and not line.startswith("#"):
            sections.setdefault(name, []).append(line.strip())
    return sections
