"""Masks that are learnt from scans whose truth is known: on them it can be tried out which line should come next.

Two rules learn an order. Residual-greedy takes the line, or the block of samples of a plane, on and around which the
reconstructions are most wrong on average: one reconstruction per scan and step. LBCS (Gozcu et al., Learning-based
compressive MRI, IEEE TMI 2018, algorithm 1) tries every line and takes the one that leaves the least mean error; its
stochastic form (Sanchez et al., Scalable learning-based sampling optimization for compressive dynamic MRI, ICASSP 2020)
tries some lines on some scans at each step.

Exchanges improve the design of a protocol at its end. A scan cannot take back what it has measured; a protocol that is
still being designed on replayed scans can. One exchange drops the line whose loss raises the error least, adds the one
on which the reconstructions without it are most wrong, and is kept only if the mean error over the training scans has
fallen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from mri_design.design.fixed import SHARE, first_disc
from mri_design.design.greedy import covering, plane_of, thinned
from mri_design.design.strategy import ChoosesBlocks, DesignView, LineCandidates, best_line
from mri_design.design.trace import Choice, DesignStep, DesignTrace
from mri_design.design.trials import Evaluate, Outcome, ReferenceSlice, TrainingResidual, Trial, shared_lines
from mri_design.errors import InputError, option, require_counts
from mri_design.readouts import Constraints, LineConstraints, Readouts
from mri_design.status import Status


@dataclass(frozen=True, kw_only=True)
class TrainedDesign:
    """An order of lines, or of samples of a plane, with the residuals that training scans had along it.

    Parameters
    ----------
    grid : tuple of int
        (ky, kx) of the training scans, or (ky, kz) of the plane.
    lines : tuple of int
        In acquisition order, the start first.
    n_start : int
        Lines before the first decision.
    profile : float array, shape (rows, ky), or (rows, ky * kz) of a plane
        Mean residual energy of every line, in units of the image's energy, when n_start, n_start + 1, ... lines were
        measured; the last row is that of all lines.
    errors : float array, shape (rows,)
        Mean relative L2 error at the same times.
    rule : str
        What decided.
    reconstructions, unconverged : int
        How many it took, and how many of these did not converge.
    training : tuple of str
        Names of the training images.
    counts : tuple of int
        Samples of a plane that were measured at each row of ``profile``; empty for lines.
    settings : mapping
        Checksums of the input files, reconstruction, and everything else that the order depends on.

    Raises
    ------
    InputError
        Where these disagree with one another, or a residual is not a finite number of zero or more.
    """

    grid: tuple[int, int]
    lines: tuple[int, ...]
    n_start: int
    profile: NDArray[np.float64]
    errors: NDArray[np.float64]
    rule: str
    reconstructions: int = 0
    unconverged: int = 0
    training: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n, rows, last = math.prod(self.shape), len(self.stages), len(self.lines)
        different = len(set(self.lines)) == last and all(0 <= line < n for line in self.lines)
        shapes, fitting = (self.profile.shape, self.errors.shape), ((rows, n), (rows,))
        ascending = list(self.stages) == sorted({self.n_start, *self.stages, last})
        for name, got, fine, wanted in (
            ("lines", self.lines, different, f"different lines, 0 to {n - 1}"),
            ("start lines", self.n_start, 1 <= self.n_start <= last, f"1 to {last}"),
            ("profile", f"shapes {shapes}", shapes == fitting, str(fitting)),
            ("counts", self.counts, ascending, f"ascending numbers from {self.n_start} to {last}"),
            ("profile", "other values", (self.profile >= 0).all() and np.isfinite(self.profile).all(), "zero or more"),
            ("errors", "other values", (self.errors >= 0).all() and np.isfinite(self.errors).all(), "zero or more"),
        ):
            if not fine:
                raise InputError(f"trained design: {name}", str(got), wanted)

    @property
    def status(self) -> str:
        """ "converged", or how many reconstructions did not."""
        said = f"{self.unconverged} of {self.reconstructions} reconstructions not converged"
        return said if self.unconverged else Status.CONVERGED.value

    @property
    def shape(self) -> tuple[int, ...]:
        """(ky,) where lines were chosen, (ky, kz) where samples of a plane were."""
        return self.grid if self.counts else self.grid[:1]

    @property
    def stages(self) -> Sequence[int]:
        """How many were measured at each row of ``profile``."""
        return self.counts or range(self.n_start, len(self.lines) + 1)

    def require_grid(self, shape: tuple[int, ...]) -> None:
        """Refuse a scan with other candidates: lines (ky,), or samples (ky, kz).

        Raises
        ------
        InputError
            Naming both.
        """
        if shape != self.shape:
            learnt, there = (
                f"{of[0]} phase-encode lines" if len(of) == 1 else f"a plane of {of[0]} x {of[1]}"
                for of in (self.shape, shape)
            )
            cure = "Train on scans of the same matrix size."
            wanted = "the scan's own grid"
            cure = f"Take {option('design.encoding', 'plane')}." if self.counts and len(shape) == 1 else cure
            raise InputError("trained design", f"an order of {learnt} for a scan with {there}", wanted, cure)

    def residuals(self, history: Sequence[tuple[int, ...]]) -> list[NDArray[np.float64]]:
        """Errors of the training scans on every line over their images' energy, (ky,), at each moment of a design.

        Scans of one kind have their energy in the same places, so their errors lie in the same places too: this is side
        information for another scan (`Calibrated`). The order of lines is not used.

        Parameters
        ----------
        history : sequence of tuples of int
            The lines measured at each moment, of which the number counts.
        """
        return [self.residual(len(lines)) for lines in history]

    def residual(self, n_acquired: int) -> NDArray[np.float64]:
        """Residual of every line, were it not measured, when ``n_acquired`` are, (ky,); of samples (ky * kz,).

        A line that training had measured by then has the residual that it had before, but no more than the largest
        of those that were left.
        """
        stages = np.array(self.stages)
        row = max(int(np.searchsorted(stages, n_acquired, "right")) - 1, 0)
        values = self.profile[row].copy()
        measured = np.array(self.lines[: stages[row]])
        left = np.ones(len(values), dtype=bool)
        left[measured] = False
        most = values[left].max() if left.any() else np.inf
        values[measured[: self.n_start]] = min(most, self.profile[0].max())
        later = measured[self.n_start :]
        before = np.searchsorted(stages, np.arange(self.n_start, len(measured)), "right") - 1
        values[later] = np.minimum(most, self.profile[before, later])
        return values


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


TrainingRule = TrainingResidual | LBCS
"""Its scores are larger for better candidates, and NaN for those not tried, from the mean residual so far, (size,)."""


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
        Reconstructs and judges trials.
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
    constraints: Constraints = field(default_factory=LineConstraints)
    block: int = 1


def begin_training(training: OrderTraining, start: Sequence[int]) -> TrainedDesign:
    """The start lines, and the errors that reconstructions from them have.

    Raises
    ------
    InputError
        For no scan, scans on different grids, a target that cannot be reached, or constraints that the start breaks.
    """
    candidates = _candidates(training, tuple(start), len(start))  # refuses what is impossible
    outcomes = list(training.evaluate([(i, tuple(start)) for i in range(len(training.scans))]))
    residual, error, _ = _means(outcomes)
    return TrainedDesign(
        grid=training.scans[0].slice_model.shape,
        lines=tuple(start),
        n_start=len(start),
        profile=residual[None],
        errors=np.array([error]),
        rule=training.rule.name,
        reconstructions=len(outcomes),
        unconverged=_unconverged(outcomes),
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
            _, _, removed = _means(list(training.evaluate([(i, candidates.acquired) for i in range(n_scans)])))
        candidates = candidates.after(*_chosen(scores, candidates, removed, training, rng))
        residual, error, removed = _means(noted([(i, candidates.acquired) for i in range(n_scans)]))
        design = replace(
            design,
            lines=candidates.acquired,
            profile=np.concatenate([design.profile, residual[None]]),
            errors=np.append(design.errors, error),
            reconstructions=design.reconstructions + len(outcomes),
            unconverged=design.unconverged + _unconverged(outcomes),
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
    plane, measured = plane_of(candidates.readouts), len(candidates.acquired)
    count = min(training.block, training.target - measured)
    if min(scan.slice_model.n_coils for scan in training.scans) == 1:
        return thinned(np.where(candidates.remaining, scores, np.nan), removed, plane, count)
    if (disc := round(SHARE * training.target) - measured) > 0:
        return [choice.line for choice in first_disc(candidates, rng, disc)]
    return covering(np.where(candidates.mask, 0.0, scores), removed, plane, candidates.remaining, count)[0]


def _means(outcomes: Sequence[Outcome]) -> tuple[NDArray[np.float64], float, NDArray[np.float64] | None]:
    """Means over the scans with one set of lines: residual, error, and what a sample removes of another's error."""
    residual = np.asarray(np.mean([outcome.residual for outcome in outcomes], axis=0))
    shares = [outcome.removed for outcome in outcomes if outcome.removed is not None]
    return residual, _error(outcomes), np.asarray(scipy.fft.fftshift(np.mean(shares, axis=0))) if shares else None


