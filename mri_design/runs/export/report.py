"""What an export leaves: its files, each complete or not at all."""

from __future__ import annotations

from mri_design.errors import UsageError
from mri_design.runs.export.run import Exported
from mri_design.scan.io.atomic import write_bytes

__all__ = ["write_exported"]


def write_exported(exported: Exported, *, overwrite: bool = False) -> None:
    """Write the files of an export.

    Parameters
    ----------
    exported : Exported
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
    there = [path for path in exported.files if path.exists()]
    if there and not overwrite:
        raise UsageError(f"{there[0]} is there already; give another --out, or add --overwrite")
    for path in exported.files:
        path.parent.mkdir(parents=True, exist_ok=True)
    for path, content in exported.files.items():
        write_bytes(path, content)
