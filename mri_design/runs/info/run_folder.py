"""What a folder of runs holds, in words: which verb made each, how it ended, and what to do with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mri_design.errors import InputError
from mri_design.runs.counted import SAMPLES, SHOTS, counted
from mri_design.scan.io.npy import read_npy_stream
from mri_design.scan.io.safe import DEFAULT_LIMITS, check_file

if TYPE_CHECKING:
    from mri_design.evaluation.output.folder_status import RunStatus

_MANIFEST, _MOST_LINES = "manifest.json", 24


def describe_folder(folder: Path) -> dict[str, str]:
    """The verb, how it ended, its inputs and lines, the files that are there, and verbs that take them.

    Parameters
    ----------
    folder : Path
        Of a run, or one that holds the folders of several, as the demo's does.

    Returns
    -------
    dict of str to str
        Label to text.

    Raises
    ------
    InputError
        Where it is no folder of a run of this program, and holds none.
    """
    if (folder / _MANIFEST).is_file():
        return _finished(folder, _manifest(folder / _MANIFEST))
    if (folder / "checkpoint.npz").is_file():
        return {
            "name": folder.resolve().name,
            "run": "interrupted: there is a checkpoint and no result",
            "holds": _files(folder),
            "next": "the same command with --resume goes on",
        }
    from mri_design.evaluation.output.folder_status import run_statuses  # with what it takes to write runs

    found = run_statuses(folder)
    if found:
        return _several(folder, found)
    raise InputError(
        field=str(folder),
        got="a folder without a run of this program",
        wanted="a file, or the folder that design, recon or another verb left",
        cure="Name one file of it: slices of DICOM are files of their own, a BART pair is named by either file.",
    )


def _several(folder: Path, runs: Sequence[RunStatus]) -> dict[str, str]:
    """A folder whose own run is not finished, or that holds the folders of others."""
    rows = {"name": folder.resolve().name}
    inside = [run for run in runs if run.path != folder]
    own = "".join(run.state for run in runs if run.path == folder)
    if own:
        rows["run"] = f"{own}: there is no result yet"
    if inside:
        told = (
            f"{run.path.relative_to(folder)} ({run.state}{f', {run.ended}' if run.ended else ''})" for run in inside
        )
        rows["runs"] = f"{len(inside)}: {', '.join(told)}"
    report = f"open {folder / 'report.html'}" if (folder / "report.html").is_file() and not own else ""
    uses = [f"mri-design info {inside[0].path} tells of one run"] if inside else []
    if own or any(run.state != "finished" for run in inside):
        uses.append(f"mri-design status {folder} tells how far they are")
    return rows | {"holds": _files(folder), "next": "; ".join(filter(None, (report, *uses)))}


def _finished(folder: Path, manifest: dict[str, Any]) -> dict[str, str]:
    command = [str(word) for word in manifest["command"]]
    lines = manifest["lines"]
    inputs = ", ".join(str(entry.get("name")) for entry in manifest["inputs"] if isinstance(entry, dict))
    rows = {
        "name": folder.resolve().name,
        "run": f"mri-design {' '.join(command)}",
        "ended": str(manifest["status"]),
        "inputs": inputs or "none but what is built in",
    }
    what = counted(folder, manifest.get("settings", {}), _mask_axes(folder / "mask.npy"))
    if lines:
        listed = ", ".join(map(str, lines[:_MOST_LINES])) + (", ..." if len(lines) > _MOST_LINES else "")
        rows[what] = f"{len(lines)}: {listed}"
    rows["holds"] = _files(folder)
    report = f"open {folder / 'report.html'}" if (folder / "report.html").is_file() else ""
    return rows | {"next": "; ".join(filter(None, (report, *_uses(folder, what))))}


def _mask_axes(path: Path) -> int | None:
    """Axes of a mask; None where there is none that can be read."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as stream:
            return read_npy_stream(stream, check_file(path), path.name, DEFAULT_LIMITS).ndim
    except (InputError, OSError):
        return None


def _uses(folder: Path, what: str) -> list[str]:
    """Commands that take what the folder holds, of which ``what`` was measured."""
    uses = list[str]()
    if what == "shots":
        trajectory = folder / "trajectory.npz"
        if trajectory.is_file():
            uses.append(f"mri-design recon {trajectory} reconstructs from what it measured")
    elif (folder / "mask.npy").is_file():
        uses.append(f"mri-design recon SCAN --mask {folder / 'mask.npy'} reconstructs from what it chose")
    if (folder / "mask.npy").is_file():
        ordered = any((folder / name).is_file() for name in (SAMPLES, SHOTS))
        takes = {"other formats": what == "lines", "a Pulseq sequence (--to seq)": ordered}
        where = [f"it to {form}" for form, able in takes.items() if able]
        where += ["its image to nifti and dicom"] if (folder / "recon.npy").is_file() and what != "lines" else []
        uses += [f"mri-design export {folder} takes {', and '.join(where)}"] if where else []
    if (folder / "kspace.npz").is_file():
        uses.append(f"mri-design info {folder / 'kspace.npz'} tells of what was measured")
    return uses


def _files(folder: Path) -> str:
    names = sorted(path.name + "/" * path.is_dir() for path in folder.iterdir() if not path.name.startswith("."))
    return ", ".join(names)


def _manifest(path: Path) -> dict[str, Any]:
    field = f"{path.parent.name}/{path.name}"
    try:
        if check_file(path) > DEFAULT_LIMITS.max_text_bytes:
            raise ValueError(f"more than {DEFAULT_LIMITS.max_text_bytes} bytes")
        manifest = json.loads(path.read_text(encoding="utf-8"))
        kinds = {"command": list, "status": str, "inputs": list, "lines": list}
        wrong = [name for name, kind in kinds.items() if not isinstance(manifest[name], kind)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(field=field, got=f"{error}"[:120], wanted="the manifest of a run") from error
    if wrong:
        raise InputError(field=f"{field}: {wrong[0]}", got="another type", wanted="the manifest of a run")
    return dict(manifest)
