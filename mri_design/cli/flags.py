"""Flags, each described once: those of settings are made from the recipe, others stand here or in their only verb.

A verb is a function, and its parameters are flags: their help and what stands for a value are read in the section of
parameters of its docstring, unless they are annotated with typer's options. A parameter that is a `Recipe`, with the
settings that flags may `Override`, stands for ``--recipe`` and those flags; one that is a dataclass of flags stands for
its fields.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import typer
from typer.models import OptionInfo

from mri_design.errors import InputError, UnknownNameError, UsageError, argument_behind, did_you_mean, whole_number
from mri_design.experiment.recipe import CoilRecipe, Recipe, load_recipe, shipped_recipes
from mri_design.experiment.settings import docstring
from mri_design.experiment.strategies import (
    ORACLES,
    TRAINING_RULES,
    USUAL,
    kinds_of_masks,
    strategy_names,
)
from mri_design.kinds import KINDS, designed_kinds
from mri_design.registry import BART, READERS

if TYPE_CHECKING:
    from mri_design.experiment.inputs import GivenMaps

PHANTOMS = ("shepp-logan", "brain", "head-3d", "t2w", "t1w", "t1w-6a", "lf-gre", "lf-fse", "head-16ch")


def names_in_help(encoding: str, leave: Sequence[str] = ()) -> str:
    """Names of the strategies of an encoding, without some."""
    return ", ".join(name for name in strategy_names(encoding) if name not in leave)


SHOTS = [name for name, kind in KINDS.items() if kind.shots]
NAMES = {
    "masks of lines": ", ".join(kinds_of_masks("lines")),
    "masks of a plane": ", ".join(kinds_of_masks("plane")),
    "masks of shots": ", ".join(kinds_of_masks(SHOTS[0])),
    "kinds of shots": " or ".join(SHOTS),
    "shots": " or ".join(KINDS[name].several for name in SHOTS),
    "encodings": ", ".join(designed_kinds()),
    "training rules": ", ".join(TRAINING_RULES),
    "strategies of protocols": names_in_help("lines", [*TRAINING_RULES, *ORACLES]),
    "usual of lines": USUAL["lines"],
    "usual of a plane": USUAL["plane"],
    "strategies of lines": names_in_help("lines", TRAINING_RULES),
    "formats of INPUT": "; ".join(reader.says for reader in (*READERS, BART)),
    "phantoms": ", ".join(PHANTOMS),
    "recipes": ", ".join(shipped_recipes()),
    "another image": "Another image of the object, which the scan's own lines may refuse: another contrast, echo, "
    "repeat or earlier scan, images or k-space of any format and grid, FILE#3 a slice, or the folder of a run; may be "
    "repeated.",
    "own slices": "Slices by number, from 0, or middle; one negative number counts from the end.",
}
"""What docstrings have as ``<masks of lines>``."""


def option(kind: Any, names: Sequence[str], limits: Within | None, words: Sequence[str] = (), **described: Any) -> Any:
    """The annotation of an option; whole numbers are given in digits, within limits, or as one of some words."""
    least, most = limits or Within()

    def parsed(text: str | int) -> int | str:
        if text in words:
            return text
        number = whole_number(text) if isinstance(text, str) else text  # a default is a number already
        if number is None:
            raise typer.BadParameter(f"{text!r} is no whole number. Give one, in digits.")
        if (least is not None and number < least) or (most is not None and number > most):
            limits = f"{least} to {most}" if most is not None else f"{least} or more"
            raise typer.BadParameter(f"{number} is out of range. Give {limits}.")
        return number

    if int in (kind, *get_args(kind)):
        described = {"min": least, "max": most, "parser": parsed, **described, "metavar": described["metavar"] or "N"}
    return Annotated[kind, typer.Option(*names, **described)]


class Within(NamedTuple):
    """Annotation of a flag that takes a whole number: its limits. A text is the panel of the help that it stands in."""

    least: int | None = None
    most: int | None = None


def parameter_texts(made: Callable[..., Any]) -> _Texts:
    """What flags take, and their help, by name, from the section of parameters of a docstring.

    An entry is ``name : METAVAR``, or the type where nothing stands for the value, with the text below it; where the
    option is not spelt as the parameter, or has several names, ``name : --option --other METAVAR``; and where it is no
    option ``name : argument METAVAR``. What stands as ``<masks of lines>`` in a text is one of `NAMES`.
    """
    texts: _Texts = {}
    for part in reversed(made.__mro__) if isinstance(made, type) else [made]:
        section = docstring(part).partition("Parameters\n----------\n")[2]
        for name, value, text in re.findall(r"^(\w+) : (.+)\n((?: {4}.*(?:\n|$))+)", section, re.M):
            texts[name] = value, filled(" ".join(text.split()))
    return texts


def filled(text: str) -> str:
    """A text with what `NAMES` has for ``<masks of lines>`` and the like."""
    return re.sub(r"<([\w ]+)>", lambda found: NAMES[found[1]], text)


def _described(name: str, kind: Any, notes: Sequence[Any], value: str, text: str) -> Any:
    """The annotation of a flag of which a docstring says what it takes."""
    *names, shown = value.split(" ")
    told: dict[str, Any] = {"metavar": None if shown in ("bool", "str", "float", "Path") else shown, "help": text}
    if names == ["argument"]:
        return Annotated[kind, typer.Argument(show_default=False, **told)]
    told["rich_help_panel"] = next((note for note in notes if isinstance(note, str)), None)
    limits = next((note for note in notes if isinstance(note, Within)), None)
    return option(kind, names or [f"--{name.replace('_', '-')}"], limits, **told)


def _overriding(key: str, more: str, own: tuple[str, str] | None) -> Any:
    """The annotation of the flag of a setting, ``section.name``: its name, limits and help are the setting's.

    Parameters
    ----------
    key : str
        ``section.name``.
    more : str
        Added to the help.
    own : (str, str), optional
        What the flag takes, and its help, in the docstring of a verb that has other words for it.
    """
    setting, default = _setting(key)
    name = _name(key).replace("_", "-")
    choices = "" if all(one in setting.help for one in setting.choices) else f"One of: {', '.join(setting.choices)}."
    schema: dict[str, Any] = COUNTER if key in COUNTERS else setting.schema
    schema = schema["anyOf"][0] if key not in _CONVERTED and "anyOf" in schema else schema
    base = {"boolean": bool, "integer": int, "number": float}.get(str(schema.get("type")), str)
    otherwise = setting.unset if default is None else f"--no-{name}" if default is False else default
    fallback = f"[default: {otherwise}, or the recipe's]" if otherwise else ""
    parts = (_HELP.get(key, setting.help), choices, more, fallback)
    metavar, text = own or (_METAVARS.get(key), " ".join(part for part in parts if part))
    limits = Within(*(None if limit is None else int(limit) for limit in map(schema.get, ("minimum", "maximum"))))
    names = [f"--{name}/--no-{name}" if base is bool else f"--{name}"]
    words = ["all"] if key in COUNTERS else []
    return option(base | None, names, limits, words, metavar=metavar, help=text, rich_help_panel=_PANELS.get(key))


def _name(key: str) -> str:
    """The flag of a setting, with underscores: its name, or another one of `_NAMES`."""
    return _NAMES.get(key, key.rpartition(".")[2])


def _setting(key: str) -> tuple[Any, object]:
    section, name, *_ = key.split(".")
    base = Recipe.declared()[section].hint
    return base.declared()[name], getattr(base, name)


_Texts = dict[str, tuple[str, str]]
"""What flags take, and their help, by name."""


@dataclass(frozen=True)
class Override:
    """The settings of a recipe that flags of a verb override.

    Parameters
    ----------
    keys : str
        ``section.name``, with blanks between them.
    more : mapping of str to str
        Additions to the help of some settings, by name.
    """

    keys: str
    more: Mapping[str, str] | None = None

    def flags(self, texts: _Texts) -> dict[str, Any]:
        """The flags of the settings, as annotations by name; ``texts`` are those of the verb's docstring."""
        names = {_name(key): key for key in self.keys.split()}
        more = self.more or {}
        return {name: _overriding(key, more.get(name, ""), texts.get(name)) for name, key in names.items()}

    def gathered(self, values: dict[str, Any]) -> Recipe:
        """The recipe that was named, with the values of the flags instead of its settings where they are given."""
        recipe, sections = load_recipe(values["recipe"]), dict[str, dict[str, object]]()
        for key in self.keys.split():
            section, setting, *counter = key.split(".")
            if (value := values[_name(key)]) is not None:
                value, table = _CONVERTED.get(key, lambda given: given)(value), sections.setdefault(section, {})
                table[setting] = {**table.get(setting, {}), counter[0]: value} if counter else value  # type: ignore[dict-item]
        for section, settings in sections.items():  # at once: some fit only together
            recipe = recipe.replacing(section, **settings)
        return recipe


