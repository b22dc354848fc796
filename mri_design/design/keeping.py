"""The slices of a design where they are inferred: what inference goes on from stays with a slice from line to line.

This process keeps them, unless a run gives them to others (`runs.resident`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from mri_design.design.energies import with_unseen_candidates
from mri_design.design.model_choice import CandidateModels, ModelPlan
from mri_design.inference.base import StepInfo, WarmStart, cold_start
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.mr_image import MRSlice
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.variances.base import VarianceEstimator


@dataclass(frozen=True)
class SliceInference:
    """What inference of one slice needs.

    Parameters
    ----------
    mr_slice : MRSlice
        The slice.
    lines : tuple of int
        Lines so far.
    signal : float
        Signal level.
    warm : WarmStart, optional
        Where to start from.
    inference : DoubleLoop
        The engine.
    noise : tuple of int
        Seed of the variances.
    image : complex array, optional
        Without a warm start: another model's mean to start the inner problem from.
    """

    mr_slice: MRSlice
    lines: tuple[int, ...]
    signal: float
    warm: WarmStart | None
    inference: DoubleLoop
    noise: tuple[int, ...]
    image: Array | None = None


def infer_slice(job: SliceInference) -> tuple[GaussianPosterior, bool]:
    """The posterior, and whether its last loop converged."""
    loops: list[StepInfo] = []
    model = job.mr_slice.model(job.lines, job.signal)
    rng = np.random.default_rng(job.noise)
    warm = job.warm
    if warm is None and job.image is not None:
        warm = replace(cold_start(model), mean=job.image)
    posterior = job.inference.infer(model, rng, warm_start=warm, callback=loops.append)
    return posterior, loops[-1].inner.converged and loops[-1].variances.converged


@dataclass(frozen=True)
class Standing:
    """Where inference of a slice stands.

    Parameters
    ----------
    used : int
        The candidate model that the last line was chosen by.
    warm : mapping of int to WarmStart
        By candidate model; empty before the first inference. Models that were never inferred are missing.
    models : int
        How many candidate models there have been.
    """

    used: int = 0
    warm: Mapping[int, WarmStart] = field(default_factory=dict)
    models: int = 1

    @property
    def mean(self) -> Array | None:
        """The image of the model in use; None before the first inference."""
        return self.warm[self.used].mean if self.warm else None


@dataclass(frozen=True)
class InferenceRequest:
    """What the next inference of a slice is to be; it is small, since it may travel to another process for each line.

    Parameters
    ----------
    lines : tuple of int
        Lines so far.
    inference : DoubleLoop
        The engine.
    first_loops, step_loops : int
        Outer loops of a model that is inferred for the first time, and of one that has a warm start.
    noise : tuple of int
        Seed of the variances.
    plan : ModelPlan
        The candidate models to infer.
    """

    lines: tuple[int, ...]
    inference: DoubleLoop
    first_loops: int
    step_loops: int
    noise: tuple[int, ...]
    plan: ModelPlan


@dataclass(frozen=True)
class Found:
    """What an inference of one slice tells those who keep the design.

    Parameters
    ----------
    used : int
        The candidate model whose posterior the strategy sees.
    means : tuple of arrays (ky, kx) or None
        By candidate model; None for those that were not inferred.
    matvecs : int
        Products with A, all models together.
    converged : bool
        Whether the last loop of each did.
    """

    used: int
    means: tuple[Array | None, ...]
    matvecs: int
    converged: bool

    @property
    def mean(self) -> Array:
        """The mean that the strategy sees."""
        mean = self.means[self.used]
        assert mean is not None
        return mean


class KeptSlice:
    """A slice with its warm starts and its last posteriors, in whichever process.

    The same requests in the same order from the same standing give the same posteriors to the last bit, so that a slice
    whose process was lost can be brought to where it stood by asking again.

    Parameters
    ----------
    mr_slice : MRSlice
        The slice; whoever measures fills it.
    signal : float
        Its signal level.
    models : callable, optional
        Its candidate models, given its image so far. Without it the slice is the model.
    standing : Standing
        Where inference begins.
    """

    def __init__(
        self, mr_slice: MRSlice, signal: float, models: CandidateModels | None, standing: Standing | None = None
    ) -> None:
        self._slice, self._signal, self._models = mr_slice, signal, models
        self.standing = Standing() if standing is None else standing
        self._inferred: dict[int, GaussianPosterior] = {}
        self._found: Found | None = None
        self._expecting: GaussianPosterior | None = None

    @property
    def posterior(self) -> GaussianPosterior:
        """That of the model in use."""
        assert self._found is not None
        return self._inferred[self._found.used]

    @property
    def expecting(self) -> GaussianPosterior:
        """The same, knowing that the lines that `expect` was told of last will be measured."""
        return self.posterior if self._expecting is None else self._expecting

    def infer(self, request: InferenceRequest) -> Found:
        """Infer the models that the request asks for."""
        standing, lines = self.standing, request.lines
        variants = self._variants(lines)
        self._inferred, self._expecting = {}, None
        matvecs, converged = 0, True
        for number in request.plan.due(len(variants)):
            warm = standing.warm.get(number)
            again = request.step_loops + request.plan.another_loop(number)
            inference = replace(request.inference, outer_iterations=request.first_loops if warm is None else again)
            image = standing.mean if warm is None else None
            job = SliceInference(variants[number], lines, self._signal, warm, inference, request.noise, image)
            self._inferred[number], done = infer_slice(job)
            matvecs += self._inferred[number].convergence.matvecs
            converged &= done
        known = (self._inferred.get(number) for number in range(len(variants)))
        means = tuple(None if posterior is None else posterior.mean for posterior in known)
        self._found = Found(request.plan.in_use(len(variants)), means, matvecs, converged)
        return self._found

    def expect(self, lines: tuple[int, ...], estimator: VarianceEstimator, noise: tuple[int, ...]) -> tuple[int, bool]:
        """Let the posterior know that ``lines`` will have been measured; the products it took, and convergence."""
        rng = np.random.default_rng(noise)
        self._expecting = with_unseen_candidates(self.expecting, self._slice.candidates, lines, estimator, rng)
        convergence = self._expecting.marginals.convergence
        return convergence.matvecs, convergence.converged

    def measured(self) -> None:
        """The lines chosen by the last posteriors have been measured: the next inference goes on from these."""
        if self._found is None:
            return
        inferred = {number: WarmStart.from_posterior(posterior) for number, posterior in self._inferred.items()}
        models = max(self.standing.models, len(self._found.means))
        self.standing = Standing(self._found.used, {**self.standing.warm, **inferred}, models)

    def _variants(self, lines: Sequence[int]) -> Sequence[MRSlice]:
        if self._models is None:
            return [self._slice]
        mean = self.standing.mean
        return list(self._models(self._slice, self._slice.central_image(lines) if mean is None else mean))


class Keeper(Protocol):
    """Keeps the slices of one design from its beginning on. A design does not depend on where its slices are kept."""

    def begin(self, slices: Iterable[KeptSlice]) -> None:
        """Take the slices over."""
        ...

    def infer(self, requests: Sequence[InferenceRequest]) -> list[Found]:
        """Infer every slice; `posteriors` are the new ones from now on."""
        ...

    def expect(
        self, lines: tuple[int, ...], estimator: VarianceEstimator, noise: Sequence[tuple[int, ...]]
    ) -> list[tuple[int, bool]]:
        """Let every posterior know that ``lines`` will have been measured, see `KeptSlice.expect`."""
        ...

    @property
    def posteriors(self) -> Sequence[GaussianPosterior]:
        """Those of the models in use."""
        ...

    @property
    def expecting(self) -> Sequence[GaussianPosterior]:
        """The same, knowing of the lines that `expect` was told of."""
        ...

    def measured(self) -> None:
        """The lines chosen by the last posteriors have been measured."""
        ...

    @property
    def standings(self) -> Sequence[Standing]:
        """Where every slice stands after the lines measured so far; those kept elsewhere are fetched when looked at."""
        ...


class LocalKeeper:
    """Keeps the slices in this process."""

    def __init__(self) -> None:
        self._slices: list[KeptSlice] = []

    def begin(self, slices: Iterable[KeptSlice]) -> None:
        """See `Keeper`."""
        self._slices = list(slices)

    def infer(self, requests: Sequence[InferenceRequest]) -> list[Found]:
        """See `Keeper`."""
        return [kept.infer(request) for kept, request in zip(self._slices, requests, strict=True)]

    def expect(
        self, lines: tuple[int, ...], estimator: VarianceEstimator, noise: Sequence[tuple[int, ...]]
    ) -> list[tuple[int, bool]]:
        """See `Keeper`."""
        return [kept.expect(lines, estimator, seed) for kept, seed in zip(self._slices, noise, strict=True)]

    @property
    def posteriors(self) -> Sequence[GaussianPosterior]:
        """See `Keeper`."""
        return [kept.posterior for kept in self._slices]

    @property
    def expecting(self) -> Sequence[GaussianPosterior]:
        """See `Keeper`."""
        return [kept.expecting for kept in self._slices]

    def measured(self) -> None:
        """See `Keeper`."""
        for kept in self._slices:
            kept.measured()

    @property
    def standings(self) -> Sequence[Standing]:
        """See `Keeper`."""
        return [kept.standing for kept in self._slices]
