"""Readouts: what of k-space is measured one by one, as lines, samples of a plane or whole shots."""

from mri_design.errors import InputError
from mri_design.readouts.base import Readouts, Rows
from mri_design.readouts.lines import LineReadouts
from mri_design.readouts.plane import PlaneReadouts
from mri_design.readouts.shots import ShotReadouts

__all__ = [
    "LineReadouts",
    "PlaneReadouts",
    "Readouts",
    "Rows",
    "ShotReadouts",
    "readouts_named",
]


def readouts_named(name: str, grid: tuple[int, int]) -> Readouts:
    """Readouts of that name, lines or a plane, on a grid.

    Raises
    ------
    InputError
        For shots, of which a grid does not say where they run, and other names.
    """
    if name not in ("lines", "plane"):
        raise InputError("encoding", repr(name), "lines or plane", "Give the shots themselves: ShotReadouts.")
    return PlaneReadouts(grid) if name == "plane" else LineReadouts(grid)
