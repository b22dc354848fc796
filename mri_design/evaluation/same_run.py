"""What an interrupted run left may only be gone on with by the same run."""

from __future__ import annotations

from pathlib import Path

from mri_design.errors import InputError

__all__ = ["require_same_run"]


def require_same_run(path: Path, found: object, identity: object, left: str) -> None:
    """Refuse a file whose identity is another one; ``left`` says what it would be, as "the progress of another run".

    Raises
    ------
    InputError
        Naming the file.
    """
    if found != identity:
        raise InputError(
            field=path.name,
            got=left,
            wanted="one with the same inputs and options",
            cure="Give the same options as before, or another --out.",
        )
