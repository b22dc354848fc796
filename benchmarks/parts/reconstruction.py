"""Reconstruction: MAP and SigPy to the same value of the same objective, and the posterior mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from parts.clock import median_seconds
from parts.problem import Problem, quarter_of_the_lines, recipe_for, scan_of
from parts.sigpy_solvers import (
    Arrival,
    MakeApp,
    SigPyWavelet,
    arrivals,
    l1_wavelet,
    lowest_value,
    median_arrivals,
    primal_dual,
    total_variation,
)

from mri_design.estimation.map_estimate import MapEstimate
from mri_design.evaluation.tables import Row
from mri_design.experiment.reconstruction import pixel_std
from mri_design.operators.base import Array
from mri_design.operators.differences import FiniteDifferences

INNER = MapEstimate().inner
SETTINGS = {
    "coarse": MapEstimate(1e-2, 4),
    "default": MapEstimate(),
    "fine": MapEstimate(1e-5, 6, replace(INNER, tolerance=3e-5)),
    "finest": MapEstimate(1e-6, 8, replace(INNER, tolerance=1e-5)),
}


@dataclass(frozen=True)
class Effort:
    """How hard to try.

    Parameters
    ----------
    runs : int
        Timed runs behind each median.
    limit : float
        Seconds that SigPy gets to reach the finest goal.
    reference_iterations : int
        Of the run that finds f*.
    """

    runs: int
    limit: float
    reference_iterations: int


@dataclass(frozen=True)
class Rivals:
    """One of SigPy's reconstructions as shipped, and the same objective with steps and solvers tuned by hand."""

    name: str
    shipped: MakeApp
    tuned: dict[str, MakeApp]


def rivals_of(problem: Problem) -> Rivals:
    """Who else minimises this objective."""
    if isinstance(problem.analysis, SigPyWavelet):
        tuned = {f"primal-dual, sigma {s:g}": primal_dual(problem, sigma=s) for s in (0.01, 0.1)}
        return Rivals("L1WaveletRecon", l1_wavelet(problem), tuned)
    tuned = {f"sigma {s:g}": total_variation(problem, sigma=s) for s in (0.01, 0.1, 0.001)}
    tuned |= {f"ADMM, rho {r:g}": total_variation(problem, solver="ADMM", rho=r) for r in (0.01, 0.1)}
    return Rivals("TotalVariationRecon", total_variation(problem), tuned)


def check_same_objective(problem: Problem, u: Array) -> None:
    """Stop where SigPy's own value at u is not ours, or its wavelets are no isometry with the adjoint they claim."""
    app = rivals_of(problem).shipped()
    app.x = u.astype(np.complex64)
    ours, theirs = problem.objective()(u), app.objective()
    if not np.isclose(ours, theirs, rtol=1e-4):
        raise RuntimeError(f"the objectives differ: {ours} here, {theirs} in SigPy")
    B = problem.analysis
    if isinstance(B, SigPyWavelet):
        rng = np.random.default_rng(0)
        x, v = rng.standard_normal(B.in_shape) + 0j, rng.standard_normal(B.out_shape) + 0j
        if not (np.allclose(B.adjoint(B(x)), x) and np.isclose(np.vdot(v, B(x)), np.vdot(B.adjoint(v), x))):
            raise RuntimeError("SigPy's wavelets are not an isometry with this adjoint")


