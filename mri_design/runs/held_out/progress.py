"""Finished pieces of a comparison on disk, so that an interrupted run goes on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from mri_design.errors import InputError
from mri_design.evaluation.run_folder import require_same_run
from mri_design.evaluation.tables import Row
from mri_design.scan.io.atomic import write_json
from mri_design.status import Status

_PARTS = ("masks", "rows", "tuned", "masks_converged")


@dataclass
class ComparisonProgress:
    """Finished pieces of a comparison, kept in one JSON file so that an interrupted run goes on.

    Parameters
    ----------
    path : Path or None
        Where; None keeps them in memory.
    identity : str
        Fingerprint of inputs, recipe, seed and choices; a file of another comparison is refused.
    """

    path: Path | None
    identity: str
    masks: dict[str, list[int]] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    tuned: dict[str, float] = field(default_factory=dict)
    masks_converged: dict[str, bool] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """ "converged", or how many reconstructions and how many designs of masks did not."""
        parts = []
        for flags, what in (
            ([bool(row["reconstruction_converged"]) for row in self.rows.values()], "reconstructions"),
            (list(self.masks_converged.values()), "masks"),
        ):
            if not all(flags):
                parts.append(f"{flags.count(False)} of {len(flags)} {what}")
        return f"{' and '.join(parts)} not converged" if parts else Status.CONVERGED.value

    @classmethod
    def open(cls, path: Path | None, identity: str) -> ComparisonProgress:
        """Read what is there, or begin.

        Raises
        ------
        InputError
            For a damaged file, or one of another comparison.
        """
        if path is None or not path.exists():
            return cls(path, identity)
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            stored_identity, *parts = (stored[key] for key in ("identity", *_PARTS))
            if not all(isinstance(part, dict) for part in parts):
                raise TypeError("a part that is no table")
            if parts[0].keys() != parts[-1].keys():
                raise ValueError("masks without how their design ended")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                field=path.name,
                got=f"an unreadable file ({error})",
                wanted="a comparison's progress",
                cure="Delete it.",
            ) from error
        require_same_run(path, stored_identity, identity, "the progress of another comparison")
        return cls(path, identity, *parts)

    def save(self) -> None:
        """Write everything finished so far, atomically."""
        if self.path is not None:
            write_json(self.path, {"identity": self.identity} | {name: getattr(self, name) for name in _PARTS})
