"""Errors that name the field, what came, what was wanted, and the cure."""

from __future__ import annotations

__all__ = ["InputError", "MriDesignError", "UsageError"]


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