def _error(outcomes: Sequence[Outcome]) -> float:
    return float(np.mean([outcome.error for outcome in outcomes]))


def _unconverged(outcomes: Sequence[Outcome]) -> int:
    return sum(not outcome.converged for outcome in outcomes)


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
    """

    keep: Sequence[int] = ()
    allowed: NDArray[np.bool_] | None = None
    importance: Mapping[int, float] = field(default_factory=dict)
    shortlist: int = 6


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
        Reconstructs and judges trials.
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
    measurable = shared_lines(scans)
    incoming = measurable if rules.allowed is None else measurable & rules.allowed
    every = range(len(scans))

    def rank(line: int) -> tuple[bool, float, int]:
        known = line in rules.importance
        return not known, rules.importance[line] if known else -abs(line - len(measurable) // 2), line

    while len(state.exchanges) < attempts:
        settled = {*rules.keep, *state.settled}
        movable = [line for line in state.lines if line not in settled]
        free = incoming.copy()
        free[list(state.lines)] = False
        if not movable or not free.any():
            return state
        shortlist = sorted(movable, key=rank)[: rules.shortlist]
        without = [tuple(line for line in state.lines if line != dropped) for dropped in shortlist]
        outcomes = list(evaluate([(i, lines) for lines in without for i in every]))
        groups = [outcomes[i : i + len(scans)] for i in range(0, len(outcomes), len(scans))]
        least = int(np.argmin([_error(group) for group in groups]))
        residual = np.mean([outcome.residual for outcome in groups[least]], axis=0)
        added = int(np.argmax(np.where(free, residual, -np.inf)))
        last = list(evaluate([(i, (*without[least], added)) for i in every]))
        error = _error(last)
        accepted = error < state.error
        state = replace(
            state,
            exchanges=(*state.exchanges, Exchange(shortlist[least], added, error, accepted)),
            reconstructions=state.reconstructions + len(outcomes) + len(last),
            unconverged=state.unconverged + _unconverged(outcomes) + _unconverged(last),
        )
        if accepted:
            state = replace(state, lines=(*without[least], added), error=error)
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


@dataclass(frozen=True, kw_only=True)
class TrainedOrder(ChoosesBlocks):
    """The learnt order of lines, or of samples of a plane, as training left it.

    Those that may not be measured are passed over. Where the order has come to its end, those with the largest
    residuals that training left are next.

    Parameters
    ----------
    design : TrainedDesign
        What training wrote.

    Raises
    ------
    InputError
        Where it is of another grid than the scan, once it is to choose.
    """

    design: TrainedDesign
    name: str = "trained"
    needs_posterior = False

    def default_start(self, readouts: Readouts, target: int, n_coils: int = 1) -> int:
        """The number of candidates around DC that training began with."""
        self.design.require_grid(readouts.shape)
        return min(target, self.design.n_start)

    def choose_block(self, view: DesignView, rng: np.random.Generator, count: int) -> Sequence[Choice]:
        """The first ``count`` of the order that are left."""
        self.design.require_grid(view.readouts.shape)
        left = view.candidates.remaining.copy()
        chosen = [line for line in self.design.lines if left[line]][:count]
        left[chosen] = False
        more = np.argsort(-np.where(left, self.design.profile[-1], -np.inf), kind="stable")[: count - len(chosen)]
        return [Choice(line) for line in (*chosen, *more.tolist())]
