"""The inner solvers on one table: products with A and seconds to a relative gap of the objective, from cold."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from parts.problem import quarter_of_the_lines, scan_of

from mri_design.estimation.admm import ADMM
from mri_design.estimation.automatic import Automatic
from mri_design.estimation.base import InnerSolver
from mri_design.estimation.irls import IRLS
from mri_design.estimation.lbfgs import LBFGS
from mri_design.estimation.map_estimate import MapEstimate
from mri_design.estimation.penalised import PenalisedProblem
from mri_design.evaluation.tables import Row
from mri_design.model.generalized_linear import GeneralizedLinearModel
from mri_design.model.sparsity import SparsityBlock
from mri_design.operators.base import Array
from mri_design.operators.measurement import CartesianLines

PRIORS = {
    "total variation": (("differences", 1.0),),
    "pixels and differences": (("pixels", 1.0), ("differences", 1.0)),
    "wavelet and differences": (("wavelet", 1.0), ("differences", 0.5)),
}
SMOOTHINGS = {"posterior": 1.0, "MAP": 1e-4}
"""z in units of the sites' start variance 0.09 / tau^2; as it starts in a posterior, and as MAP ends."""
SOLVERS: dict[str, InnerSolver] = {"IRLS": IRLS(), "L-BFGS": LBFGS(), "ADMM": ADMM(), "automatic": Automatic()}
GOALS = (1e-3, 1e-5)
TOLERANCES = tuple(10.0**-e for e in np.arange(1.0, 8.6, 0.5))


def model_for(grid: int, coils: int, prior: str, rate: float, seed: int) -> GeneralizedLinearModel:
    """Laplace sites of this rate per unit of the signal level, on a quarter of the lines."""
    blocks = tuple(SparsityBlock(kind, rate * factor) for kind, factor in PRIORS[prior])  # type: ignore[arg-type]
    return replace(scan_of(grid, coils, seed), prior=blocks).model(quarter_of_the_lines(grid, seed))


def in_double(problem: PenalisedProblem) -> PenalisedProblem:
    """The same problem in double precision."""
    model, X = problem.model, problem.model.measurement
    assert isinstance(X, CartesianLines)
    maps = None if X.maps is None else X.maps.astype(np.complex128)
    double = replace(
        model, measurement=CartesianLines(X.lines.tolist(), X.grid, maps), data=model.data.astype(np.complex128)
    )
    return PenalisedProblem.smoothed(double, tuple(np.asarray(p.z, dtype=float) for p in problem.penalties))  # type: ignore[attr-defined]


def value_at(problem: PenalisedProblem, u: Array) -> float:
    """J."""
    model = problem.model
    return problem.value(model.data - model.measurement(u), model.analysis_coefficients(u))


def inner_solver_rows(
    grids: Sequence[int] = (64,),
    coils: Sequence[int] = (1, 8),
    rates: Sequence[float] = (3.0, 10.0, 30.0),
    seed: int = 0,
    solvers: dict[str, InnerSolver] | None = None,
    priors: Sequence[str] = tuple(PRIORS),
) -> list[Row]:
    """One row per problem and gap: products and seconds of every solver, and automatic's ratio to the best.

    A solver is run at tighter and tighter tolerances until J, in double precision, is within the gap of the lowest
    value known; the run that gets there counts, looks and all. Not reached is None.
    """
    solvers = solvers or SOLVERS
    rows: list[Row] = []
    for grid, n_coils, prior, rate, kind in product(grids, coils, priors, rates, SMOOTHINGS):
        model = model_for(grid, n_coils, prior, rate, seed)
        problem = MapEstimate().smoothed_problem(model, SMOOTHINGS[kind])
        double, start = in_double(problem), model.back_projection()
        references = (LBFGS(1e-9, 600), ADMM(1e-9, 600))
        lowest = min(value_at(double, solve(double, start.astype(np.complex128))[0]) for solve in references)
        arrivals = {name: _arrivals(solver, problem, double, start, lowest) for name, solver in solvers.items()}
        for i, gap in enumerate(GOALS):
            row: Row = {"grid": grid, "coils": n_coils, "prior": prior, "tau/sigma": rate, "z": kind, "gap": gap}
            for name, found in arrivals.items():
                row[f"{name} products"], row[f"{name} s"] = found[i] or (None, None)
            for unit, at in (("products", 0), ("s", 1)):
                known = [found[i][at] for found in arrivals.values() if found[i]]  # type: ignore[index]
                own = arrivals["automatic"][i]
                row[f"automatic / best, {unit}"] = own[at] / min(known) if own and known else None
            rows.append(row)
    return rows


def _arrivals(
    solver: InnerSolver, problem: PenalisedProblem, double: PenalisedProblem, start: Array, lowest: float
) -> list[tuple[int, float] | None]:
    found: list[tuple[int, float] | None] = [None] * len(GOALS)
    solver(problem, start)  # compiles, plans
    for tolerance in TOLERANCES:
        began = time.perf_counter()
        u, convergence = replace(solver, tolerance=tolerance, max_iterations=600)(problem, start)
        seconds = time.perf_counter() - began
        reached = value_at(double, u) / lowest - 1
        for i, gap in enumerate(GOALS):
            if found[i] is None and reached <= gap:
                found[i] = convergence.matvecs, seconds
        if None not in found:
            break
    return found
