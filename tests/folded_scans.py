"""Scans of an object that reaches beyond its field of view."""

from dataclasses import replace

import numpy as np

import mri_design as md
from mri_design.operators import to_image, to_kspace


def folded(part: int = 8) -> md.KSpaceData:
    """A head whose field of view along ky is too small by two parts."""
    scan = md.load_phantom("t1w", shape=(64, 64), noise=0.01, n_coils=8, rng=np.random.default_rng(1))
    images, edge = to_image(scan.kspace), 64 // part
    cut = images[:, :, edge:-edge].copy()
    cut[:, :, -edge:] += images[:, :, :edge]
    cut[:, :, :edge] += images[:, :, -edge:]
    measured = np.ones(64 - 2 * edge, dtype=bool)
    kspace = to_kspace(cut).astype(np.complex64)
    return replace(scan, kspace=kspace, measured=measured, coil_maps=None, reference=None)
