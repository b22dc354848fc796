"""Exchanges tried so far, on disk, so that an interrupted protocol goes on."""

from __future__ import annotations

import json
from pathlib import Path

from mri_design.design.refine import Exchange, Refinement
from mri_design.errors import InputError
from mri_design.evaluation.same_run import require_same_run
from mri_design.io.atomic import write_json

__all__ = ["load_refinement", "save_refinement"]


def save_refinement(path: Path, state: Refinement, identity: str) -> None:
    """Write the state; an older file is replaced in one step or not at all."""
    tried = [[e.removed, e.added, e.error, e.accepted] for e in state.exchanges]
    counts = {"reconstructions": state.reconstructions, "unconverged": state.unconverged}
    write_json(
        path, {"identity": identity, "lines": list(state.lines), "error": state.error, "exchanges": tried} | counts
    )


def load_refinement(path: Path, identity: str) -> Refinement:
    """Read a state back.

    Raises
    ------
    InputError
        For a damaged file, or one of another protocol.
    """
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        found = stored["identity"]
        exchanges = tuple(Exchange(int(r), int(a), float(e), bool(kept)) for r, a, e, kept in stored["exchanges"])
        lines = tuple(int(line) for line in stored["lines"])
        counts = int(stored["reconstructions"]), int(stored["unconverged"])
        state = Refinement(lines, float(stored["error"]), exchanges, *counts)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            field=path.name, got=f"an unreadable file ({error})", wanted="a protocol's exchanges", cure="Delete it."
        ) from error
    require_same_run(path, found, identity, "the exchanges of another protocol")
    return state
