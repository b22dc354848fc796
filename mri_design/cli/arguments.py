"""Arguments as they are typed: lists of names, the option that an error is about, and the command to go on with."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_type_hints

from mri_design.errors import InputError, UsageError
from mri_design.whole_numbers import whole_number

if TYPE_CHECKING:
    from mri_design.operators.encodings import EncodingName

# Fields of errors, and the parameters that may have brought them, the likeliest first.
_PARAMETERS = {
    "number of lines": ("lines",),
    "start lines": ("start", "lines"),
    "start samples": ("start", "lines"),
    "required samples": ("calibration", "lines"),
    "calibration region": ("calibration", "shutter", "partial_fourier"),
    "calibration lines": ("start",),
    "slice": ("index",),
    "set": ("set_",),
    "slices": ("slices", "sources"),
    "error to stop at": ("until_error",),
    "gain to stop at": ("until_gain",),
    "forbidden lines": ("forbid",),
    "required lines": ("require", "forbid", "partial_fourier"),
    "constraints": ("forbid", "require", "partial_fourier", "max_jump"),
    "forced centre": ("start", "forbid", "partial_fourier"),
    "partial Fourier": ("partial_fourier",),
    "maximum jump": ("max_jump",),
    "order": ("order", "block", "max_jump"),
    "field of view": ("fov",),
    "echo time": ("te", "bandwidth"),
    "repetition time": ("tr", "dummies", "te"),
    "flip angle": ("flip",),
    "max_gradient": ("scanner", "bandwidth", "resolution", "fov", "thickness", "formerly"),
    "max_b1": ("scanner", "flip"),
    "bandwidth": ("bandwidth", "resolution", "fov"),
    "slice thickness": ("thickness", "formerly"),
    "samples of a readout": ("resolution",),
    "echo trains": ("etl", "sequence"),
    "RF spoiling": ("spoiling",),
}


def option_behind(error: InputError, verb: Callable[..., Any], values: Mapping[str, object]) -> str | None:
    """The option or argument, as it is written, that was given and that ``error`` is about; None where it is a file.

    Parameters
    ----------
    error : InputError
        Its field names a value of the program, or a setting of the recipe in force
        (``recipe: design.until_error``); one of a file (``recipe mine.toml: ...``) is about that file.
    verb : callable
        Function behind the verb, its parameters annotated with typer's options.
    values : mapping of str to object
        Its parameters as they were; those equal to the default count as not given.
    """
    if error.field.startswith("recipe ") and not error.field.startswith("recipe: "):
        return None  # a recipe file, whatever was given beside it
    setting = error.field.rpartition(": ")[2].rpartition(".")[2]
    defaults = {name: parameter.default for name, parameter in inspect.signature(verb).parameters.items()}
    for name in (*_PARAMETERS.get(error.field, _PARAMETERS.get(setting, ())), setting):
        if name in values and values[name] != defaults[name]:
            (described, *_) = get_type_hints(verb, include_extras=True)[name].__metadata__
            names = (described.default, *(described.param_decls or ()), described.metavar)
            written = next(
                text for text in names if isinstance(text, str) and text.startswith(("--", described.metavar))
            )
            return written.split("/")[-1 if values[name] is False else 0]  # --this/--no-this
    return None


def error_text(error: InputError, option: str) -> str:
    """An error about an option, behind the option's name: the field stands there too where it says something more."""
    named = error.field.replace(" ", "-") == option.lstrip("-") or error.field.startswith("recipe: ")
    return f"{option}: {str(error).removeprefix(f'{error.field}: ') if named else error}"


def command_to_go_on(add: Iterable[str] = (), leave: Iterable[str] = (), words: Sequence[str] | None = None) -> str:
    """A command, by default this very one, as a shell takes it, with some options added and others left out."""
    words = [word for word in (sys.argv[1:] if words is None else words) if word not in set(leave)]
    return shlex.join(["mri-design", *words, *(word for word in add if word not in words)])


def names_of(text: str) -> list[str]:
    """Names of a list as it is typed, ``A,B,...``, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(",")))


def extents_of(text: str | None) -> tuple[float, float] | None:
    """(ky, kx) of ``0.24`` or ``0.24,0.2``.

    Raises
    ------
    UsageError
        For anything else, and for lengths that only millimetres explain.
    """
    if text is None:
        return None
    try:
        lengths = [float(part) for part in text.split(",")]
    except ValueError:
        lengths = []
    if len(lengths) not in (1, 2) or not all(0.005 <= length <= 1 for length in lengths):
        raise UsageError(f"--fov {text}: wanted one or two lengths in metres, 0.005 to 1, as 0.24 or 0.24,0.2")
    return lengths[0], lengths[-1]


def matrix_of(text: str | None) -> list[int] | None:
    """[ky, kx] of ``128`` or ``128,96``.

    Raises
    ------
    UsageError
        For anything else.
    """
    if text is None:
        return None
    counts = [whole_number(part.strip(" ")) or 0 for part in text.split(",")]
    if len(counts) > 2 or not all(4 <= count < 10**6 for count in counts):
        raise UsageError(f"--matrix {text}: wanted one or two whole numbers of pixels, 4 or more, as 128 or 128,96")
    return [counts[0], counts[-1]]


def check_angles(angles: int | None, encoding: EncodingName, strategies: Sequence[str]) -> None:
    """Refuse ``--angles`` where no strategy chooses among them.

    Parameters
    ----------
    angles : int or None
        As given; None is not.
    encoding : str
        What is chosen.
    strategies : sequence of str
        Names of strategies of that encoding.

    Raises
    ------
    UsageError
        For angles where lines or samples of a plane are chosen, and where all strategies are sets of fixed angles.
    """
    if angles is None:
        return
    from mri_design.experiment.strategy_names import chooses_angles
    from mri_design.kinds import KINDS

    if any(chooses_angles(name, encoding) for name in strategies):
        return
    if not KINDS[encoding].shots:
        unit = KINDS[encoding].unit
        raise UsageError(
            f"--angles are those of spokes and arms to choose from, and {unit}s are chosen here: leave it out, or give "
            "--encoding radial or spiral"
        )
    raise UsageError(
        f"--angles are to be chosen from, and {' and '.join(strategies)} "
        f"{'has its' if len(strategies) == 1 else 'have their'} own angles: leave it out, or take the strategy "
        "information-gain"
    )
