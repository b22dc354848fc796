"""Fourier measurements at any points of k-space: spokes, spirals, and whatever else a trajectory is."""

from mri_design.operators.nonuniform.convention import checked_samples, checked_trajectory
from mri_design.operators.nonuniform.density import density_weights
from mri_design.operators.nonuniform.fourier import NonUniformFourier

__all__ = ["NonUniformFourier", "checked_samples", "checked_trajectory", "density_weights"]
