"""Design states on disk: written atomically after every line, read back to the same design."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mri_design.design.engine import DesignState
from mri_design.design.trace import DesignStep, DesignTrace
from mri_design.errors import InputError, UsageError
from mri_design.inference.base import WarmStart
from mri_design.scan.io.atomic import write_npz

__all__ = ["fingerprint", "load_state", "save_state"]


_PER_LINE = ("scores", "expected", "corrected")
"""What a step may hold for every line of the grid."""


def fingerprint(settings: Mapping[str, Any]) -> str:
    """Checksum of everything that must be equal for a resumed design to be the same design."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()


def save_state(path: Path, state: DesignState, identity: str) -> None:
    """Write the state; an older file at ``path`` is replaced in one step or not at all."""
    trace = state.trace
    blank = np.full(trace.n_lines, np.nan)
    arrays: dict[str, Any] = {
        "identity": np.array(identity),
        "strategy": np.array(trace.strategy),
        "n_lines": np.array(trace.n_lines),
        "start": np.array(trace.start, dtype=np.int64),
        "line": np.array([s.line for s in trace.steps], dtype=np.int64),
        "predicted": np.array([s.predicted_energy for s in trace.steps]),
        "actual": np.array([s.actual_energy for s in trace.steps]),
        "converged": np.array([s.converged for s in trace.steps], dtype=bool),
        "matvecs": np.array([s.matvecs for s in trace.steps], dtype=np.int64),
        "seconds": np.array([s.seconds for s in trace.steps]),
        "image_energy": np.array([s.image_energy for s in trace.steps]),
        "information": np.array([s.information for s in trace.steps]),
        "least_error": np.array([s.least_error for s in trace.steps]),
        "pending": np.array([s.pending for s in trace.steps], dtype=np.int64),
        "signals": np.array(state.signals),
        "blocks": np.array([len(w.z) for w in state.warm], dtype=np.int64),
    }
    for name in _PER_LINE:
        found = [getattr(step, name) for step in trace.steps]
        arrays[f"has_{name}"] = np.array([values is not None for values in found], dtype=bool)
        arrays[name] = np.array([blank if values is None else values for values in found]).reshape(-1, trace.n_lines)
    arrays |= _choices(trace.steps)
    for i, warm in enumerate(state.warm):
        arrays |= _warm_arrays(str(i), warm)
    for i, each in enumerate(state.rivals):
        arrays[f"rivals_{i}"] = np.array([-1 if warm is None else len(warm.z) for warm in each], dtype=np.int64)
        for number, rival in enumerate(each):
            arrays |= {} if rival is None else _warm_arrays(f"rival_{i}_{number}", rival)
    arrays["rivals"] = np.array(len(state.rivals))
    write_npz(path, arrays)


def _choices(steps: Sequence[DesignStep]) -> dict[str, Any]:
    """Models in use (steps, slices), and energies of innovations (steps, slices, models), NaN where none was known."""
    used = [step.models for step in steps]
    found = [step.model_energies for step in steps]
    shape = tuple(max((e.shape[axis] for e in found if e is not None), default=0) for axis in (0, 1))
    energies = np.full((len(steps), *shape), np.nan)
    for table, known in zip(energies, found, strict=True):
        if known is not None:
            table[:, : known.shape[1]] = known
    return {
        "models": np.array(used, dtype=np.int64).reshape(len(steps), max(map(len, used), default=0)),
        "model_energies": energies,
        "has_model_energies": np.array([0 if e is None else e.shape[1] for e in found], dtype=np.int64),
    }


def _warm_arrays(name: str, warm: WarmStart) -> dict[str, Any]:
    arrays: dict[str, Any] = {f"mean_{name}": warm.mean} | {f"z_{name}_{j}": z for j, z in enumerate(warm.z)}
    return arrays if warm.samples is None else arrays | {f"samples_{name}": warm.samples}


def _warm_start(stored: Any, name: str, blocks: int) -> WarmStart | None:
    if blocks < 0:
        return None
    z = tuple(stored[f"z_{name}_{j}"] for j in range(blocks))
    return WarmStart(
        stored[f"mean_{name}"], z, stored[f"samples_{name}"] if f"samples_{name}" in stored.files else None
    )


_DAMAGE = (OSError, KeyError, ValueError, IndexError, EOFError, RuntimeError, MemoryError)
"""What NumPy and zipfile raise on files that something happened to."""


def load_state(path: Path, identity: str) -> DesignState:
    """Read a state back.

    Raises
    ------
    InputError
        Where the file is damaged.
    UsageError
        Where it belongs to another input, recipe, seed or command.
    """
    try:
        # Opened here: NumPy leaves the file open where it is no archive.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            found = str(stored["identity"])
            if found != identity:
                raise UsageError(
                    f"{path.name} is the checkpoint of a design with another input, recipe, seed, start or number of "
                    "lines; give the same options as before, another --out, or --overwrite in place of --resume"
                )
            widths = stored["has_model_energies"]
            steps = tuple(
                DesignStep(
                    line=int(stored["line"][i]),
                    predicted_energy=float(stored["predicted"][i]),
                    actual_energy=float(stored["actual"][i]),
                    converged=bool(stored["converged"][i]),
                    matvecs=int(stored["matvecs"][i]),
                    seconds=float(stored["seconds"][i]),
                    image_energy=float(stored["image_energy"][i]),
                    pending=int(stored["pending"][i]),
                    information=float(stored["information"][i]),
                    least_error=float(stored["least_error"][i]),
                    models=tuple(int(number) for number in stored["models"][i]),
                    model_energies=stored["model_energies"][i, :, :width] if (width := int(widths[i])) else None,
                    **{name: stored[name][i] if stored[f"has_{name}"][i] else None for name in _PER_LINE},
                )
                for i in range(len(stored["line"]))
            )
            trace = DesignTrace(
                str(stored["strategy"]), int(stored["n_lines"]), tuple(int(k) for k in stored["start"]), steps
            )
            warm = tuple(w for i, n in enumerate(stored["blocks"]) if (w := _warm_start(stored, str(i), n)))
            rivals = tuple(
                tuple(_warm_start(stored, f"rival_{i}_{number}", n) for number, n in enumerate(stored[f"rivals_{i}"]))
                for i in range(int(stored["rivals"]))
            )
            return DesignState(trace, tuple(float(s) for s in stored["signals"]), warm, rivals)
    except (*_DAMAGE, zipfile.BadZipFile) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            field=path.name, got=f"an unreadable checkpoint ({error})", wanted="a complete one", cure="Delete it."
        ) from error
