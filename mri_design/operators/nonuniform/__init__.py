"""Fourier measurements at any points of k-space: spokes, spirals, and whatever else a trajectory is."""

from mri_design.operators.nonuniform.density import density_weights
from mri_design.operators.nonuniform.fourier import NonUniformFourier
from mri_design.operators.nonuniform.trajectory import checked_trajectory

__all__ = ["NonUniformFourier", "checked_trajectory", "density_weights"]
