"""Measured k-space, its conventions, and which of its samples hold data."""

from mri_design.kspace.data import ImageStack, KSpaceData, Orientation
from mri_design.kspace.sampling import Sampling, index_runs, require_whole_lines

__all__ = ["ImageStack", "KSpaceData", "Orientation", "Sampling", "index_runs", "require_whole_lines"]
