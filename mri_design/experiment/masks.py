"""Masks without a scan: exactly as many lines as were requested, by strategies that look at no data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.design.strategy import DesignView, LineCandidates, rng_of_step
from mri_design.errors import InputError, UnknownNameError, UsageError, option
from mri_design.experiment.extent import DesignPlan, design_seed, require_lines
from mri_design.experiment.recipe import Recipe
from mri_design.experiment.strategies import (
    FROM_FILES,
    check_strategy_name,
    kinds_of_masks,
    make_strategy,
    strategy_names,
)
from mri_design.kinds import KINDS, count_text, designed_kinds, gridded_kinds
from mri_design.readouts import Readouts
from mri_design.registry import full_name, split_name
from mri_design.scan.trajectories import compensated_spread, spread_of_mask


def named_kind(kind: str, axes: int, encoding: str | None = None) -> tuple[str, str]:
    """Strategy and encoding that a kind of mask is.

    Parameters
    ----------
    kind : str
        A strategy that looks at no data, with its setting (``vd-polynomial:3``), an alias, or a family of shots with a
        set of angles (``radial``, ``spiral:golden``).
    axes : int
        Numbers that the shape has: of two, kinds that know planes are over a plane.
    encoding : str, optional
        What is chosen, where the kind knows several.

    Raises
    ------
    UsageError
        For an unknown kind, one that looks at a scan, or one that does not choose what the encoding says.
    """
    family, setting = split_name(kind)
    if family in KINDS and KINDS[family].shots:
        if encoding not in (None, family):
            raise UsageError(f"{kind} is over {KINDS[family].several}: leave out {option('encoding', encoding)}")
        name, encoding = setting or "half-turn", family
    else:
        name = full_name(kind, {name for each in designed_kinds() for name in strategy_names(each)})
        family, _ = split_name(name)
        knows = [each for each in designed_kinds() if family in strategy_names(each)]
        if family in FROM_FILES:
            knows = list(gridded_kinds())
        elif "draw=" in (setting or ""):
            knows = [each for each in knows if KINDS[each].axes == 1]
        if not knows:
            shots = [each for each in designed_kinds() if KINDS[each].shots]
            on_grid = [name for each in gridded_kinds() for name in kinds_of_masks(each)]
            raise UnknownNameError("strategy", family, list(dict.fromkeys([*on_grid, *shots])))
        if encoding is None and all(KINDS[each].shots for each in knows):
            raise UsageError(f"{kind} is a set of angles: add {option('encoding', 'radial')}, or spiral")
        encoding = encoding or min(knows, key=lambda each: KINDS[each].axes != axes)
    if family not in FROM_FILES and family in strategy_names(encoding) and family not in kinds_of_masks(encoding):
        raise UsageError(
            f"{kind} looks at a scan, and a grid has none: give a scan, or {option('strategy')} with one of "
            f"{', '.join(kinds_of_masks(encoding))}"
        )
    check_strategy_name(name, encoding)
    return name, encoding


@dataclass(frozen=True, kw_only=True)
class DrawnMask:
    """A mask that was made without a scan.

    Parameters
    ----------
    kind : str
        Name of the strategy.
    readouts : Readouts
        What there was to choose from.
    order : tuple of int
        What was chosen, in its order.
    n_start : int
        How many of these, the first ones, were measured before anything was chosen: the centre.
    """

    kind: str
    readouts: Readouts
    order: tuple[int, ...]
    n_start: int

    @property
    def mask(self) -> NDArray[np.bool_]:
        """True where measured: (ky,), of a plane (ky, kz), or (shot,)."""
        flags = np.zeros(self.readouts.size, dtype=bool)
        flags[list(self.order)] = True
        return flags.reshape(self.readouts.shape)

    @property
    def trajectory(self) -> NDArray[np.float64] | None:
        """Samples of shots (shot, sample, 2), in their order; None on a grid."""
        return self.readouts.trajectory(self.order)

    @property
    def spread(self) -> NDArray[np.complex128]:
        """Point-spread function (y,) or (y, x); of shots with the density of their samples compensated for.

        Raises
        ------
        InputError
            Of shots, where FINUFFT is not installed.
        """
        if self.trajectory is None:
            return spread_of_mask(self.mask)
        return compensated_spread(self.trajectory.reshape(-1, 2), self.readouts.grid)


def draw_mask(
    kind: str,
    grid: tuple[int, int],
    count: int,
    recipe: Recipe,
    *,
    start: int | None = None,
    seed: int = 0,
) -> DrawnMask:
    """A mask of exactly ``count`` lines, samples of a plane or shots.

    A strategy's mask is that of `mri-design design` with the same seed, constraints and centre.

    Parameters
    ----------
    kind : str
        Strategy that looks at no data, as `named_kind` has it.
    grid : tuple of int
        (ky, kx), or (ky, kz) of a plane.
    count : int
        How many are measured, the centre included.
    recipe : Recipe
        Its encoding says what is chosen; its constraints hold.
    start : int, optional
        Lines, or side of the square, that are fully sampled at the centre; 0 is none, and by default the centre is that
        of the strategy.
    seed : int
        Of everything random.

    Raises
    ------
    UsageError, InputError
        For a kind that there is not, more than may be measured, and more at the centre than the mask has, or any
        of shots.
    """
    encoding = recipe.design.encoding
    if KINDS[encoding].shots:
        from mri_design.experiment.extent import candidates_of  # takes long to import

        if start:
            cure = f"Leave it out: every {KINDS[encoding].unit} measures the centre."
            raise InputError("start", f"{start} of {KINDS[encoding].several}", "none", cure)
        shots = candidates_of(recipe, make_strategy(kind, encoding), grid, count, 1)
        return DrawnMask(kind=kind, readouts=shots, order=tuple(range(count)), n_start=0)
    readouts: Readouts = KINDS[encoding].on(grid)  # type: ignore[misc]  # shots are made above
    if start is not None:
        if (alone := readouts.calibration_size(start)) > count:
            got = f"{count_text(alone, readouts.unit)}, alone more than the mask has"
            wanted = f"at most {count_text(count, readouts.unit)}, which is all that the acceleration leaves"
            raise InputError("start", got, wanted, "Take fewer, or a smaller acceleration.")
        recipe = replace(recipe, design=replace(recipe.design, start=start or None))
    measurable = np.ones(readouts.size, dtype=bool)
    rules = recipe.rules(readouts)
    require_lines(measurable, count, rules, readouts)
    strategy, seed = make_strategy(kind, encoding), design_seed(seed)
    bare = start == 0 and not rules.needed(measurable)
    plan = DesignPlan.of(strategy, recipe, readouts)
    if start is not None:  # no more than that; the square of a plane is among the rules
        plan = replace(plan, start=1 if readouts.kind.square else max(1, start))
    first = () if bare else plan.start_lines(measurable, count)
    candidates = LineCandidates(measurable, first, count, len(first), rules, readouts)
    if len(first) < count and readouts.thinned and strategy.chooses_blocks:
        block = strategy.choose_block(DesignView(candidates), rng_of_step(seed, 0), count - len(first))
        candidates = candidates.after(*(choice.line for choice in block))
    for step in range(count - len(candidates.acquired)):
        candidates = candidates.after(strategy.choose(DesignView(candidates), rng_of_step(seed, step)).line)
    return DrawnMask(kind=kind, readouts=readouts, order=candidates.acquired, n_start=len(first))
