"""Readouts: what of k-space is measured one by one, lines, samples of a plane or whole shots, and their constraints.

What they are called and which settings they know is in `kinds.KINDS`, where ``KINDS[name].on(grid)`` makes those of a
grid.
"""

from mri_design.readouts.base import Constraints, Readouts, Rows, radii
from mri_design.readouts.grid import (
    LineConstraints,
    LineReadouts,
    PlaneConstraints,
    PlaneReadouts,
    centre_lines,
    longest_walk,
    open_moves,
)
from mri_design.readouts.shots import AngleConstraints, ShotReadouts

__all__ = [
    "AngleConstraints",
    "Constraints",
    "LineConstraints",
    "LineReadouts",
    "PlaneConstraints",
    "PlaneReadouts",
    "Readouts",
    "Rows",
    "ShotReadouts",
    "centre_lines",
    "longest_walk",
    "open_moves",
    "radii",
]
