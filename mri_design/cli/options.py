"""Options of several verbs, each declared once: types of values with their help, and dataclasses of options.

A verb is a function whose parameters are its options: their help is read in its docstring, or stands in the type. A
dataclass of options stands for all of its fields.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from mri_design.cli import terminal
from mri_design.errors import InputError, UsageError, did_you_mean, option, share_of, whole_number
from mri_design.experiment.recipe import CoilRecipe, Recipe, load_recipe, shipped_recipes
from mri_design.experiment.strategies import TRAINING_RULES, kinds_of_masks, strategy_names
from mri_design.kinds import KINDS, designed_kinds
from mri_design.registry import BART, READERS

if TYPE_CHECKING:
    from mri_design.experiment.effort import Effort
    from mri_design.experiment.inputs import GivenMaps
    from mri_design.experiment.regions import WantedRegions
    from mri_design.runs.live import Live
    from mri_design.runs.store import Run
    from mri_design.runs.stored_run import Stored
    from mri_design.runs.work import Work
    from mri_design.signals.models import SignalModel

PHANTOMS = ("shepp-logan", "brain", "head-3d", "t2w", "t1w", "t1w-6a", "lf-gre", "lf-fse", "head-16ch")
JOBS = max(1, min(4, os.cpu_count() or 1))
MAP_METHODS = CoilRecipe.declared()["maps"].choices


def _is_method(maps: str) -> bool:
    """Whether maps are to be estimated, by a method and perhaps its number of lines, ``espirit:16``."""
    return maps.partition(":")[0] in MAP_METHODS


LINES = Group("Lines and their order", sort_key=1)
REGIONS = Group("Until regions are known", sort_key=1)
SCORING = Group("How masks are judged", sort_key=2)
SCAN = Group("The scan", sort_key=2)
SEQUENCE = Group("The sequence (.seq)", sort_key=3)
RUN = Group("The run", sort_key=4)


def names_in_help() -> dict[str, str]:
    """Lists of names that the notes of a verb have as ``{lines}``, ``{formats}`` and the like."""
    shots = next(name for name, kind in KINDS.items() if kind.shots)
    named = {"lines": "lines", "plane": "plane", "shots": shots}
    lists = {name: strategy_names(kind) for name, kind in named.items()}
    masks = {f"masks_of_{name}": kinds_of_masks(kind) for name, kind in named.items()}
    listed = {name: [one for one in names if one not in TRAINING_RULES] for name, names in (lists | masks).items()}
    files = [reader.says for reader in (*READERS, BART)]
    listed |= {"phantoms": list(PHANTOMS), "recipes": list(shipped_recipes()), "encodings": list(designed_kinds())}
    return {name: ", ".join(names) for name, names in listed.items()} | {"formats": "; ".join(files)}


def whole(least: int, most: int | None = None, **described: Any) -> Parameter:
    """The annotation of an option that takes a whole number, in digits, within limits."""

    def parsed(_: Any, tokens: Sequence[Any]) -> int:
        number = whole_number(tokens[0].value)
        if number is None or number < least or (most is not None and number > most):
            limits = f"of {least} or more" if most is None else f"from {least} to {most}"
            raise ValueError(f"got {tokens[0].value!r}; wanted a whole number {limits}, in digits")
        return number

    return Parameter(converter=parsed, n_tokens=1, **{"metavar": "N", **described})


def share(metavar: str, **described: Any) -> Parameter:
    """The annotation of an option that takes a share, as 0.1 or 10%."""

    def parsed(_: Any, tokens: Sequence[Any]) -> float:
        try:
            return share_of(tokens[0].value)
        except ValueError:
            raise ValueError(f"got {tokens[0].value!r}; wanted a share, as 0.1 or 10%") from None

    return Parameter(converter=parsed, n_tokens=1, metavar=metavar, **described)


def times(**described: Any) -> Parameter:
    """The annotation of an option of several names with what frames differ by: its name as written, and its value."""

    def parsed(_: Any, tokens: Sequence[Any]) -> tuple[str, str]:
        return tokens[0].keyword, tokens[0].value

    names = ("--echo-times", "--inversion-times", "--flip-angles", "--b-values")
    return Parameter(name=names, converter=parsed, n_tokens=1, metavar="T,T,...", **described)


def fitted(fit: str | None, given: tuple[str, str] | None) -> tuple[SignalModel | None, str | None]:
    """The model of ``--fit``, and the `times` that go with it."""
    if fit is None:
        if given is not None:
            raise UsageError(f"{given[0]} is for a map, and needs what is fitted, as --fit T2")
        return None, None
    from mri_design.signals.models import signal_model

    model = signal_model(fit)
    wanted = option(model.axis.name, ",".join("TTT"))
    if given is None:
        raise UsageError(f"--fit {fit} needs what the frames differ by: {wanted}")
    written, values = given
    if written != option(model.axis.name):
        unit = next(iter(model.axis.units))
        raise InputError(written.lstrip("-").replace("-", "_"), f"{values} for {fit}", f"{wanted}, in {unit}")
    return model, values


Count = Annotated[int | None, whole(1)]
Lines = Annotated[int | None, whole(1, name=("--lines", "--samples", "--shots"))]
Acceleration = Annotated[float | None, Parameter(metavar="R")]
Method = Annotated[str | None, Parameter(group=SCORING, metavar="NAME")]
Extents = Annotated[str | None, Parameter(name="--fov", metavar="M[,M]")]
Names = Annotated[str | None, Parameter(metavar="A,B,...")]
Name = Annotated[str | None, Parameter(metavar="NAME")]
Companions = Annotated[list[str] | None, Parameter(name="--with", metavar="FILE")]
Slices = Annotated[str | None, Parameter(name=("--slices", "--slice"), metavar="0,3-5|all", allow_leading_hyphen=True)]
Json = Annotated[bool, Parameter(name="--json", group=RUN)]
Quiet = Annotated[bool, Parameter(group=RUN)]
Overwrite = Annotated[bool, Parameter(group=RUN)]
DryRun = Annotated[bool, Parameter(name="--dry-run", group=RUN)]
Seed = Annotated[int, whole(0, group=RUN)]
Page = Annotated[str | None, Parameter(metavar="[HOST:]PORT")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Settings:
    """The recipe and its settings that have no option of their own.

    Parameters
    ----------
    recipe : str
        Settings: a TOML file, or the name of a recipe that comes with the program (mri-design recipe).
    setting : list of str
        One setting of the recipe, as -s inference.samples=16 or -s constraints.forbid=0-9; may be repeated.
    """

    recipe: Annotated[str | None, Parameter(metavar="FILE.toml")] = None
    setting: Annotated[list[str] | None, Parameter(alias="-s", metavar="SECTION.NAME=VALUE")] = None

    def made(self, **sections: Mapping[str, object]) -> Recipe:
        """The recipe with the values of options, by section, that were given, and with the settings of ``-s``.

        Raises
        ------
        InputError
            For an unknown setting, or a value that it does not take.
        """
        recipe = load_recipe(self.recipe)
        for section, settings in sections.items():  # at once: some fit only together
            recipe = recipe.replacing(section, **settings)
        return recipe.with_settings(self.setting or [])


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Known:
    """What is to be known when there are enough lines.

    Parameters
    ----------
    until_interval : str
        Stop as soon as every --region and --difference is known to within E on either side: 2% or 0.02 of its mean (of
        a difference, of the brighter region's), or "3.5 units", as the image has them.
    region : list of Path
        Mask of one or more regions, flags or whole numbers, whose means are to be known: on the grid of the image or,
        of --slices, of the volume, or a file whose header says where it lies. May be repeated.
    difference : list of Path
        Two masks, whose difference is to be known: --difference a.nii.gz b.nii.gz. May be repeated.
    level : float
        Probability with which such an interval holds the truth, as 95, 95% or 0.95. [default: 90%]
    """

    until_interval: Annotated[str | None, Parameter(group=REGIONS, metavar="E")] = None
    region: Annotated[list[Path] | None, Parameter(group=REGIONS, metavar="MASK")] = None
    difference: Annotated[list[tuple[Path, Path]] | None, Parameter(group=REGIONS, metavar="MASK MASK")] = None
    level: Annotated[float | None, share("P", group=REGIONS)] = None

    @property
    def settings(self) -> dict[str, object]:
        """Settings of a design."""
        return {"until_interval": self.until_interval, "level": self.level}

    @property
    def regions(self) -> WantedRegions:
        """The regions."""
        from mri_design.experiment.regions import WantedRegions

        return WantedRegions(tuple(self.region or ()), tuple(self.difference or ()))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Coil maps of one input or of several, and the noise of its samples.

    Parameters
    ----------
    maps : list of str
        Coil maps (.npy, .npz, .cfl): (slice,) coil, rows, columns as in INPUT; or how they are estimated: espirit,
        from gapless lines at the centre, nlinv, from any lines near it, or auto. Of several inputs INPUT=FILE; may be
        repeated.
    maps_from : list of str
        Estimate the coil maps from SCAN, a prescan or an earlier scan with the same coils, on any grid. Of several
        inputs INPUT=SCAN.
    noise : str
        Standard deviation of the noise of k-space per real component, in the units of INPUT; or a file of noise
        samples. It replaces INPUT's own noise.
    """

    maps: Annotated[list[str] | None, Parameter(metavar="auto|espirit|nlinv|FILE")] = None
    maps_from: Annotated[list[str] | None, Parameter(group=SCAN, metavar="SCAN")] = None
    noise: Annotated[str | None, Parameter(group=SCAN, metavar="SD|FILE", allow_leading_hyphen=True)] = None

    @property
    def settings(self) -> dict[str, dict[str, object]]:
        """Settings of a recipe, by section.

        Raises
        ------
        UsageError
            Where the method is misspelt: neither a method nor a file, and nearly a method or without an ending.
        """
        method = None
        for text in self.maps or ():
            name = text.rpartition("=")[2]
            near = did_you_mean(name.lower(), MAP_METHODS)
            if _is_method(text):
                method = text
            elif (near or not Path(name).suffix) and not (Path(name).exists() or Path(f"{name}.hdr").exists()):
                raise UsageError(
                    f"--maps {text}: got {name!r}, which is no file; wanted a file of coil maps, or a method for all "
                    f"inputs, one of {', '.join(MAP_METHODS)}. {near}".rstrip()
                )
        return {"coils": {"maps": method}, "input": {"noise": number_or_text(self.noise)}}

    @property
    def given(self) -> dict[str, list[str]]:
        """Maps of inputs, by the options that gave them, as `scan_sources` takes them."""
        files = [text for text in self.maps or () if not _is_method(text)]
        return {"maps": files, "maps_from": list(self.maps_from or ())}

    def of_one(self) -> GivenMaps | None:
        """The maps that are given of the only input.

        Raises
        ------
        UsageError
            Where maps are given twice.
        """
        from mri_design.experiment.inputs import MapsOfScan  # here: help needs no reader

        files, scans = self.given.values()
        given: list[GivenMaps] = [*map(Path, files), *(MapsOfScan(Path(scan)) for scan in scans)]
        if len(given) > 1:
            raise UsageError("coil maps are given twice: give --maps FILE or --maps-from SCAN")
        return given[0] if given else None


def check_with(companions: Sequence[str] | None, recipe: Recipe) -> tuple[str, ...]:
    """The files of ``--with``.

    Raises
    ------
    UsageError
        For a method that has no prior.
    """
    method = recipe.reconstruction.method
    if companions and method not in ("mean", "map"):
        raise UsageError(f"only mean and map know other images: leave out --with, or --method {method}")
    return tuple(companions or ())


def number_or_text(text: str | None) -> float | str | None:
    """A number as a number, and any other text as it is."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def names_of(text: str) -> list[str]:
    """Names of a list as it is typed, ``A,B,...``, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(",")))


