"""Errors with a field, the value that came, what was wanted and a cure; and the checks that raise them.

=========================  ==============================================================================
`require_numbers`          settings that are finite real numbers within limits
`require_counts`           settings that are whole numbers within limits
`require_choice`           settings that are one of several words
`require_instance`         arguments of a class
`require_working`          arguments that can be called
`require_random`           NumPy's generator of random numbers
`require_allocatable`      numbers of things that fit into an array
`positive_number`          a positive finite number
`probability`              a probability, also in per cent
`number_array`             an array of numbers: of a shape, finite, real, positive
`covariance_matrix`        a Hermitian positive matrix
`require_grid`             a shape as a tuple
`sequence_of`              a tuple of members of a class
`line_numbers`             numbers and ranges as people type them
=========================  ==============================================================================

Any other error is raised in one line: ``raise InputError("field", got, wanted, cure)``.
"""

from __future__ import annotations

import inspect
import math
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import cache, reduce
from importlib import import_module
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from numpy.typing import NDArray


NumberKind = Literal["any", "finite", "real", "positive"]
LARGEST_ARRAY = 4 * 2**30
"""Bytes of the largest array whose size a setting or argument decides."""


_COMMAND_LINE = "MRI_DESIGN_COMMAND_LINE"
"""Environment variable that is set while the command line runs; worker processes inherit it."""
_ARGUMENTS = {
    "maps": "coil_maps",
    "maps-from": "coil_maps",
    "with": "companions",
    "mask": "lines",
    "echo-times": "times",
    "samples": "lines",
    "shots": "lines",
    "out": "folder",
    "overwrite": "overwrite=True",
    "fov": "field_of_view",
}
"""Options of the command line whose arguments in Python have another name."""
_OF_SETTINGS = {name: f"-s input.{name}" for name in ("dims", "matrix", "duplicates")}
"""Arguments of Python's functions that the command line has as settings of the recipe."""
_WITH_OPTION = (
    "design.until_error",
    "design.until_interval",
    "design.level",
    "design.encoding",
    "design.start",
    "design.block",
)
"""Settings of the recipe that messages name by their option; all others are given as ``-s SECTION.NAME=VALUE``."""


@contextmanager
def naming_options() -> Iterator[None]:
    """Let messages name options of the command line; outside of it they name arguments of Python's functions."""
    outside = os.environ.get(_COMMAND_LINE)
    os.environ[_COMMAND_LINE] = "1"
    try:
        yield
    finally:
        if outside is None:
            del os.environ[_COMMAND_LINE]


def option(name: str, value: object = "") -> str:
    """The name of an option in messages: as on the command line, or the argument or setting of Python.

    Parameters
    ----------
    name : str
        Of the option, without its dashes; of one that Python has as a setting of the recipe its path, ``input.centre``.
    value : object
        An example of what it takes, in capitals where it stands for something.
    """
    text = str(value)
    *sections, setting = name.split(".")
    if os.environ.get(_COMMAND_LINE):
        plain = not sections or name in _WITH_OPTION
        written = _OF_SETTINGS.get(name, f"--{setting.replace('_', '-')}" if plain else f"-s {name}")
        return f"{written}{'=' if written.startswith('-s') else ' '}{text}".rstrip(" =")
    if text and not isinstance(value, list | int | float) and not text.isupper() and not text[0].isdigit():
        text = repr(text)
    elif "," in text and not isinstance(value, list):
        text = f"[{text.replace(',', ', ')}]"
    if sections:
        return "recipe=" + reduce(
            lambda inner, part: f"{{'{part}': {inner}}}", [setting, *sections[::-1]], text or "..."
        )
    argument = _ARGUMENTS.get(name, name.replace("-", "_"))
    if text and argument == "companions":
        text = f"[{text}]"
    return f"{argument}={text}" if text and "=" not in argument else argument


class MriDesignError(Exception):
    """Base class of the errors that this package raises on purpose."""


