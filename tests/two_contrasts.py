"""An object in two contrasts, and scans of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mri_design.model import SliceModel, SparsityBlock
from mri_design.scan.simulation import load_phantom

Image = NDArray[Any]
PRIOR = (SparsityBlock("pixels", 100.0, tau_limit=0.4), SparsityBlock("differences", 10.0))


GRID = 64


def head(phantom: str) -> Image:
    """One of the shipped heads at a quarter of its resolution."""
    image = load_phantom(phantom, shape=GRID, phase="none", rng=np.random.default_rng(0)).reference
    return np.abs(image[0])


FIRST, OTHER = "t2w", "t1w-6a"
"""Contrasts of one head."""


def scanned(image: Image, sd: float = 0.02, seed: int = 0) -> Image:
    """Centred k-space (ky, kx) with noise."""
    rng = np.random.default_rng(seed)
    noise = sd * (rng.standard_normal(image.shape) + 1j * rng.standard_normal(image.shape))
    return (np.fft.fftshift(np.fft.fft2(np.fft.ifftshift(image), norm="ortho")) + noise).astype(np.complex64)


def slice_of(image: Image, sd: float = 0.02, seed: int = 0) -> SliceModel:
    """All its lines, which one coil has measured."""
    kspace = scanned(image, sd, seed)[None]
    return SliceModel(kspace, np.ones(len(image), bool), sd**2, prior=PRIOR)


def some_lines(count: int, of: int = GRID, seed: int = 0) -> list[int]:
    """A dense centre of 8, and others anywhere."""
    centre = range(of // 2 - 4, of // 2 + 4)
    outer = np.setdiff1d(np.arange(of), list(centre))
    chosen = np.random.default_rng(seed).choice(outer, count - 8, replace=False)
    return sorted([*centre, *chosen.tolist()])
