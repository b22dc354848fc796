"""Estimators run on the blocks of a precision, or of a model, and their values in one row."""

import numpy as np

from mri_design import GeneralizedLinearModel
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
