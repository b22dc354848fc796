"""Warm design steps: inference and the scores of all lines, once per line."""

from __future__ import annotations

from statistics import median

from parts.problem import recipe_for, scan_of

from mri_design.evaluation.tables import Row
from mri_design.experiment.designing import run_design, start_count
from mri_design.experiment.strategy_names import make_strategy

RECIPES = {"information-gain": None, "information-gain-lanczos": "lanczos"}
"""Strategy to shipped recipe; None is the default recipe."""


def design_row(strategy_name: str, grid: int, steps: int, seed: int, coils: int = 1) -> Row:
    """Medians over ``steps`` warm steps after the first one, which infers from a cold start."""
    recipe = recipe_for(grid, coils, RECIPES[strategy_name])
    strategy = make_strategy(strategy_name)
    start = start_count(strategy, grid, grid // 4, recipe)
    scan = scan_of(grid, coils, seed, recipe)
    state = run_design([scan], strategy, start + 1 + steps, recipe, seed=seed, start=start)
    first, *warm = state.trace.steps
    return {
        "strategy": strategy_name,
        "grid": grid,
        "coils": coils,
        "s per step": median(step.cost.seconds for step in warm),
        "MVMs per step": round(median(step.cost.matvecs for step in warm)),
        "s of the first step": first.cost.seconds,
        "MVMs of the first step": first.cost.matvecs,
        "steps": len(warm),
        "converged": all(step.cost.converged for step in state.trace.steps),
    }