def numbers_of(
    option: str,
    text: str,
    wanted: str,
    limits: tuple[float, float],
    *,
    count: Sequence[int] = (),
    parsed: Callable[[str], float | None] = float,
) -> list[Any]:
    """Numbers of a list as it is typed, ``0.24,0.2``.

    Parameters
    ----------
    option, wanted : str
        For the message.
    text : str
        As it was typed.
    limits : (float, float)
        Of each number.
    count : sequence of int
        How many there may be; any number by default.
    parsed : callable
        Makes a number of a text; `whole_number` for those in digits.

    Raises
    ------
    UsageError
        For anything else.
    """
    parts, (least, most) = [part.strip(" ") for part in text.split(",")], limits
    try:
        numbers = [parsed(part) for part in parts]
    except ValueError:
        numbers = [None]
    if (count and len(parts) not in count) or not all(one is not None and least <= one <= most for one in numbers):
        raise UsageError(f"{option}: got {text!r}; wanted {wanted}")
    return numbers


def extents_of(text: str | None) -> tuple[float, float] | None:
    """(ky, kx) of ``0.24`` or ``0.24,0.2``; lengths that only millimetres explain are refused."""
    if text is None:
        return None
    wanted = "one or two lengths in metres, 0.005 to 1, as 0.24 or 0.24,0.2"
    lengths = numbers_of("--fov", text, wanted, (0.005, 1), count=(1, 2))
    return lengths[0], lengths[-1]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Destination:
    """The folder of a run, and how the run is carried out: options of every verb that leaves a folder.

    Parameters
    ----------
    out : Path
        Run folder; created if it does not exist.
    seed : int
        Seed of everything random.
    overwrite : bool
        Begin anew in a folder that is not empty: another run there goes, files may be replaced.
    resume : bool
        Continue from what an interrupted run left there.
    no_report : bool
        For batch work: arrays, tables and the manifest, without figures and report.
    png : bool
        Write every figure as PNG too, for slides.
    quiet : bool
        No progress and no result lines.
    """

    out: Path
    seed: Seed = 0
    overwrite: Overwrite = False
    resume: Annotated[bool, Parameter(group=RUN)] = False
    no_report: Annotated[bool, Parameter(group=RUN)] = False
    png: Annotated[bool, Parameter(group=RUN)] = False
    quiet: Quiet = False

    @contextmanager
    def opened(self, kept: str, *, aloud: bool = True, resumed: bool = True) -> Iterator[Run]:
        """The run in its folder, which it alone writes to, with its progress drawn.

        Parameters
        ----------
        kept : str
            The file from which an interrupted run goes on, named when the run is interrupted.
        aloud : bool
            Whether the run's lines go to stdout, and not to stderr.
        resumed : bool
            Whether ``--resume`` continues from it; otherwise the same command does.

        Raises
        ------
        UsageError
            For both ``--resume`` and ``--overwrite``, ``--png`` without a report, an unknown executor, or a folder with
            other contents.
        """
        from mri_design.evaluation.run_folder import RunFolder
        from mri_design.runs.store import Run

        self.check()
        jobs, executor = self.processes
        command, reported = sys.argv[1:], not self.no_report
        keeping = terminal.kept_on_interruption(self.out / kept, resume=resumed)
        opened = RunFolder(self.out, overwrite=self.overwrite, command=command, reported=reported, png=self.png)
        where = None if aloud else sys.stderr
        with keeping, opened as folder, terminal.telling(self.quiet, where) as progress:
            yield Run(
                folder=folder,
                command=command,
                seed=self.seed,
                jobs=jobs,
                executor=executor,
                resume=self.resume,
                progress=replace(progress, about=folder.progress.note).also(folder.progress.show),
            )

    def check(self) -> None:
        """Refuse options that contradict each other, and an unknown executor."""
        from mri_design.runs.workers import require_executor

        terminal.check_resume(self.resume, self.overwrite)
        if self.png and self.no_report:
            raise UsageError("--no-report leaves out the figures, --png wants them as PNG: give one of them")
        require_executor(self.processes[1])

    def ended(self, text: str, ending: Stored, *, aloud: bool = True) -> int:
        """Print how the run ended, where it lies, and the error of its image or which mask is best; the exit code."""
        from mri_design.evaluation.page import worded  # which is loaded already: a run has ended

        lines = [f"{', '.join(filter(None, [text, ending.status]))}: {self.page}"]
        if str(ending.error):
            lines.append(worded("images", "errors_in_words", ending.error))
        lines += [ending.verdict] if ending.verdict else []
        terminal.say("\n".join(lines), self.quiet, None if aloud else sys.stderr)
        return terminal.exit_code(ending.status)

    @property
    def processes(self) -> tuple[int, str]:
        """How many processes compute, and where (``jobs`` and ``executor`` of a `Computation`): this one alone."""
        return 1, "local"

    @property
    def page(self) -> Path:
        """What to open: the report, or the folder of a run without one."""
        return self.out if self.no_report else self.out / "report.html"


