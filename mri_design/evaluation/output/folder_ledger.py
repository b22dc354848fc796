"""Which files of a folder a run of this program wrote, so that nobody else's are overwritten or removed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mri_design.errors import UsageError
from mri_design.scan.io.atomic import write_text

LEDGER_NAME = ".mri-design.json"
_MAX_BYTES = 1 << 20
OUTPUTS = frozenset(
    (
        *("acquisition.csv", "checkpoint.npz", "exchanges.csv", "exchanges.json", "lines.csv", "manifest.json"),
        *("kspace.npz", "latency.csv", "messages.jsonl", "readouts.jsonl", "readouts.mrd"),
        *("mask.npy", "masks.json", "metrics.csv", "models.csv", "paired.csv", "paired.md", "prediction-lines.csv"),
        *("prediction.csv", "progress.json", "recon.npy", "report.html", "scores.csv", "std.npy", "steps.csv"),
        *("summary.csv", "summary.md", "test-progress.json", "tuned.csv", "winners.csv", "winners.md"),
    )
)
"""Every file that a verb may write into its folder, figures apart."""
_EARLIER = ("manifest.json", "checkpoint.npz", "progress.json")
"""Files by which a folder of version 0.1.0, which kept no ledger, is known."""


class FolderLedger:
    """The files of a run in its folder, kept in a hidden file beside them.

    Parameters
    ----------
    folder : Path
        An existing folder.
    overwrite : bool
        Whether files of others may be replaced.

    Raises
    ------
    UsageError
        Where the folder holds a symbolic link; or, unless ``overwrite``, where it is not empty and no run of this
        program has written there, or somebody else's file has a name that a run may need.
    """

    def __init__(self, folder: Path, *, overwrite: bool = False) -> None:
        self._folder, self._overwrite = folder, overwrite
        entries = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
        links = [path.name for path in entries if path.is_symlink()]
        if links:
            raise UsageError(
                f"{folder.name} holds the link {links[0]}, and nothing is written through links; give another --out"
            )
        names = _names(folder / LEDGER_NAME)
        if names is None and _is_earlier_run(folder):
            names = {_relative(folder, path) for path in _files(entries)}
        if names is None and entries and not overwrite:
            raise UsageError(
                f"{folder.name} holds {entries[0].name}, and no run of this program; give another --out, or add "
                "--overwrite to write beside and over what is there"
            )
        self._names = names or set()
        theirs = [path.name for path in entries if path.name in OUTPUTS - self._names]
        if theirs and not overwrite:
            raise self._refusal(theirs[0])

    def _refusal(self, name: str) -> UsageError:
        return UsageError(
            f"{self._folder.name} holds a file {name} that no run of this program wrote; move it, give another --out, "
            "or add --overwrite"
        )

    @property
    def empty(self) -> bool:
        """True where no file of a run is in the folder."""
        return not any((self._folder / name).exists() for name in self._names)

    def claim(self, path: Path) -> None:
        """Note that ``path`` is written by this run.

        Raises
        ------
        UsageError
            Where somebody else's file of that name is there, unless the folder may be overwritten.
        """
        name = _relative(self._folder, path)
        if name in self._names:
            return
        if path.exists() and not self._overwrite:
            raise self._refusal(name)
        self._names.add(name)
        self._save()

    def owns(self, path: Path) -> bool:
        """Whether a run of this program wrote ``path``."""
        return _relative(self._folder, path) in self._names

    def clear(self) -> None:
        """Remove the files of earlier runs."""
        for name in sorted(self._names):
            (self._folder / name).unlink(missing_ok=True)
        self._names.clear()
        self._save()

    def open(self) -> None:
        """Mark the folder as this program's."""
        self._save()

    def withdraw(self) -> None:
        """Take the mark away where nothing was written."""
        if self.empty:
            with suppress(OSError):
                (self._folder / LEDGER_NAME).unlink(missing_ok=True)

    def _save(self) -> None:
        content = {"written_by": "mri-design", "files": sorted(self._names)}
        write_text(self._folder / LEDGER_NAME, json.dumps(content, indent=1) + "\n")


def _names(path: Path) -> set[str] | None:
    """Names in a ledger; None where there is none that can be read."""
    try:
        if path.is_symlink() or path.stat().st_size > _MAX_BYTES:
            return None
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    plain = isinstance(files, list) and all(isinstance(name, str) and _is_plain(name) for name in files)
    return set(files) if plain else None


def _is_plain(name: str) -> bool:
    """A file of the folder or of one folder in it: nothing that leads elsewhere."""
    parts = name.split("/")
    return 1 <= len(parts) <= 2 and all(part and not part.startswith(".") and "\0" not in part for part in parts)


def _is_earlier_run(folder: Path) -> bool:
    if any((folder / name).is_file() for name in _EARLIER[1:]):
        return True
    try:
        return "identity" in json.loads((folder / _EARLIER[0]).read_text(encoding="utf-8"))["settings"]
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _files(entries: Iterable[Path]) -> Iterable[Path]:
    for path in entries:
        yield from (inner for inner in path.iterdir() if inner.is_file()) if path.is_dir() else (path,)


def _relative(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix()
