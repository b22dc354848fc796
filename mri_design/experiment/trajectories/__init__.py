"""Scans along trajectories: calibrated, described and reconstructed."""
