"""Designs over the plane (ky, kz) of a 3-D scan: strategies, baselines, oracles and constraints of its samples."""