class Command:
    """A function, or a dataclass that is made, of flags: what they are, and the call with their values.

    Parameters
    ----------
    made : callable
        Its parameters are flags, or stand for several. Its docstring may give flags of these, by name, another help: in
        the words of a verb that has not what their own speaks of.
    texts : mapping
        What flags take and their help, by name, in the docstring of the verb that this is a part of.
    panel : str, optional
        Of the help, of all of them.
    """

    def __init__(self, made: Callable[..., Any], texts: _Texts | None = None, panel: str | None = None) -> None:
        self.made, self.flags = made, dict[str, inspect.Parameter]()
        self.parts: dict[str, Callable[[dict[str, Any]], Any]] = {}
        own = parameter_texts(made) | (texts or {})
        every, hints = parameter_texts(Shared) | own, get_type_hints(made, include_extras=True)
        for name, parameter in inspect.signature(made).parameters.items():
            hint = hints[name]
            kind, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
            override = next((note for note in notes if isinstance(note, Override)), None)
            found, self.parts[name] = dict[str, Any](), itemgetter(name)
            if name in self.flags:
                continue  # that of a setting, which the verb wants to know by itself, too
            if override is not None:
                self.parts[name], kind, parameter = override.gathered, str | None, parameter.replace(default=None)
                found = override.flags(own)
            elif is_dataclass(kind) and isinstance(kind, type):
                part = self.parts[name] = Command(kind, own, *(note for note in notes if isinstance(note, str)))
                self.flags |= part.flags
                continue
            found = {name: _described(name, kind, [*notes, panel], *every[name]), **found}
            parameter = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            self.flags |= {flag: parameter.replace(name=flag, annotation=told) for flag, told in found.items()}
        if used := MOST_USED.get(made.__name__, "").split():
            infos = [get_args(flag.annotation)[1] for flag in self.flags.values()]
            for info in (info for info in infos if isinstance(info, OptionInfo)):
                first = any(name in used for name in (info.default, *(info.param_decls or ())))
                info.rich_help_panel = None if first else info.rich_help_panel or "More options"

    def __call__(self, values: dict[str, Any]) -> Any:
        """Call it with what the values of the flags, by name, make of its parameters."""
        return self.made(**{name: part(values) for name, part in self.parts.items()})

    def wrong_option(self, error: InputError | UsageError, values: Mapping[str, object]) -> str | None:
        """What an error says, behind the option or argument that was given and that it is about; None for a file.

        Parameters
        ----------
        error : InputError or UsageError
            Its field, which the text leaves out where the option says as much, names a value of the program, or a
            setting of the recipe in force (``recipe: design.until_error``); one of a file (``recipe mine.toml: ...``)
            is about that file. Of unknown names the option is one that gave them.
        values : mapping of str to object
            Of all flags; those equal to the default count as not given.
        """
        given, name, field = [name for name, value in values.items() if value != self.flags[name].default], None, ""
        if isinstance(error, InputError):
            name, field = argument_behind(error, given), error.field
        elif isinstance(error, UnknownNameError):
            name = next((one for one in given if error.name in re.split("[,:]", str(values[one]))), None)
        if name is None:
            return None
        described = get_args(self.flags[name].annotation)[1]
        names = (described.default, *(described.param_decls or ()), described.metavar)
        start = ("--", described.metavar)
        options = [text for text in names if isinstance(text, str) and text.startswith(start)]
        written = next((text for text in options if text.lstrip("-") in field), options[0])
        written = written.split("/")[-1 if values[name] is False else 0]  # --this/--no-this
        same = field.replace(" ", "-").replace("_", "-") in (name.replace("_", "-"), written.lstrip("-").lower())
        named = same or field.startswith("recipe: ")
        return f"{written}: {str(error).removeprefix(f'{field}: ') if named else error}"


