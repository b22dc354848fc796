"""Scans: their data and which samples were measured; files, calibration, simulation and streams."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
