"""Exchanges at the end of a protocol's design: lines that others have made superfluous are replaced by better ones.

A scan cannot take back what it has measured; a protocol that is still being designed on replayed scans can. One
exchange drops the line whose loss raises the error least, adds the one on which the reconstructions without it are most
wrong, and is kept only if the mean error over the training scans has fallen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.design.decision import Choice, DesignStep
from mri_design.design.trace import DesignTrace
from mri_design.design.trials import Evaluate, Outcome, ReferenceSlice, shared_lines
from mri_design.errors import InputError, require_counts


@dataclass(frozen=True)
class Exchange:
    """An attempt to replace a line of a protocol by another.

    Parameters
    ----------
    removed, added : int
        Lines.
    error : float
        Mean error over the training scans with the exchange made.
    accepted : bool
        Whether it was kept.
    """

    removed: int
    added: int
    error: float
    accepted: bool


@dataclass(frozen=True, kw_only=True)
class ExchangeRules:
    """Which lines may be exchanged, and how the one to drop is looked for.

    Parameters
    ----------
    keep : sequence of int
        Lines that stay (a forced centre).
    allowed : bool array, shape (ky,), optional
        Lines that may come in; all that hold data by default.
    importance : mapping of int to float
        How much each line added when it was chosen (`DesignTrace.innovation_energies`): the least important are tried
        first. Lines it does not name come last, the outermost before the others.
    shortlist : int
        The line to drop is the one of so many candidates whose loss leaves the least error. An attempt takes that many
        reconstructions per scan, and one more.

    Raises
    ------
    InputError
        For a shortlist of no line.
    """

    keep: Sequence[int] = ()
    allowed: NDArray[np.bool_] | None = None
    importance: Mapping[int, float] = field(default_factory=dict)
    shortlist: int = 6

    def __post_init__(self) -> None:
        require_counts(least=1, shortlist=self.shortlist)


ANY_EXCHANGE = ExchangeRules()
"""Every line may go, every line that holds data may come in."""


@dataclass(frozen=True)
class Refinement:
    """A mask that is being improved.

    Parameters
    ----------
    lines : tuple of int
        In acquisition order; exchanged lines are at the end.
    error : float
        Mean error over the training scans.
    exchanges : tuple of Exchange
        Attempts so far.
    reconstructions, unconverged : int
        How many these took, and how many did not converge.
    """

    lines: tuple[int, ...]
    error: float
    exchanges: tuple[Exchange, ...] = ()
    reconstructions: int = 0
    unconverged: int = 0

    @property
    def settled(self) -> tuple[int, ...]:
        """Lines whose removal has been tried since the last exchange that was kept."""
        tried: list[int] = []
        for exchange in self.exchanges:
            tried = [] if exchange.accepted else [*tried, exchange.removed]
        return tuple(tried)


def begin_refinement(scans: Sequence[ReferenceSlice], lines: Sequence[int], evaluate: Evaluate) -> Refinement:
    """The mask as it is, with its error."""
    shared_lines(scans)
    outcomes = list(evaluate([(i, tuple(lines)) for i in range(len(scans))]))
    return Refinement(tuple(lines), _error(outcomes), (), len(outcomes), _unconverged(outcomes))


def refine(
    scans: Sequence[ReferenceSlice],
    state: Refinement,
    attempts: int,
    evaluate: Evaluate,
    rules: ExchangeRules = ANY_EXCHANGE,
    callback: Callable[[Refinement], None] | None = None,
) -> Refinement:
    """Try exchanges until ``attempts`` have been made, or no line is left to try.

    Parameters
    ----------
    scans : sequence of ReferenceSlice
        On one grid.
    state : Refinement
        From `begin_refinement`, or of an interrupted run.
    attempts : int
        Exchanges to try in all.
    evaluate : callable
        Reconstructs and judges trials, see `replayed`.
    rules : ExchangeRules
        Which lines may be exchanged.
    callback : callable, optional
        Sees the state after every attempt.

    Returns
    -------
    Refinement
        Its error is never above that of ``state``.

    Raises
    ------
    InputError
        For no scan, scans on different grids, or a line that is kept but not there.
    """
    require_counts(least=0, attempts=attempts)
    measurable = shared_lines(scans)
    incoming = measurable if rules.allowed is None else measurable & rules.allowed
    missing = sorted(set(rules.keep) - set(state.lines))
    if missing:
        raise InputError(field="lines to keep", got=f"{missing}, not in the mask", wanted="lines of the mask")
    while len(state.exchanges) < attempts:
        settled = {*rules.keep, *state.settled}
        movable = [line for line in state.lines if line not in settled]
        free = incoming.copy()
        free[list(state.lines)] = False
        if not movable or not free.any():
            return state
        shortlist = _least_important(movable, rules.importance, len(measurable))[: rules.shortlist]
        state = _attempt(state, shortlist, free, evaluate, len(scans))
        if callback is not None:
            callback(state)
    return state


def with_exchanges(trace: DesignTrace, refined: Refinement) -> DesignTrace:
    """The design with its exchanges: steps of dropped lines are left out, added lines follow at the end, unpredicted.

    Where the first step of a block is removed, its forecast is copied to the steps of that block that remain.
    """
    added = {exchange.added for exchange in refined.exchanges if exchange.accepted}
    known = {}
    for i, step in enumerate(trace.steps):
        begun = trace.block_start(i).forecast
        forecast = replace(step.forecast, expected=begun.expected, corrected=begun.corrected)
        known[step.line] = replace(step, choice=replace(step.choice, pending=0, forecast=forecast))
    chosen = refined.lines[len(trace.start) :]
    return replace(trace, steps=tuple(DesignStep(Choice(line)) if line in added else known[line] for line in chosen))


def _attempt(
    state: Refinement, shortlist: Sequence[int], free: NDArray[np.bool_], evaluate: Evaluate, n_scans: int
) -> Refinement:
    """The best exchange that drops a line of the shortlist."""
    without = [tuple(line for line in state.lines if line != dropped) for dropped in shortlist]
    outcomes = list(evaluate([(i, lines) for lines in without for i in range(n_scans)]))
    groups = [outcomes[i : i + n_scans] for i in range(0, len(outcomes), n_scans)]
    least = int(np.argmin([_error(group) for group in groups]))
    residual = np.mean([outcome.residual for outcome in groups[least]], axis=0)
    added = int(np.argmax(np.where(free, residual, -np.inf)))
    lines = (*without[least], added)
    last = list(evaluate([(i, lines) for i in range(n_scans)]))
    error = _error(last)
    accepted = error < state.error
    counted = replace(
        state,
        exchanges=(*state.exchanges, Exchange(shortlist[least], added, error, accepted)),
        reconstructions=state.reconstructions + len(outcomes) + len(last),
        unconverged=state.unconverged + _unconverged(outcomes) + _unconverged(last),
    )
    return replace(counted, lines=lines, error=error) if accepted else counted


def _least_important(lines: Sequence[int], importance: Mapping[int, float], n_lines: int) -> list[int]:
    def rank(line: int) -> tuple[bool, float, int]:
        known = line in importance
        return not known, importance[line] if known else -abs(line - n_lines // 2), line

    return sorted(lines, key=rank)


def _error(outcomes: Sequence[Outcome]) -> float:
    return float(np.mean([outcome.error for outcome in outcomes]))


def _unconverged(outcomes: Sequence[Outcome]) -> int:
    return sum(not outcome.converged for outcome in outcomes)