@contextmanager
def page_at(address: str | None) -> Iterator[Live | None]:
    """The page of ``--live``, whose address is printed whatever is left out; None without one."""
    if address is None:
        yield None
        return
    from mri_design.runs.live import opened

    with opened(address) as live:
        terminal.say(f"live page: {live.url}", where=sys.stderr)
        yield live


def watched(run: Run, live: Live | None) -> Run:
    """The run as its page shows it, too."""
    if live is None:
        return run
    before = run.progress

    def told(tell: Callable[[str], None]) -> Callable[[str], None]:
        def both(text: str) -> None:
            tell(text)
            live.note(text)

        return both

    return replace(run, live=live, progress=replace(before, say=told(before.say), warn=told(before.warn)))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Computation(Destination):
    """A `Destination` whose work several processes do.

    Parameters
    ----------
    jobs : int
        Processes; results do not depend on it.
    executor : str
        local, --jobs processes; dask, a dask cluster of --jobs workers on this machine; or dask:ADDRESS, the workers of
        a scheduler. Results do not depend on it.
    """

    jobs: Annotated[int, whole(1, group=RUN)] = JOBS
    executor: Annotated[str, Parameter(group=RUN, metavar="NAME")] = "local"

    @property
    def processes(self) -> tuple[int, str]:
        """Those that were requested."""
        return self.jobs, self.executor