def same_objective_rows(grid: int, coils: int, penalty: str, names: list[str], effort: Effort, seed: int) -> list[Row]:
    """One row per setting of ours: what it takes, the gap it ends at, and what SigPy takes to come as low."""
    analysis = FiniteDifferences if penalty == "total variation" else SigPyWavelet
    problem = Problem.of(scan_of(grid, coils, seed), seed, analysis)
    f = problem.objective()
    lowest, drift = lowest_value(problem, f, effort.reference_iterations, seed)
    ours = {name: median_seconds(lambda solve=SETTINGS[name]: solve(problem.model()), effort.runs) for name in names}
    values = [f(u) for _, (u, _) in ours.values()]
    check_same_objective(problem, next(iter(ours.values()))[1][0])
    rivals = rivals_of(problem)
    shipped, shipped_lowest = arrivals(rivals.shipped, f, values, effort.limit, seed)
    one_call = _one_call(rivals.shipped, f, effort.runs)
    tuned = _fastest(rivals.tuned, f, values, effort, seed)
    repeated = median_arrivals(rivals.shipped, [a.iterations for a in shipped if a], effort.runs, seed)
    lowest = min(lowest, shipped_lowest, *values)
    rows: list[Row] = []
    for i, (name, (seconds, (_, convergence))) in enumerate(ours.items()):
        arrival = shipped[i]
        there = repeated[arrival.iterations] if arrival else None
        best = tuned[i]
        rows.append(
            {
                "objective": penalty,
                "grid": grid,
                "coils": coils,
                "MAP": name,
                "gap": values[i] / lowest - 1,
                "s": seconds,
                "MVMs": convergence.matvecs,
                "converged": convergence.converged,
                "SigPy": rivals.name,
                "SigPy s": there,
                "iterations": arrival.iterations if arrival else None,
                "times ours": there / seconds if there else None,
                "SigPy in the time limit": None if arrival else _not_reached(effort, shipped_lowest / lowest - 1),
                "tuned s": best[1].seconds if best else None,
                "tuned iterations": best[1].iterations if best else None,
                "tuned times ours": best[1].seconds / seconds if best else None,
                "tuned to": best[0] if best else f"none in {effort.limit:g} s",
                "one call s": one_call[0],
                "one call gap": one_call[1] / lowest - 1,
                "f* known to": drift,
            }
        )
    return rows


def _not_reached(effort: Effort, gap: float) -> str:
    return f"not reached in {effort.limit:g} s (gap {gap:.1e})"


def _one_call(make: MakeApp, f: Callable[[Array], float], runs: int) -> tuple[float, float]:
    """Seconds of one call as shipped (100 iterations), and the objective it ends at."""
    seconds, image = median_seconds(lambda: make().run(), runs)
    return seconds, f(image)


def _fastest(
    tuned: dict[str, MakeApp], f: Callable[[Array], float], goals: list[float], effort: Effort, seed: int
) -> list[tuple[str, Arrival] | None]:
    """Per goal the fastest of the tuned solvers and its median arrival; None where all took longer than the limit."""
    best: list[tuple[str, Arrival] | None] = [None] * len(goals)
    for name, make in tuned.items():
        # Whoever is slower than the fastest so far is not waited for.
        limit = max(effort.limit if b is None else b[1].seconds for b in best)
        found, _ = arrivals(make, f, goals, limit, seed)
        for i, arrival in enumerate(found):
            known = best[i]
            if arrival and (known is None or arrival.seconds < known[1].seconds):
                best[i] = (name, arrival)
    winners = {b[0] for b in best if b}
    counts = {name: [b[1].iterations for b in best if b and b[0] == name] for name in winners}
    medians = {name: median_arrivals(tuned[name], counts[name], effort.runs, seed) for name in winners}
    return [b and (b[0], Arrival(b[1].iterations, medians[b[0]][b[1].iterations])) for b in best]


def posterior_rows(grid: int, coils: int, runs: int, seed: int) -> list[Row]:
    """The posterior mean with error bars, by the default recipe; no other package has it."""
    recipe = recipe_for(grid, coils)
    scan = scan_of(grid, coils, seed, recipe)
    model = scan.model(quarter_of_the_lines(grid, seed))
    engine = recipe.inference.engine()
    seconds, posterior = median_seconds(lambda: engine.infer(model, np.random.default_rng(seed)), runs)
    samples = recipe.reconstruction.std_samples
    std_seconds, _ = median_seconds(lambda: pixel_std(posterior, samples, np.random.default_rng(seed)), runs)
    return [
        {
            "grid": grid,
            "coils": coils,
            "s": seconds,
            "MVMs": posterior.convergence.matvecs,
            "outer loops": posterior.convergence.iterations,
            "converged": posterior.convergence.converged,
            f"s for {samples} draws of error bars": std_seconds,
        }
    ]
