"""The slices of a design where they are inferred: what inference goes on from stays with a slice from line to line.

This process keeps them, unless a run gives them to others (`runs.resident`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mri_design.design.energies import with_unseen_candidates
from mri_design.inference.base import StepInfo, WarmStart
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.mr_image import MRSlice
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.variances.base import VarianceEstimator

Refined = Callable[[MRSlice, Array], MRSlice]
"""A slice and its image so far -> its model in the light of that image."""


def infer_slice(
    mr_slice: MRSlice,
    lines: Sequence[int],
    signal: float,
    inference: DoubleLoop,
    noise: Sequence[int],
    warm: WarmStart | None = None,
) -> tuple[GaussianPosterior, bool]:
    """The posterior of a slice, and whether its last loop converged.

    Parameters
    ----------
    mr_slice : MRSlice
        The slice.
    lines : sequence of int
        Lines so far.
    signal : float
        Signal level.
    inference : DoubleLoop
        The engine.
    noise : sequence of int
        Seed of the variances.
    warm : WarmStart, optional
        Where to start from.
    """
    loops: list[StepInfo] = []
    rng = np.random.default_rng(noise)
    posterior = inference.infer(mr_slice.model(lines, signal), rng, warm_start=warm, callback=loops.append)
    return posterior, loops[-1].inner.converged and loops[-1].variances.converged


@dataclass(frozen=True)
class InferenceRequest:
    """Settings of the next inference of a slice; small, since they may travel to another process for each line.

    Parameters
    ----------
    lines : tuple of int
        Lines so far.
    inference : DoubleLoop
        The engine.
    first_loops, step_loops : int
        Outer loops of the first inference, and of every later one, which has a warm start.
    noise : tuple of int
        Seed of the variances.
    map_lines : int, optional
        Coil maps that are not known are those of the first so many lines (`design.map_renewal`); by default of all.
    """

    lines: tuple[int, ...]
    inference: DoubleLoop
    first_loops: int
    step_loops: int
    noise: tuple[int, ...]
    map_lines: int | None = None


@dataclass(frozen=True)
class Found:
    """Result of the inference of one slice, as the design needs it.

    Parameters
    ----------
    mean : complex array, shape (ky, kx)
        Of the posterior.
    matvecs : int
        Products with A.
    converged : bool
        Whether the last inner loop converged.
    """

    mean: Array
    matvecs: int
    converged: bool


class KeptSlice:
    """A slice with its warm start and its last posterior, in whichever process.

    The same requests in the same order from the same warm start give the same posteriors to the last bit, so that a
    slice whose process was lost can be brought to where it stood by asking again.

    Parameters
    ----------
    mr_slice : MRSlice
        The slice; whoever measures fills it.
    signal : float
        Its signal level.
    refined : callable, optional
        Its model in the light of its image so far. Without it the slice is the model.
    warm : WarmStart, optional
        Where inference begins; after every measurement, where it goes on.
    """

    def __init__(
        self, mr_slice: MRSlice, signal: float, refined: Refined | None = None, warm: WarmStart | None = None
    ) -> None:
        self._slice, self._signal, self._refined = mr_slice, signal, refined
        self.warm = warm
        self._posterior: GaussianPosterior | None = None
        self._expecting: GaussianPosterior | None = None

    @property
    def posterior(self) -> GaussianPosterior:
        """The last posterior."""
        assert self._posterior is not None
        return self._posterior

    @property
    def expecting(self) -> GaussianPosterior:
        """The last posterior, knowing that the lines that `expect` was told of last will be measured."""
        return self.posterior if self._expecting is None else self._expecting

    def infer(self, request: InferenceRequest) -> Found:
        """Infer the slice from the lines of the request."""
        model = self._slice.calibrated(request.lines[: request.map_lines], rough=True)
        if self._refined is not None:
            image = model.central_image(request.lines) if self.warm is None else self.warm.mean
            model = self._refined(model, image)
        loops = request.first_loops if self.warm is None else request.step_loops
        inference = replace(request.inference, outer_iterations=loops)
        self._posterior = self._expecting = None  # their memory is free for the next
        posterior, converged = infer_slice(model, request.lines, self._signal, inference, request.noise, self.warm)
        self._posterior = posterior
        return Found(posterior.mean, posterior.convergence.matvecs, converged)

    def expect(self, lines: tuple[int, ...], estimator: VarianceEstimator, noise: tuple[int, ...]) -> tuple[int, bool]:
        """Let the posterior know that ``lines`` will have been measured; the products it took, and convergence."""
        rng = np.random.default_rng(noise)
        self._expecting = with_unseen_candidates(self.expecting, self._slice.candidates, lines, estimator, rng)
        convergence = self._expecting.marginals.convergence
        return convergence.matvecs, convergence.converged

    def measured(self) -> None:
        """The lines chosen by the last posterior have been measured: the next inference goes on from it."""
        if self._posterior is not None:
            self.warm = WarmStart.from_posterior(self._posterior)


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
        """The last posterior of every slice."""
        ...

    @property
    def expecting(self) -> Sequence[GaussianPosterior]:
        """The last posteriors, knowing of the lines that `expect` was told of."""
        ...

    def measured(self) -> None:
        """The lines chosen by the last posteriors have been measured."""
        ...

    @property
    def warm_starts(self) -> Sequence[WarmStart]:
        """Where inference of every slice goes on after the lines measured so far; fetched when looked at."""
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
    def warm_starts(self) -> Sequence[WarmStart]:
        """See `Keeper`."""
        return [kept.warm for kept in self._slices if kept.warm is not None]