def foretold(to: Computation, effort_of: Callable[[Work], Effort], *, as_json: bool) -> int:
    """Print what a run would do and take, for ``--dry-run``; nothing is written.

    Raises
    ------
    UsageError, InputError
        As the run, and for ``--resume``.
    """
    from mri_design.evaluation.run_folder import require_place
    from mri_design.runs.provenance import phrase
    from mri_design.runs.work import Work

    to.check()
    if to.resume:
        raise UsageError("--dry-run says what a run takes from its beginning: leave out --resume")
    require_place(to.out, overwrite=to.overwrite)
    jobs, executor = to.processes
    with terminal.telling(to.quiet, sys.stderr) as progress:
        effort = effort_of(Work(seed=to.seed, jobs=jobs, executor=executor, progress=progress))
    if as_json:
        terminal.print_json({"seconds": effort.seconds, "mib": effort.mib, "coils": effort.coils})
    else:
        terminal.say(phrase("effort", effort))
    return terminal.DONE


def result_of(to: Destination, ending: Stored) -> dict[str, object]:
    """The result of a run as ``--json`` prints it; errors are relative to the norm of the image."""
    return {
        "run": str(to.out),
        "report": None if to.no_report else str(to.page),
        "status": ending.status,
        "converged": terminal.exit_code(ending.status) == terminal.DONE,
        "encoding": ending.readouts,
        "chosen": list(ending.chosen),
        "acceleration": ending.acceleration,
        "predicted_relative_error": ending.error.predicted,
        "found_relative_error": ending.error.found,
        "seed": ending.seed,
    }
