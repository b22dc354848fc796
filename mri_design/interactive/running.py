"""Computations of the verbs on a scan in memory, what is written of them on demand, and how results show themselves."""

from __future__ import annotations

import html
import inspect
import os
import time
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from mri_design.errors import InputError, UsageError, argument_behind, number_array
from mri_design.evaluation import plots
from mri_design.evaluation.plots.panels import Layout, scale_top
from mri_design.evaluation.run_folder import RunFolder
from mri_design.notices import say_once
from mri_design.runs.export import export_run
from mri_design.runs.recon.run import ReconRequest, ReconResult, reconstruct_scan
from mri_design.runs.run import Ending, Progress, Run
from mri_design.runs.stored_run import write_made_files
from mri_design.scan.data import KSpaceData, TrajectoryData
from mri_design.scan.io.atomic import write_npy

P = ParamSpec("P")
T = TypeVar("T")
Watch = Callable[[str, int, int], None]
"""Takes what is being done, how much of it is done, and of how many."""


def named_file(path: str | os.PathLike[str]) -> str:
    """A path with ``~`` for one's home, or the name of an input that is no file, as text."""
    return os.path.expanduser(os.fspath(path))


def naming_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """A function whose errors name the argument that they are about, whatever it is called where they arise."""

    @wraps(function)
    def called(*values: P.args, **named: P.kwargs) -> T:
        try:
            return function(*values, **named)
        except InputError as error:
            given = inspect.signature(function).bind(*values, **named).arguments
            field = argument_behind(error, given)
            error.__init__(field or error.field, error.got, error.wanted, error.cure)  # type: ignore[misc]
            raise

    return called


@dataclass
class Told:
    """How a computation was made, and what it had to say.

    Parameters
    ----------
    seed, jobs : int
        See `Run`.
    watch : callable, optional
        See `Progress`.
    said : list of str
        Sentences, in order; filled while it computes. Warnings are notices on stderr too.
    seconds : float
        Time that it took.
    """

    seed: int = 0
    jobs: int = 1
    watch: Watch | None = None
    said: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @contextmanager
    def computing(self, *, reported: bool = False) -> Iterator[Run]:
        """A run whose folder is gone afterwards: it holds what a computation keeps while it lasts.

        With ``reported`` it computes what only a report shows, too.
        """

        def warn(text: str) -> None:
            self.said.append(text)
            say_once(text)

        told = Progress(say=self.said.append, warn=warn)
        began = time.perf_counter()
        with TemporaryDirectory() as folder, RunFolder(Path(folder) / "run", reported=reported) as kept:
            progress = told if self.watch is None else told.also(self.watch)
            yield Run(folder=kept, seed=self.seed, jobs=self.jobs, progress=progress)
        self.seconds = time.perf_counter() - began


Report = Callable[[Run], Ending]
"""Writes what was computed into the folder of a run."""


def reconstructed(
    data: KSpaceData | TrajectoryData,
    request: ReconRequest,
    mask: NDArray[np.bool_] | None,
    told: Told,
    reference: NDArray[np.generic] | None = None,
) -> ReconResult:
    """What `mri-design recon` computes of a scan in memory, with a mask and references that are arrays."""
    with told.computing() as run, TemporaryDirectory() as beside:
        files = {name: Path(beside) / f"{name}.npy" for name in ("lines", "reference")}
        if mask is not None:
            request = replace(request, mask=files["lines"])
            write_npy(files["lines"], mask)
        if reference is not None:
            request = replace(request, reference=files["reference"])
            write_npy(files["reference"], reference)
        try:
            result = reconstruct_scan(replace(request, loaded=data), run)
        except InputError as error:
            field = next((argument for argument, file in files.items() if file.name in error.field), error.field)
            raise InputError(field, error.got, error.wanted, error.cure) from error
        assert not isinstance(result, Ending)  # nothing was finished there before
        return replace(result, kept=result.kept.held(result.numbers)) if result.several else result


_WIDE = 100
_BARCODE = 24
"""Pixels that a mask of lines is high, or wide."""


