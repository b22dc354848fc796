"""Exchanges at the end of a protocol's design: lines that others have made superfluous give way to better ones.

A scan cannot take back what it has measured; a protocol that is still being designed on replayed scans can. One
exchange drops the line whose loss hurts least, adds the one on which the reconstructions without it are most wrong,
and stays only if the mean error over the training scans has fallen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.design.trace import DesignStep, DesignTrace
from mri_design.design.trials import Evaluate, Outcome, ReferenceSlice, shared_lines
from mri_design.errors import InputError, require_counts

__all__ = ["Exchange", "Refinement", "begin_refinement", "refine", "with_exchanges"]


@dataclass(frozen=True)
class Exchange:
    """One attempt.

    Parameters
    ----------
    removed, added : int
        Lines.
    error : float
        Mean error over the training scans with the exchange made.
    accepted : bool
        Whether it stayed.
    """

    removed: int
    added: int
    error: float
    accepted: bool


@dataclass(frozen=True)
class Refinement:
    """A mask on its way.

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
        """Lines whose removal has been tried since the last exchange that stayed."""
        tried: list[int] = []
        for exchange in self.exchanges:
            tried = [] if exchange.accepted else [*tried, exchange.removed]
        return tuple(tried)


def begin_refinement(scans: Sequence[ReferenceSlice], lines: Sequence[int], evaluate: Evaluate) -> Refinement:
    """The mask as it is, with its error."""
    shared_lines(scans)
    found = list(evaluate([(i, tuple(lines)) for i in range(len(scans))]))
    return Refinement(tuple(lines), _error(found), (), len(found), _missed(found))


def refine(
    scans: Sequence[ReferenceSlice],
    state: Refinement,
    attempts: int,
    evaluate: Evaluate,
    *,
    keep: Sequence[int] = (),
    allowed: NDArray[np.bool_] | None = None,
    importance: Mapping[int, float] | None = None,
    shortlist: int = 6,
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
        Looks at trials, see `replayed`.
    keep : sequence of int
        Lines that stay (a forced centre).
    allowed : bool array, shape (ky,), optional
        Lines that may come in; all that hold data by default.
    importance : mapping of int to float, optional
        What each line told when it was chosen: those that told least are tried first. Lines it does not name come
        last, the outermost before the others.
    shortlist : int
        Of so many lines that might go, the one whose loss leaves the least error does; that many reconstructions per
        scan and attempt, and one more.
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
    require_counts(least=1, shortlist=shortlist)
    measurable = shared_lines(scans)
    incoming = measurable if allowed is None else measurable & allowed
    missing = sorted(set(keep) - set(state.lines))
    if missing:
        raise InputError(field="lines to keep", got=f"{missing}, not in the mask", wanted="lines of the mask")
    while len(state.exchanges) < attempts:
        settled = {*keep, *state.settled}
        movable = [line for line in state.lines if line not in settled]
        free = incoming.copy()
        free[list(state.lines)] = False
        if not movable or not free.any():
            return state
        state = _attempt(
            state, _least_important(movable, importance or {}, len(measurable))[:shortlist], free, evaluate, len(scans)
        )
        if callback is not None:
            callback(state)
    return state


def with_exchanges(trace: DesignTrace, refined: Refinement) -> DesignTrace:
    """The design with its exchanges: steps of dropped lines are gone, lines that came in stand unpredicted at the end.

    Steps that stay carry what was expected at the start of their block, which may be gone.
    """
    came = {exchange.added for exchange in refined.exchanges if exchange.accepted}
    known = {}
    for i, step in enumerate(trace.steps):
        begun = trace.block_start(i)
        known[step.line] = replace(step, pending=0, expected=begun.expected, corrected=begun.corrected)
    chosen = refined.lines[len(trace.start) :]
    return replace(trace, steps=tuple(DesignStep(line) if line in came else known[line] for line in chosen))


def _attempt(
    state: Refinement, shortlist: Sequence[int], free: NDArray[np.bool_], evaluate: Evaluate, n_scans: int
) -> Refinement:
    """The best exchange that drops a line of the shortlist."""
    without = [tuple(line for line in state.lines if line != gone) for gone in shortlist]
    found = list(evaluate([(i, lines) for lines in without for i in range(n_scans)]))
    groups = [found[i : i + n_scans] for i in range(0, len(found), n_scans)]
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
        reconstructions=state.reconstructions + len(found) + len(last),
        unconverged=state.unconverged + _missed(found) + _missed(last),
    )
    return replace(counted, lines=lines, error=error) if accepted else counted


def _least_important(lines: Sequence[int], importance: Mapping[int, float], n_lines: int) -> list[int]:
    def rank(line: int) -> tuple[bool, float, int]:
        known = line in importance
        return not known, importance[line] if known else -abs(line - n_lines // 2), line

    return sorted(lines, key=rank)


def _error(outcomes: Sequence[Outcome]) -> float:
    return float(np.mean([outcome.error for outcome in outcomes]))


def _missed(outcomes: Sequence[Outcome]) -> int:
    return sum(not outcome.converged for outcome in outcomes)
