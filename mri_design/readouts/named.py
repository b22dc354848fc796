"""Readouts of a grid by their name."""

from mri_design.errors import InputError
from mri_design.readouts.base import Readouts
from mri_design.readouts.lines import LineReadouts
from mri_design.readouts.plane import PlaneReadouts


def readouts_named(name: str, grid: tuple[int, int]) -> Readouts:
    """Readouts of that name, lines or a plane, on a grid.

    Raises
    ------
    InputError
        For shots, of which a grid does not say where they run, and other names.
    """
    if name not in ("lines", "plane"):
        raise InputError(
            field="encoding", got=repr(name), wanted="lines or plane", cure="Give the shots themselves: ShotReadouts."
        )
    return PlaneReadouts(grid) if name == "plane" else LineReadouts(grid)
