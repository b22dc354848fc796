"""The folder of one run: who may write to it, which names, and every file complete or absent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mri_design.errors import InputError, UsageError, option
from mri_design.evaluation.pictures import Drawing, placed, png_bytes, svg_text
from mri_design.evaluation.run_status import CHECKPOINT, PROGRESS, PROGRESS_NAME, FolderLock, ProgressFile
from mri_design.evaluation.tables import Row, csv_text
from mri_design.scan.io import atomic

LEDGER_NAME = ".mri-design.json"
_MAX_BYTES = 1 << 20
OUTPUTS = {
    "recon.npy": "the image, complex64 (ky, kx); of several slices (slice, ky, kx), of several repetitions, contrasts, "
    "phases or sets (frame, slice, ky, kx)",
    "noise.npy": "standard deviation of every pixel by noise alone, float32, axes as of std.npy",
    "g_factor.npy": "noise over that of the complete scan, over the root of the acceleration, float32",
    "std.npy": "standard deviation of every pixel, float32 (ky, kx); of several slices (slice, ky, kx)",
    "draws.npy": "images as the posterior holds them possible, complex64 (draw, ky, kx); of several slices (slice, "
    "draw, ky, kx)",
    "reference.npy": "the true image, complex64, axes as of recon.npy",
    "coil_maps.npy": "coil sensitivity maps of the scan's own coils, complex64 (coil, ky, kx); of several slices "
    "(slice, coil, ky, kx)",
    "mask.npy": "what is measured, bool: lines (ky,), samples of a plane (ky, kz), or shots (shot,)",
    "lines.csv": "lines in the order of choice",
    "samples.csv": "samples of the plane in the order of choice",
    "shots.csv": "shots in the order of choice, with their angles",
    "trajectory.npz": "the chosen shots as a scan: data, trajectory, noise, coil maps",
    "acquisition.csv": "what is measured, in the order of measurement, with its echo trains where there are any",
    "state.npz": "where the design stands: --lines N --resume goes on from there",
    "masks.json": "every mask as what it measures, in the order of choice",
    "metrics.csv": "error of every image",
    "coverage.csv": "within how many standard deviations the pixels of other scans are",
    "winners.csv": "least mean error at each number of lines, samples or shots",
    "measures.csv": "means of regions and their differences, with errors",
    "summary.csv": "mean errors and their spread",
    "gains.csv": "what designs gain by coil maps from few centre lines, and what by the choice of lines",
    "enough.csv": "how many lines, samples or shots are enough for an error",
    "paired.csv": "designed masks against the best of the others",
    "maps.csv": "what the coil maps of masks rest on, and how well they predict coils held back",
    "companions.csv": "which other images of the object the priors of images knew, mask by mask",
    "methods.csv": "mean errors of every method of reconstruction on the same masks",
    "tuned.csv": "powers of the tuned densities",
    "steps.csv": "every decision of the design",
    "blocks.csv": "every block of samples of the design",
    "scores.csv": "score of every line at every decision",
    "prediction.csv": "predicted and actual error along the run",
    "prediction-lines.csv": "the same line by line",
    "exchanges.csv": "exchanges of lines that were tried",
    "manifest.json": "command, versions, seed, settings",
} | dict.fromkeys(
    (
        *("checkpoint.npz", "exchanges.json", "kspace.npz", "latency.csv", "messages.jsonl", "paired.md"),
        *("progress.json", "readouts.mrd", "report.html", "summary.md", "test-progress.json"),
        *("maps.md", "winners.md", "companions.md", "gains.md", "enough.md"),
    ),
    "",
)
"""Every file that a verb may write into its folder, figures apart, and what reports say of those that people open."""


def _names(path: Path) -> set[str] | None:
    """Names of files in a ledger, none of which leads out of the folder; None where there is none that can be read."""
    try:
        if path.is_symlink() or path.stat().st_size > _MAX_BYTES:
            return None
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
        return set(files) if all(_LISTED.fullmatch(name) for name in files) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


_FIGURES = "figures"
# a letter or digit first keeps out "..", hidden files (the lock) and names that look like options
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}")
_LISTED = re.compile(rf"(?:{_FIGURES}/)?{_PLAIN_NAME.pattern}")


class RunFolder:
    """Create or reopen the folder of a run, alone.

    Every file is written beside its place and renamed, so a reader or a killed run never sees half a file.
    What an interrupted write left behind is removed when the folder is opened.

    Parameters
    ----------
    path : str or Path
        Created where it does not exist; the folder that it is in has to exist.
    overwrite : bool
        Whether other people's files may be replaced, and another run's.
    command : sequence of str
        The arguments of the run, for those who look into the folder while it lasts.
    reported : bool
        Whether figures and the report belong to the run; where they do not, arrays, tables and the manifest are all.
    png : bool
        Whether a PNG stands beside the SVG of every figure.

    Attributes
    ----------
    progress : ProgressFile
        Where the run's progress is kept while it lasts, and after it was interrupted.

    Raises
    ------
    UsageError
        Where the path is a symbolic link or holds one; unless ``overwrite``, where it holds files and no run of this
        program. The writing methods raise it for a file of somebody else in the folder of a run.
    InputError
        Where the path is no folder, cannot be created, or another run is using it.
    OSError
        From the writing methods, with the file's path, where the disk does not take the file; what stood
        there before is intact.

    Notes
    -----
    Files of an earlier run stay until they are written again: resuming needs them.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        overwrite: bool = False,
        command: Sequence[str] = (),
        reported: bool = True,
        png: bool = False,
    ) -> None:
        self.path = Path(path)
        self.reported, self.png = reported, png
        self.progress = ProgressFile(self.path / PROGRESS_NAME, command)
        self.overwrite = overwrite
        self._new = _make_folder(self.path)
        self._lock = FolderLock(self.path)
        try:
            self._names = self._names_of_runs()
            self.progress.waiting = not self._empty  # until it is known that this run goes on here
            self._save_ledger()
            atomic.remove_stale_temporaries(self.path)
            if (self.path / _FIGURES).exists():
                atomic.remove_stale_temporaries(self._figures())
        except BaseException:
            self._lock.release()
            self._remove_what_is_empty()
            raise

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or self._empty:
            self.progress.remove()
        else:
            self.progress.write()
        if error is not None and self._empty:  # nothing was written: the folder is not marked
            with suppress(OSError):
                (self.path / LEDGER_NAME).unlink(missing_ok=True)
        self.close()
        if error is not None:
            self._remove_what_is_empty()

    def _remove_what_is_empty(self) -> None:
        for made in (self.path / _FIGURES, *([self.path] if self._new else [])):
            with suppress(OSError):  # not there, or not empty: something was written before the error
                made.rmdir()

    def _names_of_runs(self) -> set[str]:
        """Names of the files that runs of this program left, by a hidden file beside them; errors as for the class."""
        entries = [path for path in sorted(self.path.iterdir()) if not path.name.startswith(".")]
        links = [path.name for path in entries if path.is_symlink()]
        if links:
            raise UsageError(
                f"{self.path.name} holds the link {links[0]}, and nothing is written through links; "
                f"give another {option('out')}"
            )
        names = _names(self.path / LEDGER_NAME)
        if self.overwrite:
            return names or set()
        if names is None and entries:
            raise UsageError(
                f"{self.path.name} holds {entries[0].name}, and no run of this program; give another "
                f"{option('out')}, or add {option('overwrite')} to write beside and over what is there"
            )
        for name in sorted(OUTPUTS.keys() & {path.name for path in entries} - (names or set())):
            self._refuse(name)
        return names or set()

    def _refuse(self, name: str) -> None:
        raise UsageError(
            f"{self.path.name} holds a file {name} that no run of this program wrote; move it, give "
            f"another {option('out')}, or add {option('overwrite')}"
        )

    @property
    def _empty(self) -> bool:
        """True where no file of a run is in the folder."""
        return not any((self.path / name).exists() for name in self._names)

    def _owns(self, path: Path) -> bool:
        """Whether a run of this program wrote ``path``."""
        return path.relative_to(self.path).as_posix() in self._names

    def _claim(self, path: Path) -> Path:
        """Note that ``path`` is written by this run; refused where somebody else's file is there."""
        if not self._owns(path):
            if path.exists() and not self.overwrite:
                self._refuse(path.name)
            self._names.add(path.relative_to(self.path).as_posix())
            self._save_ledger()
        return path

    def _save_ledger(self) -> None:
        atomic.write_json(self.path / LEDGER_NAME, {"written_by": "mri-design", "files": sorted(self._names)})

    def close(self) -> None:
        """Release the folder to the next run; a second call does nothing."""
        self._lock.release()

    def output_path(self, name: str) -> Path:
        """Path at which this run writes a file called ``name``, after checking that it stays in this folder.

        Parameters
        ----------
        name : str
            A plain file name: letters, digits, ``. _ + -``, beginning with a letter or digit.

        Raises
        ------
        InputError
            Where the name holds a folder, or a symbolic link or folder stands there.
        UsageError
            Where a file of that name is there which no run of this program wrote.
        """
        return self._claim(_checked(self.path, name))

    def existing(self, name: str) -> Path | None:
        """A file that a run of this program left here under ``name``; None where there is none."""
        path = _checked(self.path, name)
        return path if path.exists() and self._owns(path) else None

    def remove(self, name: str) -> None:
        """Remove what an earlier run left under ``name``; other people's files stay."""
        path = self.existing(name)
        if path is not None:
            path.unlink()

    def rename(self, name: str, new: str) -> None:
        """Give what a run left under ``name`` another name; nothing where there is none."""
        path = self.existing(name)
        if path is not None:
            path.replace(self.output_path(new))

    def remove_report(self) -> None:
        """Remove the report and the figures that an earlier run left here; other people's files stay."""
        figures = self.path / _FIGURES
        for path in (self.path / "report.html", *(figures.iterdir() if figures.is_dir() else ())):
            if self._owns(path):
                path.unlink(missing_ok=True)
        with suppress(OSError):  # not there, or not empty
            figures.rmdir()

    def ended(
        self, identity: str, *, own: str = "", beginning: str = "", resume: bool = False
    ) -> tuple[str, tuple[int, ...], Mapping[str, Any]] | None:
        """Status, lines and settings of the same run, where it ended here before, else None. Another run is refused.

        Nothing is written, and a folder that may be overwritten holds nothing.

        Parameters
        ----------
        identity : str
            Fingerprint of everything that makes the run what it is; a finished one has it in its manifest's settings.
        own : str
            Name of the file, if any, that a run of this kind goes on from.
        beginning : str
            Fingerprint of the same without the number of lines, by which ``resume`` may go on from a finished run.

        Raises
        ------
        UsageError
            Where the folder holds a finished run that is not the same, or the beginning of a run of another kind.
        """
        if self.overwrite:
            return None
        another = f"give another {option('out')}, or add {option('overwrite')}"
        path = self.path / "manifest.json"
        if path.exists():
            cure = ""
            try:
                manifest = json.loads(path.read_text(encoding="utf-8"))
                if manifest["settings"]["identity"] == identity:
                    return str(manifest["status"]), tuple(manifest["lines"]), manifest["settings"]
                if beginning and manifest["settings"].get("beginning") == beginning:
                    if resume:
                        return None
                    cure = "add --resume to go on from it to more lines, "
            except (ValueError, KeyError, TypeError):
                pass  # somebody else's manifest is a reason to keep away too
            raise UsageError(f"{self.path.name} holds a finished run; {cure}{another}")
        unfinished = [name for name in (CHECKPOINT, PROGRESS) if name != own and (self.path / name).exists()]
        if unfinished:
            raise UsageError(f"{self.path.name} holds an unfinished run ({unfinished[0]}); {another}")
        return None

    def begin(self) -> None:
        """Say that the run begins now: where it may overwrite, what earlier runs left here is removed."""
        if self.overwrite:
            for name in sorted(self._names):
                (self.path / name).unlink(missing_ok=True)
            self._names.clear()
            self._save_ledger()
        if self.progress.waiting:
            self.progress.waiting = False
            self.progress.write()

    def write_text(self, name: str, text: str) -> None:
        """Write a text called ``name`` in UTF-8."""
        atomic.write_text(self.output_path(name), text)

    def write_table(self, name: str, rows: Sequence[Row], formats: Mapping[str, str] | None = None) -> None:
        """Write a CSV table called ``name``; columns in order of first appearance."""
        self.write_text(name, csv_text(rows, formats=formats))

    def write_mask(self, mask: NDArray[np.bool_]) -> None:
        """Write mask.npy, bool (ky,), (ky, kz) or (shot,): True where the line, sample or shot is measured."""
        atomic.write_npy(self.output_path("mask.npy"), mask)

    def write_image(self, name: str, image: NDArray[np.complexfloating]) -> None:
        """Write complex pixels as complex64 npy, for example ``recon.npy``; refused where one is not finite."""
        atomic.write_npy(self.output_path(name), _finite(name, image, np.complex64))

    def write_std(self, name: str, std: NDArray[np.floating]) -> None:
        """Write standard deviations as float32 npy, for example ``std.npy``; refused where one is not finite."""
        atomic.write_npy(self.output_path(name), _finite(name, std, np.float32))

    def write_stack(self, name: str, parts: Iterable[NDArray[Any]], *counts: int) -> Path:
        """Write arrays of one shape, which come one by one, as one npy array along a first axis or several.

        Parameters
        ----------
        name : str
            For example ``recon.npy``.
        parts : iterable of arrays
            Of complex64 or float32.
        counts : ints
            How many come along each of these axes, the last one fastest.

        Raises
        ------
        InputError
            Where a value is not finite.
        """
        path, coming = self.output_path(name), iter(parts)
        first = next(coming)
        checked = (_finite(name, part, first.dtype.type) for part in chain([first], coming))
        atomic.write_npy_parts(path, (*counts, *first.shape), first.dtype, checked, axes=len(counts))
        return path

    def write_archive(self, name: str, arrays: Mapping[str, ArrayLike]) -> None:
        """Write arrays by name as one .npz archive called ``name``."""
        atomic.write_npz(self.output_path(name), arrays)

    def write_figure(self, name: str, figure: Drawing) -> Path:
        """Write figures/NAME.svg, and NAME.png where PNG is wanted; return the path of the first.

        Without PNG, one that an earlier run left under this name is removed.

        Parameters
        ----------
        name : str
            Without folder and ending.
        figure : Drawing
            For example what a function of `plots` returned.
        """
        path = _checked(self._figures(), f"{name}.svg")
        pixels = _checked(self._figures(), f"{name}.png")
        for file in (path, *([pixels] if self.png else [])):
            self._claim(file)
        with placed(figure):
            atomic.write_text(path, svg_text(figure))
            if self.png:
                atomic.write_bytes(pixels, png_bytes(figure))
        if not self.png and self._owns(pixels):
            pixels.unlink(missing_ok=True)
        return path

    def _figures(self) -> Path:
        folder = self.path / _FIGURES
        _make_folder(folder)
        return folder