class Shown(ABC):
    """What an object says of itself: a title and facts in a console, in a notebook pictures beside them."""

    @property
    @abstractmethod
    def facts(self) -> dict[str, str]:
        """Main facts in words, by what they are about."""

    @property
    @abstractmethod
    def _title(self) -> str:
        """The object in a line."""

    @property
    @abstractmethod
    def _pictures(self) -> Sequence[tuple[str, bytes]]:
        """What they show, and PNG."""

    def __repr__(self) -> str:
        lines = [self._title, *(f"  {name}: {text}" for name, text in self.facts.items() if text)]
        return "\n".join(line if len(line) <= _WIDE else f"{line[: _WIDE - 3]}..." for line in lines)

    def _repr_html_(self) -> str:
        figures = "".join(
            f'<figure style="display:inline-block;margin:0 1em 0 0"><img style="height:14em;image-rendering:auto" '
            f'alt="{html.escape(says)}" src="data:image/png;base64,{b64encode(png).decode()}">'
            f"<figcaption>{html.escape(says)}</figcaption></figure>"
            for says, png in self._pictures
        )
        left, rows = 'style="text-align:left"', {name: text for name, text in self.facts.items() if text}
        table = "".join(
            f"<tr><th {left}>{html.escape(name)}</th><td {left}>{html.escape(text)}</td></tr>"
            for name, text in rows.items()
        )
        return f"<div><strong>{html.escape(self._title)}</strong><div>{figures}</div><table>{table}</table></div>"


class Saved(Shown):
    """What was computed and can be written: `save` and `report` leave the folders that the verbs leave."""

    told: Told

    @abstractmethod
    def _write(self, run: Run) -> Ending:
        """Write everything into the folder of a run."""

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write the folder that the verb leaves, without its report: arrays, tables, manifest.

        Raises
        ------
        UsageError
            Where the folder holds a finished run, or somebody else's files.
        """
        return self._saved(folder, overwrite=overwrite, reported=False)

    def report(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """`save`, with figures and ``report.html``, whose path is returned."""
        return self._saved(folder, overwrite=overwrite, reported=True) / "report.html"

    @naming_arguments
    def _saved(self, folder: str | Path, *, overwrite: bool, reported: bool) -> Path:
        folder = named_file(folder)
        with RunFolder(folder, overwrite=overwrite, reported=reported) as kept:
            if not overwrite and kept.existing("manifest.json") is not None:
                raise UsageError(f"{kept.path.name} holds a finished run; give another folder, or overwrite=True")
            kept.begin()
            began = time.perf_counter() - self.told.seconds
            self._write(Run(folder=kept, seed=self.told.seed, jobs=self.told.jobs, began=began))
        return Path(folder)

    @naming_arguments
    def _exported(
        self,
        form: str,
        path: str | Path,
        *,
        field_of_view: tuple[float, float] | None = None,
        overwrite: bool = False,
    ) -> list[str]:
        """Write the files of one format (`mri-design export`), and return what is to be said of them."""
        if field_of_view is not None:
            wanted = "two positive numbers of metres, along ky and kx, as (0.22, 0.22)"
            number_array("field_of_view", field_of_view, wanted=wanted, shape=(2,), kind="positive")
        with TemporaryDirectory() as folder:
            run = self.save(Path(folder) / "run")
            made = export_run(run, form, Path(named_file(path)), field_of_view=field_of_view)
        write_made_files(made, overwrite=overwrite)
        return list(made.sentences)


def image_png(image: NDArray[np.generic], layout: Layout, *, error: bool = False) -> bytes:
    """Magnitude of an image, or its error bars in the colours of errors, as it lies on a report's page."""
    pixels = np.abs(image)
    return plots.pixels_png(pixels, scale_top([pixels]), layout, error=error)


def mask_png(mask: NDArray[np.bool_], layout: Layout) -> bytes:
    """A mask as a picture: lines as bars, of which each is a pixel thick, and samples of a plane as pixels."""
    flags = mask if mask.ndim == 2 else np.repeat(mask[:, np.newaxis], _BARCODE, axis=1)
    return plots.pixels_png(flags.astype(float), 1.0, layout)
