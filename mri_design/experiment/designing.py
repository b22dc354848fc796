"""A whole design run: start lines, engine, checkpoints, resume."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from mri_design.design import DesignEngine, DesignState, LineCandidates, Strategy, centre_lines
from mri_design.design.engine import Mapping
from mri_design.errors import InputError
from mri_design.experiment.checkpoint import load_state, save_state
from mri_design.experiment.recipe import Recipe
from mri_design.model import MRSlice

__all__ = ["run_design", "start_count"]


def start_count(strategy: Strategy, n_lines: int, target: int, recipe: Recipe, calibration_lines: int = 0) -> int:
    """Centre lines a design begins with: the recipe's, else the strategy's; never fewer than the coil calibration took.

    Raises
    ------
    InputError
        Where the target is below that.
    """
    count = recipe.design.start or strategy.default_start(n_lines, target)
    count = max(count, calibration_lines)
    if count > target:
        raise InputError(
            field="start lines",
            got=f"{count} (of which {calibration_lines} for coil calibration)",
            wanted=f"at most the number of lines, {target}",
            cure="Ask for more lines; or, in a recipe, fewer under [design] start or [coils] calibration_lines.",
        )
    return count


def run_design(
    slices: Sequence[MRSlice],
    strategy: Strategy,
    target: int,
    recipe: Recipe,
    *,
    seed: int,
    start: int,
    checkpoint: Path | None = None,
    identity: str = "",
    callback: Callable[[DesignState], None] | None = None,
    mapping: Mapping = map,
) -> DesignState:
    """Design ``target`` lines for slices that share one mask.

    Parameters
    ----------
    slices : sequence of MRSlice
        Replayed as the measurement source.
    strategy : Strategy
        Who decides.
    target, start : int
        Lines in the end, and centre lines at the start.
    recipe : Recipe
        Inference settings.
    seed : int
        Of every random decision.
    checkpoint : Path, optional
        Written after every line; where it exists already, the design goes on from it.
    identity : str
        See `checkpoint.fingerprint`.
    callback : callable, optional
        Sees the state after every line.
    mapping : callable
        Infers the slices, see `DesignEngine.run`.

    Raises
    ------
    InputError
        For impossible line counts, or a checkpoint that is not this design's.
    """
    engine = DesignEngine(
        strategy, recipe.inference.engine(), recipe.design.first_loops, recipe.design.step_loops, seed
    )
    measurable = np.logical_and.reduce([s.measured for s in slices])
    first = centre_lines(measurable, start)
    LineCandidates(measurable, first, target)  # refuses impossible counts before any work
    resumed = checkpoint is not None and checkpoint.exists()
    state = load_state(checkpoint, identity) if resumed and checkpoint else engine.begin(slices, first)

    def after_line(state: DesignState) -> None:
        if checkpoint is not None:
            save_state(checkpoint, state, identity)
        if callback is not None:
            callback(state)

    return engine.run(slices, state, target, after_line, mapping=mapping)
