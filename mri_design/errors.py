"""Errors that name the field, what came, what was wanted, and the cure."""

from __future__ import annotations

import math
from numbers import Integral, Real

__all__ = ["InputError", "MriDesignError", "UsageError", "require_counts", "require_numbers"]


class MriDesignError(Exception):
    """Base class of every error this package raises on purpose."""


class InputError(MriDesignError, ValueError):
    """Something that came from outside (a file, an array, a setting) cannot be used.

    Parameters
    ----------
    field : str
        Name of what is wrong, for example ``"kspace"`` or ``"scan.h5: encodedSpace.matrixSize"``.
    got, wanted : str
        What came and what would have been accepted.
    cure : str, optional
        What the user can do about it, as an imperative sentence.
    """

    def __init__(self, *, field: str, got: str, wanted: str, cure: str = "") -> None:
        self.field = field
        self.got = got
        self.wanted = wanted
        self.cure = cure
        message = f"{field}: got {got}; wanted {wanted}."
        super().__init__(f"{message} {cure}" if cure else message)


class UsageError(MriDesignError):
    """The command or call itself is wrong (unknown strategy name, contradicting options)."""


def require_numbers(*, least: float = 0.0, most: float = math.inf, **settings: object) -> None:
    """Refuse a setting that is not a finite real number between ``least`` and ``most``.

    Raises
    ------
    InputError
        Naming the first such setting.
    """
    for name, value in settings.items():
        if not (isinstance(value, Real) and least <= float(value) <= most and math.isfinite(value)):
            limits = f"{least:g} or more" if math.isinf(most) else f"between {least:g} and {most:g}"
            raise InputError(field=name, got=repr(value), wanted=f"a finite number, {limits}")


def require_counts(*, least: int, **settings: object) -> None:
    """Refuse a setting that is not a whole number of ``least`` or more.

    Raises
    ------
    InputError
        Naming the first such setting.
    """
    for name, value in settings.items():
        if not (isinstance(value, Integral) and int(value) >= least):
            raise InputError(field=name, got=repr(value), wanted=f"a whole number, {least} or more")
