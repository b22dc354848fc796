"""The sequential design loop: infer, ask the strategy, acquire, repeat."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.design.candidate import LineCandidates
from mri_design.design.strategy import Strategy
from mri_design.design.trace import DesignStep, DesignTrace
from mri_design.errors import InputError
from mri_design.inference import DoubleLoop, StepInfo, WarmStart
from mri_design.model import GaussianPosterior, MRSlice

__all__ = ["DesignEngine", "DesignState"]


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
    """

    strategy: Strategy
    inference: DoubleLoop = field(default_factory=DoubleLoop)
    first_loops: int = 3
    step_loops: int = 1
    seed: int = 0

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
    ) -> DesignState:
        """Add lines until there are ``target``; ``callback`` sees the state after every line.

        Parameters
        ----------
        slices : sequence of MRSlice
            Fully sampled, or at least with data in enough lines: each decided line is looked up in them.
        state : DesignState
            From `begin`, or from an interrupted run.
        target : int
            Lines in the end, those of the start included.

        Raises
        ------
        InputError
            Where there are not that many lines.
        """
        measurable = np.logical_and.reduce([s.measured for s in slices])
        candidates = LineCandidates(measurable, state.trace.lines, target, len(state.trace.start))
        while len(candidates.acquired) < target:
            state = self._step(slices, state, candidates)
            candidates = candidates.after(state.trace.lines[-1])
            if callback is not None:
                callback(state)
        return state

    def _step(self, slices: Sequence[MRSlice], state: DesignState, candidates: LineCandidates) -> DesignState:
        began = time.perf_counter()
        number = len(state.trace.steps)
        posteriors: list[GaussianPosterior] = []
        matvecs, converged = 0, True
        if self.strategy.needs_posterior:
            inference = replace(self.inference, outer_iterations=self.step_loops if state.warm else self.first_loops)
            for i, (one, signal) in enumerate(zip(slices, state.signals, strict=True)):
                model = one.model(candidates.acquired, signal)
                warm = state.warm[i] if state.warm else None
                loops: list[StepInfo] = []
                # The same noise in every step: draws change little, and the last step's are where the next ones start.
                noise = np.random.default_rng([self.seed, i])
                posterior = inference.infer(model, noise, warm_start=warm, callback=loops.append)
                posteriors.append(posterior)
                matvecs += posterior.convergence.matvecs
                converged &= loops[-1].inner.converged and loops[-1].variances.converged
        choice = self.strategy.choose(posteriors, candidates, self._rng(number, len(slices)))
        predicted, actual = np.nan, np.nan
        if posteriors:
            rng = self._rng(number, len(slices) + 1)
            energies = [_innovation(s, p, choice.line, rng) for s, p in zip(slices, posteriors, strict=True)]
            predicted, actual = np.sum(energies, axis=0)
        step = DesignStep(
            choice.line,
            choice.scores,
            float(predicted),
            float(actual),
            converged,
            matvecs,
            time.perf_counter() - began,
        )
        return DesignState(
            replace(state.trace, steps=(*state.trace.steps, step)),
            state.signals,
            tuple(WarmStart.from_posterior(p) for p in posteriors),
        )

    def _rng(self, step: int, stream: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, step, stream])


def _innovation(one: MRSlice, posterior: GaussianPosterior, line: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Expected and actual energy of y - X_* mean on one line, noise included."""
    x_new = one.encoding([line])
    noise = posterior.model.noise_variance
    draws = posterior.marginals.samples
    spread = x_new(posterior.draw(rng, 8)[0] if draws is None else draws)
    expected = noise * (np.sum(np.mean(np.abs(spread) ** 2, axis=0)) + x_new.out_size)
    found = np.sum(np.abs(one.acquire([line]) - x_new(posterior.mean)) ** 2)
    return np.array([expected, found], dtype=float)
