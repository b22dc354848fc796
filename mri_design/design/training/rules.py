"""Line orders learnt from scans whose truth is known: what is measured next is tried out on them.

Two rules. Residual-greedy takes the line on which the reconstructions are most wrong on average: one reconstruction
per scan and step. LBCS (Gozcu et al., Learning-based compressive MRI, IEEE TMI 2018, algorithm 1) tries every line
and takes the one that leaves the least mean error; its stochastic form (Sanchez et al., Scalable learning-based
sampling optimization for compressive dynamic MRI, ICASSP 2020) tries some lines on some scans at each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mri_design.design.candidate import LineCandidates
from mri_design.design.constraints import LineConstraints
from mri_design.design.strategy import best_line
from mri_design.design.trained_design import TrainedDesign
from mri_design.design.trials import Evaluate, Outcome, ReferenceSlice, Trial, shared_lines
from mri_design.errors import require_counts

__all__ = ["LBCS", "ResidualGreedy", "TrainingRule", "begin_training", "train"]

NOTHING = LineConstraints()
"""Nothing is asked of the lines."""


class TrainingRule(Protocol):
    """Scores of the candidates: larger is better, NaN where not tried."""

    @property
    def name(self) -> str: ...

    def scores(
        self,
        candidates: LineCandidates,
        residual: NDArray[np.float64],
        n_scans: int,
        evaluate: Evaluate,
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """``residual`` (ky,) is the mean over the scans with the lines so far."""
        ...


@dataclass(frozen=True)
class ResidualGreedy:
    """The line with the largest mean residual energy: no reconstruction beyond those of the lines so far."""

    name: str = "residual-greedy"

    def scores(
        self,
        candidates: LineCandidates,
        residual: NDArray[np.float64],
        n_scans: int,
        evaluate: Evaluate,
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """The mean residual."""
        return residual


@dataclass(frozen=True)
class LBCS:
    """The line after which the mean error over the scans is least: one reconstruction per line and scan tried.

    Parameters
    ----------
    candidates : int or None
        Lines to try at each step, drawn anew; None tries all.
    scans : int or None
        Scans to try them on, drawn anew; None takes all.
    """

    candidates: int | None = None
    scans: int | None = None
    name: str = "lbcs"

    def __post_init__(self) -> None:
        given = {"candidates": self.candidates, "scans": self.scans}
        require_counts(least=1, **{name: value for name, value in given.items() if value is not None})

    def scores(
        self,
        candidates: LineCandidates,
        residual: NDArray[np.float64],
        n_scans: int,
        evaluate: Evaluate,
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """Minus the mean error with each line added."""
        tried = _some(np.flatnonzero(candidates.remaining), self.candidates, rng)
        scans = _some(np.arange(n_scans), self.scans, rng)
        trials = [(int(scan), (*candidates.acquired, int(line))) for line in tried for scan in scans]
        errors = np.array([outcome.error for outcome in evaluate(trials)]).reshape(len(tried), len(scans))
        scores = np.full(candidates.n_lines, np.nan)
        scores[tried] = -errors.mean(axis=1)
        return scores


def _some(items: NDArray[np.int_], count: int | None, rng: np.random.Generator) -> NDArray[np.int_]:
    """``count`` of the items in their order; all where there are not more."""
    if count is None or count >= len(items):
        return items
    return np.sort(rng.choice(items, count, replace=False))


def begin_training(
    scans: Sequence[ReferenceSlice],
    rule: TrainingRule,
    start: Sequence[int],
    target: int,
    evaluate: Evaluate,
    constraints: LineConstraints = NOTHING,
) -> TrainedDesign:
    """The start lines, and what they leave; parameters as for `train`.

    Raises
    ------
    InputError
        For no scan, scans on different grids, a target that cannot be reached, or constraints that the start breaks.
    """
    LineCandidates(shared_lines(scans), tuple(start), target, len(start), constraints)  # refuses what is impossible
    seen = _looked(list(evaluate([(i, tuple(start)) for i in range(len(scans))])))
    names = tuple(scan.name for scan in scans)
    return TrainedDesign(
        scans[0].one.shape, tuple(start), len(start), seen.residual[None], np.array([seen.error]), rule.name,
        seen.count, seen.unconverged, names,
    )  # fmt: skip


def train(
    scans: Sequence[ReferenceSlice],
    rule: TrainingRule,
    design: TrainedDesign,
    target: int,
    evaluate: Evaluate,
    *,
    seed: int = 0,
    constraints: LineConstraints = NOTHING,
    callback: Callable[[TrainedDesign], None] | None = None,
) -> TrainedDesign:
    """Add lines until there are ``target``.

    Parameters
    ----------
    scans : sequence of ReferenceSlice
        On one grid.
    rule : TrainingRule
        Who decides.
    design : TrainedDesign
        From `begin_training`, or of an interrupted run: the order is the same.
    target : int
        Lines in the end.
    evaluate : callable
        Looks at trials, see `replayed`.
    seed : int
        Each step has a generator of its own made from it.
    constraints : LineConstraints
        What the sequence asks of the lines.
    callback : callable, optional
        Sees the design after every line.

    Raises
    ------
    InputError
        As `begin_training`.
    """
    candidates = LineCandidates(shared_lines(scans), design.lines, target, design.n_start, constraints)
    while len(candidates.acquired) < target:
        outcomes: list[Outcome] = []

        def noted(trials: Sequence[Trial], outcomes: list[Outcome] = outcomes) -> list[Outcome]:
            found = list(evaluate(trials))
            outcomes.extend(found)
            return found

        rng = np.random.default_rng([seed, len(candidates.acquired)])
        scores = rule.scores(candidates, design.profile[-1], len(scans), noted, rng)
        candidates = candidates.after(best_line(scores, candidates).line)
        seen = _looked(noted([(i, candidates.acquired) for i in range(len(scans))]))
        design = replace(
            design,
            lines=candidates.acquired,
            profile=np.concatenate([design.profile, seen.residual[None]]),
            errors=np.append(design.errors, seen.error),
            reconstructions=design.reconstructions + len(outcomes),
            unconverged=design.unconverged + sum(not outcome.converged for outcome in outcomes),
        )
        if callback is not None:
            callback(design)
    return design


@dataclass(frozen=True)
class _Look:
    """Means over the scans with one set of lines."""

    residual: NDArray[np.float64]
    error: float
    count: int
    unconverged: int


def _looked(outcomes: Sequence[Outcome]) -> _Look:
    residual = np.asarray(np.mean([outcome.residual for outcome in outcomes], axis=0))
    error = float(np.mean([outcome.error for outcome in outcomes]))
    return _Look(residual, error, len(outcomes), sum(not outcome.converged for outcome in outcomes))
