"""Scans: their data and which samples were measured; files, calibration, simulation and streams."""
