"""The sequential design loop: infer, ask the strategy, acquire, repeat."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mri_design.design.candidate import LineCandidates
from mri_design.design.constraints import LineConstraints
from mri_design.design.strategy import Choice, DesignView, Strategy
from mri_design.design.trace import DesignStep, DesignTrace
from mri_design.design.unseen import with_unseen_lines
from mri_design.errors import InputError, require_counts
from mri_design.inference import DoubleLoop, StepInfo, WarmStart
from mri_design.model import GaussianPosterior, MRSlice

__all__ = ["DesignEngine", "DesignState", "Mapping", "SliceInference", "StopRule", "infer_slice"]

StopRule = Callable[[DesignStep], bool]
"""Sees the next decision, with what is predicted for the lines so far; True ends the design without it."""


@dataclass(frozen=True)
class SliceInference:
    """What inference of one slice needs, on its own: it may travel to another process.

    Parameters
    ----------
    one : MRSlice
        The slice.
    lines : tuple of int
        Lines so far.
    signal : float
        Signal level.
    warm : WarmStart, optional
        Where to start from.
    inference : DoubleLoop
        Who infers.
    noise : tuple of int
        Seed of the variances.
    """

    one: MRSlice
    lines: tuple[int, ...]
    signal: float
    warm: WarmStart | None
    inference: DoubleLoop
    noise: tuple[int, ...]


def infer_slice(job: SliceInference) -> tuple[GaussianPosterior, bool]:
    """The posterior, and whether its last loop converged."""
    loops: list[StepInfo] = []
    model = job.one.model(job.lines, job.signal)
    rng = np.random.default_rng(job.noise)
    posterior = job.inference.infer(model, rng, warm_start=job.warm, callback=loops.append)
    return posterior, loops[-1].inner.converged and loops[-1].variances.converged


Mapping = Callable[
    [Callable[[SliceInference], tuple[GaussianPosterior, bool]], Iterable[SliceInference]],
    Iterable[tuple[GaussianPosterior, bool]],
]
"""Like the built-in ``map``: one function over many slices, results in their order, here or in other processes."""


@dataclass(frozen=True)
class DesignState:
    """Everything a later process needs to go on: what was decided, and where inference stood.

    Parameters
    ----------
    trace : DesignTrace
        Lines and steps so far.
    signals : tuple of float
        Signal level of each slice, fixed at the start.
    warm : tuple of WarmStart
        Per slice; empty before the first inference.
    """

    trace: DesignTrace
    signals: tuple[float, ...]
    warm: tuple[WarmStart, ...] = ()


@dataclass(frozen=True)
class DesignEngine:
    """Settings of a sequential design over one or several slices that share one mask.

    Parameters
    ----------
    strategy : Strategy
        Who decides.
    inference : DoubleLoop
        Who infers.
    first_loops, step_loops : int
        Outer loops at the start and after each line; the warm start makes one enough to choose a line.
    seed : int
        Each step and slice has a generator of its own made from it, so a resumed design is the same design.
    block : int
        Lines that are chosen after each inference and then measured together (echo trains).
    constraints : LineConstraints
        What the sequence asks of the lines, those of the start included.

    Raises
    ------
    InputError
        For a block of no line.
    """

    strategy: Strategy
    inference: DoubleLoop = field(default_factory=DoubleLoop)
    first_loops: int = 3
    step_loops: int = 1
    seed: int = 0
    block: int = 1
    constraints: LineConstraints = field(default_factory=LineConstraints)

    def __post_init__(self) -> None:
        require_counts(block=self.block, least=1)

    def begin(self, slices: Sequence[MRSlice], start: Sequence[int]) -> DesignState:
        """The state before the first decision.

        Raises
        ------
        InputError
            For no slice, or slices on different grids.
        """
        if not slices:
            raise InputError(field="slices", got="none", wanted="at least one")
        if len({s.shape for s in slices}) > 1:
            raise InputError(
                field="slices",
                got=f"grids {sorted({s.shape for s in slices})}",
                wanted="one grid for a shared mask",
            )
        signals = tuple(s.signal_level(start) for s in slices)
        return DesignState(DesignTrace(self.strategy.name, slices[0].shape[0], tuple(start)), signals)

    def run(
        self,
        slices: Sequence[MRSlice],
        state: DesignState,
        target: int,
        callback: Callable[[DesignState], None] | None = None,
        stop: StopRule | None = None,
        mapping: Mapping = map,
    ) -> DesignState:
        """Add lines until there are ``target``, or until a rule says that it is enough.

        Parameters
        ----------
        slices : sequence of MRSlice
            Fully sampled, or at least with data in enough lines: each decided line is looked up in them.
        state : DesignState
            From `begin`, or from an interrupted run.
        target : int
            Lines in the end, those of the start included.
        callback : callable, optional
            Sees the state after every measurement (of a block of lines).
        stop : callable, optional
            Asked once per inference, about its first decision; the one at which it ended is the trace's ``declined``.
        mapping : callable
            Runs `infer_slice` over the slices; the design does not depend on how.

        Raises
        ------
        InputError
            Where there are not that many lines, or those so far break the constraints.
        """
        measurable = np.logical_and.reduce([s.measured for s in slices])
        candidates = LineCandidates(measurable, state.trace.lines, target, len(state.trace.start), self.constraints)
        while len(candidates.acquired) < target:
            steps, posteriors = self._decide(slices, state, candidates, mapping)
            if stop is not None and stop(steps[0]):
                return replace(state, trace=replace(state.trace, declined=steps[0]))
            for step in steps:
                candidates = candidates.after(step.line)
            state = DesignState(
                replace(state.trace, steps=(*state.trace.steps, *steps)),
                state.signals,
                tuple(WarmStart.from_posterior(p) for p in posteriors),
            )
            if callback is not None:
                callback(state)
        return state

    def _decide(
        self, slices: Sequence[MRSlice], state: DesignState, candidates: LineCandidates, mapping: Mapping
    ) -> tuple[list[DesignStep], list[GaussianPosterior]]:
        """The next block of lines, and the posteriors behind it."""
        began = time.perf_counter()
        posteriors, matvecs, converged = self._infer(slices, state, candidates, mapping)
        known, steps = posteriors, list[DesignStep]()
        for pending in range(min(self.block, candidates.target - len(candidates.acquired))):
            if pending:
                known = [self._expecting(p, candidates.acquired, i) for i, p in enumerate(known)]
                matvecs = sum(p.marginals.convergence.matvecs for p in known)
                converged = all(p.marginals.convergence.converged for p in known)
            number = len(state.trace.steps) + pending
            view = DesignView(candidates, known, (*state.trace.steps, *steps), pending)
            choice = self.strategy.choose(view, self._rng(number, len(slices)))
            spent = (converged, matvecs, time.perf_counter() - began)
            steps.append(_record(slices, posteriors, choice, steps[:1], pending, *spent))
            candidates = candidates.after(choice.line)
            began = time.perf_counter()
        return steps, posteriors

    def _infer(
        self, slices: Sequence[MRSlice], state: DesignState, candidates: LineCandidates, mapping: Mapping
    ) -> tuple[list[GaussianPosterior], int, bool]:
        """One posterior per slice from the lines so far, the products with A they took, and whether they converged."""
        if not self.strategy.needs_posterior:
            return [], 0, True
        inference = replace(self.inference, outer_iterations=self.step_loops if state.warm else self.first_loops)
        jobs = [
            SliceInference(
                one, candidates.acquired, signal, state.warm[i] if state.warm else None, inference, (self.seed, i)
            )
            for i, (one, signal) in enumerate(zip(slices, state.signals, strict=True))
        ]
        found = list(mapping(infer_slice, jobs))
        posteriors, converged = [posterior for posterior, _ in found], all(done for _, done in found)
        return posteriors, sum(p.convergence.matvecs for p in posteriors), converged

    def _expecting(self, posterior: GaussianPosterior, lines: Sequence[int], index: int) -> GaussianPosterior:
        return with_unseen_lines(posterior, lines, self.inference.variances, self._noise(index))

    def _noise(self, index: int) -> np.random.Generator:
        # The same noise in every step: draws change little, and the last step's are where the next ones start.
        return np.random.default_rng([self.seed, index])

    def _rng(self, step: int, stream: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, step, stream])


def innovation(one: MRSlice, posterior: GaussianPosterior, line: int) -> float:
    """Energy of y - X_* mean on one line, noise included."""
    return float(np.sum(np.abs(one.acquire([line]) - one.encoding([line])(posterior.mean)) ** 2))


def _record(
    slices: Sequence[MRSlice],
    posteriors: Sequence[GaussianPosterior],
    choice: Choice,
    first: Sequence[DesignStep],
    pending: int,
    converged: bool,
    matvecs: int,
    seconds: float,
) -> DesignStep:
    """What is kept of a decision; its line is looked up in the slices."""
    predicted, actual, energy = np.nan, np.nan, np.nan
    if posteriors and choice.expected is not None:
        # The mean is that of the block's start, and so is what was expected of it.
        expected = choice.expected if not first or first[0].expected is None else first[0].expected
        noise = sum(s.noise_variance * s.encoding([choice.line]).out_size for s in slices)
        predicted = float(expected[choice.line] + noise)
        actual = sum(innovation(s, p, choice.line) for s, p in zip(slices, posteriors, strict=True))
        energy = float(sum(np.sum(np.abs(p.mean) ** 2, dtype=np.float64) for p in posteriors))
    return DesignStep(
        choice.line,
        choice.scores,
        predicted,
        actual,
        converged,
        matvecs,
        seconds,
        choice.expected,
        choice.corrected,
        energy,
        pending,
    )
