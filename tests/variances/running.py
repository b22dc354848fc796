"""Estimators run on the blocks of a precision, or of a model, and their values in one row."""

import numpy as np

from mri_design import GeneralizedLinearModel, SiteBlock
from mri_design.model import PosteriorPrecision, Variances, least_memory
from mri_design.operators import Array, FiniteDifferences, Identity, Wavelet, cartesian
from mri_design.sites import Laplace
from tests.arrays import smooth_maps


def run(estimator, precision: PosteriorPrecision, seed: int = 0, like=None, previous=None) -> Variances:
    """Variances of all blocks, of complex images as precise as the sites where ``like`` does not say otherwise."""
    kind = np.result_type(precision.site_precisions[0].dtype, np.complex64)
    like = np.zeros(precision.measurement.in_shape, kind) if like is None else like
    analyses = [block.analysis for block in precision.blocks]
    return estimator(precision, analyses, np.random.default_rng(seed), like, *([] if previous is None else [previous]))


def run_on(estimator, model: GeneralizedLinearModel, pi: tuple[Array, ...], seed: int = 0, previous=None) -> Variances:
    """Variances of a model's blocks under these site precisions."""
    precision = PosteriorPrecision(model.measurement, model.blocks, pi)
    return run(estimator, precision, seed, model.back_projection(), previous)


def narrow_memory(precision: PosteriorPrecision, count: int) -> float:
    """MiB that have draws made one by one."""
    real = precision.site_precisions[0].dtype
    return least_memory(count, precision.measurement, [b.analysis for b in precision.blocks], real)


def together(values: tuple[Array, ...]) -> Array:
    """All values in one row, in double precision."""
    return np.concatenate([v.ravel() for v in values]).astype(float)


def scan_like(lines, shape, prior, coils=1):
    """A model and site precisions that vary as those of an image, small on a square's edge and large elsewhere.

    ``prior`` is "differences" or the name of a wavelet, next to pixels.
    """
    sparsity = FiniteDifferences(shape) if prior == "differences" else Wavelet(shape, prior, 2)
    analyses = {"pixels": Identity(shape), "sparsity": sparsity}
    blocks = tuple(SiteBlock(name, B, Laplace(1.0)) for name, B in analyses.items())
    X = cartesian(lines, shape, smooth_maps(shape, coils))
    image = np.zeros(shape)
    image[shape[0] // 4 : -shape[0] // 4, shape[1] // 4 : -shape[1] // 4] = 1
    pi = tuple(1 / (0.1 + 2 * np.abs(block.analysis(image))) for block in blocks)
    return GeneralizedLinearModel(X, X(image + 0j), 0.01, blocks), pi
