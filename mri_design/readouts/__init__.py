"""Readouts: what of k-space is measured one by one, as lines, samples of a plane or whole shots."""

from mri_design.readouts.base import Readouts, Rows
from mri_design.readouts.lines import LineReadouts
from mri_design.readouts.named import readouts_named
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