class InputError(MriDesignError, ValueError):
    """A file, array, argument or setting that cannot be used.

    Parameters
    ----------
    field : str
        Name of what is wrong, for example ``"kspace"`` or ``"scan.h5: encodedSpace.matrixSize"``.
    got, wanted : str
        What came and what would have been accepted.
    cure : str, optional
        What the user can do about it, as an imperative sentence.
    behind : tuple of str
        Settings by their paths (``design.start``), and arguments, that may have brought it where its field is none of
        them; the likeliest first.
    """

    def __init__(self, field: str, got: str, wanted: str, cure: str = "", behind: tuple[str, ...] = ()) -> None:
        self.field, self.got, self.wanted, self.cure, self.behind = field, got, wanted, cure, behind
        super().__init__(f"{field}: got {got}; wanted {wanted}. {cure}".rstrip())

    def about(self, field: str, cure: str | None = None) -> InputError:
        """The same error with another field, and another cure if one is given."""
        return InputError(field, self.got, self.wanted, self.cure if cure is None else cure, self.behind)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle all arguments: worker processes send their errors, and the message alone does not make one."""
        return type(self), (self.field, self.got, self.wanted, self.cure, self.behind)


def argument_behind(error: InputError, given: Collection[str]) -> str | None:
    """The given option or argument that caused an error; None if a file caused it.

    Parameters
    ----------
    error : InputError
        Its field, or what is `behind` it, names an argument or a setting of the recipe in force (``recipe:
        design.until_error``); one of a file (``recipe mine.toml: ...``) is about that file.
    given : collection of str
        Names of options, with underscores, or of arguments.
    """
    if error.field.startswith("recipe ") and not error.field.startswith("recipe: "):
        return None  # a recipe file, whatever else was given
    paths = (*error.behind, error.field.rpartition(": ")[2])
    names = (path.rpartition(".")[2].replace(" ", "_").lower() for path in paths)
    return next((name for name in names if name in given), None)


class UsageError(MriDesignError):
    """A wrong command or call: an unknown name, or options that contradict each other."""


class UnknownNameError(UsageError):
    """An unknown name of a strategy, format or other part.

    Parameters
    ----------
    what, name : str
        What it should be the name of ("strategy"), and the name.
    known : collection of str
        The names that are taken; the nearest one is the cure.
    """

    def __init__(self, what: str, name: str, known: Collection[str]) -> None:
        self.what, self.name, self.known = what, name, tuple(known)
        self.got = f"unknown {what} {name!r}"
        self.wanted = f"one of {', '.join(known)}"
        self.cure = did_you_mean(name.partition(":")[0], [one.removesuffix(":FILE") for one in known])
        super().__init__(f"{self.got}; wanted {self.wanted}. {self.cure}".rstrip())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle all arguments, as `InputError` does."""
        return type(self), (self.what, self.name, self.known)


class MissingPackageError(MriDesignError):
    """An optional package is not installed."""


def optional_package(name: str, extra: str) -> Any:
    """Import an optional package.

    Parameters
    ----------
    name : str
        Of the module.
    extra : str
        The extra of this package that brings it.

    Raises
    ------
    MissingPackageError
        Saying how to install it.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise MissingPackageError(
            f"this needs the package {package}, which cannot be imported ({error}); install it (pip install {package}) "
            f"or this package with its extra {extra} (pip install '.[{extra}]')"
        ) from error


def described(value: object) -> str:
    """A value in a few words: numbers and texts as they are written, everything else by its type."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:57]}..."
    name = type(value).__name__
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and hasattr(value, "dtype"):
        return f"an array of {value.dtype}, shape {shape}" if shape else repr(value)
    spelled = name[:2].isupper()  # an abbreviation is spelled: an HDF5Source
    return f"{'an' if name[:1].lower() in ('aefhilmnorsx' if spelled else 'aeiou') else 'a'} {name}"


def did_you_mean(name: str, known: Collection[str]) -> str:
    """``Did you mean ...?`` with the nearest known name; empty if no name is similar."""
    near = get_close_matches(name, known, 1)
    return f"Did you mean {near[0]}?" if near else ""


def require_numbers(*, least: float = 0.0, most: float = math.inf, **settings: object) -> None:
    """Refuse a setting that is not a finite real number between ``least`` and ``most``; true and false are no numbers.

    Raises
    ------
    InputError
        Naming the first such setting.
    """
    for name, value in settings.items():
        number = _finite(value)
        if number is None or not least <= number <= most:
            limits = f", {least:g} or more" if math.isinf(most) else f", between {least:g} and {most:g}"
            limits = "" if math.isinf(least) and math.isinf(most) else limits
            raise InputError(name, described(value), f"a finite number{limits}")


