"""The extent of a design: its candidates, how much it measures, its first lines, when it ends, and in which order.

A recipe and a scan determine the candidates: lines, samples of a plane, or shots (`candidates_of`), and what shots
would measure of a fully sampled scan (`shot_slice`). They determine the centre that coil maps need, the lines to begin
with (`DesignPlan`), the stop rule, and its outcome (`DesignEnd`).

Chosen lines or samples are measured in an order of their own, in echo trains if wanted (`acquisition_order`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isqrt
from typing import TYPE_CHECKING, Literal, cast

import numpy as np
from numpy.typing import NDArray

from mri_design.design.fixed import CentredLines, FixedAngles
from mri_design.design.strategy import Strategy
from mri_design.design.trace import DesignTrace, StopFact, StopRule
from mri_design.design.training import TrainedOrder, truth_or_none
from mri_design.errors import InputError, UsageError, option, positive_number, require_numbers
from mri_design.experiment.recipe import Recipe
from mri_design.kinds import KINDS, Kind
from mri_design.operators.base import Array
from mri_design.operators.cartesian_fourier import CentredFFT
from mri_design.operators.nonuniform import NonUniformFourier
from mri_design.operators.trajectory import equispaced_angles, radial_spokes, turned
from mri_design.readouts import Constraints, Readouts, ShotReadouts
from mri_design.registry import require_part
from mri_design.scan.trajectories import GradientLimits, nyquist_turns, spiral_readout

if TYPE_CHECKING:
    from mri_design.model.slice import SliceModel


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


def require_one_amount(count: object, acceleration: object, counted: str) -> None:
    """Refuse a number together with an acceleration, as both state how much is measured.

    Raises
    ------
    UsageError
        With both.
    """
    if count not in (None, (), []) and acceleration not in (None, (), []):
        raise UsageError(
            f"{option(counted, _listed(count))} and {option('acceleration', _listed(acceleration))} both say "
            "how much is measured: give one of them"
        )


def require_amount(count: int | None, acceleration: float | None, recipe: Recipe) -> None:
    """Refuse neither a number nor an acceleration, and both; raises `UsageError`, or `InputError` below 1."""
    counted = KINDS[recipe.design.encoding].counted
    require_one_amount(count, acceleration, counted)
    if acceleration is not None:
        require_numbers(least=1.0, acceleration=acceleration)
    if count is None and acceleration is None:
        raise UsageError(f"how many {counted} in the end? Give {option(counted)}, or {option('acceleration')}")


def amount_wanted(count: int | None, acceleration: float | None, size: int) -> int:
    """The count, or without one the size over the acceleration."""
    return readouts_wanted(size, acceleration or 1.0) if count is None else count


def _listed(values: object) -> str:
    return ",".join(f"{value:g}" for value in values) if isinstance(values, list | tuple) else f"{values:g}"


def centre_for_maps(
    strategy: Strategy, recipe: Recipe, count: int | None, usual: int | None = None, *, n_coils: int
) -> int:
    """Centre lines that a mask of ``count`` begins with whose coil maps are estimated from all its lines.

    A strategy that goes by the posterior measures the centre densely anyway, with gaps, which is enough for maps: it
    begins with its `growing_start`, or as `start_of_growing` says, and so does an order that was learnt. Others hold as
    many centre lines as calibration is usually done with, ``usual``, by default `calibration_for`; those whose
    publication names a centre hold that one, which `start_count` adds, and `FEWEST_CALIBRATING` at least.
    """
    usual = usual or calibration_for(recipe, count) or recipe.coils.most_lines
    if strategy.needs_posterior or isinstance(strategy, TrainedOrder):
        stated = recipe.coils.coil_compression
        left = n_coils if isinstance(stated, str) else min(n_coils, stated)
        own = None if _states_calibration_lines(recipe) else strategy.growing_start(left)
        return own or start_of_growing(recipe, usual, count)
    published = isinstance(strategy, CentredLines) and strategy.centre_fraction is not None
    return min(FEWEST_CALIBRATING, usual) if published and not _states_calibration_lines(recipe) else usual


def start_of_growing(recipe: Recipe, usual: int, count: int | None) -> int:
    """Centre lines at the start of a design of ``count`` whose coil maps are estimated anew as it grows.

    ``usual`` if the recipe states that number. Without a count, `MOST_GROWING`.
    """
    if _states_calibration_lines(recipe):
        return usual
    return MOST_GROWING if count is None else min(MOST_GROWING, max(GROWING, count // GROWING_PART))


def _states_calibration_lines(recipe: Recipe) -> bool:
    """Whether the recipe states the number of centre lines for coil maps."""
    return recipe.coils.calibration_lines is not None or recipe.calibration_lines is not None


def calibration_for(recipe: Recipe, count: int | None) -> int | None:
    """Centre lines, or side of a square, from which coil maps are estimated for a mask of ``count``.

    The number in the recipe's start or calibration region, else None, the usual number. Where this alone would be the
    whole mask, or more, it is half of the mask, `ENOUGH_CALIBRATING` lines at least. Of a plane it is an eighth of the
    mask, at least `ENOUGH_OF_A_SQUARE` on a side where this is not more than half of the mask.
    """
    usual, kind = recipe.coils.most_lines, KINDS[recipe.design.encoding]
    if recipe.calibration_lines is not None or count is None or not kind.on_grid:
        return recipe.calibration_lines
    if kind.square and (recipe.coils.calibration_lines is None or usual**2 >= count):
        least = max(FEWEST_CALIBRATING, min(ENOUGH_OF_A_SQUARE, isqrt(count // 2)))
        side = max(least, isqrt(count // 8))
        return side if side < usual else None
    if kind.square or usual < count:
        return None
    least = ENOUGH_CALIBRATING if count > ENOUGH_CALIBRATING else FEWEST_CALIBRATING
    return min(usual, max(least, count // 2))


def mostly_calibration(calibration: int, count: int, readouts: Readouts) -> int:
    """How many of a mask of ``count`` lines or samples are there for the coil maps, where they are most of it; else 0.

    ``calibration`` is how many centre lines maps were estimated from, or the side of the square in a plane; 0 is none.
    """
    alone = readouts.calibration_size(calibration)
    return alone if MOSTLY * count <= alone <= count else 0  # more than all are refused


@dataclass(frozen=True)
class DesignPlan:
    """Strategy, candidates and constraints of a design, from a recipe.

    Parameters
    ----------
    strategy : Strategy
        Chooses.
    readouts : Readouts
        The candidates. Where this class speaks of lines, it means these.
    rules : Constraints
        Constraints of the sequence on them.
    start : int, optional
        Centre lines to begin with; by default as many as the strategy begins with.
    """

    strategy: Strategy
    readouts: Readouts
    rules: Constraints
    start: int | None = None

    @classmethod
    def of(cls, strategy: Strategy, recipe: Recipe, readouts: Readouts) -> DesignPlan:
        """As in the recipe; `Recipe.rules` lists what is refused. The start of a plane is among the rules."""
        return cls(strategy, readouts, recipe.rules(readouts), None if readouts.kind.square else recipe.design.start)

    def start_count(self, target: int, calibration: int = 0, n_coils: int = 1) -> int:
        """Centre lines that a design of ``target`` begins with.

        There are never fewer than the coil ``calibration`` took or the constraints force, and some strategies need
        fewer where there are several coils. Where jumps are limited, the strategy gets fewer than a jump spans. Of
        other readouts than lines these are samples of a plane nearest to DC, the calibration region being among the
        constraints, or equispaced shots.

        Raises
        ------
        InputError
            Where the target is below that.
        """
        count, jump = self.start or self.strategy.default_start(self.readouts, target, n_coils), self.rules.max_jump
        if self.start is None and jump is not None:
            count = min(count, max(1, jump - 1))  # a wider block closes the way to its other side
        return self.rules.start_size(count, target, calibration)

    def start_lines(
        self, measurable: NDArray[np.bool_], target: int | None, calibration: int = 0, n_coils: int = 1
    ) -> tuple[int, ...]:
        """Lines that a design begins with; without a target as for a design of all lines that it may measure.

        Raises
        ------
        InputError
            Where the target is below that, or a forced line may not be measured.
        """
        most = int((measurable & self.rules.allowed(len(measurable))).sum()) if target is None else target
        count = self.start_count(most, calibration, n_coils)
        return self.rules.start(measurable, count, max(calibration, self.start or 0))


def with_calibration(recipe: Recipe, side: int) -> Recipe:
    """The recipe, which in a plane forces a calibration region of at least that side."""
    if side == 0 or not KINDS[recipe.design.encoding].square:
        return recipe
    return recipe.replacing("design", start=max(side, recipe.design.start or 0))


def require_lines(measurable: NDArray[np.bool_], target: int | None, rules: Constraints, readouts: Readouts) -> None:
    """Refuse more lines, or other readouts, than hold data and may be measured.

    Raises
    ------
    InputError
        With how many there are.
    """
    available = int((measurable & rules.allowed(len(measurable))).sum())
    if target is not None and target > available:
        units = f"{readouts.unit}s"
        if not available and not readouts.kind.on_grid:
            raise InputError("scan", "a grid of which not all is measured", f"a complete one, to make {units} of")
        wanted = f"at most {available}, the {units} that hold data and may be measured"
        cure = f"Ask for fewer {units}."
        raise InputError(f"number of {units}", str(target), wanted, cure, ("lines", "acceleration"))


def design_seed(seed: int, draw: int = 0) -> int:
    """Seed of everything random in one draw of a design, in every verb; a run without draws is draw 0."""
    return int(np.random.SeedSequence([seed, draw]).generate_state(1)[0])


ENDS = ("until_error", "until_gain", "until_interval")
"""Settings of a design that can end it early."""


def checked_end(recipe: Recipe, strategy: Strategy, lines: int | None) -> StopRule | None:
    """The recipe's stop rule, once its order, constraints and rule are known to fit together, whatever the scan.

    An error that is wanted is that of the image (`StopRule.by_image`): the design needs `DesignOptions.image_error`.

    Raises
    ------
    InputError
        For constraints and an order that contradict each other.
    UsageError
        Where neither a number of lines nor a rule ends the design, and as `stop_rule`.
    """
    design = recipe.design
    check_other_than_lines(recipe)
    jumps = recipe.rules().max_jump if "max_jump" in KINDS[design.encoding].limits else None
    check_order(*design.trains, jumps)
    rule = stop_rule(recipe, strategy, by_image=True)
    if lines is None and rule is None:
        ends = (
            f"{option('lines')}, {option('until-error')}, {option('until-interval')} or {option('design.until_gain')}"
        )
        raise UsageError(f"when does the design end? Give {ends}")
    return rule


def stop_rule(recipe: Recipe, strategy: Strategy, *, by_image: bool = False) -> StopRule | None:
    """The rule that ends a design early; None where the recipe has none.

    ``by_image`` is that of `StopRule`.

    Raises
    ------
    UsageError
        Where the strategy predicts nothing.
    """
    design = recipe.design
    given = [name for name in ENDS if getattr(design, name) is not None]
    if not given:
        return None
    if not strategy.needs_posterior:
        setting = given[0]
        needs = f"{option(f'design.{setting}')} needs one with a posterior"
        raise UsageError(f"strategy {strategy.name!r} predicts nothing: {needs}")
    fewest = KINDS[design.encoding].fewest_tested
    return StopRule(design.until_error, design.until_gain, fewest=fewest, by_image=by_image, within=design.within)


def check_other_than_lines(recipe: Recipe) -> None:
    """Refuse settings of lines for a plane or for shots.

    Raises
    ------
    UsageError
        Naming the setting.
    """
    design, shots = recipe.design, KINDS[recipe.design.encoding].shots
    if shots and design.order != "as-chosen":
        raise UsageError("orders and echo trains are of lines and samples: leave them out where shots are chosen")
    if shots and (design.block or 1) > 1:
        raise UsageError(f"shots are chosen one by one: leave out {option('block')}")


def refuse_shots(recipe: Recipe, verb: str) -> None:
    """Refuse shots where a verb chooses lines or the samples of a plane.

    Raises
    ------
    UsageError
        Saying what the recipe requests, and which verbs know it.
    """
    encoding = recipe.design.encoding
    if KINDS[encoding].shots:
        wanted = KINDS[encoding].several
        raise UsageError(
            f"{verb} chooses lines or samples of a plane, not {wanted} (--encoding {encoding}, or encoding = "
            f"{encoding!r} under [design] of the recipe): design and compare choose {wanted}"
        )


def require_number_only(recipe: Recipe, why: str) -> None:
    """Refuse rules that end a design early where a verb needs as many lines as are requested.

    Raises
    ------
    UsageError
        Saying ``why``.
    """
    if any(getattr(recipe.design, name) is not None for name in ENDS):
        raise UsageError(f"{why}; take {', '.join(ENDS)} out of the recipe")


def in_acquisition_order(lines: Sequence[int], readouts: Readouts, recipe: Recipe) -> Acquisition | None:
    """Chosen lines, or samples of a plane, in the recipe's order and echo trains.

    None where they are measured one by one, as chosen, and where they are shots, each of which is a train of its own.
    """
    order, echoes, effective = recipe.design.trains
    if readouts.kind.on_grid and (order != "as-chosen" or echoes > 1):
        return acquisition_order(lines, readouts, order, echoes, effective)
    return None


@dataclass(frozen=True)
class DesignEnd:
    """How a design ended that a rule could end, or that chose nothing; templates word it.

    Parameters
    ----------
    how : {"", "start alone", "stopped", "never asked", "all measured", "by hand"}
        Nothing to say; nothing was chosen; a rule ended it; a rule could not, as there was nothing to choose; all
        that it could have were measured; or whoever watched it had enough.
    lines, chosen, most : int
        Lines in the end, those of them that were chosen, and lines it could have had.
    facts : tuple of StopFact
        The numbers that the rule compared in the end.
    reached : bool
        Whether the rule was met in the end.
    missed : bool
        Whether what the rule wants was not reached and never will be.
    slices : (int, int)
        How many slices the rule took together, and how many share the lines.
    """

    how: Literal["", "start alone", "stopped", "never asked", "all measured", "by hand"]
    lines: int
    chosen: int
    most: int
    facts: tuple[StopFact, ...] = ()
    reached: bool = False
    missed: bool = False
    slices: tuple[int, int] = (1, 1)

    @classmethod
    def of(
        cls, trace: DesignTrace, rule: StopRule | None, most: int, readouts: Readouts, by_hand: bool = False
    ) -> DesignEnd:
        """The end of a finished design, by the rule it ran with, or ``by_hand``."""
        counts = len(trace.lines), len(trace.steps), most
        if by_hand and trace.declined is None and len(trace.lines) < most:
            return cls("by hand", *counts)
        if rule is None:  # sets of shots begin with all they have
            return cls("start alone" if not trace.steps and readouts.kind.on_grid else "", *counts)
        if trace.declined is not None:
            how, end, reached = cls("stopped", *counts), trace.declined.forecast, True
        elif trace.closing is not None:
            how, end, reached = cls("all measured", *counts), trace.closing, rule(trace.closing)
        elif trace.steps:
            how, end, reached = cls("all measured", *counts), trace.steps[-1].forecast, False
        else:
            return cls("never asked", *counts)
        known = trace.forecast(len(trace.lines))
        missed = known is not None and rule.out_of_reach(known)
        return replace(how, facts=rule.facts(end), reached=reached, missed=missed)

    @property
    def target(self) -> Literal["", "missed", "met", "met at the start"]:
        """How the design stands to the rule that could end it; empty without one."""
        if self.how in ("", "start alone", "by hand"):
            return ""
        if not self.reached or self.missed:
            return "missed"
        return "met" if self.chosen else "met at the start"


@dataclass(frozen=True)
class Acquisition:
    """Lines, or samples of a plane, as the scanner measures them.

    Parameters
    ----------
    trains : tuple of tuple of int
        Lines of every echo train, echo after echo.
    readouts : Readouts
        The grid, and what of it is measured one by one. Where this class speaks of lines, it means these candidates.
    """

    trains: tuple[tuple[int, ...], ...]
    readouts: Readouts

    @property
    def lines(self) -> tuple[int, ...]:
        """All lines, train after train."""
        return tuple(line for train in self.trains for line in train)

    @property
    def dc_echo(self) -> int:
        """Echo, counted from 1, that measures the line nearest to DC: its time is the effective echo time."""
        nearest = self.readouts.nearest_to_centre(sorted(self.lines), 1)[0]
        return 1 + next(train.index(nearest) for train in self.trains if nearest in train)

    @property
    def largest_jump(self) -> float:
        """Largest distance between consecutive lines, 0 for a single line; in a plane between samples, as |k|."""
        return max((_distance(self.readouts, a, b) for a, b in pairwise(self.lines)), default=0.0)

    @property
    def typical_jump(self) -> float:
        """Median distance between consecutive lines of a train, 0 where trains have one echo."""
        jumps = [_distance(self.readouts, a, b) for train in self.trains for a, b in pairwise(train)]
        return float(np.median(jumps)) if jumps else 0.0


def acquisition_order(
    lines: Sequence[int],
    readouts: Readouts,
    order: str = "as-chosen",
    train: int = 1,
    effective_echo: int | None = None,
) -> Acquisition:
    """Sort chosen lines, or samples of a plane, into echo trains.

    Parameters
    ----------
    lines : sequence of int
        As they were chosen.
    readouts : Readouts
        The candidates that the lines or samples belong to.
    order : str
        ``as-chosen``; ``ascending`` in ky, samples of a plane then in kz; ``centre-out``: every train from DC outwards,
        so that an echo measures one ring around DC, and without trains all by their distance from DC, in a plane those
        at one distance by their angle; ``interleaved``: every train ascends over all of k-space, the
        trains one line apart, so that an echo measures one band of k-space along ky. In a plane the samples of a ring
        are shared among the trains by their angle, and those of a band by their kz, which keeps a train's samples
        together.
    train : int
        Echoes of a train; the last trains may have fewer, in a plane any.
    effective_echo : int, optional
        Echo, counted from 1, that measures DC in the train that holds it; ``interleaved`` trains are turned so that it
        does. Where the lines do not fill the trains it is their last echo at most.

    Raises
    ------
    InputError
        For an effective echo that the order or the trains do not have.
    """
    check_order(order, train, effective_echo)
    count = -(-len(lines) // train)
    ascending = sorted(lines)
    if order in ("as-chosen", "ascending"):
        listed = ascending if order == "ascending" else list(lines)
        return Acquisition(tuple(tuple(listed[i : i + train]) for i in range(0, len(listed), train)), readouts)
    within = readouts.order_within_echo(order)
    if order == "centre-out":
        if train == 1:
            return Acquisition(tuple((line,) for line in readouts.centre_out(ascending)), readouts)
        by_radius = readouts.nearest_to_centre(ascending, len(ascending))
        return Acquisition(_echo_by_echo(by_radius, count, within), readouts)
    made = Acquisition(_echo_by_echo(ascending, count, within), readouts)
    if effective_echo is None:
        return made
    shift = made.dc_echo - min(effective_echo, min(len(each) for each in made.trains))
    turned = (np.roll(each, -shift).tolist() for each in made.trains)
    return Acquisition(tuple(tuple(each) for each in turned), readouts)


def _distance(readouts: Readouts, one: int, other: int) -> float:
    frequencies = readouts.frequencies
    return float(np.linalg.norm(frequencies[one] - frequencies[other]))


def _echo_by_echo(lines: Sequence[int], count: int, within: NDArray[np.float64] | None) -> tuple[tuple[int, ...], ...]:
    """``count`` trains, whose first echoes share the first ``count`` lines, and so on."""
    trains: list[list[int]] = [[] for _ in range(count)]
    for first in range(0, len(lines), count):
        echo = lines[first : first + count]
        if within is None:
            places = list(range(len(echo)))
        else:  # spread evenly where there are fewer than trains
            echo = sorted(echo, key=lambda line: (within[line], line))
            places = [place * count // len(echo) for place in range(len(echo))]
        for place, line in zip(places, echo, strict=True):
            trains[place].append(line)
    return tuple(tuple(train) for train in trains)


def check_order(order: str, train: int, effective_echo: int | None = None, max_jump: int | None = None) -> None:
    """Refuse an order that its trains or the largest jump contradict.

    Lines that were chosen within jumps of ``max_jump`` keep to it as they were chosen, and in ascending order.

    Raises
    ------
    InputError
        For an effective echo that the order or the trains do not have, and for an order that breaks jumps.
    """
    if order == "interleaved" and train == 1:
        raise InputError(
            field="order",
            got="interleaved without echo trains",
            wanted="trains of two echoes or more",
            cure="Give [design] train in a recipe, "
            f"or {option('block')} where lines are chosen; or take another order.",
        )
    if effective_echo is not None and order != "interleaved":
        wanted, cure = "order interleaved", "Take that order, or leave the effective echo out."
        raise InputError("effective echo", f"order {order}", wanted, cure)
    if effective_echo is not None and not 1 <= effective_echo <= train:
        raise InputError(field="effective echo", got=str(effective_echo), wanted=f"1 to {train}, echoes of a train")
    if max_jump is not None and order not in ("as-chosen", "ascending"):
        wanted = "as-chosen or ascending, which keep jumps short"
        cure = "Take one of these, or leave the maximum jump out."
        raise InputError("order", f"{order} with jumps of {max_jump} at most", wanted, cure)


MakesShot = Callable[[int, int], NDArray[np.float64]]
"""(side of the square grid, shots of the design) -> one shot at angle 0, (sample, 2): columns (ky, kx) in cycles per
field of view."""
SPIRAL_LIMITS = GradientLimits(amplitude=0.04, slew=150.0)
"""How fast arms of spirals are played; a script that needs other limits registers arms of its own."""
SPIRAL_FIELD_OF_VIEW = 0.24
"""Metres over which the grid of arms of spirals extends."""
ANGLES_PER_SHOT = 4
"""Equispaced angles to choose from, for each shot of a design."""


def register_trajectory(name: str, make: MakesShot, *, unit: str, several: str = "", turn: float = 2 * np.pi) -> None:
    """Make a family of shots known by a name, for recipes, ``--encoding`` and the runs.

    A design then chooses among shots turned to equispaced angles, or takes a fixed set of them.

    Parameters
    ----------
    name : str
        Of the encoding, in lower case.
    make : callable
        (side of the grid, shots of the design) -> one shot, (sample, 2), that comes near DC somewhere.
    unit, several : str
        What one is called, and what several are ("petal", "petals").
    turn : float
        The angle over which different shots are spread: pi where a shot runs through DC, 2 pi where it begins there.

    Raises
    ------
    InputError
        For a name that `require_part` refuses or that is that of lines, a plane, or readouts, something that makes no
        shot, and no unit.
    """
    known = KINDS[name].shot if name in KINDS else None
    require_part("trajectory", name, make, "a function that makes one shot", known=known)
    if name in KINDS and not KINDS[name].shots:
        raise InputError(field="trajectory", got=repr(name), wanted="a name that is no other encoding's")
    if not unit:
        raise InputError(field="unit", got="nothing", wanted="what one shot is called")
    KINDS[name] = Kind(unit, "shots", several or f"{unit}s", positive_number("turn", turn), make)


MOST_VALUES = 1 << 24
"""Samples of all candidates and coils together; a dozen posterior draws of them take 1.6 GB."""
RIM_ACCELERATION = 4.0
"""Spirals: so many times the shots (half the matrix at most) would leave no gap at the rim of k-space."""
_SAMPLES_AT_ONCE = 4
"""Receivers of some scanners count samples by fours."""


def candidates_of(
    recipe: Recipe, strategy: Strategy, grid: tuple[int, int], count: int | None, n_coils: int = 1
) -> Readouts:
    """The candidates of a design of ``count``: lines or samples of the grid, or shots.

    Parameters
    ----------
    recipe : Recipe
        Its ``design.encoding`` names the family.
    strategy : Strategy
        A set of fixed angles (`FixedAngles`) has its own instead of equispaced ones.
    grid : tuple of int
        Pixels (ky, kx); shots take them for squares: along the shorter side they reach less far in cycles per field of
        view.
    count : int
        Shots in the end, of which there are as many as are requested.
    n_coils : int
        Receive coils.

    Raises
    ------
    InputError
        For more samples than `MOST_VALUES`.
    """
    family, kind = recipe.design.encoding, KINDS[recipe.design.encoding]
    if kind.on is not None:
        readouts: Readouts = kind.on(grid)
        return readouts
    assert kind.shot is not None and count is not None
    if isinstance(strategy, FixedAngles):
        angles = strategy.angles(count, kind.turn)
    else:
        angles = equispaced_angles(ANGLES_PER_SHOT * count, turn=kind.turn)
    matrix = max(grid)
    one = kind.shot(matrix, count)
    if len(angles) * len(one) * n_coils > MOST_VALUES:
        got = f"{len(angles)} shots of {len(one)} samples in {n_coils} coils"
        wanted = f"at most {MOST_VALUES} samples in all, which memory can hold with a dozen posterior draws"
        raise InputError("number of shots", got, wanted, "Ask for fewer shots, or a coarser grid.", ("shots", "lines"))
    every = turned(one, angles) * (np.array(grid) / matrix)
    return ShotReadouts(grid, every, family, tuple(angles.tolist()))


def spoke(matrix: int, count: int) -> NDArray[np.float64]:
    """One spoke through DC, (sample, 2)."""
    return radial_spokes(matrix, [0.0], oversampling=1)[0]


def arm(matrix: int, count: int, *, density: float = 1.0) -> NDArray[np.float64]:
    """One arm of a spiral as a gradient system plays it, (sample, 2); see `nyquist_turns` for the density."""
    full = max(1, min(round(RIM_ACCELERATION * count), matrix // 2))
    turns = nyquist_turns(matrix, full, density=density)
    made = spiral_readout(matrix, turns, SPIRAL_LIMITS, field_of_view=SPIRAL_FIELD_OF_VIEW, density=density)
    return made.samples[: len(made.samples) // _SAMPLES_AT_ONCE * _SAMPLES_AT_ONCE]


def slice_of(
    on_grid: SliceModel,
    readouts: Readouts,
    source: str,
    reference: Callable[[], Array | None],
    recipe: Recipe,
    seed: int,
) -> SliceModel:
    """A slice as the readouts measure it: itself on a grid, else `shot_slice`, of closed forms where these are known.

    Parameters
    ----------
    on_grid : SliceModel
        The slice, sampled in full where its readouts are to be shots.
    readouts : Readouts
        The candidates.
    source : str
        File or phantom that it comes from.
    reference : callable
        () -> its image (ky, kx) or None, which may be that behind its data (`truth_or_none`).
    recipe : Recipe
        How phantoms are simulated.
    seed : int
        Of noise and simulation.
    """
    if readouts.kind.on_grid:
        return on_grid
    shots = cast(ShotReadouts, readouts)
    known = closed_form_samples(source, shots, on_grid.n_coils, recipe, seed)
    truth = truth_or_none(on_grid, reference()) if known is None else None
    return shot_slice(on_grid, shots, np.random.default_rng([seed, 1, 1]), truth=truth, known=known)


def closed_form_samples(source: str, shots: ShotReadouts, n_coils: int, recipe: Recipe, seed: int) -> Array | None:
    """Samples (coil, shot, sample) of a scene of ellipses, noise included; None where the input is none.

    They are of the very object that `load_scan` simulates with the same seed.
    """
    from mri_design.experiment.inputs import PHANTOM_PREFIX
    from mri_design.scan.simulation import PHANTOMS, load_phantom_shots

    name = source.removeprefix(PHANTOM_PREFIX)
    if name == source or name not in PHANTOMS or PHANTOMS[name][2] != "ellipses":
        return None
    how = recipe.simulation.of_scene(seed) | {"n_coils": n_coils}
    made = load_phantom_shots(name, shots.shots, shape=shots.grid, **how)
    return made.kspace.reshape(n_coils, *shots.shots.shape[:2])


def shot_slice(
    scan: SliceModel, shots: ShotReadouts, rng: np.random.Generator, *, truth: Array | None, known: Array | None = None
) -> SliceModel:
    """A slice whose candidates are shots, from one that was sampled in full on the grid.

    Parameters
    ----------
    scan : SliceModel
        The slice on the grid.
    shots : ShotReadouts
        The candidates.
    rng : numpy Generator
        Of the noise of the samples.
    truth : complex array, shape (ky, kx), or None
        The noise-free image, where it is known: its non-uniform transform with new noise is what shots measure.
        Otherwise it is that of each coil's own image, whose noise is white on the grid, and correlated between samples
        of shots that lie closer than those of the grid.
    known : complex array, shape (coil, shot, sample), optional
        The samples, where they are known already.

    Raises
    ------
    InputError
        Where samples of the grid are missing; where FINUFFT is not installed.
    """
    if scan.samples is not None or not scan.measured.all():
        wanted = "a fully sampled scan, of which the samples along shots are made"
        raise InputError("k-space", "samples without data", wanted, "recon takes scans with holes.")
    laid_out = (scan.n_coils, *shots.shots.shape[:2])
    if known is None and truth is not None:
        exact = shots.rows(range(shots.size), scan.maps)(np.asarray(truth))
        noise = rng.standard_normal((2, *exact.shape)) * np.sqrt(scan.noise_variance)
        known = (exact + noise[0] + 1j * noise[1]).reshape(laid_out)
    elif known is None:
        images = CentredFFT(scan.shape).adjoint(scan.kspace)
        one = NonUniformFourier(shots.shots.reshape(-1, 2), shots.grid)
        known = one(images).reshape(laid_out)
    everything = np.ones(shots.size, dtype=bool)
    samples = np.asarray(known, dtype=np.complex64)
    return replace(scan, kspace=samples, measured=everything, readouts=shots)