MOST_USED = {
    "design": "--out --lines --acceleration --until-error --strategy",
    "adapt": "--out --listen --lines --acceleration --strategy",
    "recon": "--out --mask --method --maps --slices",
    "compare": "--out --lines --acceleration --strategies --train",
    "protocol": "--out --lines --acceleration --test --slices",
    "train": "--out --lines --acceleration --rule --slices",
    "export": "--to --out --fov --sequence --scanner",
    "mask": "--kind --shape --acceleration --calibration --out",
}
"""Options that stand first in the help of verbs that have many."""


def without_types(command: Any) -> None:
    """Let the help of a command, and of the verbs that it has, show no type of flags: they have no value."""
    for parameter in command.get_params(command.context_class(command)):
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    for verb in getattr(command, "commands", {}).values():
        without_types(verb)


JOBS = max(1, min(4, os.cpu_count() or 1))
COMPANION = "companion.strength companion.trust"
COUNTERS = [f"input.series.{name}" for name in ("contrast", "phase", "repetition", "set", "encoding")]
COUNTER: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": 65535}
STREAMED = f"{' '.join(COUNTERS[:4])} input.centre"
SERIES = f"{STREAMED} input.series.encoding input.duplicates input.dims"
NOISE = "input.noise"
_NAMES = {
    "input.series.encoding": "encoding_space",
    "coils.compress": "compress_coils",
    "companion.strength": "companion_strength",
    "companion.trust": "trust_companion",
}
"""Flags, with underscores, that are not spelt as their settings."""
_HELP = {
    key: f"Number of the {key.rpartition('.')[2]} to read, by the file's numbers; with all recon makes images of all."
    for key in COUNTERS
}
"""Help of flags that take something else than their settings."""
_METAVARS = {
    **dict.fromkeys(COUNTERS, "N"),
    "input.matrix": "N[,N]",
    "input.dims": "coil,ky,kx",
    "input.centre": "LINE,SAMPLE",
    "input.noise": "SD|FILE",
    "design.block": "K",
    "design.order": "NAME",
    "design.until_error": "E",
    "design.until_gain": "G",
    "design.encoding": "NAME",
    "constraints.forbid": "0-9,250",
    "constraints.require": "16,48",
    "constraints.partial_fourier": "P",
    "constraints.max_jump": "J",
    "reconstruction.method": "NAME",
}
_PANELS = {
    **dict.fromkeys(COUNTERS, "Which series of raw data"),
    **dict.fromkeys(("input.duplicates", "input.dims", "input.centre"), "Which series of raw data"),
    **dict.fromkeys(("design.block", "design.order"), "Echo trains and order"),
    **dict.fromkeys(("design.until_error", "design.until_gain"), "When it is enough"),
    **dict.fromkeys(("design.encoding", "constraints.shutter"), "Samples of a plane (3-D scans)"),
    **dict.fromkeys(
        ("constraints.forbid", "constraints.require", "constraints.partial_fourier", "constraints.max_jump"),
        "What the sequence asks",
    ),
}
CONSTRAINTS = "constraints.forbid constraints.require constraints.partial_fourier constraints.max_jump"
PLANE = "constraints.shutter"
ENDS = "design.until_error design.until_gain"
SHOT_STRATEGIES = f"for shots: {names_in_help(SHOTS[0])}."

