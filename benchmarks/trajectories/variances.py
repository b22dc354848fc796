"""Sampled variances beside dense algebra where X^H X is no matrix that one could invert: masks, spokes, spirals."""

from __future__ import annotations

import numpy as np
from parts.dense_posterior import DensePosterior
from trajectories.scenes import RECIPE, Scene, engine, model_of
from trajectories.sets import HALF, spiral_sets

from mri_design.evaluation.tables import Row
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.operators.cartesian_fourier import CartesianSamples
from mri_design.scan.trajectories.radial import equispaced_angles, radial_spokes
from mri_design.variances.control_variate import ControlVariate

DRAWS = 8
SHIPPED, CLOSE = RECIPE.inference.solver_tolerance, 0.003
"""Tolerances to which draws are solved: what this leaves of the bias tells where it is from."""


def models(scene: Scene) -> dict[str, GeneralizedLinearModel]:
    """A quarter of the grid's samples, at random with variable density; a quarter of its spokes; spirals."""
    matrix = scene.shape[0]
    rng = np.random.default_rng(0)
    distance = np.hypot(*np.meshgrid(*2 * (np.arange(matrix) - matrix // 2,), indexing="ij")) / (matrix / 2)
    weights = np.maximum(1 - distance / np.sqrt(2), 0.02).ravel() ** 4
    chosen = rng.choice(matrix**2, matrix**2 // 4, replace=False, p=weights / weights.sum())
    mask = np.zeros(matrix**2, dtype=bool)
    mask[chosen] = True
    samples = CartesianSamples(mask.reshape(scene.shape))
    return {
        "masks": model_of(samples, samples(scene.reference.astype(np.complex128)), 0),
        "spokes": scene.along(radial_spokes(matrix, equispaced_angles(matrix // 4))),
        "spirals": scene.along(spiral_sets(matrix, matrix // 10, 1.5)[HALF]),
    }


def variance_rows(scene: Scene, repeats: int) -> list[Row]:
    """Per kind of measurement: errors of z over all coefficients, and of their sum, over seeds of the draws.

    ``bias`` is the mean over seeds of the relative error of the sum of z, ``its error`` the standard error of that
    mean, ``of one run`` the standard deviation of one run's sum: the standard error that eight draws leave. ``stated
    bias`` is what the estimate itself says that its solves may leave, of the sum, too.
    """
    rows: list[Row] = []
    for kind, model in models(scene).items():
        posterior = engine().infer(model, np.random.default_rng(0))
        precision = posterior.precision
        dense = DensePosterior.of(precision)
        analyses = [block.analysis for block in model.blocks]
        exact = np.concatenate([dense.variances(analysis).ravel() for analysis in analyses])
        for tolerance in (SHIPPED, CLOSE):
            estimator = ControlVariate(DRAWS, tolerance)  # the recipe's, which states its bias, too
            medians, sums, stated = [], [], []
            for seed in range(repeats):
                rng = np.random.default_rng([seed, 5])
                made = estimator(precision, analyses, rng, model.back_projection())
                z = np.concatenate([np.ravel(value).astype(float) for value in made.values])
                medians.append(np.median(np.abs(z / exact - 1)))
                sums.append(z.sum() / exact.sum() - 1)
                left = sum(
                    float(np.sum(np.broadcast_to(b, v.shape))) for b, v in zip(made.bias, made.values, strict=True)
                )
                stated.append(left / exact.sum())
            one = float(np.std(sums, ddof=1))
            bias = float(np.mean(sums))
            rows.append(
                {
                    "measured": kind,
                    "samples": int(np.prod(model.measurement.out_shape)),
                    "tolerance": tolerance,
                    "median error": float(np.mean(medians)),
                    "bias": bias,
                    "its error": one / np.sqrt(repeats),
                    "stated bias": float(np.mean(stated)),
                    "of one run": one,
                    "bias / of one run": abs(bias) / one,
                    "runs": repeats,
                }
            )
    return rows
