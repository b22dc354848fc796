"""Kinds of readouts by name: k-space lines, samples of a plane of phase encodes, and families of shots.

Nothing is loaded for it, so that the command line can list the names before anything else is there. A kind is a file,
with its class of `Readouts` or with the function that makes one of its shots, and a line of `KINDS`; a script registers
its own shots by `register_trajectory`. `Readouts` has what depends on a grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mri_design.registry import Shipped


@dataclass(frozen=True)
class Kind:
    """What is known of readouts by their name alone. What has a default here needs no word of a new kind.

    Parameters
    ----------
    unit : str
        What one candidate is called in messages, in the singular.
    counted : str
        What tables, files and the option of their number call candidates: lines, samples, shots.
    several : str
        What several candidates are called.
    turn : float
        Of shots, the angle in radians over which different ones are spread: pi where a shot runs through the centre of
        k-space, 2 pi where it begins there; 0 of others.
    shot : callable, optional
        Of families of shots: (side of the grid, shots of the design) -> one shot at angle 0, see
        `experiment.extent.register_trajectory`.
    on : callable, optional
        (rows, columns) of a grid -> `Readouts`. None where a grid does not say where they run.
    axes : int
        Phase-encoding axes of the grid that number the candidates: 1 of lines, 2 of the samples of a plane, 0 of
        everything else.
    sort : str
        Under which name strategies and learnt error models know them: lines, plane or shots.
    limits : tuple of str
        Constraints of a sequence that they know: settings under [constraints] of a recipe.
    fewest_tested : int
        Candidates that must have been predicted and then measured before a rule ends a design.
    held_back_phase : bool
        Whether measured candidates that are held back choose the model of the phase, if a recipe does not say so.
    blocks_are_trains : bool
        Whether candidates that are chosen together are measured in one echo train.
    even_is_better : bool
        Of shots, whether on measured heads angles spread evenly made better images than those chosen by information.
    """

    unit: str
    counted: str
    several: str = ""
    turn: float = 0.0
    shot: Callable[..., Any] | None = None
    on: Callable[[tuple[int, int]], Any] | None = None
    axes: int = 0
    sort: str = "shots"
    limits: tuple[str, ...] = ()
    fewest_tested: int = 4
    held_back_phase: bool = False
    blocks_are_trains: bool = False
    even_is_better: bool = False

    @property
    def shots(self) -> bool:
        """Whether candidates are made for a design, as many as it needs, and are not those of a grid."""
        return self.shot is not None

    @property
    def on_grid(self) -> bool:
        """Whether candidates lie on a Cartesian grid: lines, samples, or groups of them."""
        return self.on is not None

    @property
    def with_holes(self) -> bool:
        """Whether a measured candidate may lack some of its samples: a line of the grid."""
        return self.axes == 1

    @property
    def centre_first(self) -> bool:
        """Whether coil maps come from the lines at the centre that a design begins with (its ``start``)."""
        return self.axes == 1

    @property
    def square(self) -> bool:
        """Whether a design begins with a square at the centre, from which coil maps come."""
        return self.axes == 2

    def whole(self, grid: tuple[int, int]) -> int:
        """Candidates of a fully sampled grid (rows, columns); of shots it counts as many as lines."""
        return grid[0] * grid[1] if self.axes > 1 else grid[0]


KINDS: dict[str, Kind] = {
    "lines": Kind(
        *("line", "lines", "lines"),
        on=Shipped("readouts", "LineReadouts"),
        axes=1,
        sort="lines",
        limits=("forbid", "require", "partial_fourier", "max_jump"),
        held_back_phase=True,
        blocks_are_trains=True,
    ),
    "plane": Kind(
        *("sample", "samples", "samples of a plane"),
        on=Shipped("readouts", "PlaneReadouts"),
        axes=2,
        sort="plane",
        limits=("forbid", "partial_fourier"),
        fewest_tested=16,  # each says much less than a line does
    ),
    "radial": Kind("spoke", "shots", "spokes", math.pi, Shipped("experiment.extent", "spoke")),
    "spiral": Kind(
        *("arm", "shots", "arms of spirals"), 2 * math.pi, Shipped("experiment.extent", "arm"), even_is_better=True
    ),
    "readouts": Kind("readout", "readouts", "readouts"),
}
"""By the names of encodings; "readouts" are those of a scan along any trajectory, which are not designed."""


def designed_kinds() -> tuple[str, ...]:
    """Names of what a design may choose one by one."""
    return tuple(name for name in KINDS if name != "readouts")


def gridded_kinds() -> tuple[str, ...]:
    """Names of what a Cartesian grid can be measured by: lines, samples of a plane, and others that are registered."""
    return tuple(name for name, kind in KINDS.items() if kind.on_grid)


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
