"""Active learning: which case of a pool to ask the label of next (Nickisch & Seeger 2009, section 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from mri_design.active_learning.labels.label_pool import LabelPool
from mri_design.active_learning.labels.marginals import PoolMarginals
from mri_design.active_learning.labels.scores import Score, bald, information_gain_of_labels, uncertainty
from mri_design.errors import InputError, require_choice, require_counts, require_instance, require_random
from mri_design.inference.base import InferenceMethod, WarmStart, require_engine
from mri_design.inference.double_loop.loop import DoubleLoop
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.status import Status
from mri_design.variances.base import VarianceEstimator, require_estimator
from mri_design.variances.exact import Exact

RULES = {"uncertainty": uncertainty, "information_gain": information_gain_of_labels, "bald": bald}
FIRST_INFERENCES = 10  # at most, from a cold start; every later block has one


@dataclass(frozen=True)
class PoolState:
    """Everything a design knows; it can be pickled, and goes on from there as if it had never stopped.

    Parameters
    ----------
    pool : LabelPool
        The cases.
    indices, labels : arrays
        Asked so far, in order.
    block_start : int
        How many of them the last inference knew.
    posterior : GaussianPosterior
        Of that inference.
    marginals : PoolMarginals
        With all labels: its ``mean`` is the current u.
    """

    pool: LabelPool
    indices: Array
    labels: Array
    block_start: int
    posterior: GaussianPosterior
    marginals: PoolMarginals

    @property
    def mean(self) -> Array:
        """The weights' posterior mean with every label."""
        return self.marginals.mean

    @property
    def remaining(self) -> Array:
        """Cases without a label."""
        without = np.ones(self.pool.size, dtype=bool)
        without[self.indices] = False
        return np.flatnonzero(without)

    @property
    def warm_start(self) -> WarmStart:
        """Where the next inference starts: the updated mean, and the updated variances as z."""
        made = self.marginals
        floor = np.finfo(np.float32).tiny
        z = (made.variances[self.indices], *made.prior_variances)
        pooled = [z[0], *(b.pooled(v) for b, v in zip(self.pool.prior, z[1:], strict=True))]
        return WarmStart(made.mean, tuple(np.maximum(values, floor) for values in pooled))


@dataclass(frozen=True)
class PoolChoice:
    """The case to ask, and every case's score (-inf where it is labelled, or no candidate in this block)."""

    index: int
    scores: Array


@dataclass(frozen=True)
class PoolDesign:
    """Choose which labels to ask for, one after the other, and infer the weights anew after every block of them.

    Parameters
    ----------
    score : {"uncertainty", "information_gain", "bald", "random"}
        See `labels.scores`; ties go to the lowest index.
    block : int
        K: labels from one inference to the next, between which marginals are updated by rank one.
    engine : InferenceMethod
        Started from the updated marginals; one outer loop is the paper's choice. From a cold start it is repeated, at
        most ten times, until it says that it converged.
    variances : VarianceEstimator
        Of all cases when a block begins.

    Raises
    ------
    InputError
        For an unknown score, a block of none, or anything but an inference method and a variance estimator.
    """

    score: Score = "uncertainty"
    block: int = 3
    engine: InferenceMethod = field(default_factory=lambda: DoubleLoop(Exact(), outer_iterations=1, tolerance=1e-3))
    variances: VarianceEstimator = field(default_factory=Exact)

    def __post_init__(self) -> None:
        require_choice(get_args(Score), score=self.score)
        require_counts(block=self.block, least=1)
        require_engine(engine=self.engine)
        require_estimator(variances=self.variances)

    def begin(
        self,
        pool: LabelPool,
        indices: ArrayLike,
        labels: ArrayLike,
        rng: np.random.Generator,
        warm_start: WarmStart | None = None,
    ) -> PoolState:
        """A state from the labels there are; a new block begins with it.

        Raises
        ------
        InputError
            As `LabelPool.checked`, and where the inference breaks down.
        """
        require_instance(LabelPool, wanted="a LabelPool", pool=pool)
        require_random(rng)
        places, signs = pool.checked(indices, labels)
        posterior = self._inferred(pool, places, signs, rng, warm_start)
        marginals = PoolMarginals.of(pool, posterior, self.variances, rng)
        return PoolState(pool, places, signs, len(places), posterior, marginals)

    def propose(self, state: PoolState, rng: np.random.Generator) -> PoolChoice:
        """The unlabelled case of the largest score.

        Raises
        ------
        InputError
            Where every case has its label.
        """
        require_random(rng)
        open_cases = state.remaining
        if not open_cases.size:
            raise InputError("pool", "no case without a label", "at least one", "Stop asking.")
        usable = open_cases[state.marginals.valid[open_cases]]
        scores = np.full(state.pool.size, -np.inf)
        if self.score == "random" or not usable.size:  # an under-estimate may have ruled out all that is left
            scores[open_cases] = rng.random(open_cases.size)
        else:
            made = state.marginals
            scores[usable] = RULES[self.score](made.means[usable], made.variances[usable], state.pool.scale)
        return PoolChoice(int(np.argmax(scores)), scores)

    def update(self, state: PoolState, index: int, label: float, rng: np.random.Generator) -> PoolState:
        """The state after one more label: a rank-one update, or an inference where it fills the block.

        Raises
        ------
        InputError
            For a case that is out of range or labelled already, or a label other than +-1.
        """
        places, signs = state.pool.checked(np.append(state.indices, index), np.append(state.labels, label))
        marginals = state.marginals.including(int(index), float(label), places)
        after = PoolState(state.pool, places, signs, state.block_start, state.posterior, marginals)
        if len(places) - state.block_start < self.block:
            return after
        return self.begin(state.pool, places, signs, rng, after.warm_start)

    def ask(
        self,
        state: PoolState,
        oracle: Callable[[int], float],
        count: int,
        rng: np.random.Generator,
        callback: Callable[[PoolState], None] | None = None,
    ) -> PoolState:
        """Propose, ask and update ``count`` times, or until every case has its label.

        Parameters
        ----------
        oracle : callable
            Index of a case to its label, -1 or +1.
        callback : callable, optional
            Called with the state after every label.
        """
        require_counts(count=count, least=0)
        for _ in range(min(count, state.remaining.size)):
            index = self.propose(state, rng).index
            state = self.update(state, index, oracle(index), rng)
            if callback is not None:
                callback(state)
        return state

    def _inferred(
        self, pool: LabelPool, indices: Array, labels: Array, rng: np.random.Generator, warm_start: WarmStart | None
    ) -> GaussianPosterior:
        model = pool.model(indices, labels)
        posterior = self.engine.infer(model, rng, warm_start=warm_start)
        for _ in range(FIRST_INFERENCES - 1 if warm_start is None else 0):
            if posterior.convergence.converged:
                break
            posterior = self.engine.infer(model, rng, warm_start=WarmStart.from_posterior(posterior))
        if posterior.convergence.status is Status.BREAKDOWN:
            raise InputError(
                "pool",
                "an inference that broke down",
                "features of ordinary size",
                "Scale the features to at most one, or give the weights a narrower prior.",
            )
        return posterior