Seed = Annotated[int, Within(0)]
Jobs = Annotated[int, Within(1)]
LineCount = Annotated[int | None, Within(1)]


class Shared:
    """Flags of several verbs, as they are where a verb's docstring says nothing of them.

    Parameters
    ----------
    source : argument INPUT
        k-space or images to simulate it from (<formats of INPUT>), or phantom:NAME (<phantoms>).
    recipe : FILE.toml
        Settings: a TOML file, or a shipped recipe (<recipes>).
    out : Path
        Run folder; made if it does not exist.
    overwrite : bool
        Begin anew in a folder that is not empty: another run there goes, files may be replaced.
    quiet : bool
        No progress and no result lines.
    seed : N
        Of everything random.
    no_report : bool
        For batch work: arrays, tables and the manifest, without figures and report.
    png : bool
        Write every figure as PNG too, for slides.
    resume : bool
        Go on from what an interrupted run left there.
    jobs : N
        Processes; results do not depend on it.
    executor : NAME
        Who computes: local, --jobs processes; dask, a dask cluster of --jobs workers on this machine; or dask:ADDRESS,
        the workers of a scheduler. Results do not depend on it.
    field_of_view : --fov M[,M]
        Field of view in metres, along phase encoding and readout where they differ. [default: the scan's]
    lines : --lines --samples N
        Lines, or samples of a plane, in the end, those at the start included.
    acceleration : R
        Instead of a number: measure one in R of the grid's lines, or samples; of shots one for R lines.
    strategy : NAME
        One of: <strategies of lines>; trained:FILE or calibrated:FILE with a file of mri-design train. [default:
        calibrated, or the recipe's]
    slices : 0,3-5|middle|all
        Slices of inputs that do not name their own.
    companions : --with FILE
        <another image>
    """


