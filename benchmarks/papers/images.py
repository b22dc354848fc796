"""Small images of the shipped phantoms, and models of them measured along few lines, for experiments of TR-175."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import mri_design as md
from mri_design.operators import FiniteDifferences, Identity, RealImage, cartesian
from mri_design.sites import Laplace

Image = NDArray[np.float64]
NOISE = 0.01
"""Standard deviation per real component, where the image's 99.5th percentile is one."""


def phantom(name: str, side: int) -> Image:
    """A real image (side, side) whose 99.5th percentile is one."""
    scan = md.load_phantom(name, shape=side, phase="none", noise=0.0, rng=np.random.default_rng(0))
    image = np.squeeze(np.asarray(scan.reference)).real.astype(float)
    return image / np.percentile(image, 99.5)


def centred_and_random(side: int, centre: int, others: int, rng: np.random.Generator) -> list[int]:
    """Lines around the middle, and as many others by chance."""
    first = side // 2 - centre // 2
    middle = list(range(first, first + centre))
    rest = np.setdiff1d(np.arange(side), middle)
    return sorted([*middle, *rng.choice(rest, others, replace=False).tolist()])


def measured(
    image: Image,
    lines: Sequence[int],
    rng: np.random.Generator,
    *,
    is_complex: bool = True,
    blocks: Sequence[md.SiteBlock] = (),
) -> md.GeneralizedLinearModel:
    """A model of noisy lines of an image, by default with Laplace sites on pixels and on differences."""
    shape = image.shape
    X = cartesian(list(lines), shape)
    y = X(image + 0j)
    y = y + NOISE * (rng.standard_normal(y.shape) + 1j * rng.standard_normal(y.shape))
    usual = (
        md.SiteBlock("pixels", Identity(shape, is_complex=is_complex), Laplace(10 * NOISE)),
        md.SiteBlock("differences", FiniteDifferences(shape, is_complex=is_complex), Laplace(20 * NOISE)),
    )
    return md.GeneralizedLinearModel(X if is_complex else X @ RealImage(shape), y, NOISE**2, tuple(blocks) or usual)
