"""Measured k-space, its conventions, and line masks."""

from mri_design.kspace.data import ImageStack, KSpaceData, Orientation

__all__ = ["ImageStack", "KSpaceData", "Orientation"]