def _make_folder(path: Path) -> bool:
    """Make the folder; return whether it is new."""
    wanted = "a folder that exists or can be created"
    if path.is_symlink():
        raise UsageError(f"{path} is a symbolic link, and nothing is written through links; give the folder itself")
    new = not path.exists()
    atomic.require_folder_of(path)
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        in_the_way = isinstance(error, FileExistsError | NotADirectoryError)
        got = "a file in the place of a folder" if in_the_way else error.strerror or str(error)
        cure = f"Give another {option('out')}{'' if in_the_way else ', or make the folder writable'}."
        raise InputError(field=str(path), got=got, wanted=wanted, cure=cure) from error
    return new


def _checked(folder: Path, name: str) -> Path:
    path = folder / name
    if not _PLAIN_NAME.fullmatch(name):
        raise InputError(
            field="output name",
            got=ascii(name),
            wanted="letters, digits, dots, underscores, plus and minus signs, a letter or digit first",
        )
    if path.is_symlink() or path.is_dir():
        raise InputError(
            field=str(path),
            got="a symbolic link" if path.is_symlink() else "a folder",
            wanted="a regular file or nothing",
            cure="Remove it or choose another output folder.",
        )
    return path


def _finite(name: str, values: NDArray[np.generic], dtype: type[np.generic]) -> NDArray[np.generic]:
    with np.errstate(over="ignore"):  # what no longer fits is refused below, not warned about
        narrow = values.astype(dtype)
    if not np.isfinite(narrow).all():
        raise InputError(field=name, got="NaN or infinite values", wanted=f"values finite as {dtype.__name__}")
    return narrow


def require_same_run(path: Path, stored: object, identity: object, left: str) -> None:
    """Refuse a file whose identity is another one; ``left`` says what it would be, as "the progress of another run".

    Raises
    ------
    UsageError
        Naming the file.
    """
    if stored != identity:
        raise UsageError(
            f"{path.name} is {left}, with other inputs or options; give the same as before, another "
            f"{option('out')}, or add {option('overwrite')}"
        )


State = TypeVar("State")


def read_kept(path: Path, identity: str, what: str, other: str, parse: Callable[[dict[str, Any]], State]) -> State:
    """Read the state that an interrupted run kept in a JSON file.

    Parameters
    ----------
    path, identity : Path, str
        The file, and the checksum of the run that goes on, which has to be that of the run that wrote it.
    what, other : str
        Names of the right file and of a wrong one, for messages.
    parse : callable
        Makes a state of the file's content.

    Raises
    ------
    InputError
        For a damaged file.
    UsageError
        For the file of another run.
    """
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        own, state = stored["identity"], parse(stored)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            field=path.name, got=f"an unreadable file ({error})", wanted=what, cure="Delete it."
        ) from error
    require_same_run(path, own, identity, other)
    return state