def require_counts(*, least: int, most: int | None = None, **settings: object) -> None:
    """Refuse a setting that is not a whole number of ``least`` or more, up to ``most``; true and false are no numbers.

    Raises
    ------
    InputError
        Naming the first such setting.
    """
    for name, value in settings.items():
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        if not whole or not least <= int(value) <= (math.inf if most is None else most):  # type: ignore[call-overload]
            limits = f"{least} or more" if most is None else f"{least} to {most}"
            raise InputError(name, described(value), f"a whole number, {limits}")


def require_choice(choices: Iterable[str], *, cure: str = "", **settings: object) -> None:
    """Refuse a setting that is not one of the words in ``choices``.

    Raises
    ------
    InputError
        Naming the first such setting, all words, and the nearest one where no other cure is given.
    """
    words = tuple(choices)
    for name, value in settings.items():
        if not isinstance(value, str) or value not in words:
            near = did_you_mean(value, words) if isinstance(value, str) else ""
            wanted = " or ".join(words) if len(words) == 2 else ", ".join(words)
            raise InputError(name, described(value), wanted, cure or near)


def require_allocatable(field: str, *lengths: int, item_bytes: int = 8, got: object = None, cure: str = "") -> None:
    """Refuse an array larger than `LARGEST_ARRAY` before it is allocated.

    Parameters
    ----------
    field : str
        For the message.
    *lengths : int
        Of the array along each axis.
    item_bytes : int
        Of one number in it.
    got : object, optional
        What was given, where it is not the lengths themselves.
    cure : str
        For the message.

    Raises
    ------
    InputError
        Naming the lengths and how much an array may take.
    """
    if math.prod(map(int, lengths)) * item_bytes > LARGEST_ARRAY:
        asked = " x ".join(f"{length:.4g}" if length >= 1e6 else str(length) for length in map(int, lengths))
        given = "" if got is None else f"{described(got)}, "
        wanted = f"an array of at most {LARGEST_ARRAY // 2**30} GiB"
        raise InputError(field, f"{given}an array of {asked} numbers", wanted, cure)


def positive_number(field: str, value: object) -> float:
    """A positive finite number (or an array that holds one) as a float.

    Raises
    ------
    InputError
        For anything else.
    """
    inside: Any = value
    number = _finite(inside.item() if getattr(value, "shape", None) == () else value)
    if number is None or number <= 0:
        raise InputError(field, described(value), "a positive finite number")
    return number


def probability(value: object, *, least: float = 0.0, most: float = 1.0, field: str = "level") -> float:
    """A probability above 0 and below 1, within limits; from 50 on numbers are per cent, 95 as 0.95 and "95%".

    Raises
    ------
    InputError
        For anything else.
    """
    number = _finite(value)
    if isinstance(value, str):
        with suppress(ValueError):
            number = share_of(value)
    if number is not None and number >= 50:
        number /= 100
    if number is None or not (0 < number < 1 and least <= number <= most):
        wanted = f"a probability of {least:.0%} to {most:.0%}" if least else "a probability above 0 and below 1"
        raise InputError(field, described(value), wanted, "Ninety per cent are 90, 90% or 0.9.")
    return number


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # a whole number beyond all floats
        return None


def require_instance(kind: type | tuple[type, ...], *, wanted: str, cure: str = "", **arguments: object) -> None:
    """Refuse an argument that is not an instance of ``kind``.

    Parameters
    ----------
    kind : type or tuple of types
        What it must be an instance of.
    wanted, cure : str
        For the message.
    **arguments
        By their names.

    Raises
    ------
    InputError
        Naming the first such argument.
    """
    for name, value in arguments.items():
        if not isinstance(value, kind):
            made = isinstance(value, type) and issubclass(value, kind)
            again = f"Make one of it: {value.__name__}(...)." if made and isinstance(value, type) else cure
            raise InputError(name, described(value), wanted, again)


def require_working(*, wanted: str, takes: int | None = None, method: str = "__call__", **arguments: object) -> None:
    """Refuse an argument that is not callable, lacks a method, or is a class instead of an instance.

    For what anybody may write: variance estimators, solvers, engines, callbacks.

    Parameters
    ----------
    wanted : str
        For the message.
    takes : int, optional
        How many positional arguments the call is made with, if that shows whether it is right.
    method : str
        What is called.
    **arguments
        By their names.

    Raises
    ------
    InputError
        Naming the first such argument.
    """
    for name, value in arguments.items():
        if isinstance(value, type):
            cure = f"Make one: {value.__name__}(...)." if hasattr(value, method) else ""
            raise InputError(name, described(value), wanted, cure)
        try:
            called = inspect.signature(getattr(value, method))
            called.bind(*range(takes)) if takes is not None else None
        except (AttributeError, TypeError) as error:
            raise InputError(name, described(value), wanted) from error
        except ValueError:  # functions written in C may have no signature
            continue


