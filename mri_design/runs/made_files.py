"""Files that are ready to be written beside each other, each complete or not at all."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from mri_design.errors import UsageError
from mri_design.scan.geometry import SliceGeometry
from mri_design.scan.io.atomic import write_bytes

__all__ = ["NO_SIZES", "MadeFiles", "ending_of", "name_beside", "what_is_unknown", "write_made_files"]

NO_SIZES = SliceGeometry((1.0, 1.0), None)
"""What formats that need a size of pixels are given where nobody says one."""


@dataclass(frozen=True)
class MadeFiles:
    """Files with their contents; nothing is written yet.

    Parameters
    ----------
    files : mapping of Path to bytes
        Contents.
    sentences : tuple of str
        What they hold, and what is not known.
    """

    files: Mapping[Path, bytes]
    sentences: tuple[str, ...]


def write_made_files(made: MadeFiles, *, overwrite: bool = False) -> None:
    """Write the files.

    Parameters
    ----------
    made : MadeFiles
        Files and contents.
    overwrite : bool
        Whether files that are there may be replaced.

    Raises
    ------
    UsageError
        Where one of the files is there already; then none is written.
    InputError
        For a symbolic link in a file's place.
    OSError
        Where the disk does not take a file.
    """
    there = [path for path in made.files if path.exists()]
    if there and not overwrite:
        raise UsageError(f"{there[0]} is there already; take another name, or add --overwrite")
    for path in made.files:
        path.parent.mkdir(parents=True, exist_ok=True)
    for path, content in made.files.items():
        write_bytes(path, content)


def ending_of(path: Path, endings: Collection[str]) -> str | None:
    """Which of some endings a file's name has behind at least one other character; None where it has none of them."""
    return next((ending for ending in endings if path.name.endswith(ending) and path.name != ending), None)


def name_beside(path: Path, ending: str, mark: str) -> Path:
    """The name of a second file: the mark stands before the ending."""
    return path.with_name(path.name.removesuffix(ending) + mark + ending)


def what_is_unknown(whose: str, geometry: SliceGeometry | None) -> list[str]:
    """Sentences about sizes and places that a format asks for and nobody knows.

    Parameters
    ----------
    whose : str
        What should have said it, as the beginning of a sentence: "The run".
    geometry : SliceGeometry or None
        What is known.
    """
    if geometry is None:
        return [f"{whose} does not say how large pixels are: those of 1 mm are written. --fov gives the field of view."]
    unknown = []
    if geometry.thickness is None:
        unknown.append("The thickness of the slice is not known: 1 mm is written.")
    if not geometry.placed:
        unknown.append("Where the slice lies is not known: the file has sizes of pixels, but no place or directions.")
    return unknown