def check_with(companions: Sequence[str] | None, recipe: Recipe) -> tuple[str, ...]:
    """What ``--with`` names.

    Raises
    ------
    UsageError
        For a method that has no prior.
    """
    method = recipe.reconstruction.method
    if companions and method not in ("mean", "map"):
        raise UsageError(f"only mean and map know other images: leave out --with, or --method {method}")
    return tuple(companions or ())


MAP_METHODS = CoilRecipe.declared()["maps"].choices


@dataclass(frozen=True)
class Maps:
    """Coil maps of one input or of several: how they are estimated, and those that are given.

    Parameters
    ----------
    maps : auto|espirit|nlinv|FILE
        Coil maps (.npy, .npz, .cfl): (slice,) coil, rows, columns as in INPUT; or how they are estimated: espirit from
        gapless centre lines, nlinv from any lines near the centre, auto by what was measured. Of one of several inputs
        INPUT=FILE; may be repeated. [default: INPUT's, or auto]
    maps_from : SCAN
        Take the coil maps of SCAN, a prescan or an earlier scan with the same coils, on any grid: --maps-from
        prescan.h5; of one of several inputs INPUT=SCAN.
    """

    maps: list[str] | None = None
    maps_from: list[str] | None = None

    def method(self, recipe: Recipe) -> Recipe:
        """The recipe with the method, the last where several are named.

        Raises
        ------
        UsageError
            Where one is misspelt: neither a method nor a file, and nearly a method or without an ending.
        """
        for text in self.maps or ():
            name = text.rpartition("=")[2]
            near = did_you_mean(name.lower(), MAP_METHODS)
            if text in MAP_METHODS:
                recipe = recipe.replacing("coils", maps=text)
            elif (near or not Path(name).suffix) and not (Path(name).exists() or Path(f"{name}.hdr").exists()):
                raise UsageError(
                    f"--maps {text}: got {name!r}, which is no file; wanted a file of coil maps, or a method for all "
                    f"inputs, one of {', '.join(MAP_METHODS)}. {near}".rstrip()
                )
        return recipe

    @property
    def given(self) -> dict[str, list[str]]:
        """Maps of inputs, by the flags that gave them, as `scan_sources` takes them."""
        files = [text for text in self.maps or () if text not in MAP_METHODS]
        return {"maps": files, "maps_from": list(self.maps_from or ())}

    def applied(self, recipe: Recipe) -> tuple[Recipe, GivenMaps | None]:
        """The recipe with the method, and the maps that are given of the only input.

        Raises
        ------
        UsageError
            Where maps are given twice, or a method is misspelt.
        """
        from mri_design.experiment.inputs import MapsOfScan  # here: help needs no reader

        recipe, files, scans = self.method(recipe), *self.given.values()
        given: list[GivenMaps] = [*map(Path, files), *(MapsOfScan(Path(scan)) for scan in scans)]
        if len(given) > 1:
            raise UsageError("coil maps are given twice: give --maps FILE or --maps-from SCAN")
        return recipe, given[0] if given else None