def require_random(rng: object) -> None:
    """Refuse anything but a `numpy.random.Generator`, such as a seed, None, or RandomState.

    Raises
    ------
    InputError
        Saying how a seed becomes a generator.
    """
    from numpy.random import Generator

    if not isinstance(rng, Generator):
        seed = rng if isinstance(rng, int) and not isinstance(rng, bool) and rng >= 0 else 0
        raise InputError("rng", described(rng), "a numpy.random.Generator", f"Give numpy.random.default_rng({seed}).")


def number_array(
    field: str,
    value: object,
    *,
    wanted: str = "an array of numbers",
    cure: str = "",
    shape: tuple[int | None, ...] | None = None,
    kind: NumberKind = "any",
) -> NDArray[Any]:
    """An array, or numbers in nested lists, as an array of numbers; arrays come back as they are.

    Parameters
    ----------
    field, wanted, cure : str
        For the message.
    value : array
        What was given.
    shape : tuple, optional
        Which it must have; None in it stands for any length.
    kind : {"any", "finite", "real", "positive"}
        What all numbers must be; real and positive ones are finite.

    Raises
    ------
    InputError
        For text, objects, lists of unequal lengths, no array at all, or one of a wrong shape or type.
    """
    import numpy as np

    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError(field, "lists of unequal lengths", wanted, cure or "Make all rows equally long.") from error
    except RuntimeError as error:  # a tensor that stands on another device, or takes part in a gradient
        raise InputError(field, f"{described(value)}, of which NumPy makes no array ({error})", wanted, cure) from error
    if array.dtype.kind not in "fciub":
        held = "text" if array.dtype.kind in "US" else str(array.dtype)
        got = described(value) if array.dtype.kind == "O" or not array.ndim else f"an array of {held}"
        raise InputError(field, got, wanted, cure)
    pairs = zip(shape or (), array.shape, strict=False)
    if shape is not None and (len(shape) != array.ndim or any(n not in (None, m) for n, m in pairs)):
        raise InputError(field, f"shape {array.shape}", wanted, cure)
    if kind in ("real", "positive") and array.dtype.kind == "c":
        raise InputError(field, "complex numbers", wanted, cure)
    if kind != "any" and not np.isfinite(array).all():
        raise InputError(field, "NaN or infinite values", wanted, cure)
    if kind == "positive" and not (array > 0).all():
        raise InputError(field, "zero or negative values", wanted, cure)
    return array


def covariance_matrix(field: str, value: object, side: int, *, definite: bool = True, cure: str = "") -> NDArray[Any]:
    """A covariance as a Hermitian matrix of numbers.

    Parameters
    ----------
    field : str
        For the message.
    value : array
        What was given.
    side : int
        Rows and columns that it must have.
    definite : bool
        Whether it must be positive definite, because it will be inverted; otherwise it may be singular.
    cure : str
        End of the message.

    Raises
    ------
    InputError
        For anything else: another shape, text, NaN, no Hermitian matrix, or a negative eigenvalue beyond rounding.
    """
    import numpy as np

    wanted = f"a Hermitian positive {'definite' if definite else 'semidefinite'} matrix ({side}, {side})"
    matrix = number_array(field, value, wanted=wanted, cure=cure, shape=(side, side), kind="finite")
    if matrix.dtype.kind == "b":
        raise InputError(field, "flags", wanted, cure)
    matrix = matrix.astype(np.complex128 if np.iscomplexobj(matrix) else np.float64)
    largest = float(np.abs(matrix).max())
    if not np.allclose(matrix, matrix.conj().T, rtol=1e-6, atol=1e-6 * largest):
        raise InputError(field, "a matrix that is not Hermitian", wanted, cure)
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if not (smallest > 0 if definite else smallest >= -1e-6 * largest):
        raise InputError(field, f"an eigenvalue {smallest:.3g}", wanted, cure)
    return matrix


