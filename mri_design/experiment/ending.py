"""The sequence around a design: how many lines at most, when it ends and why it did, in which order it measures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mri_design.design.echo_trains import Acquisition, acquisition_order, check_order
from mri_design.design.stopping import FEWEST_TESTED, AnyOf, NamedRule, UntilError, UntilGain
from mri_design.design.strategy import Strategy
from mri_design.design.trace import DesignTrace
from mri_design.errors import UsageError, option
from mri_design.experiment.recipe import Recipe
from mri_design.kinds import KINDS, count_text
from mri_design.readouts import LineReadouts, PlaneReadouts, Readouts

FEWEST_SAMPLES = 16
"""Samples of a plane that must have been predicted and then measured; each says much less than a line does."""


def checked_end(recipe: Recipe, strategy: Strategy, lines: int | None) -> NamedRule | None:
    """The recipe's stop rule, once its order, constraints and rule are known to fit together, whatever the scan.

    An error that is wanted is that of the image (`UntilError.by_image`): the design needs `DesignOptions.image_error`.

    Raises
    ------
    InputError
        For constraints and an order that contradict each other.
    UsageError
        Where neither a number of lines nor a rule ends the design, and as `stop_rule`.
    """
    design = recipe.design
    check_other_than_lines(recipe)
    jumps = recipe.constraints.rules().max_jump if design.encoding == "lines" else None
    check_order(design.order, design.echoes, design.effective_echo, jumps)
    rule = stop_rule(recipe, strategy, by_image=True)
    if lines is None and rule is None:
        ends = f"{option('lines')}, {option('until-error')} or {option('until-gain')}"
        raise UsageError(f"when does the design end? Give {ends}")
    return rule


def stop_rule(recipe: Recipe, strategy: Strategy, *, by_image: bool = False) -> NamedRule | None:
    """The rule that ends a design early; None where the recipe has none.

    ``by_image`` is that of `UntilError`.

    Raises
    ------
    UsageError
        Where the strategy predicts nothing.
    """
    design, rules = recipe.design, list[NamedRule]()
    fewest = FEWEST_SAMPLES if design.encoding == "plane" else FEWEST_TESTED
    if design.until_error is not None:
        if not strategy.needs_posterior:
            needs = f"{option('until-error')} needs one with a posterior"
            raise UsageError(f"strategy {strategy.name!r} predicts no error: {needs}")
        rules.append(UntilError(design.until_error, fewest, by_image))
    if design.until_gain is not None:
        if not strategy.needs_posterior:
            needs = f"{option('until-gain')} needs a posterior"
            raise UsageError(f"strategy {strategy.name!r} knows no information gain: {needs}")
        rules.append(UntilGain(design.until_gain, fewest))
    return None if not rules else rules[0] if len(rules) == 1 else AnyOf(tuple(rules))


def check_other_than_lines(recipe: Recipe) -> None:
    """Refuse, in a plane and where shots are chosen, what is known for lines only.

    Raises
    ------
    UsageError
        Naming the setting.
    """
    design = recipe.design
    if design.encoding == "lines":
        return
    shots = KINDS[design.encoding].shots
    if shots and (design.order != "as-chosen" or design.train is not None or design.effective_echo is not None):
        raise UsageError("orders and echo trains are of lines and samples: leave them out where shots are chosen")
    if shots and (design.block or 1) > 1:
        raise UsageError(f"shots are chosen one by one: leave out {option('block')}")


def refuse_shots(recipe: Recipe, verb: str) -> None:
    """Refuse shots where a verb chooses lines or the samples of a plane.

    Raises
    ------
    UsageError
        Saying what the recipe asks for, and which verbs know it.
    """
    encoding = recipe.design.encoding
    if KINDS[encoding].shots:
        wanted = KINDS[encoding].several
        raise UsageError(
            f"{verb} chooses lines or samples of a plane, not {wanted} (--encoding {encoding}, or encoding = "
            f"{encoding!r} under [design] of the recipe): design and compare choose {wanted}"
        )


def require_number_only(recipe: Recipe, why: str) -> None:
    """Refuse rules that end a design early where a verb needs as many lines as are asked for.

    Raises
    ------
    UsageError
        Saying ``why``.
    """
    if recipe.design.until_error is not None or recipe.design.until_gain is not None:
        raise UsageError(f"{why}; take until_error and until_gain out of the recipe")


def most_lines(measurable: NDArray[np.bool_], start: Sequence[int], recipe: Recipe, readouts: Readouts) -> int:
    """Candidates that a design on these can have which begins with ``start``."""
    return recipe.constraints.rules_of(readouts).most_lines(measurable, start)


def lines_expected(trace: DesignTrace, rule: NamedRule | None, most: int) -> int:
    """How many lines a design will have, by how what its rule looks at has fallen so far; ``most`` at the utmost."""
    counted = list(enumerate(trace.steps, len(trace.start)))
    expected = [most]
    for one in rule.rules if isinstance(rule, AnyOf) else [rule]:
        if isinstance(one, UntilError):
            ratios = [step.image_error / step.predicted_error for step in trace.steps if np.isfinite(step.image_error)]
            ratio = ratios[-1] if one.by_image and ratios and np.isfinite(ratios[-1]) else 1.0
            errors = [(count, step.predicted_error) for count, step in counted]
            expected.append(expected_total(errors, one.error / ratio, most))
        elif isinstance(one, UntilGain):
            expected.append(expected_total([(count, step.information) for count, step in counted], one.gain, most))
    return min(expected)


def expected_total(falling: Sequence[tuple[int, float]], limit: float, most: int) -> int:
    """The number at which something that falls reaches a limit, if it goes on as in the latter half of its numbers.

    Its logarithm is then a line in that of the number. ``most`` where it has not fallen, or is not known twice.
    """
    known = [(number, value) for number, value in falling if value > 0 and np.isfinite(value)]
    half = np.log([(number, value) for number, value in known[len(known) // 2 :]])
    if len(half) < 2:
        return most
    slope, height = np.polyfit(half[:, 0], half[:, 1], 1)
    if slope >= 0:
        return most
    reached = np.exp(min((np.log(limit) - height) / slope, np.log(most)))
    return min(most, max(int(np.ceil(reached - 1e-6)), known[-1][0] + 1))


def in_acquisition_order(lines: Sequence[int], readouts: Readouts, recipe: Recipe) -> Acquisition | None:
    """Chosen lines, or samples of a plane, in the recipe's order and echo trains.

    None where they are measured one by one, as chosen, and where they are shots, each of which is a train of its own.
    """
    design = recipe.design
    if isinstance(readouts, LineReadouts | PlaneReadouts) and (design.order != "as-chosen" or design.echoes > 1):
        return acquisition_order(lines, readouts, design.order, design.echoes, design.effective_echo)
    return None


def how_it_ended(trace: DesignTrace, rule: NamedRule | None, most: int, unit: str = "line") -> str:
    """One sentence about a design that a rule could end, or that chose nothing; empty about others.

    Parameters
    ----------
    trace : DesignTrace
        Finished.
    rule : NamedRule or None
        What it ran with.
    most : int
        Lines it could have had.
    unit : str
        What its candidates are (`Readouts.unit`).
    """
    lines = len(trace.lines)
    if rule is None:
        from_grid = unit in (KINDS["lines"].unit, KINDS["plane"].unit)  # sets of shots begin with all that they have
        chosen = bool(trace.steps) or not from_grid
        return "" if chosen else f"nothing was chosen: all {count_text(lines, unit)} are those of the start"
    if trace.declined is not None:
        none = "" if trace.steps else ", none of them chosen, as those of the start suffice"
        return f"stopped after {lines} of at most {count_text(most, unit)}{none}: {rule.reason(trace.declined, unit)}"
    if trace.closing is None and not trace.steps:
        return f"never asked when to stop: all {lines} {unit}s are those of the start"
    end = trace.steps[-1] if trace.closing is None else trace.closing
    return f"not stopped early: all {lines} {unit}s measured, {rule.reason(end, unit)}"


def what_was_missed(trace: DesignTrace, rule: NamedRule | None, unit: str = "line") -> str:
    """Why the design did not reach what its rule wants and never will, in words; empty where it did or may."""
    end = trace.forecast(len(trace.lines))
    return "" if rule is None or end is None else rule.missed(end, unit)
