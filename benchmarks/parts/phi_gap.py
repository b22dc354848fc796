"""How near the criterion phi comes to its minimum from a cold start, by products with A spent, per estimator."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from parts.dense_posterior import converged_posterior, exact_phi
from parts.problem import quarter_of_the_lines, scan_of

from mri_design.estimation.irls import IRLS
from mri_design.evaluation.tables import Row
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.variances.base import VarianceEstimator
from mri_design.variances.columns import ExactByColumns
from mri_design.variances.control_variate import ControlVariate
from mri_design.variances.lanczos import Lanczos
from mri_design.variances.monte_carlo import MonteCarlo

ESTIMATORS: Mapping[str, VarianceEstimator] = {
    "Lanczos, k = 200": Lanczos(200),
    "perturb-and-solve, 64 draws": MonteCarlo(64),
    "perturb-and-solve, 8 draws": MonteCarlo(8),
    "control variate, 4 draws": ControlVariate(4, tolerance=0.1, control="circulant"),
    "control variate, 8 draws": ControlVariate(8, control="circulant"),
    "exact by columns": ExactByColumns(),
}
INNER = IRLS(tolerance=1e-4, max_iterations=500)


def cold_model(grid: int, seed: int) -> GeneralizedLinearModel:
    """The default recipe on a quarter of the lines, one coil."""
    return scan_of(grid, 1, seed).model(quarter_of_the_lines(grid, seed))


def gap_rows(
    grid: int,
    loops: int,
    budget: int,
    seeds: tuple[int, ...],
    seed: int,
    estimators: Mapping[str, VarianceEstimator] = ESTIMATORS,
) -> list[Row]:
    """Per estimator and number of outer loops: products in all and (phi - phi*) / |phi*|, medians over ``seeds``.

    phi is that of the returned site precisions, evaluated exactly in double precision, u minimised over; phi* the
    lowest phi of a converged double loop with exact variances. The runs themselves are as shipped, in single
    precision. ``within budget`` marks each estimator's last row that spends at most ``budget`` products.
    """
    model = cold_model(grid, seed)
    lowest = min(converged_posterior(model, tolerance=1e-4).criterion)
    rows: list[Row] = []
    for name, estimator in estimators.items():
        found: list[dict[str, object]] = []
        for count in range(1, loops + 1):
            engine = DoubleLoop(estimator, INNER, count, tolerance=1e-6)
            posteriors = [engine.infer(model, np.random.default_rng(s)) for s in seeds]
            gaps = [(exact_phi(model, p.precision.site_precisions) - lowest) / abs(lowest) for p in posteriors]
            spent = float(np.median([p.convergence.matvecs for p in posteriors]))
            found.append(
                {
                    "grid": grid,
                    "estimator": name,
                    "outer loops": count,
                    "MVMs": round(spent),
                    "gap": float(np.median(gaps)),
                    "largest gap": max(gaps),
                    "phi*": lowest,
                }
            )
            if spent > 4 * budget:
                break
        last = max((i for i, row in enumerate(found) if row["MVMs"] <= budget), default=None)  # type: ignore[operator]
        rows += [row | {"within budget": i == last} for i, row in enumerate(found)]
    return rows
