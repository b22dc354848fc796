"""Whose folder is this: a run may not write over the results of another."""

from __future__ import annotations

import json
from pathlib import Path

from mri_design.errors import UsageError
from mri_design.evaluation.output.run_folder import RunFolder


def require_same_run(path: Path, stored: object, identity: object, left: str) -> None:
    """Refuse a file whose identity is another one; ``left`` says what it would be, as "the progress of another run".

    Raises
    ------
    UsageError
        Naming the file.
    """
    if stored != identity:
        raise UsageError(
            f"{path.name} is {left}, with other inputs or options; give the same as before, another --out, or add "
            "--overwrite"
        )


CHECKPOINT = "checkpoint.npz"
"""What an unfinished design keeps in its folder."""
PROGRESS = "progress.json"
"""What a comparison keeps in its folder."""


def finished_status(folder: RunFolder, identity: str, *, own: str = "") -> str | None:
    """How the same run ended in this folder before, None where it did not yet; another run's folder is refused.

    Nothing is written, and a folder that may be overwritten holds nothing.

    Parameters
    ----------
    folder : RunFolder
        Where the run is about to write.
    identity : str
        Fingerprint of everything that makes the run what it is; a finished one has it in its manifest's settings.
    own : str
        Name of the file, if any, that a run of this kind goes on from.

    Raises
    ------
    UsageError
        Where the folder holds a finished run that is not the same, or the beginning of a run of another kind.
    """
    if folder.overwrite:
        return None
    path = folder.path / "manifest.json"
    if path.exists():
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            stored, status = manifest["settings"]["identity"], str(manifest["status"])
        except (ValueError, KeyError, TypeError):
            stored, status = None, ""  # somebody else's manifest is a reason to keep away too
        if stored == identity:
            return status
        raise UsageError(f"{folder.path.name} holds a finished run; give another --out, or add --overwrite")
    for name in (CHECKPOINT, PROGRESS):
        if name != own and (folder.path / name).exists():
            raise UsageError(
                f"{folder.path.name} holds an unfinished run ({name}); give another --out, or add --overwrite"
            )
    return None


def finished_lines(folder: RunFolder) -> tuple[int, ...]:
    """The lines of the finished run of this folder, in acquisition order."""
    return tuple(json.loads((folder.path / "manifest.json").read_text(encoding="utf-8"))["lines"])
