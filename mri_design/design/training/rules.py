"""Orders learnt from scans whose truth is known: on them it can be tried out which line should come next.

Two rules. Residual-greedy takes the line, or the block of samples of a plane, on and around which the reconstructions
are most wrong on average: one reconstruction per scan and step. LBCS (Gozcu et al., Learning-based compressive MRI,
IEEE TMI 2018, algorithm 1) tries every line and takes the one that leaves the least mean error; its stochastic form
(Sanchez et al., Scalable learning-based sampling optimization for compressive dynamic MRI, ICASSP 2020) tries some
lines on some scans at each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Protocol

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from mri_design.design.blocks import covering, thinned
from mri_design.design.candidate import LineCandidates
from mri_design.design.constraints import Constraints, LineConstraints
from mri_design.design.neighbourhood import require_weights, unmeasured_around
from mri_design.design.poisson_disc import SHARE, first_disc
from mri_design.design.strategy import best_line
from mri_design.design.trained_design import TrainedDesign
from mri_design.design.trials import Evaluate, Outcome, ReferenceSlice, Trial, shared_lines
from mri_design.errors import require_counts, require_numbers
from mri_design.readouts import PlaneReadouts

NOTHING = LineConstraints()
"""No constraints."""


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
        """``residual``, (size,), is the mean over the scans with the lines so far."""
        ...


@dataclass(frozen=True)
class ResidualGreedy:
    """The candidate on and around which the residual energy is largest: no reconstruction beyond those so far.

    Parameters
    ----------
    neighbours : sequence of float
        Weights of the lines at distance 1, 2, ... on either side, relative to the line itself; other subjects have
        their details on lines nearby.
    reach : float
        In a plane, standard deviation of the Gaussian window, in samples; 0 takes every sample for itself.

    Raises
    ------
    InputError
        For weights that are not numbers between 0 and 1, and a reach that is not a number of zero or more.
    """

    neighbours: tuple[float, ...] = (0.25,)
    reach: float = 2.0
    name: str = "residual-greedy"

    def __post_init__(self) -> None:
        require_weights(self.neighbours)
        require_numbers(reach=self.reach)

    def scores(
        self,
        candidates: LineCandidates,
        residual: NDArray[np.float64],
        n_scans: int,
        evaluate: Evaluate,
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """The mean residual around a candidate."""
        return unmeasured_around(residual, candidates, self.neighbours, self.reach)


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


@dataclass(frozen=True)
class OrderTraining:
    """Training scans, the rule that learns an order of lines from them, and its settings.

    Parameters
    ----------
    scans : sequence of ReferenceSlice
        On one grid.
    rule : TrainingRule
        Decides which line comes next.
    target : int
        Lines in the end.
    evaluate : callable
        Reconstructs and judges trials, see `replayed`.
    seed : int
        Each step has a generator of its own made from it.
    constraints : Constraints
        What the sequence asks of the lines.
    block : int
        Samples of a plane that are added after each look at the reconstructions; lines are added one by one.
    """

    scans: Sequence[ReferenceSlice]
    rule: TrainingRule
    target: int
    evaluate: Evaluate
    _: KW_ONLY
    seed: int = 0
    constraints: Constraints = NOTHING
    block: int = 1


def begin_training(training: OrderTraining, start: Sequence[int]) -> TrainedDesign:
    """The start lines, and the errors that reconstructions from them have.

    Raises
    ------
    InputError
        For no scan, scans on different grids, a target that cannot be reached, or constraints that the start breaks.
    """
    candidates = _candidates(training, tuple(start), len(start))  # refuses what is impossible
    seen = _looked(list(training.evaluate([(i, tuple(start)) for i in range(len(training.scans))])))
    return TrainedDesign(
        grid=training.scans[0].slice_model.shape,
        lines=tuple(start),
        n_start=len(start),
        profile=seen.residual[None],
        errors=np.array([seen.error]),
        rule=training.rule.name,
        reconstructions=seen.count,
        unconverged=seen.unconverged,
        training=tuple(scan.name for scan in training.scans),
        counts=(len(start),) if candidates.readouts.thinned else (),
    )


def train(
    training: OrderTraining, design: TrainedDesign, callback: Callable[[TrainedDesign], None] | None = None
) -> TrainedDesign:
    """Add lines, or blocks of samples, until there are as many as the training's target.

    Parameters
    ----------
    training : OrderTraining
        Scans, rule and target.
    design : TrainedDesign
        From `begin_training`, or of an interrupted run: the order is the same.
    callback : callable, optional
        Sees the design after every line or block.

    Raises
    ------
    InputError
        As `begin_training`.
    """
    candidates = _candidates(training, design.lines, design.n_start)
    n_scans = len(training.scans)
    removed = None
    while len(candidates.acquired) < training.target:
        outcomes: list[Outcome] = []

        def noted(trials: Sequence[Trial], outcomes: list[Outcome] = outcomes) -> list[Outcome]:
            these = list(training.evaluate(trials))
            outcomes.extend(these)
            return these

        rng = np.random.default_rng([training.seed, len(candidates.acquired)])
        scores = training.rule.scores(candidates, design.profile[-1], n_scans, noted, rng)
        if candidates.readouts.thinned and removed is None:  # the design does not hold it: begun, or gone on with
            removed = _looked(list(training.evaluate([(i, candidates.acquired) for i in range(n_scans)]))).removed
        candidates = candidates.after(*_chosen(scores, candidates, removed, training, rng))
        seen = _looked(noted([(i, candidates.acquired) for i in range(n_scans)]))
        removed = seen.removed
        design = replace(
            design,
            lines=candidates.acquired,
            profile=np.concatenate([design.profile, seen.residual[None]]),
            errors=np.append(design.errors, seen.error),
            reconstructions=design.reconstructions + len(outcomes),
            unconverged=design.unconverged + sum(not outcome.converged for outcome in outcomes),
            counts=design.counts and (*design.counts, len(candidates.acquired)),
        )
        if callback is not None:
            callback(design)
    return design


def _candidates(training: OrderTraining, lines: tuple[int, ...], n_start: int) -> LineCandidates:
    measurable, readouts = shared_lines(training.scans), training.scans[0].slice_model.candidates
    return LineCandidates(measurable, lines, training.target, n_start, training.constraints, readouts)


def _chosen(
    scores: NDArray[np.float64],
    candidates: LineCandidates,
    removed: NDArray[np.float64] | None,
    training: OrderTraining,
    rng: np.random.Generator,
) -> list[int]:
    """The best line; or a block of samples, by what the measurement of one removes of another's error.

    With one coil they are thinned. With several the first part is a Poisson disc, and the others are `covering`.
    """
    if removed is None:
        return [best_line(scores, candidates).line]
    plane, measured = candidates.readouts, len(candidates.acquired)
    assert isinstance(plane, PlaneReadouts)
    count = min(training.block, training.target - measured)
    if min(scan.slice_model.n_coils for scan in training.scans) == 1:
        return thinned(np.where(candidates.remaining, scores, np.nan), removed, plane, count)
    if (disc := round(SHARE * training.target) - measured) > 0:
        return [choice.line for choice in first_disc(candidates, rng, disc)]
    return covering(np.where(candidates.mask, 0.0, scores), removed, plane, candidates.remaining, count)[0]


@dataclass(frozen=True)
class _Look:
    """Means over the scans with one set of lines."""

    residual: NDArray[np.float64]
    error: float
    count: int
    unconverged: int
    removed: NDArray[np.float64] | None


def _looked(outcomes: Sequence[Outcome]) -> _Look:
    residual = np.asarray(np.mean([outcome.residual for outcome in outcomes], axis=0))
    error = float(np.mean([outcome.error for outcome in outcomes]))
    shares = [outcome.removed for outcome in outcomes if outcome.removed is not None]
    removed = np.asarray(scipy.fft.fftshift(np.mean(shares, axis=0))) if shares else None
    return _Look(residual, error, len(outcomes), sum(not outcome.converged for outcome in outcomes), removed)
