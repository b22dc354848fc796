"""How near the estimators of z = diag(B A^-1 B^H) come to the exact ones, by products with A spent and by seconds."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from parts.dense_posterior import DensePosterior
from parts.problem import quarter_of_the_lines, scan_of

from mri_design.errors import InputError
from mri_design.evaluation.tables import Row
from mri_design.inference.double_loop.loop import DoubleLoop
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.precision import PosteriorPrecision
from mri_design.model.sparsity import SparsityBlock
from mri_design.operators.base import Array
from mri_design.variances.base import VarianceEstimator
from mri_design.variances.columns import ExactByColumns
from mri_design.variances.control_variate import ControlVariate
from mri_design.variances.lanczos import Lanczos
from mri_design.variances.monte_carlo import MonteCarlo

ESTIMATORS: Mapping[str, VarianceEstimator] = {
    "Lanczos, k = 100": Lanczos(100),
    "perturb-and-solve, 8 draws": MonteCarlo(8),
    "control variate, 4 draws": ControlVariate(4),
    "control variate, 8 draws": ControlVariate(8),
    "exact by columns": ExactByColumns(),
}
PRIORS = ("pixels+differences", "pixels+isotropic differences", "wavelet+differences")


def sparsity(prior: str, rate: float) -> tuple[SparsityBlock, ...]:
    """Blocks of one rate tau/sigma per unit of the signal level."""
    first, second = prior.split("+")
    kind = "wavelet" if first == "wavelet" else "pixels"
    return SparsityBlock(kind, rate), SparsityBlock("differences", rate, isotropic="isotropic" in second)


def posterior_precision(
    grid: int, coils: int, rate: float, prior: str, seed: int
) -> tuple[GeneralizedLinearModel, PosteriorPrecision]:
    """A at the optimum of the double loop, on a quarter of the lines."""
    scan = replace(scan_of(grid, coils, seed), prior=sparsity(prior, rate))
    model = scan.model(quarter_of_the_lines(grid, seed))
    return model, DoubleLoop(ControlVariate()).infer(model, np.random.default_rng(seed)).precision


def variance_rows(
    grid: int = 64,
    coils: Sequence[int] = (1, 8, 16),
    rates: Sequence[float] = (5.0, 10.0, 30.0),
    priors: Sequence[str] = PRIORS,
    seeds: Sequence[int] = (0, 1, 2, 3, 4),
    seed: int = 0,
    estimators: Mapping[str, VarianceEstimator] = ESTIMATORS,
) -> list[Row]:
    """Per case and estimator the relative error of z over all coefficients, against dense complex algebra.

    ``median error`` and ``mean error`` are means over ``seeds`` of the estimator's randomness, ``spread`` the standard
    deviation of the median over them; ``error / stated`` the root mean square of error over standard error, where one
    is stated (1.2 to 1.5 for eight draws, whose own scatter makes it so). Estimators that do not know a model are left
    out of its rows. Products that draw right-hand sides (half of one with A each) are not counted.
    """
    rows: list[Row] = []
    for prior in priors:
        for n_coils in coils:
            for rate in rates:
                model, precision = posterior_precision(grid, n_coils, rate, prior, seed)
                dense = DensePosterior.of(precision)
                exact = [dense.variances(block.analysis) for block in model.blocks]
                case = {"grid": grid, "prior": prior, "coils": n_coils, "tau/sigma": rate}
                for name, estimator in estimators.items():
                    try:
                        measured = _measured(estimator, model, precision, exact, seeds)
                    except InputError:
                        continue
                    rows.append(case | {"estimator": name} | measured)
    return rows


def _measured(
    estimator: VarianceEstimator,
    model: GeneralizedLinearModel,
    precision: PosteriorPrecision,
    exact: Sequence[Array],
    seeds: Sequence[int],
) -> Row:
    analyses, like = [block.analysis for block in model.blocks], model.back_projection()
    reference = _together(exact)
    medians, means, scores, spent, seconds = [], [], [], [], []
    for seed in seeds:
        fresh = replace(precision)  # nothing cached from the run before
        began = time.perf_counter()
        made = estimator(fresh, analyses, np.random.default_rng(seed), like)
        seconds.append(time.perf_counter() - began)
        errors = np.abs(_together(made.values) - reference)
        medians.append(np.median(errors / reference))
        means.append(np.mean(errors / reference))
        spent.append(made.convergence.matvecs)
        if made.kind == "unbiased" and made.std_error is not None:
            scores.append(np.mean((errors / _together(made.std_error)) ** 2))
    return {
        "kind": made.kind,
        "matvecs": max(spent),
        "median error": float(np.mean(medians)),
        "spread": float(np.std(medians)),
        "mean error": float(np.mean(means)),
        "error / stated": float(np.sqrt(np.mean(scores))) if scores else None,
        "seconds": float(np.median(seconds)),
    }


def _together(values: Sequence[Array]) -> Array:
    return np.concatenate([np.ravel(v).astype(np.float64) for v in values])