def require_grid(field: str, shape: Any, *, axes: int | None = None) -> tuple[int, ...]:
    """A shape as a tuple of whole numbers of one or more.

    Parameters
    ----------
    field : str
        For the message.
    shape : sequence of int
        What was given.
    axes : int, optional
        How many there must be.

    Raises
    ------
    InputError
        For anything else, one bare number included, and for more pixels than fit into an array (`LARGEST_ARRAY`).
    """
    several = isinstance(shape, (tuple, list)) or getattr(shape, "ndim", 0) == 1
    lengths: list[Any] = list(shape) if several else [None]
    whole = all(isinstance(n, Integral) and not isinstance(n, bool) and int(n) >= 1 for n in lengths)
    if not whole or (axes is not None and len(lengths) != axes):
        many = "" if axes is None else f"{axes} "
        example = "(64, 64)" if axes == 2 else "(64,) or (64, 64)"
        wanted = f"a tuple of {many}whole numbers, 1 or more each, as {example}"
        raise InputError(field, str(shape) if several else described(shape), wanted)
    require_allocatable(field, *lengths)
    return tuple(int(n) for n in lengths)


def sequence_of(kind: type, field: str, value: Any, *, wanted: str, least: int = 0) -> tuple[Any, ...]:
    """The members of a tuple, list or other iterable, each an instance of ``kind``; ``least`` of them or more.

    Raises
    ------
    InputError
        For one such instance by itself, with the cure to put it into a tuple, for too few, and for anything else.
    """
    if isinstance(value, kind):
        raise InputError(field, f"{described(value)} by itself", wanted, "Put it into a tuple: (it,).")
    try:
        members = tuple(value)
    except TypeError as error:
        raise InputError(field, described(value), wanted) from error
    for place, member in enumerate(members):
        if not isinstance(member, kind):
            raise InputError(f"{field}[{place}]", described(member), f"a {kind.__name__}")
    if len(members) < least:
        got = f"{len(members)} of them" if members else "an empty list"
        raise InputError(field, got, f"{wanted}, {least} or more")
    return members


_NUMBER = re.compile(r"-?[0-9]{1,18}")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def whole_number(text: str) -> int | None:
    """A text of up to 18 digits, with or without a minus sign, as a number; None for any other text."""
    return int(text) if _NUMBER.fullmatch(text) else None


def share_of(text: str) -> float:
    """A share as it is typed, ``10%``, ``.1`` or ``0.1``.

    Raises
    ------
    ValueError
        For a text that is no number.
    """
    number, per_cent, rest = text.strip().partition("%")
    return float(f"{number.rstrip()}e-2{rest}" if per_cent else number)


def number_ranges(text: str) -> list[tuple[int, int]] | None:
    """First and last number of every part of a list as ``0,3-5``, in order.

    Blanks around the parts are allowed. Whether a range ascends is not checked here.

    Returns
    -------
    list of (int, int), or None
        None for every other text.
    """
    matches = [_RANGE.fullmatch(part.strip(" ")) for part in text.split(",")]
    return [(int(match[1]), int(match[2] or match[1])) for match in matches if match] if all(matches) else None


MOST_LINES = 1 << 16
"""Lines of one range."""


def line_numbers(text: str, field: str = "lines") -> tuple[int, ...]:
    """Numbers of a list, ascending, each once; an empty text holds none.

    Raises
    ------
    InputError
        Where the text is no such list, a range runs backwards, or it holds absurdly many lines.
    """
    lines: set[int] = set()
    ranges = number_ranges(text) if text.strip() else []
    if ranges is None:
        raise InputError(field=field, got=repr(text), wanted="numbers and ranges from 0, as 0-9,250-255")
    for first, last in ranges:
        if last < first:
            raise InputError(field, repr(f"{first}-{last}"), "a range that ascends", "Turn it round.")
        if last - first > MOST_LINES:
            raise InputError(field, repr(f"{first}-{last}"), f"at most {MOST_LINES} lines")
        lines.update(range(first, last + 1))
    return tuple(sorted(lines))


@cache
def say_once(text: str) -> None:
    """Print a line on stderr, once in a process; worker processes print nothing."""
    from multiprocessing import parent_process

    begun_by_python = any("from multiprocessing" in word for word in sys.orig_argv)
    if parent_process() is None and not begun_by_python and sys.stderr is not None:
        print(f"mri-design: {text}", file=sys.stderr)
