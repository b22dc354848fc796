"""Files that are ready to be written beside each other, each complete or not at all."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from mri_design.errors import UsageError, option
from mri_design.scan.geometry import SliceGeometry, SourceImage
from mri_design.scan.io.atomic import require_folder_of, write_bytes

WITHOUT_UNIT = "the file has sizes of 1 without a unit"
"""Statement about a NIfTI file without sizes of pixels."""
NO_SIZES = SliceGeometry((1.0, 1.0), None)
"""Geometry that takes a field of view where sizes of pixels are not known."""


@dataclass(frozen=True)
class MadeFiles:
    """Files with their contents; nothing is written yet.

    Parameters
    ----------
    files : mapping of Path to bytes
        Contents.
    sentences : tuple of str
        Contents in words, and facts that nobody knows.
    warning : str
        Parts of the input that were not read, and samples that recon refuses; empty where there are none.
    """

    files: Mapping[Path, bytes]
    sentences: tuple[str, ...]
    warning: str = ""


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
        For a symbolic link in a file's place, and a folder that does not exist.
    OSError
        Where the disk does not take a file.
    """
    there = [path for path in made.files if path.exists()]
    if there and not overwrite:
        raise UsageError(f"{there[0]} is there already; take another name, or add {option('overwrite')}")
    for path in made.files:
        require_folder_of(path)
    for path, content in made.files.items():
        write_bytes(path, content)


def ending_of(path: Path, endings: Collection[str]) -> str | None:
    """The ending of a file's name among these, behind at least one other character; None where it has none."""
    return next((ending for ending in endings if path.name.endswith(ending) and path.name != ending), None)


def name_beside(path: Path, ending: str, mark: str) -> Path:
    """The name of a second file: the mark stands before the ending."""
    return path.with_name(path.name.removesuffix(ending) + mark + ending)


def sized(
    geometry: SliceGeometry | None, extents: tuple[float, float] | None, shape: tuple[int, ...]
) -> SliceGeometry | None:
    """Geometry of an image (rows, columns) with the field of view that was asked for, where one was, in metres."""
    return geometry if extents is None else (geometry or NO_SIZES).with_field_of_view(extents, (shape[0], shape[1]))


def what_is_unknown(
    whose: str, geometry: SliceGeometry | None, instead: str = "those of 1 mm are written, marked as not known"
) -> list[str]:
    """Sentences about sizes and places that a format asks for and nobody knows.

    Parameters
    ----------
    whose : str
        Who should have said it, as the beginning of a sentence: "The run".
    geometry : SliceGeometry or None
        Known sizes and places.
    instead : str
        Content of the file in the place of sizes of pixels.
    """
    if geometry is None:
        return [f"{whose} does not say how large pixels are: {instead}. {option('fov')} gives the field of view."]
    unknown = []
    if geometry.thickness is None:
        unknown.append("The thickness of the slice is not known: 1 mm is written, marked as not known.")
    return [*unknown, *where_is_unknown(geometry)]


def where_is_unknown(geometry: SliceGeometry) -> list[str]:
    """A sentence about a place and directions that the file does not have, and why; none where it has them."""
    if geometry.placed:
        return []
    why = f" ({geometry.unplaced})" if geometry.unplaced else ""
    return [f"Where the slice lies is not known: the file has sizes of pixels, but no place or directions{why}."]


def whose_it_is(source: SourceImage | None) -> list[str]:
    """A sentence about whom a DICOM file names; none where there is no source that names anybody."""
    if source is None or not source.names_somebody:
        return []
    if not source.image:
        return ["Patient and study are those of the header of the raw data, as far as it names them."]
    return ["Patient and study are those of the DICOM image that it was made from, which the file names as its source."]
