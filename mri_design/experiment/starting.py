"""What a design begins with: how much it measures, its first lines, and the seed of everything random in it."""

from __future__ import annotations

from math import isqrt

import numpy as np
from numpy.typing import NDArray

from mri_design.design.constraints import Constraints
from mri_design.design.strategies.line_masks import CentreSettings, RandomLines
from mri_design.design.strategies.trained import TrainedOrder
from mri_design.design.strategy import Strategy
from mri_design.errors import InputError, UsageError, option, require_numbers
from mri_design.experiment.recipe import Recipe
from mri_design.kinds import KINDS, count_text
from mri_design.readouts import LineReadouts, PlaneReadouts, Readouts, ShotReadouts

FEWEST_CALIBRATING, ENOUGH_CALIBRATING = 8, 12
"""Centre lines that coil maps need at least, and from which on more of them gain little (results of raw heads)."""
ENOUGH_OF_A_SQUARE = 10
"""Side of the square in a plane from which on larger ones lose more samples than they gain in maps (raw heads)."""
GROWING, MOST_GROWING, GROWING_PART = 4, 8, 3
"""Centre lines that a design begins with whose coil maps grow with it: one in three of its lines, but 4 at least and 8
at most, see results/coils/lines.md."""
MOSTLY = 0.75
"""Part of a mask from which on its calibration region is most of it."""


def readouts_wanted(whole: int, acceleration: float) -> int:
    """Readouts that are one in ``acceleration`` of ``whole``, rounded, one at least; of shots ``whole`` are lines."""
    return max(1, round(whole / acceleration))


def require_one_amount(count: object, acceleration: object, unit: str) -> None:
    """Refuse a number beside an acceleration, which both say how much is measured.

    Raises
    ------
    UsageError
        With both.
    """
    if count not in (None, (), []) and acceleration not in (None, (), []):
        raise UsageError(
            f"{option(unit + 's', _listed(count))} and {option('acceleration', _listed(acceleration))} both say "
            "how much is measured: give one of them"
        )


def require_amount(count: int | None, acceleration: float | None, recipe: Recipe) -> None:
    """Refuse neither a number nor an acceleration, and both; raises `UsageError`, or `InputError` below 1."""
    kind = KINDS[recipe.design.encoding]
    unit = "shot" if kind.shots else kind.unit
    require_one_amount(count, acceleration, unit)
    if acceleration is not None:
        require_numbers(least=1.0, acceleration=acceleration)
    if count is None and acceleration is None:
        raise UsageError(f"how many {unit}s in the end? Give {option(unit + 's')}, or {option('acceleration')}")


def amount_wanted(count: int | None, acceleration: float | None, size: int) -> int:
    """The count, or in its place one in so many of ``size``."""
    if count is not None:
        return count
    assert acceleration is not None
    return readouts_wanted(size, acceleration)


def _listed(values: object) -> str:
    return ",".join(f"{value:g}" for value in values) if isinstance(values, list | tuple) else f"{values:g}"


def centre_for_maps(strategy: Strategy, recipe: Recipe, count: int | None, usual: int | None = None) -> int:
    """Centre lines that a mask of ``count`` begins with whose coil maps are estimated from all its lines.

    A strategy that goes by the posterior measures the centre densely anyway, with gaps, which is enough for maps: it
    begins as `start_of_growing` says, and so does an order that was learnt. Others hold as many centre lines as
    calibration is usually done with, ``usual``, by default `calibration_for`; those whose publication names a centre
    hold that one, which `start_count` adds, and `FEWEST_CALIBRATING` at least.
    """
    usual = usual or calibration_for(recipe, count) or recipe.coils.most_lines
    if strategy.needs_posterior or isinstance(strategy, TrainedOrder):
        return start_of_growing(recipe, usual, count)
    published = isinstance(strategy, CentreSettings | RandomLines) and strategy.centre_fraction is not None
    return min(FEWEST_CALIBRATING, usual) if published and not _asked(recipe) else usual


def start_of_growing(recipe: Recipe, usual: int, count: int | None) -> int:
    """Centre lines that a design of ``count`` begins with whose coil maps grow with it: few, or what the recipe asks.

    The ``usual`` number is then what it asks for. Without a count there are the most.
    """
    if _asked(recipe):
        return usual
    return MOST_GROWING if count is None else min(MOST_GROWING, max(GROWING, count // GROWING_PART))


def _asked(recipe: Recipe) -> bool:
    """Whether the recipe says how many centre lines coil maps take, for all masks."""
    return recipe.coils.calibration_lines is not None or recipe.calibration_lines is not None


def calibration_for(recipe: Recipe, count: int | None) -> int | None:
    """Centre lines, or side of a square, from which coil maps are estimated for a mask of ``count``.

    What the recipe's start or calibration region asks for, else None, the usual number. Where this alone would be the
    whole mask, or more, it is half of the mask, `ENOUGH_CALIBRATING` lines at least. Of a plane it is an eighth of the
    mask, at least `ENOUGH_OF_A_SQUARE` on a side where this is not more than half of the mask.
    """
    usual, encoding = recipe.coils.most_lines, recipe.design.encoding
    if recipe.calibration_lines is not None or count is None or encoding not in ("lines", "plane"):
        return recipe.calibration_lines
    if encoding == "plane" and (recipe.coils.calibration_lines is None or usual**2 >= count):
        least = max(FEWEST_CALIBRATING, min(ENOUGH_OF_A_SQUARE, isqrt(count // 2)))
        side = max(least, isqrt(count // 8))
        return side if side < usual else None
    if encoding == "plane" or usual < count:
        return None
    least = ENOUGH_CALIBRATING if count > ENOUGH_CALIBRATING else FEWEST_CALIBRATING
    return min(usual, max(least, count // 2))


def mostly_calibration(calibration: int, count: int, readouts: Readouts) -> str:
    """A sentence about a mask of ``count`` most of which is there for the coil maps; empty about any other.

    Parameters
    ----------
    calibration : int
        Centre lines that maps were estimated from, or side of the square in a plane; 0 is none.
    count : int
        Lines or samples in the end.
    readouts : Readouts
        What is chosen from.
    """
    alone = int(np.prod([min(calibration, side) for side in readouts.shape]))
    if not MOSTLY * count <= alone <= count or isinstance(readouts, ShotReadouts):  # more than all are refused
        return ""
    flag = option("calibration" if isinstance(readouts, PlaneReadouts) else "start")
    return (
        f"{alone} of {count_text(count, readouts.unit)} are measured for the coil maps, so that strategies differ in "
        f"{count - alone} only; fewer of them ({flag}), or maps that are known ({option('maps')}), leave more to choose"
    )


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
        if not available and isinstance(readouts, ShotReadouts):
            raise InputError(
                field="scan", got="a grid of which not all is measured", wanted=f"a complete one, to make {units} of"
            )
        raise InputError(
            field=f"number of {units}",
            got=str(target),
            wanted=f"at most {available}, the {units} that hold data and may be measured",
            cure=f"Ask for fewer {units}.",
        )


def design_seed(seed: int, draw: int = 0) -> int:
    """Seed of everything random in one draw of a design, whichever verb asks; a run without draws is draw 0."""
    return int(np.random.SeedSequence([seed, draw]).generate_state(1)[0])
