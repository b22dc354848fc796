"""Names of what can be measured one by one: lines, the samples of a plane, and families of shots.

Nothing is loaded for it, so that the command line can list the names before anything else is there. A family of shots
of this package is a file and a line of `KINDS`; a script registers its own by `register_trajectory`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mri_design.registry import Shipped


@dataclass(frozen=True)
class Kind:
    """What is known of an encoding by its name alone, before there is a grid.

    Parameters
    ----------
    unit : str
        What one candidate is called in messages, in the singular.
    counted : str
        What columns of tables call the number of candidates.
    several : str
        What several candidates are called.
    turn : float
        Of shots, the angle in radians over which different ones are spread: pi where a shot runs through the centre of
        k-space, 2 pi where it begins there; 0 of others.
    shot : callable, optional
        Of families of shots: (settings, side of the grid, shots of the design) -> one shot at angle 0, see
        `experiment.shots.register_trajectory`.
    """

    unit: str
    counted: str
    several: str = ""
    turn: float = 0.0
    shot: Callable[..., Any] | None = None

    @property
    def shots(self) -> bool:
        """Whether candidates are shots, of which there are as many as a design asks for, and not a grid's."""
        return self.counted == "shots"


KINDS: dict[str, Kind] = {
    "lines": Kind("line", "lines", "lines"),
    "plane": Kind("sample", "samples", "samples of a plane"),
    "radial": Kind("spoke", "shots", "spokes", math.pi, Shipped("experiment.shots", "spoke")),
    "spiral": Kind("arm", "shots", "arms of spirals", 2 * math.pi, Shipped("experiment.shots", "arm")),
    "readouts": Kind("readout", "readouts", "readouts"),
}
"""By the names of encodings; "readouts" are those of a scan along any trajectory, which are not designed."""


def designed_kinds() -> tuple[str, ...]:
    """Names of what a design may choose one by one."""
    return tuple(name for name in KINDS if name != "readouts")


def count_text(count: int, unit: str) -> str:
    """So many candidates in words: "1 spoke", "2 spokes".

    Parameters
    ----------
    count : int
        How many.
    unit : str
        What one is called (`Kind.unit`).
    """
    return f"{count} {unit}{'' if count == 1 else 's'}"
