"""The time that is left between events, on the raster, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mri_design.errors import InputError
from mri_design.sequences.events import on_raster
from mri_design.sequences.scanner import RASTER

LONGEST = 3600.0
"""Seconds that a sequence may take."""


@dataclass(frozen=True)
class Interval:
    """A span of time that is to have a certain length.

    Parameters
    ----------
    rest : float
        Seconds that fixed events of it take.
    shortest : float
        Seconds that its one block of variable length needs at least, on the raster.
    """

    rest: float
    shortest: float


def fill(field: str, asked: float, intervals: Sequence[Interval], *, share: int = 1, cure: str = "") -> list[float]:
    """How long the variable blocks are to be, so that every interval takes the time that is asked for; on the raster.

    Parameters
    ----------
    field : str
        What the time is, for the message.
    asked : float
        Seconds.
    intervals : sequence of Interval
        Each is to last ``asked / share``.
    share : int
        How many of them make the time.
    cure : str
        For the message.

    Raises
    ------
    InputError
        Where the time is too short for one of them.
    """
    each = round(asked / share / RASTER) * RASTER
    left = [round(round((each - interval.rest) / RASTER) * RASTER, 9) for interval in intervals]
    if any(time < interval.shortest - RASTER / 2 for time, interval in zip(left, intervals, strict=True)):
        least = share * max(on_raster(interval.rest + interval.shortest) for interval in intervals)
        raise InputError(field, f"{asked:g} s", f"{least:.6g} s or more with these settings", cure)
    return left


def require_time(seconds: float) -> None:
    """Refuse a sequence of more than an hour.

    Raises
    ------
    InputError
        Saying how long it would take.
    """
    if seconds > LONGEST:
        raise InputError("repetition time", f"a sequence of {seconds:.0f} s", f"at most {LONGEST:g} s")
