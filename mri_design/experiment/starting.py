"""What a design begins with: its first lines, how many there may be, and the seed of everything random in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mri_design.design.constraints import Constraints
from mri_design.design.strategy import Strategy
from mri_design.errors import InputError
from mri_design.experiment.recipe import Recipe
from mri_design.operators.readouts import LineReadouts, PlaneReadouts, Readouts, ShotReadouts


def start_count(
    strategy: Strategy,
    n_lines: int,
    target: int,
    recipe: Recipe,
    calibration_lines: int = 0,
    n_coils: int = 1,
    readouts: Readouts | None = None,
) -> int:
    """Centre lines a design begins with: the recipe's, else the strategy's.

    There are never fewer than the coil calibration took or the constraints force, and some strategies need fewer where
    there are several coils. Where jumps are limited, the strategy gets fewer than a jump spans. Of another
    ``readouts`` than lines these are samples of a plane nearest to DC, the calibration region being among the recipe's
    constraints (`with_calibration`), or equispaced shots.

    Raises
    ------
    InputError
        Where the target is below that.
    """
    rules = _rules(recipe, readouts)
    readouts = LineReadouts((n_lines, n_lines)) if readouts is None else readouts
    count = recipe.design.start or strategy.default_start(readouts, target, n_coils)
    if recipe.design.start is None and rules.max_jump is not None:
        count = min(count, max(1, rules.max_jump - 1))  # a wider block closes the way to its other side
    required = len(rules.needed(np.ones(n_lines, dtype=bool))) if isinstance(readouts, PlaneReadouts) else 0
    count = max(count, calibration_lines, rules.centre, required)
    if count > target:
        if isinstance(readouts, ShotReadouts):
            raise InputError(
                field="start lines", got=str(count), wanted=f"at most the number of {readouts.unit}s, {target}"
            )
        if isinstance(readouts, PlaneReadouts):
            few = required <= target
            raise InputError(
                field="start samples" if few else "required samples",
                got=f"{count} (of which {required} are required)" if few else str(required),
                wanted=f"at most the number of samples, {target}",
                cure=f"Ask for more samples, or for a smaller {'start' if few else 'calibration region'}.",
            )
        raise InputError(
            field="start lines",
            got=f"{count} (of which {calibration_lines} for coil calibration)",
            wanted=f"at most the number of lines, {target}",
            cure="Ask for more lines; or, in a recipe, fewer under [design] start or [coils] calibration_lines.",
        )
    return count


def start_lines(
    measurable: NDArray[np.bool_],
    strategy: Strategy,
    target: int | None,
    recipe: Recipe,
    calibration_lines: int = 0,
    n_coils: int = 1,
    readouts: Readouts | None = None,
) -> tuple[int, ...]:
    """Lines that a design begins with; without a target as for a design of all lines that it may measure.

    Raises
    ------
    InputError
        Where the target is below that, or a forced line may not be measured.
    """
    rules = _rules(recipe, readouts)
    most = int((measurable & rules.allowed(len(measurable))).sum()) if target is None else target
    count = start_count(strategy, len(measurable), most, recipe, calibration_lines, n_coils, readouts)
    return rules.start(measurable, count, max(calibration_lines, recipe.design.start or 0))


def with_calibration(recipe: Recipe, side: int) -> Recipe:
    """The recipe, which in a plane forces a calibration region of at least that side."""
    if recipe.design.encoding != "plane" or side == 0:
        return recipe
    return recipe.replacing("constraints", calibration=max(side, recipe.constraints.calibration or 0))


def _rules(recipe: Recipe, readouts: Readouts | None) -> Constraints:
    return recipe.constraints.rules() if readouts is None else recipe.constraints.rules_of(readouts)


def require_lines(
    measurable: NDArray[np.bool_], target: int | None, recipe: Recipe, readouts: Readouts | None = None
) -> None:
    """Refuse more lines, or candidates of another ``readouts``, than hold data and may be measured.

    Raises
    ------
    InputError
        With how many there are.
    """
    available = int((measurable & _rules(recipe, readouts).allowed(len(measurable))).sum())
    if target is not None and target > available:
        units = "lines" if readouts is None else f"{readouts.unit}s"
        raise InputError(
            field=f"number of {units}",
            got=str(target),
            wanted=f"at most {available}, the {units} that hold data and may be measured",
            cure=f"Ask for fewer {units}.",
        )


def design_seed(seed: int, draw: int = 0) -> int:
    """Seed of everything random in one draw of a design, whichever verb asks; a run without draws is draw 0."""
    return int(np.random.SeedSequence([seed, draw]).generate_state(1)[0])
