"""The slices of a design: their inference after every line, and what is predicted of a line and found on it.

Inference of a slice goes on from where it stood, in this process (`Keeper`) or in others (`runs.resident`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mri_design.design.energies import image_energy, rows_of
from mri_design.design.trace import Choice, DesignStep, LineOutcome, StepCost
from mri_design.inference.base import StepInfo, WarmStart, with_unseen
from mri_design.inference.double_loop import DoubleLoop
from mri_design.model.mr_image import MRSlice
from mri_design.model.posterior import GaussianPosterior
from mri_design.operators.base import Array
from mri_design.variances.base import VarianceEstimator

STEP, MOST = 2, 16
"""Maps are renewed when a part of 1 / ``STEP`` more lines has come in than they rest on, or ``MOST`` more."""


def map_lines(start: int, count: int) -> int:
    """How many of the first lines of a design its coil maps rest on.

    It depends on the numbers of lines alone, so that a design that was interrupted, one whose slices are in other
    processes and one whose means are made again all look at the same lines.

    Parameters
    ----------
    start : int
        Lines that the design began with.
    count : int
        Lines that are measured.
    """
    known = start
    while (later := known + min(MOST, -(-known // STEP))) <= count and later > known:
        known = later
    return known


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
        Coil maps that are not known are those of the first so many lines (`map_lines`); by default of all.
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
        """Let the posterior know that ``lines`` will have been measured; the products it took, and convergence.

        Under a Gaussian the covariance after a measurement does not depend on the measured values, so candidates can be
        chosen one after another between two acquisitions (echo trains). The widths are those from before.
        """
        rng = np.random.default_rng(noise)
        unseen = rows_of(self.expecting, self._slice.candidates, lines)
        self._expecting = with_unseen(self.expecting, unseen, estimator, rng)
        convergence = self._expecting.marginals.convergence
        return convergence.matvecs, convergence.converged

    def measured(self) -> None:
        """The lines chosen by the last posterior have been measured: the next inference goes on from it."""
        if self._posterior is not None:
            self.warm = WarmStart.from_posterior(self._posterior)


class Keeper:
    """Keeps the slices of one design, from its beginning on, in this process; others may keep them elsewhere.

    A design does not depend on where its slices are kept.
    """

    def __init__(self) -> None:
        self._kept: list[KeptSlice] = []

    def begin(self, slices: Iterable[KeptSlice]) -> None:
        """Take the slices over."""
        self._kept = list(slices)

    def infer(self, requests: Sequence[InferenceRequest]) -> list[Found]:
        """Infer every slice; `posteriors` are the new ones from now on."""
        return [kept.infer(request) for kept, request in zip(self._kept, requests, strict=True)]

    def expect(
        self, lines: tuple[int, ...], estimator: VarianceEstimator, noise: Sequence[tuple[int, ...]]
    ) -> list[tuple[int, bool]]:
        """Let every posterior know that ``lines`` will have been measured, see `KeptSlice.expect`."""
        return [kept.expect(lines, estimator, seed) for kept, seed in zip(self._kept, noise, strict=True)]

    @property
    def posteriors(self) -> Sequence[GaussianPosterior]:
        """The last posterior of every slice."""
        return [kept.posterior for kept in self._kept]

    @property
    def expecting(self) -> Sequence[GaussianPosterior]:
        """The last posteriors, knowing of the lines that `expect` was told of."""
        return [kept.expecting for kept in self._kept]

    def measured(self) -> None:
        """The lines chosen by the last posteriors have been measured."""
        for kept in self._kept:
            kept.measured()

    @property
    def warm_starts(self) -> Sequence[WarmStart]:
        """Where inference of every slice goes on after the lines measured so far; fetched when looked at."""
        return [kept.warm for kept in self._kept if kept.warm is not None]


def innovation(mr_slice: MRSlice, image: Array, line: int) -> float:
    """Energy of y - X_* image on one line, noise included."""
    return float(np.sum(np.abs(mr_slice.acquire([line]) - mr_slice.measurement([line])(image)) ** 2))


def found_energies(mr_slice: MRSlice, image: Array, lines: Sequence[int]) -> NDArray[np.float64]:
    """Energy of y - X_* image on every one of ``lines``, (lines,): by one transform, but for lines with holes."""
    if mr_slice.samples is not None:
        each = (mr_slice.acquire([line]) - mr_slice.measurement([line])(image) for line in lines)
        return np.array([float(np.sum(np.abs(found) ** 2)) for found in each])
    found = mr_slice.acquire(lines) - mr_slice.measurement(lines)(image)
    return mr_slice.candidates.energies(found, lines)


def most_information(energy: float, noise: float, values: int) -> float:
    """Nats of information that a line of complex values can hold at most.

    An upper bound, reached if the values are independent and equally uncertain (Hadamard's and Jensen's inequalities).

    Parameters
    ----------
    energy, noise : float
        Of the error on the line, and of the noise in its data, summed over all values.
    values : int
        How many there are.
    """
    return values * float(np.log1p(energy / noise))


def decided(
    slices: Sequence[MRSlice],
    posteriors: Sequence[GaussianPosterior],
    choice: Choice,
    block: Sequence[DesignStep],
    cost: StepCost,
    together: bool = False,
) -> DesignStep:
    """The decision before its line is measured: its forecast is completed, its outcome is what is predicted of it.

    Parameters
    ----------
    slices : sequence of MRSlice
        Whose noise and coils a line is measured with.
    posteriors : sequence of GaussianPosterior
        What the strategy saw; empty for rules that need none.
    choice : Choice
        What it chose.
    block : sequence of DesignStep
        Decisions that were made from the same inference before this one.
    cost : StepCost
        What it took.
    together : bool
        Whether the lines of the block are chosen from one look, so that the first forecast speaks for all.
    """
    forecast, outcome = choice.forecast, LineOutcome()
    known = block[0].forecast if block and together else forecast
    predicted = known.predicted
    if posteriors and known.expected is not None and predicted is not None:
        # The mean is that of the block's start, and so is what was predicted of it.
        begun = block[0].forecast.predicted if block else None
        believed = predicted if begun is None else begun
        values = [s.candidates.data(s.kspace, [choice.line]).size for s in slices]
        noise = sum(2 * s.noise_variance * count for s, count in zip(slices, values, strict=True))
        outcome = LineOutcome(predicted_energy=float(believed[choice.line] + noise))
        forecast = replace(forecast, image_energy=image_energy(posteriors))
        if np.isnan(forecast.information):
            most = most_information(float(predicted[choice.line]), noise, sum(values))
            forecast = replace(forecast, information=most)
    return DesignStep(replace(choice, forecast=forecast, pending=len(block)), outcome, cost)


def measured(
    slices: Sequence[MRSlice], means: Sequence[Array], steps: Sequence[DesignStep], together: bool = False
) -> list[DesignStep]:
    """A block of decisions once its lines have been measured: what they hold is looked up in the slices.

    Parameters
    ----------
    slices : sequence of MRSlice
        Where the lines' data are.
    means : sequence of complex arrays, shape (ky, kx)
        Of the posteriors that the block was decided from; empty for rules that need none.
    steps : sequence of DesignStep
        From `decided`.
    together : bool
        As there.
    """
    energies: list[float] = []
    if together and means:  # by one transform for all of them
        lines = [step.line for step in steps]
        of_slices = (found_energies(s, mean, lines) for s, mean in zip(slices, means, strict=True))
        energies = np.asarray(sum(of_slices)).tolist()
    known: list[DesignStep] = []
    for number, step in enumerate(steps):
        forecast = steps[0].forecast if together else step.forecast
        if means and forecast.expected is not None:
            each = (innovation(mr_slice, mean, step.line) for mr_slice, mean in zip(slices, means, strict=True))
            found = energies[number] if energies else sum(each)
            step = replace(step, outcome=replace(step.outcome, actual_energy=found))
        known.append(step)
    return known