def names_of(text: str) -> list[str]:
    """Names of a list as it is typed, ``A,B,...``, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(",")))


def numbers_of(
    flag: str, text: str, wanted: str, limits: tuple[float, float], count: Sequence[int] = (), whole: bool = False
) -> list[Any]:
    """Numbers of a list as it is typed, ``0.24,0.2``.

    Parameters
    ----------
    flag, wanted : str
        For the message.
    text : str
        What was given.
    limits : (float, float)
        Of each number.
    count : sequence of int
        How many there may be; any number by default.
    whole : bool
        Whether they have to be whole numbers, in digits.

    Raises
    ------
    UsageError
        For anything else.
    """
    parts, (least, most) = [part.strip(" ") for part in text.split(",")], limits
    try:
        numbers = [whole_number(part) if whole else float(part) for part in parts]
    except ValueError:
        numbers = [None]
    if (count and len(parts) not in count) or not all(one is not None and least <= one <= most for one in numbers):
        raise UsageError(f"{flag} {text}: wanted {wanted}")
    return numbers


def extents_of(text: str | None) -> tuple[float, float] | None:
    """(ky, kx) of ``0.24`` or ``0.24,0.2``; lengths that only millimetres explain are refused."""
    if text is None:
        return None
    wanted = "one or two lengths in metres, 0.005 to 1, as 0.24 or 0.24,0.2"
    lengths = numbers_of("--fov", text, wanted, (0.005, 1), (1, 2))
    return lengths[0], lengths[-1]


def matrix_of(text: str) -> list[int]:
    """[ky, kx] of ``128`` or ``128,96``."""
    wanted = "one or two whole numbers of pixels, 4 or more, as 128 or 128,96"
    counts = numbers_of("--matrix", text, wanted, (4, 999_999), (1, 2), whole=True)
    return [counts[0], counts[-1]]


def place_of(text: str) -> list[int]:
    """[line, sample] of ``40,35``."""
    wanted = "a line and a sample, counted from 0, as 40,35"
    return numbers_of("--centre", text, wanted, (0, 999_999), (2,), whole=True)


def noise_of(text: str) -> float | str:
    """A standard deviation, or the name of a file."""
    try:
        return float(text)
    except ValueError:
        return text


_CONVERTED: dict[str, Callable[[Any], object]] = {
    "input.matrix": matrix_of,
    "input.dims": lambda text: [name.strip() for name in text.split(",")],
    "input.centre": place_of,
    "input.noise": noise_of,
}
"""What is made of the text or number of a flag, to be the setting."""
