"""What an interrupted run left may only be gone on with by the same run."""

from __future__ import annotations

from pathlib import Path

from mri_design.errors import UsageError

__all__ = ["require_same_run"]


def require_same_run(path: Path, found: object, identity: object, left: str) -> None:
    """Refuse a file whose identity is another one; ``left`` says what it would be, as "the progress of another run".

    Raises
    ------
    UsageError
        Naming the file.
    """
    if found != identity:
        raise UsageError(
            f"{path.name} is {left}, with other inputs or options; give the same as before, another --out, or add "
            "--overwrite"
        )
