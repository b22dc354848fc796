"""Estimators run on the blocks of a precision, or of a model, and their values in one row."""

import numpy as np

from mri_design import FiniteDifferences, GeneralizedLinearModel, Identity, Laplace, SiteBlock, Wavelet, cartesian
from mri_design.model import PosteriorPrecision, Variances
from mri_design.operators import Array
from mri_design.variances import VarianceEstimator


def run(
    estimator: VarianceEstimator, precision: PosteriorPrecision, seed: int = 0, like: Array | None = None
) -> Variances:
    """Variances of all blocks, of complex images in double precision where ``like`` does not say otherwise."""
    analyses = [block.analysis for block in precision.blocks]
    like = np.zeros(precision.measurement.in_shape, complex) if like is None else like
    return estimator(precision, analyses, np.random.default_rng(seed), like)


def run_on(
    estimator: VarianceEstimator, model: GeneralizedLinearModel, pi: tuple[Array, ...], seed: int = 0
) -> Variances:
    """Variances of a model's blocks under these site precisions."""
    return run(estimator, PosteriorPrecision(model.measurement, model.blocks, pi), seed, model.back_projection())


def together(values: tuple[Array, ...]) -> Array:
    """All values in one row, in double precision."""
    return np.concatenate([v.ravel() for v in values]).astype(float)


def scan_like(
    lines: list[int], shape: tuple[int, int], prior: str, coils: int = 1
) -> tuple[GeneralizedLinearModel, tuple[Array, ...]]:
    """A model and site precisions that vary as those of an image, small on a square's edge and large elsewhere.

    ``prior`` is "differences" or the name of a wavelet, beside pixels.
    """
    sparsity = FiniteDifferences(shape) if prior == "differences" else Wavelet(shape, prior, 2)
    blocks = tuple(
        SiteBlock(name, B, Laplace(1.0)) for name, B in (("pixels", Identity(shape)), ("sparsity", sparsity))
    )
    y, x = np.meshgrid(*(np.linspace(-1, 1, n) for n in shape), indexing="ij")
    angles = 2 * np.pi * np.arange(coils) / coils
    maps = [np.exp(-((y - np.sin(a)) ** 2) - (x - np.cos(a)) ** 2 + 1j * a) for a in angles]
    maps = maps / np.sqrt(np.sum(np.abs(maps) ** 2, axis=0))
    X = cartesian(lines, shape, maps if coils > 1 else None)
    image = np.zeros(shape)
    image[shape[0] // 4 : -shape[0] // 4, shape[1] // 4 : -shape[1] // 4] = 1
    pi = tuple(1 / (0.1 + 2 * np.abs(block.analysis(image))) for block in blocks)
    return GeneralizedLinearModel(X, X(image + 0j), 0.01, blocks), pi
