"""Scans: their data and which samples were measured; files, calibration, simulation and streams."""

from mri_design.fronts import front

__getattr__, __dir__, __all__ = front(__name__, __file__)
