"""How tests call the command line, and the contents of the folder that a run leaves."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mri_design.evaluation import read_csv_texts as rows
from tests.command_line import Result

Run = Callable[..., Result]
Spawn = Callable[..., "subprocess.Popen[str]"]
Designed = tuple[Path, Result]
"""A folder, and what the command said."""


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return found


def settings(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = manifest(folder)["settings"]
    return found


def order(folder: Path) -> list[int]:
    """Lines as they were chosen."""
    return [int(row["line"]) for row in rows(folder / "lines.csv")]


def page(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def cited(folder: Path) -> set[str]:
    """Works that the paragraph for a paper cites."""
    return set(re.findall(r"(?:^|>)@\w+\{(\w+),", page(folder), re.M))


def files(folder: Path) -> dict[str, bytes]:
    """Contents by path, without what tells the time."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {
        name: content for name, content in found.items() if name not in ("manifest.json", "state.npz", "result.npz")
    }
